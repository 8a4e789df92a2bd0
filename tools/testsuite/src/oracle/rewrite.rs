//! Rewrites of a query before the reference answers it; for reasons see [`super::reference`].

use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression,
};
use spargebra::term::{
    GroundTerm, GroundTriple, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

/// What the functions are called that the reference gets from us.
pub(super) const FUNCTIONS: &str = "urn:oracle:";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Adapts patterns over a dataset with some named graphs, with fresh names for the middles of
/// paths.
pub(super) struct Rewriter {
    named_graphs: Vec<NamedNode>,
    middles: usize,
}

impl Rewriter {
    pub(super) fn new(named_graphs: Vec<NamedNode>) -> Self {
        Self {
            named_graphs,
            middles: 0,
        }
    }

    /// The pattern without `REDUCED`, without `ORDER BY` where no `LIMIT` depends on it, and with
    /// its paths and `COUNT(DISTINCT *)` adapted.
    pub(super) fn pattern(&mut self, pattern: GraphPattern) -> GraphPattern {
        self.modified(pattern, false)
    }

    fn boxed(&mut self, pattern: GraphPattern) -> Box<GraphPattern> {
        Box::new(self.modified(pattern, false))
    }

    /// Solution modifiers keep whether a limit is above; everything else stands below it.
    fn modified(&mut self, pattern: GraphPattern, is_limited: bool) -> GraphPattern {
        match pattern {
            GraphPattern::Reduced { inner } => self.modified(*inner, is_limited),
            GraphPattern::OrderBy { inner, .. } if !is_limited => self.modified(*inner, false),
            GraphPattern::OrderBy { inner, expression } => GraphPattern::OrderBy {
                inner: self.boxed(*inner),
                expression: expression
                    .into_iter()
                    .map(|key| match key {
                        OrderExpression::Asc(key) => OrderExpression::Asc(self.expression(key)),
                        OrderExpression::Desc(key) => OrderExpression::Desc(self.expression(key)),
                    })
                    .collect(),
            },
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => GraphPattern::Slice {
                inner: Box::new(self.modified(*inner, true)),
                start,
                length,
            },
            GraphPattern::Distinct { inner } => GraphPattern::Distinct {
                inner: Box::new(self.modified(*inner, is_limited)),
            },
            GraphPattern::Project { inner, variables } => GraphPattern::Project {
                inner: Box::new(self.modified(*inner, is_limited)),
                variables,
            },
            other => self.unmodified(other),
        }
    }

    fn unmodified(&mut self, pattern: GraphPattern) -> GraphPattern {
        match pattern {
            GraphPattern::Join { left, right } => GraphPattern::Join {
                left: self.boxed(*left),
                right: self.boxed(*right),
            },
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => GraphPattern::LeftJoin {
                left: self.boxed(*left),
                right: self.boxed(*right),
                expression: expression.map(|expression| self.expression(expression)),
            },
            GraphPattern::Union { left, right } => GraphPattern::Union {
                left: self.boxed(*left),
                right: self.boxed(*right),
            },
            GraphPattern::Lateral { left, right } => GraphPattern::Lateral {
                left: self.boxed(*left),
                right: self.boxed(*right),
            },
            GraphPattern::Minus { left, right } => GraphPattern::Minus {
                left: self.boxed(*left),
                right: self.boxed(*right),
            },
            GraphPattern::Filter { expr, inner } => GraphPattern::Filter {
                expr: self.expression(expr),
                inner: self.boxed(*inner),
            },
            GraphPattern::Graph { name, inner } => {
                let inner = self.boxed(*inner);
                match name {
                    NamedNodePattern::NamedNode(graph) => self.in_graph(graph, inner),
                    NamedNodePattern::Variable(variable) => self.in_each_graph(&variable, &inner),
                }
            }
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => GraphPattern::Extend {
                inner: self.boxed(*inner),
                variable,
                expression: self.expression(expression),
            },
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => self.group(*inner, variables, aggregates),
            GraphPattern::Path {
                subject,
                path,
                object,
            } => self.path(subject, path, object),
            // Without patterns inside, or (modifiers) seen before.
            other => other,
        }
    }

    fn in_graph(&self, graph: NamedNode, inner: Box<GraphPattern>) -> GraphPattern {
        if !self.named_graphs.contains(&graph) {
            return nothing();
        }
        GraphPattern::Graph {
            name: graph.into(),
            inner,
        }
    }

    fn in_each_graph(&self, variable: &Variable, inner: &GraphPattern) -> GraphPattern {
        let branches = self.named_graphs.iter().map(|graph| GraphPattern::Join {
            left: Box::new(values(variable, GroundTerm::NamedNode(graph.clone()))),
            right: Box::new(self.in_graph(graph.clone(), Box::new(inner.clone()))),
        });
        let union = branches.reduce(|left, right| GraphPattern::Union {
            left: Box::new(left),
            right: Box::new(right),
        });
        union.unwrap_or_else(nothing)
    }

    fn group(
        &mut self,
        inner: GraphPattern,
        variables: Vec<Variable>,
        aggregates: Vec<(Variable, AggregateExpression)>,
    ) -> GraphPattern {
        let counts_solutions = aggregates.iter().any(|(_, aggregate)| {
            matches!(
                aggregate,
                AggregateExpression::CountSolutions { distinct: true }
            )
        });
        let inner = if counts_solutions {
            let mut visible = Vec::new();
            inner.on_in_scope_variable(|variable| {
                if !visible.contains(variable) {
                    visible.push(variable.clone());
                }
            });
            Box::new(GraphPattern::Project {
                inner: self.boxed(inner),
                variables: visible,
            })
        } else {
            self.boxed(inner)
        };
        let aggregates = aggregates.into_iter();
        GraphPattern::Group {
            inner,
            variables,
            aggregates: aggregates
                .map(|(variable, aggregate)| (variable, self.aggregate(aggregate)))
                .collect(),
        }
    }

    /// Sums by our reference of numbers, and texts joined as `STR` gives them.
    fn aggregate(&mut self, aggregate: AggregateExpression) -> AggregateExpression {
        let AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        } = aggregate
        else {
            return aggregate;
        };
        let expr = self.expression(expr);
        let (name, expr) = match name {
            AggregateFunction::Sum => (AggregateFunction::Custom(function("sum")), expr),
            AggregateFunction::Avg => (AggregateFunction::Custom(function("avg")), expr),
            AggregateFunction::GroupConcat { separator } => (
                AggregateFunction::GroupConcat { separator },
                Expression::FunctionCall(Function::Str, vec![expr]),
            ),
            other => (other, expr),
        };
        AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        }
    }

    /// SPARQL 1.1, 18.2.2.4 and 18.4: what is left to the reference are closures and negated sets.
    fn path(
        &mut self,
        subject: TermPattern,
        path: PropertyPathExpression,
        object: TermPattern,
    ) -> GraphPattern {
        match path {
            PropertyPathExpression::NamedNode(predicate) => GraphPattern::Bgp {
                patterns: vec![TriplePattern {
                    subject,
                    predicate: NamedNodePattern::NamedNode(predicate),
                    object,
                }],
            },
            PropertyPathExpression::Reverse(inner) => self.path(object, *inner, subject),
            PropertyPathExpression::Sequence(first, second) => {
                self.middles += 1;
                let name = format!("pathMiddle{}", self.middles);
                let middle = TermPattern::Variable(Variable::new_unchecked(name));
                GraphPattern::Join {
                    left: Box::new(self.path(subject, *first, middle.clone())),
                    right: Box::new(self.path(middle, *second, object)),
                }
            }
            PropertyPathExpression::Alternative(first, second) => GraphPattern::Union {
                left: Box::new(self.path(subject.clone(), *first, object.clone())),
                right: Box::new(self.path(subject, *second, object)),
            },
            PropertyPathExpression::NegatedPropertySet(excluded) => {
                self.negated_set(subject, excluded, object)
            }
            closure => closure_path(subject, closure, object),
        }
    }

    /// A triple with a predicate that is none of these, once for each such triple.
    fn negated_set(
        &mut self,
        subject: TermPattern,
        excluded: Vec<NamedNode>,
        object: TermPattern,
    ) -> GraphPattern {
        self.middles += 1;
        let predicate = Variable::new_unchecked(format!("pathPredicate{}", self.middles));
        let excluded = excluded.into_iter().map(Expression::NamedNode).collect();
        let is_excluded = Expression::In(Box::new(predicate.clone().into()), excluded);
        GraphPattern::Filter {
            expr: Expression::Not(Box::new(is_excluded)),
            inner: Box::new(GraphPattern::Bgp {
                patterns: vec![TriplePattern {
                    subject,
                    predicate: predicate.into(),
                    object,
                }],
            }),
        }
    }

    /// The expression with its patterns adapted, its arithmetic and casts by our reference of
    /// numbers, and truth values asked for.
    fn expression(&mut self, expression: Expression) -> Expression {
        match expression {
            Expression::And(a, b) => Expression::And(self.truth(*a), self.truth(*b)),
            Expression::Or(a, b) => Expression::Or(self.truth(*a), self.truth(*b)),
            Expression::Not(a) => Expression::Not(self.truth(*a)),
            Expression::If(condition, a, b) => {
                Expression::If(self.truth(*condition), self.part(*a), self.part(*b))
            }
            Expression::Equal(a, b) => Expression::Equal(self.part(*a), self.part(*b)),
            Expression::SameTerm(a, b) => Expression::SameTerm(self.part(*a), self.part(*b)),
            Expression::Greater(a, b) => Expression::Greater(self.part(*a), self.part(*b)),
            Expression::GreaterOrEqual(a, b) => {
                Expression::GreaterOrEqual(self.part(*a), self.part(*b))
            }
            Expression::Less(a, b) => Expression::Less(self.part(*a), self.part(*b)),
            Expression::LessOrEqual(a, b) => Expression::LessOrEqual(self.part(*a), self.part(*b)),
            Expression::Add(a, b) => self.arithmetic("add", Expression::Add, *a, *b),
            Expression::Subtract(a, b) => self.arithmetic("subtract", Expression::Subtract, *a, *b),
            Expression::Multiply(a, b) => self.arithmetic("multiply", Expression::Multiply, *a, *b),
            Expression::Divide(a, b) => self.arithmetic("divide", Expression::Divide, *a, *b),
            Expression::UnaryPlus(a) => Expression::UnaryPlus(self.part(*a)),
            Expression::UnaryMinus(a) => Expression::UnaryMinus(self.part(*a)),
            Expression::In(a, list) => Expression::In(self.part(*a), self.parts(list)),
            Expression::Coalesce(list) => Expression::Coalesce(self.parts(list)),
            Expression::FunctionCall(Function::Custom(name), arguments) => {
                let number = name.as_str().strip_prefix(XSD);
                let name = match number {
                    Some(to @ ("integer" | "decimal" | "float" | "double" | "boolean")) => {
                        function(to)
                    }
                    _ => name,
                };
                Expression::FunctionCall(Function::Custom(name), self.parts(arguments))
            }
            Expression::FunctionCall(function, arguments) => {
                Expression::FunctionCall(function, self.parts(arguments))
            }
            Expression::Exists(pattern) => Expression::Exists(self.boxed(*pattern)),
            Expression::NamedNode(_)
            | Expression::Literal(_)
            | Expression::Variable(_)
            | Expression::Bound(_) => expression,
        }
    }

    fn part(&mut self, expression: Expression) -> Box<Expression> {
        Box::new(self.expression(expression))
    }

    fn parts(&mut self, expressions: Vec<Expression>) -> Vec<Expression> {
        let expressions = expressions.into_iter();
        expressions.map(|part| self.expression(part)).collect()
    }

    /// The effective boolean value of an expression that may be no boolean.
    fn truth(&mut self, expression: Expression) -> Box<Expression> {
        let may_be_other = matches!(
            expression,
            Expression::Literal(_)
                | Expression::Variable(_)
                | Expression::If(..)
                | Expression::Coalesce(_)
                | Expression::FunctionCall(..)
        );
        let expression = self.expression(expression);
        Box::new(match may_be_other {
            true => Expression::FunctionCall(Function::Custom(function("truth")), vec![expression]),
            false => expression,
        })
    }

    /// Numbers by our reference, anything else by the evaluator.
    fn arithmetic(
        &mut self,
        name: &str,
        make: fn(Box<Expression>, Box<Expression>) -> Expression,
        a: Expression,
        b: Expression,
    ) -> Expression {
        let (a, b) = (self.expression(a), self.expression(b));
        let exact = Function::Custom(function(name));
        Expression::Coalesce(vec![
            Expression::FunctionCall(exact, vec![a.clone(), b.clone()]),
            make(Box::new(a), Box::new(b)),
        ])
    }
}

/// The name of one of our functions.
fn function(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{FUNCTIONS}{name}"))
}

/// No solution.
fn nothing() -> GraphPattern {
    GraphPattern::Values {
        variables: Vec::new(),
        bindings: Vec::new(),
    }
}

/// The solution that binds a variable.
fn values(variable: &Variable, term: GroundTerm) -> GraphPattern {
    GraphPattern::Values {
        variables: vec![variable.clone()],
        bindings: vec![vec![Some(term)]],
    }
}

fn constant(term: &TermPattern) -> Option<GroundTerm> {
    match term {
        TermPattern::NamedNode(node) => Some(node.clone().into()),
        TermPattern::Literal(literal) => Some(literal.clone().into()),
        TermPattern::Triple(triple) => {
            let GroundTerm::NamedNode(subject) = constant(&triple.subject)? else {
                return None;
            };
            let NamedNodePattern::NamedNode(predicate) = triple.predicate.clone() else {
                return None;
            };
            let object = constant(&triple.object)?;
            Some(GroundTerm::Triple(Box::new(GroundTriple {
                subject,
                predicate,
                object,
            })))
        }
        TermPattern::BlankNode(_) | TermPattern::Variable(_) => None,
    }
}

/// A closure or a negated set, with the step of length zero from a constant.
fn closure_path(
    subject: TermPattern,
    path: PropertyPathExpression,
    object: TermPattern,
) -> GraphPattern {
    let zero = match (constant(&subject), constant(&object)) {
        _ if !can_be_empty(&path) => None,
        (Some(from), Some(to)) if from == to => return GraphPattern::default(),
        (Some(term), None) => variable_of(&object).map(|variable| values(variable, term)),
        (None, Some(term)) => variable_of(&subject).map(|variable| values(variable, term)),
        (Some(_), Some(_)) | (None, None) => None,
    };
    let path = GraphPattern::Path {
        subject,
        path,
        object,
    };
    match zero {
        // Closures give each pair once.
        Some(zero) => GraphPattern::Distinct {
            inner: Box::new(GraphPattern::Union {
                left: Box::new(path),
                right: Box::new(zero),
            }),
        },
        None => path,
    }
}

fn variable_of(term: &TermPattern) -> Option<&Variable> {
    match term {
        TermPattern::Variable(variable) => Some(variable),
        _ => None,
    }
}

/// Whether a path may have length zero.
fn can_be_empty(path: &PropertyPathExpression) -> bool {
    match path {
        PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::ZeroOrOne(_) => true,
        PropertyPathExpression::Reverse(inner) | PropertyPathExpression::OneOrMore(inner) => {
            can_be_empty(inner)
        }
        PropertyPathExpression::Sequence(a, b) => can_be_empty(a) && can_be_empty(b),
        PropertyPathExpression::Alternative(a, b) => can_be_empty(a) || can_be_empty(b),
        PropertyPathExpression::NamedNode(_) | PropertyPathExpression::NegatedPropertySet(_) => {
            false
        }
    }
}

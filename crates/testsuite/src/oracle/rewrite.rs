//! What is done to a query before the reference answers it; the reasons are in [`super::reference`].

use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, PropertyPathExpression};
use spargebra::term::{
    GroundTerm, GroundTriple, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

/// Adapts patterns over a dataset with some named graphs, with fresh names for the middles of paths.
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
                expression,
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
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
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

    /// `EXISTS` where it is a condition or part of one by `&&`, `||`, `!`: all that the grammar makes.
    fn expression(&mut self, expression: Expression) -> Expression {
        let mut both = |a: Box<Expression>, b: Box<Expression>| {
            (Box::new(self.expression(*a)), Box::new(self.expression(*b)))
        };
        match expression {
            Expression::And(a, b) => {
                let (a, b) = both(a, b);
                Expression::And(a, b)
            }
            Expression::Or(a, b) => {
                let (a, b) = both(a, b);
                Expression::Or(a, b)
            }
            Expression::Equal(a, b) => {
                let (a, b) = both(a, b);
                Expression::Equal(a, b)
            }
            Expression::Not(inner) => Expression::Not(Box::new(self.expression(*inner))),
            Expression::Exists(pattern) => Expression::Exists(self.boxed(*pattern)),
            other => other,
        }
    }
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

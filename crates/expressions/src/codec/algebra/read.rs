//! The decoder from operators to algebra.

use oxrdf::{NamedNode, Variable};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression,
    PropertyPathExpression,
};

use super::operator::{AggregateFunctionName, AggregateName, Operator};
use crate::codec::error::CodecError;
use crate::codec::terms::TermText;

/// Operators that stand above each other: more than the parser lets through.
const DEPTH_MAX: usize = 24_000;

type Result<T> = std::result::Result<T, CodecError>;

/// A part that was built.
pub(super) enum Built {
    Expression(Expression),
    Pattern(GraphPattern),
    Path(PropertyPathExpression),
}

fn misplaced(wanted: &str) -> CodecError {
    CodecError::damaged(format!("something else stands where {wanted} should"))
}

impl Built {
    pub(super) fn into_expression(self) -> Result<Expression> {
        match self {
            Self::Expression(expression) => Ok(expression),
            Self::Pattern(_) | Self::Path(_) => Err(misplaced("an expression")),
        }
    }

    pub(super) fn into_pattern(self) -> Result<GraphPattern> {
        match self {
            Self::Pattern(pattern) => Ok(pattern),
            Self::Expression(_) | Self::Path(_) => Err(misplaced("a graph pattern")),
        }
    }

    pub(super) fn into_path(self) -> Result<PropertyPathExpression> {
        match self {
            Self::Path(path) => Ok(path),
            Self::Expression(_) | Self::Pattern(_) => Err(misplaced("a property path")),
        }
    }
}

/// What was built so far and is not yet an operand, each with its depth.
#[derive(Default)]
pub(super) struct Builder {
    parts: Vec<(Built, usize)>,
    /// The depth of the deepest operand of the operator at hand.
    depth: usize,
}

impl Builder {
    /// What a list of operators builds.
    pub(super) fn of(operators: &[Operator]) -> Result<Self> {
        let mut builder = Self::default();
        for operator in operators {
            let built = builder.built(operator.clone())?;
            builder.push(built)?;
        }
        Ok(builder)
    }

    fn push(&mut self, built: Built) -> Result<()> {
        let depth = std::mem::take(&mut self.depth) + 1;
        if depth > DEPTH_MAX {
            return Err(CodecError::damaged(format!(
                "more than {DEPTH_MAX} operators stand above each other"
            )));
        }
        self.parts.push((built, depth));
        Ok(())
    }

    fn pop(&mut self) -> Result<Built> {
        let part = self.parts.pop();
        let (built, depth) = part.ok_or_else(|| CodecError::damaged("an operand is missing"))?;
        self.depth = self.depth.max(depth);
        Ok(built)
    }

    /// The one part that is left.
    pub(super) fn last<T>(mut self, into: impl Fn(Built) -> Result<T>) -> Result<T> {
        let last = into(self.pop()?)?;
        match self.parts.is_empty() {
            true => Ok(last),
            false => Err(CodecError::damaged("operands are left over")),
        }
    }

    fn expression(&mut self) -> Result<Expression> {
        self.pop()?.into_expression()
    }

    fn pattern(&mut self) -> Result<Box<GraphPattern>> {
        Ok(Box::new(self.pop()?.into_pattern()?))
    }

    fn path(&mut self) -> Result<Box<PropertyPathExpression>> {
        Ok(Box::new(self.pop()?.into_path()?))
    }

    /// The last so many expressions, in order.
    fn expressions(&mut self, count: usize) -> Result<Vec<Expression>> {
        let mut found = Vec::new();
        for _ in 0..count {
            found.push(self.expression()?);
        }
        found.reverse();
        Ok(found)
    }

    fn unary(&mut self, make: fn(Box<Expression>) -> Expression) -> Result<Built> {
        Ok(Built::Expression(make(Box::new(self.expression()?))))
    }

    fn binary(
        &mut self,
        make: fn(Box<Expression>, Box<Expression>) -> Expression,
    ) -> Result<Built> {
        let right = Box::new(self.expression()?);
        let left = Box::new(self.expression()?);
        Ok(Built::Expression(make(left, right)))
    }

    fn two_patterns(&mut self) -> Result<(Box<GraphPattern>, Box<GraphPattern>)> {
        let right = self.pattern()?;
        Ok((self.pattern()?, right))
    }

    fn two_paths(&mut self) -> Result<(Box<PropertyPathExpression>, Box<PropertyPathExpression>)> {
        let second = self.path()?;
        Ok((self.path()?, second))
    }

    fn built(&mut self, operator: Operator) -> Result<Built> {
        use PropertyPathExpression as Path;
        Ok(match operator {
            Operator::Term(TermText::Iri(iri)) => {
                Built::Expression(NamedNode::new_unchecked(iri).into())
            }
            Operator::Term(TermText::Variable(name)) => {
                Built::Expression(Variable::new_unchecked(name).into())
            }
            Operator::Term(term) => Built::Expression(term.into_literal()?.into()),
            Operator::Bound(name) => {
                Built::Expression(Expression::Bound(Variable::new_unchecked(name)))
            }
            Operator::Or => self.binary(Expression::Or)?,
            Operator::And => self.binary(Expression::And)?,
            Operator::Equal => self.binary(Expression::Equal)?,
            Operator::SameTerm => self.binary(Expression::SameTerm)?,
            Operator::Greater => self.binary(Expression::Greater)?,
            Operator::GreaterOrEqual => self.binary(Expression::GreaterOrEqual)?,
            Operator::Less => self.binary(Expression::Less)?,
            Operator::LessOrEqual => self.binary(Expression::LessOrEqual)?,
            Operator::Add => self.binary(Expression::Add)?,
            Operator::Subtract => self.binary(Expression::Subtract)?,
            Operator::Multiply => self.binary(Expression::Multiply)?,
            Operator::Divide => self.binary(Expression::Divide)?,
            Operator::UnaryPlus => self.unary(Expression::UnaryPlus)?,
            Operator::UnaryMinus => self.unary(Expression::UnaryMinus)?,
            Operator::Not => self.unary(Expression::Not)?,
            Operator::Exists => Built::Expression(Expression::Exists(self.pattern()?)),
            Operator::In(count) => {
                let others = self.expressions(count)?;
                let needle = Box::new(self.expression()?);
                Built::Expression(Expression::In(needle, others))
            }
            Operator::If => {
                let otherwise = Box::new(self.expression()?);
                let then = Box::new(self.expression()?);
                let condition = Box::new(self.expression()?);
                Built::Expression(Expression::If(condition, then, otherwise))
            }
            Operator::Coalesce(count) => {
                Built::Expression(Expression::Coalesce(self.expressions(count)?))
            }
            Operator::Call(function, count) => {
                let arguments = self.expressions(count)?;
                Built::Expression(Expression::FunctionCall(function.into(), arguments))
            }
            Operator::PathPredicate(iri) => {
                Built::Path(Path::NamedNode(NamedNode::new_unchecked(iri)))
            }
            Operator::PathNegated(nodes) => {
                let nodes = nodes.into_iter().map(NamedNode::new_unchecked).collect();
                Built::Path(Path::NegatedPropertySet(nodes))
            }
            Operator::PathReverse => Built::Path(Path::Reverse(self.path()?)),
            Operator::PathZeroOrMore => Built::Path(Path::ZeroOrMore(self.path()?)),
            Operator::PathOneOrMore => Built::Path(Path::OneOrMore(self.path()?)),
            Operator::PathZeroOrOne => Built::Path(Path::ZeroOrOne(self.path()?)),
            Operator::PathSequence => {
                let (first, second) = self.two_paths()?;
                Built::Path(Path::Sequence(first, second))
            }
            Operator::PathAlternative => {
                let (first, second) = self.two_paths()?;
                Built::Path(Path::Alternative(first, second))
            }
            pattern => Built::Pattern(self.built_pattern(pattern)?),
        })
    }

    fn built_pattern(&mut self, operator: Operator) -> Result<GraphPattern> {
        let variables = |names: Vec<String>| -> Vec<Variable> {
            names.into_iter().map(Variable::new_unchecked).collect()
        };
        Ok(match operator {
            Operator::Triples(triples) => GraphPattern::Bgp {
                patterns: triples
                    .into_iter()
                    .map(TermText::into_triple)
                    .collect::<Result<_>>()?,
            },
            Operator::Path(subject, object) => GraphPattern::Path {
                subject: subject.into_pattern()?,
                path: *self.path()?,
                object: object.into_pattern()?,
            },
            Operator::Join => {
                let (left, right) = self.two_patterns()?;
                GraphPattern::Join { left, right }
            }
            Operator::LeftJoin(is_conditional) => {
                let expression = is_conditional.then(|| self.expression()).transpose()?;
                let (left, right) = self.two_patterns()?;
                GraphPattern::LeftJoin {
                    left,
                    right,
                    expression,
                }
            }
            Operator::Filter => GraphPattern::Filter {
                expr: self.expression()?,
                inner: self.pattern()?,
            },
            Operator::Union => {
                let (left, right) = self.two_patterns()?;
                GraphPattern::Union { left, right }
            }
            Operator::Graph(name) => GraphPattern::Graph {
                name: name.into_node_pattern()?,
                inner: self.pattern()?,
            },
            Operator::Extend(name) => GraphPattern::Extend {
                variable: Variable::new_unchecked(name),
                expression: self.expression()?,
                inner: self.pattern()?,
            },
            Operator::Minus => {
                let (left, right) = self.two_patterns()?;
                GraphPattern::Minus { left, right }
            }
            Operator::Lateral => {
                let (left, right) = self.two_patterns()?;
                GraphPattern::Lateral { left, right }
            }
            Operator::Values(names, rows) => {
                if rows.iter().any(|row| row.len() != names.len()) {
                    return Err(CodecError::damaged("a row of VALUES is too long or short"));
                }
                let row = |row: Vec<Option<TermText>>| {
                    let terms = row
                        .into_iter()
                        .map(|term| term.map(TermText::into_ground).transpose());
                    terms.collect::<Result<Vec<_>>>()
                };
                GraphPattern::Values {
                    variables: variables(names),
                    bindings: rows.into_iter().map(row).collect::<Result<_>>()?,
                }
            }
            Operator::OrderBy(descends) => {
                let keys = self.expressions(descends.len())?;
                let keys = keys.into_iter().zip(descends);
                GraphPattern::OrderBy {
                    expression: keys
                        .map(|(key, descends)| match descends {
                            true => OrderExpression::Desc(key),
                            false => OrderExpression::Asc(key),
                        })
                        .collect(),
                    inner: self.pattern()?,
                }
            }
            Operator::Project(names) => GraphPattern::Project {
                inner: self.pattern()?,
                variables: variables(names),
            },
            Operator::Distinct => GraphPattern::Distinct {
                inner: self.pattern()?,
            },
            Operator::Reduced => GraphPattern::Reduced {
                inner: self.pattern()?,
            },
            Operator::Slice(start, length) => GraphPattern::Slice {
                inner: self.pattern()?,
                start,
                length,
            },
            Operator::Group(names, aggregates) => {
                let mut built = Vec::new();
                for aggregate in aggregates.into_iter().rev() {
                    let variable = Variable::new_unchecked(aggregate.variable.clone());
                    built.push((variable, self.aggregate(aggregate)?));
                }
                built.reverse();
                GraphPattern::Group {
                    inner: self.pattern()?,
                    variables: variables(names),
                    aggregates: built,
                }
            }
            Operator::Service(name, silent) => GraphPattern::Service {
                name: name.into_node_pattern()?,
                inner: self.pattern()?,
                silent,
            },
            other => return Err(CodecError::damaged(format!("{other:?} is no pattern"))),
        })
    }

    fn aggregate(&mut self, name: AggregateName) -> Result<AggregateExpression> {
        use AggregateFunctionName as Name;
        let function = match name.function {
            Name::Solutions => {
                return Ok(AggregateExpression::CountSolutions {
                    distinct: name.is_distinct,
                });
            }
            Name::Count => AggregateFunction::Count,
            Name::Sum => AggregateFunction::Sum,
            Name::Avg => AggregateFunction::Avg,
            Name::Min => AggregateFunction::Min,
            Name::Max => AggregateFunction::Max,
            Name::Sample => AggregateFunction::Sample,
            Name::GroupConcat(separator) => AggregateFunction::GroupConcat { separator },
            Name::Custom(iri) => AggregateFunction::Custom(NamedNode::new_unchecked(iri)),
        };
        Ok(AggregateExpression::FunctionCall {
            name: function,
            expr: self.expression()?,
            distinct: name.is_distinct,
        })
    }
}

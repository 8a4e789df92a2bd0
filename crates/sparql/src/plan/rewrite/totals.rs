//! Aggregates that are combined from those of parts.
//!
//! ```text
//! COUNT(*)      SUM of nothing but weights        a solution stands for as many as the product of the weights says
//! SUM(?x)       SUM of ?x by the weights
//! COUNT(?x)     SUM of 1 where ?x has a value, else of 0, by the weights
//! AVG(?x)       the quotient of both, and 0 of no solution
//! MIN, MAX, SAMPLE, and what is of DISTINCT values         as they are: how often a solution comes is nothing to them
//! ```

use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};
use spargebra::term::Literal;

use crate::algebra::expression::{is_volatile, variables};
use crate::algebra::{Var, VarSet, VariableTable};

/// An aggregate over solutions that stand for several.
#[derive(Clone, Debug)]
pub(super) enum Total {
    /// The sum of the products of a value, 1 if there is none, and weights.
    Sum {
        value: Option<Expression>,
        weights: Vec<Var>,
    },
    /// What is the same however often a solution comes.
    OfAny(AggregateExpression),
}

/// Where an aggregate is computed when a part is taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
}

impl Total {
    /// The number of solutions.
    pub(super) fn count() -> Self {
        Self::Sum {
            value: None,
            weights: Vec::new(),
        }
    }

    fn sum(value: Expression) -> Self {
        Self::Sum {
            value: Some(value),
            weights: Vec::new(),
        }
    }

    /// An aggregate that is no average.
    pub(super) fn of(aggregate: &AggregateExpression) -> Self {
        match aggregate {
            AggregateExpression::CountSolutions { distinct: false } => Self::count(),
            AggregateExpression::FunctionCall {
                name: AggregateFunction::Sum,
                expr,
                distinct: false,
            } => Self::sum(expr.clone()),
            AggregateExpression::FunctionCall {
                name: AggregateFunction::Count,
                expr,
                distinct: false,
            } => Self::sum(one_where_it_has_a_value(expr)),
            other => Self::OfAny(other.clone()),
        }
    }

    /// Where it is computed when a part with such variables of its own and such a separator is
    /// taken away; `None` if nowhere.
    pub(super) fn side(
        &self,
        own: &VarSet,
        separator: &VarSet,
        table: &VariableTable,
    ) -> Option<Side> {
        let read = match self {
            Self::Sum { value, .. } => value.as_ref(),
            Self::OfAny(aggregate) => argument_of(aggregate),
        };
        let read = read.map(|it| variables(it, table)).unwrap_or_default();
        if !read.intersects(own) {
            return Some(Side::Above);
        }
        let is_possible = read.is_subset(&own.union(separator)) && self.can_be_merged();
        is_possible.then_some(Side::Below)
    }

    /// Whether it is an aggregate of the aggregates of parts.
    fn can_be_merged(&self) -> bool {
        match self {
            Self::Sum { .. } => true,
            Self::OfAny(AggregateExpression::FunctionCall { name, distinct, .. }) => {
                let is_extreme = matches!(name, AggregateFunction::Min | AggregateFunction::Max);
                is_extreme || !distinct
            }
            Self::OfAny(AggregateExpression::CountSolutions { .. }) => false,
        }
    }

    /// The weights that are variables of a part.
    pub(super) fn weights_of(&self, own: &VarSet) -> Vec<Var> {
        match self {
            Self::Sum { weights, .. } => {
                let weights = weights.iter().copied();
                weights.filter(|weight| own.contains(*weight)).collect()
            }
            Self::OfAny(_) => Vec::new(),
        }
    }

    /// The aggregate of a part that [`merged`](Self::merged) is made of.
    pub(super) fn partial(&self, own: &VarSet, table: &VariableTable) -> AggregateExpression {
        match self {
            Self::Sum { value, .. } => sum_of(value.clone(), &self.weights_of(own), table),
            Self::OfAny(aggregate) => aggregate.clone(),
        }
    }

    /// The total of what a part with such variables of its own has computed.
    pub(super) fn merged(self, partial: Expression, own: &VarSet) -> Self {
        match self {
            Self::Sum { weights, .. } => Self::Sum {
                value: Some(partial),
                weights: others(weights, own),
            },
            Self::OfAny(AggregateExpression::FunctionCall { name, .. }) => {
                Self::OfAny(AggregateExpression::FunctionCall {
                    name,
                    expr: partial,
                    distinct: false,
                })
            }
            Self::OfAny(other) => Self::OfAny(other),
        }
    }

    /// The total where a part, which may have had weights, has one.
    pub(super) fn weighted(self, own: &VarSet, weight: Var) -> Self {
        match self {
            Self::Sum { value, weights } => {
                let mut weights = others(weights, own);
                weights.push(weight);
                Self::Sum { value, weights }
            }
            Self::OfAny(aggregate) => Self::OfAny(aggregate),
        }
    }

    /// The aggregate that computes it.
    pub(super) fn aggregate(&self, table: &VariableTable) -> AggregateExpression {
        match self {
            Self::Sum { value, weights } => sum_of(value.clone(), weights, table),
            Self::OfAny(aggregate) => aggregate.clone(),
        }
    }
}

fn others(mut weights: Vec<Var>, own: &VarSet) -> Vec<Var> {
    weights.retain(|weight| !own.contains(*weight));
    weights
}

/// The sum of a value by weights.
pub(super) fn sum_of(
    value: Option<Expression>,
    weights: &[Var],
    table: &VariableTable,
) -> AggregateExpression {
    let factors = weights.iter().map(|weight| table.read(*weight));
    let product = value
        .into_iter()
        .chain(factors)
        .reduce(|product, factor| Expression::Multiply(Box::new(product), Box::new(factor)));
    match product {
        None => AggregateExpression::CountSolutions { distinct: false },
        Some(expr) => AggregateExpression::FunctionCall {
            name: AggregateFunction::Sum,
            expr,
            distinct: false,
        },
    }
}

/// The average: 0 of nothing, as SPARQL has it.
pub(super) fn quotient(sum: Expression, count: Expression) -> Expression {
    let is_none = Expression::Equal(Box::new(count.clone()), Box::new(number(0)));
    let quotient = Expression::Divide(Box::new(sum), Box::new(count));
    Expression::If(Box::new(is_none), Box::new(number(0)), Box::new(quotient))
}

fn one_where_it_has_a_value(expression: &Expression) -> Expression {
    let value = || Box::new(expression.clone());
    let has_value = match expression {
        Expression::Variable(variable) => Expression::Bound(variable.clone()),
        _ => {
            // An error is none.
            let is_itself = Expression::SameTerm(value(), value());
            Expression::Coalesce(vec![is_itself, Expression::Literal(false.into())])
        }
    };
    Expression::If(
        Box::new(has_value),
        Box::new(number(1)),
        Box::new(number(0)),
    )
}

pub(super) fn number(number: i64) -> Expression {
    Expression::Literal(Literal::from(number))
}

/// What an aggregate reads.
fn argument_of(aggregate: &AggregateExpression) -> Option<&Expression> {
    match aggregate {
        AggregateExpression::CountSolutions { .. } => None,
        AggregateExpression::FunctionCall { expr, .. } => Some(expr),
    }
}

/// Whether an aggregate can be put together from those of parts, at least where its argument stays
/// above.
pub(super) fn can_be_split(aggregate: &AggregateExpression) -> bool {
    match aggregate {
        AggregateExpression::CountSolutions { distinct } => !distinct,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::GroupConcat { .. } | AggregateFunction::Custom(_),
            ..
        } => false,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Avg,
            expr,
            distinct,
        } => !distinct && !is_volatile(expr),
        AggregateExpression::FunctionCall { expr, .. } => !is_volatile(expr),
    }
}

//! The analysis of `SERVICE`: variables that must be bound before an endpoint is asked.
//!
//! The pattern goes there as text. spargebra writes a group without braces where it thinks that
//! the text means the same; a filter inside a join, or a subquery below a projection, would
//! change its scope. [`explicit`] puts such parts into a group of their own.

use std::sync::Arc;

use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use super::expression::{is_volatile, map_children};
use super::{Var, VarSet};

/// Solutions that an endpoint is expected to have for a pattern that nothing restricts.
const ROWS_OF_ANYTHING: f64 = 1e6;
/// By how much a constant subject or object is expected to divide them.
const CONSTANT_DIVISOR: f64 = 1e3;

/// A pattern for another endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) endpoint: ServiceEndpoint,
    /// Its display means the pattern.
    pub(crate) pattern: Arc<GraphPattern>,
    pub(crate) is_silent: bool,
    /// Whether it may be asked repeatedly, with keys of the other side.
    pub(crate) is_repeatable: bool,
    /// The variables in scope: the name there and the variable here, and whether every solution
    /// binds it.
    pub(crate) variables: Vec<(Variable, Var, bool)>,
    /// Expected solutions.
    pub(crate) rows: f64,
}

/// Whom to ask.
#[derive(Clone, Debug)]
pub(crate) enum ServiceEndpoint {
    Iri(Arc<str>),
    Variable(Var),
}

impl Service {
    pub(crate) fn new(
        endpoint: ServiceEndpoint,
        pattern: &GraphPattern,
        is_silent: bool,
        mut variable: impl FnMut(&Variable) -> Var,
    ) -> Self {
        let surely = certain(pattern);
        let mut variables: Vec<(Variable, Var, bool)> = Vec::new();
        pattern.on_in_scope_variable(|name| {
            if !variables.iter().any(|(known, _, _)| known == name) {
                let is_certain = !is_silent && surely.contains(&name);
                variables.push((name.clone(), variable(name), is_certain));
            }
        });
        Self {
            endpoint,
            is_silent,
            is_repeatable: is_repeatable(pattern),
            variables,
            rows: expected_rows(pattern),
            pattern: Arc::new(explicit(pattern.clone())),
        }
    }

    pub(crate) fn visible(&self) -> VarSet {
        let asked = self.variables.iter().map(|(_, var, _)| *var);
        VarSet::of(asked.chain(self.endpoint_variable()))
    }

    pub(crate) fn certain(&self) -> VarSet {
        let asked = self
            .variables
            .iter()
            .filter(|(_, _, is_certain)| *is_certain);
        VarSet::of(
            asked
                .map(|(_, var, _)| *var)
                .chain(self.endpoint_variable()),
        )
    }

    pub(crate) fn endpoint_variable(&self) -> Option<Var> {
        match self.endpoint {
            ServiceEndpoint::Iri(_) => None,
            ServiceEndpoint::Variable(var) => Some(var),
        }
    }
}

/// The variables that every solution of a pattern binds.
pub(super) fn certain(pattern: &GraphPattern) -> Vec<&Variable> {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => {
            let mut all = Vec::new();
            pattern.on_in_scope_variable(|variable| all.push(variable));
            all
        }
        GraphPattern::Join { left, right } | GraphPattern::Lateral { left, right } => {
            [certain(left), certain(right)].concat()
        }
        GraphPattern::Union { left, right } => {
            let right = certain(right);
            let left = certain(left).into_iter();
            left.filter(|variable| right.contains(variable)).collect()
        }
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => certain(left),
        GraphPattern::Graph { name, inner } => {
            let mut all = certain(inner);
            if let NamedNodePattern::Variable(variable) = name {
                all.push(variable);
            }
            all
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => certain(inner),
        GraphPattern::Project { inner, variables } => {
            let inner = certain(inner);
            let projected = variables.iter();
            projected
                .filter(|variable| inner.contains(variable))
                .collect()
        }
        GraphPattern::Group {
            inner, variables, ..
        } => {
            let inner = certain(inner);
            let keys = variables.iter();
            keys.filter(|variable| inner.contains(variable)).collect()
        }
        GraphPattern::Values {
            variables,
            bindings,
        } => {
            let columns = variables.iter().enumerate();
            let bound = columns.filter(|(at, _)| bindings.iter().all(|row| row[*at].is_some()));
            bound.map(|(_, variable)| variable).collect()
        }
        // What it promises, another endpoint would have to keep.
        GraphPattern::Service { .. } => Vec::new(),
    }
}

/// Whether asking for parts gives what asking once gives, at no more cost.
fn is_repeatable(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Slice { .. } | GraphPattern::Group { .. } => false,
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => true,
        GraphPattern::Join { left, right }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => is_repeatable(left) && is_repeatable(right),
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            let is_stable = expression.as_ref().is_none_or(|e| !is_volatile(e));
            is_stable && is_repeatable(left) && is_repeatable(right)
        }
        GraphPattern::Filter { expr, inner } => !is_volatile(expr) && is_repeatable(inner),
        GraphPattern::Extend {
            inner, expression, ..
        } => !is_volatile(expression) && is_repeatable(inner),
        GraphPattern::Graph { inner, .. }
        | GraphPattern::Service { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => is_repeatable(inner),
    }
}

/// A guess, for nothing is known of the other side's data: what names something has few solutions.
fn expected_rows(pattern: &GraphPattern) -> f64 {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns
            .iter()
            .map(expected_matches)
            .fold(ROWS_OF_ANYTHING, f64::min),
        GraphPattern::Path {
            subject, object, ..
        } => expected_of_ends(subject, object),
        GraphPattern::Join { left, right } | GraphPattern::Lateral { left, right } => {
            expected_rows(left).min(expected_rows(right))
        }
        GraphPattern::Union { left, right } => expected_rows(left) + expected_rows(right),
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => {
            expected_rows(left)
        }
        GraphPattern::Slice { inner, length, .. } => {
            #[expect(clippy::cast_precision_loss, reason = "a guess")]
            let length = length.map_or(f64::INFINITY, |length| length as f64);
            expected_rows(inner).min(length)
        }
        GraphPattern::Group { variables, .. } if variables.is_empty() => 1.0,
        #[expect(clippy::cast_precision_loss, reason = "a guess")]
        GraphPattern::Values { bindings, .. } => bindings.len() as f64,
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Service { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Group { inner, .. } => expected_rows(inner),
    }
}

fn expected_matches(pattern: &TriplePattern) -> f64 {
    expected_of_ends(&pattern.subject, &pattern.object)
}

fn expected_of_ends(subject: &TermPattern, object: &TermPattern) -> f64 {
    let is_constant =
        |term: &&TermPattern| matches!(term, TermPattern::NamedNode(_) | TermPattern::Literal(_));
    match [subject, object]
        .iter()
        .copied()
        .filter(is_constant)
        .count()
    {
        0 => ROWS_OF_ANYTHING,
        1 => ROWS_OF_ANYTHING / CONSTANT_DIVISOR,
        _ => 1.0,
    }
}

/// The same pattern, so that its display reads as the same pattern again.
fn explicit(pattern: GraphPattern) -> GraphPattern {
    match pattern {
        GraphPattern::Join { left, right } => joined(explicit_below(*left), explicit(*right)),
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => GraphPattern::LeftJoin {
            left: Box::new(explicit_below(*left)),
            right: Box::new(explicit_below(*right)),
            expression: expression.map(explicit_exists),
        },
        GraphPattern::Lateral { left, right } => GraphPattern::Lateral {
            left: Box::new(explicit_below(*left)),
            right: Box::new(explicit(*right)),
        },
        GraphPattern::Minus { left, right } => GraphPattern::Minus {
            left: Box::new(explicit_below(*left)),
            right: Box::new(explicit(*right)),
        },
        GraphPattern::Filter { expr, inner } => GraphPattern::Filter {
            expr: explicit_exists(expr),
            inner: Box::new(explicit(*inner)),
        },
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => GraphPattern::Extend {
            inner: Box::new(explicit_below(*inner)),
            variable,
            expression: explicit_exists(expression),
        },
        GraphPattern::Union { left, right } => GraphPattern::Union {
            left: Box::new(explicit(*left)),
            right: Box::new(explicit(*right)),
        },
        GraphPattern::Graph { name, inner } => GraphPattern::Graph {
            name,
            inner: Box::new(explicit(*inner)),
        },
        GraphPattern::Service {
            name,
            inner,
            silent,
        } => GraphPattern::Service {
            name,
            inner: Box::new(explicit(*inner)),
            silent,
        },
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } => GraphPattern::Group {
            inner: Box::new(explicit(*inner)),
            variables,
            aggregates: aggregates
                .into_iter()
                .map(|(variable, aggregate)| (variable, explicit_aggregate(aggregate)))
                .collect(),
        },
        GraphPattern::Project { inner, variables } => GraphPattern::Project {
            inner: Box::new(match *inner {
                ordered @ GraphPattern::OrderBy { .. } => explicit(ordered),
                other => explicit_below_projection(other),
            }),
            variables,
        },
        GraphPattern::OrderBy { inner, expression } => GraphPattern::OrderBy {
            inner: Box::new(explicit_below_projection(*inner)),
            expression: expression.into_iter().map(explicit_key).collect(),
        },
        GraphPattern::Distinct { inner } => GraphPattern::Distinct {
            inner: Box::new(explicit(*inner)),
        },
        GraphPattern::Reduced { inner } => GraphPattern::Reduced {
            inner: Box::new(explicit(*inner)),
        },
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => GraphPattern::Slice {
            inner: Box::new(explicit(*inner)),
            start,
            length,
        },
        leaf @ (GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Values { .. }) => leaf,
    }
}

/// As what another operator is written after, or around of: a filter would grow, modifiers would
/// become those of the query around.
fn explicit_below(pattern: GraphPattern) -> GraphPattern {
    match explicit(pattern) {
        grouped @ (GraphPattern::Filter { .. }
        | GraphPattern::OrderBy { .. }
        | GraphPattern::Project { .. }
        | GraphPattern::Distinct { .. }
        | GraphPattern::Reduced { .. }
        | GraphPattern::Slice { .. }) => in_group(grouped),
        other => other,
    }
}

/// Below a projection computed variables may become part of its `SELECT`; filters stay.
fn explicit_below_projection(pattern: GraphPattern) -> GraphPattern {
    match pattern {
        filter @ GraphPattern::Filter { .. } => explicit(filter),
        other => explicit_below(other),
    }
}

/// `{ pattern }`: what is joined to the empty pattern is written in braces.
fn in_group(pattern: GraphPattern) -> GraphPattern {
    GraphPattern::Join {
        left: Box::new(GraphPattern::default()),
        right: Box::new(pattern),
    }
}

/// A join that leans to the left, as text is read.
fn joined(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    match right {
        GraphPattern::Join {
            left: first,
            right: second,
        } => joined(joined(left, *first), *second),
        right => GraphPattern::Join {
            left: Box::new(left),
            right: Box::new(right),
        },
    }
}

fn explicit_exists(expression: Expression) -> Expression {
    if let Expression::Exists(pattern) = expression {
        return Expression::Exists(Box::new(explicit(*pattern)));
    }
    let mapped = map_children(expression, &mut |child| {
        Ok::<_, std::convert::Infallible>(explicit_exists(child))
    });
    match mapped {
        Ok(expression) => expression,
        Err(never) => match never {},
    }
}

fn explicit_key(key: OrderExpression) -> OrderExpression {
    match key {
        OrderExpression::Asc(expression) => OrderExpression::Asc(explicit_exists(expression)),
        OrderExpression::Desc(expression) => OrderExpression::Desc(explicit_exists(expression)),
    }
}

fn explicit_aggregate(aggregate: AggregateExpression) -> AggregateExpression {
    match aggregate {
        AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        } => AggregateExpression::FunctionCall {
            name,
            expr: explicit_exists(expr),
            distinct,
        },
        count @ AggregateExpression::CountSolutions { .. } => count,
    }
}

//! Which patterns inside of `GRAPH ?g` must be taken apart graph by graph.
//!
//! Usually the variable of the graph stands in every quad, and all graphs are matched at once. That is not
//! enough where an operator keeps solutions that read no quad (`GRAPH ?g { OPTIONAL { .. } }` has one for
//! each graph), or where it asks which variables are bound on both sides (`MINUS`).

use spargebra::algebra::{GraphPattern, PropertyPathExpression};

use crate::algebra::expression::has_exists;

/// Whether an operator inside would not see the graphs one by one.
pub(super) fn needs_each_graph(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::LeftJoin { left, right, .. } => {
            !reads_quads(left) || needs_each_graph(left) || needs_each_graph(right)
        }
        GraphPattern::Minus { left, right } => {
            !reads_quads(left)
                || !binds_all(right)
                || needs_each_graph(left)
                || needs_each_graph(right)
        }
        GraphPattern::Filter { expr, inner } => {
            (has_exists(expr) && !reads_quads(inner)) || needs_each_graph(inner)
        }
        GraphPattern::Join { left, right } | GraphPattern::Union { left, right } => {
            needs_each_graph(left) || needs_each_graph(right)
        }
        GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => needs_each_graph(inner),
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Values { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Service { .. }
        | GraphPattern::Slice { .. }
        | GraphPattern::Group { .. }
        | GraphPattern::Project { .. } => false,
    }
}

/// Whether every solution reads a quad of the graph.
fn reads_quads(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => !patterns.is_empty(),
        GraphPattern::Path { path, .. } => walks(path),
        GraphPattern::Join { left, right } => reads_quads(left) || reads_quads(right),
        GraphPattern::Union { left, right } => reads_quads(left) && reads_quads(right),
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => reads_quads(left),
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => reads_quads(inner),
        GraphPattern::Values { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Service { .. }
        | GraphPattern::Slice { .. }
        | GraphPattern::Group { .. }
        | GraphPattern::Project { .. } => false,
    }
}

/// Whether a path has at least one step.
fn walks(path: &PropertyPathExpression) -> bool {
    match path {
        PropertyPathExpression::NamedNode(_) | PropertyPathExpression::NegatedPropertySet(_) => {
            true
        }
        PropertyPathExpression::Reverse(inner) | PropertyPathExpression::OneOrMore(inner) => {
            walks(inner)
        }
        PropertyPathExpression::Sequence(a, b) => walks(a) || walks(b),
        PropertyPathExpression::Alternative(a, b) => walks(a) && walks(b),
        PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::ZeroOrOne(_) => false,
    }
}

/// Whether every solution binds all variables of the pattern.
fn binds_all(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => true,
        GraphPattern::Join { left, right } => binds_all(left) && binds_all(right),
        GraphPattern::Filter { inner, .. } => binds_all(inner),
        _ => false,
    }
}

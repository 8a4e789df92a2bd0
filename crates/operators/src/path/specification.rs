//! The specification of a path operator.

use std::sync::Arc;

use spargebra::algebra::PropertyPathExpression;

use crate::pattern::{GraphScope, Slot};

/// The specification of a [`PathExec`](super::PathExec).
#[derive(Clone, Debug)]
pub struct PathSpecification {
    /// Where the path starts.
    pub subject: Slot,
    /// The path.
    pub path: PropertyPathExpression,
    /// Where it ends.
    pub object: Slot,
    /// The graphs to walk in. A path stays within one graph (or one merge of graphs).
    pub graph: GraphScope,
    /// Whether it does not matter how often a solution comes: then it comes once where that is
    /// cheaper.
    pub is_set: bool,
    /// The variables of the output, in order; a variable that is bound nowhere gives a column of
    /// nulls.
    pub output: Vec<Arc<str>>,
}

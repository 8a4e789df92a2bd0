//! The specification of a `SERVICE` operator.

use std::sync::Arc;

use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;

/// The endpoint: an IRI, or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `SERVICE <iri>`.
    Iri(Arc<str>),
    /// `SERVICE ?variable`: the input binds it, row by row.
    Variable(Arc<str>),
}

/// A variable of the pattern that is asked for.
#[derive(Clone, Debug)]
pub struct ServiceVariable {
    /// Its name in the pattern.
    pub name: Variable,
    /// Its column here.
    pub column: Arc<str>,
    /// Whether every solution of the pattern binds it; an answer without it is refused.
    pub is_certain: bool,
}

/// The specification of a [`ServiceExec`](super::ServiceExec).
#[derive(Clone, Debug)]
pub struct ServiceSpecification {
    /// Whom to ask.
    pub endpoint: Endpoint,
    /// What: a pattern whose display means the pattern.
    pub pattern: GraphPattern,
    /// Whether a failure counts as one solution without bindings.
    pub is_silent: bool,
    /// Whether the input's terms for shared variables are sent along.
    pub sends_keys: bool,
    /// The variables of the pattern that are asked for: those of the output and the shared ones.
    pub variables: Vec<ServiceVariable>,
    /// The variables of the output, in order.
    pub output: Vec<Arc<str>>,
}

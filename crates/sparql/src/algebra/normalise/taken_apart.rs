//! Triple terms taken apart in patterns, as [`triple_terms`](super::triple_terms) collects them.

use spargebra::algebra::{Expression, Function};

use crate::algebra::Var;

/// A variable that a pattern binds to a triple term, and what its parts have to be.
pub(super) struct TakenApart {
    pub(super) triple: Var,
    pub(super) parts: [(Function, TripleTermPart); 3],
}

/// A part of a triple term in a pattern.
pub(super) enum TripleTermPart {
    Constant(Expression),
    Variable(Var),
}

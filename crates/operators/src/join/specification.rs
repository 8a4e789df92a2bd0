//! The specification of a join of solutions.

use std::sync::Arc;

use spargebra::algebra::Expression;

/// The effect of compatible right solutions on a left one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinMode {
    /// One merged solution per compatible right one.
    Inner,
    /// As inner; a left solution without any comes through as it is (`OPTIONAL`).
    Left,
    /// The left solutions that have none (`NOT EXISTS`).
    Anti,
    /// The left solutions that have one, once each (`EXISTS`).
    Semi,
    /// The left solutions that have none which also shares a bound variable with them (`MINUS`).
    /// Some shared variables must agree like all others, but do not count for that.
    Minus(Vec<Uncounted>),
    /// Every left solution, with this further variable: whether it has one, as an `xsd:boolean`.
    Mark(Arc<str>),
}

impl JoinMode {
    /// Whether only the existence of a compatible solution counts.
    pub(super) fn is_existence(&self) -> bool {
        match self {
            Self::Inner | Self::Left => false,
            Self::Anti | Self::Semi | Self::Minus(_) | Self::Mark(_) => true,
        }
    }
}

/// A shared variable that `MINUS` does not count, for it stands for a term: inside of `EXISTS` the
/// outer row has replaced it (SPARQL 1.1, 18.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// The variable.
    pub variable: Arc<str>,
    /// A variable of the left side: where it is unbound, the variable counts after all.
    pub witness: Option<Arc<str>>,
}

/// The specification of a [`SolutionJoinExec`](super::SolutionJoinExec).
#[derive(Clone, Debug)]
pub struct JoinSpecification {
    /// What becomes of the left solutions.
    pub mode: JoinMode,
    /// Conditions that a merged solution must fulfil to count as a match; `MINUS` has none.
    pub filters: Vec<Expression>,
    /// The variables of the output, in order. One that is bound nowhere gives a column of nulls.
    /// Anti, semi, minus and mark joins can only give variables of the left side (and the mark).
    pub output: Vec<Arc<str>>,
}

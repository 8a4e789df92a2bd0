//! The errors of encoding and decoding expressions.

use thiserror::Error;

/// The reason why an expression cannot be encoded or decoded.
#[derive(Debug, Error)]
pub enum CodecError {
    /// There is no description of such a thing.
    #[error("{0} cannot be sent to another process")]
    CannotTravel(String),
    /// The description says what cannot be.
    #[error("the description of an expression is damaged: {0}")]
    Damaged(String),
    /// What is described cannot be made here.
    #[error(transparent)]
    Expression(#[from] crate::Error),
}

impl CodecError {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

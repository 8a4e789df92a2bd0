//! The errors of full-text indexes.

use std::io;

/// An index could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The files cannot be read.
    #[error("{0}")]
    Io(io::Error),
    /// The files are not what was written.
    #[error("{0}")]
    Damaged(String),
    /// The search was given up.
    #[error("the search was stopped")]
    Stopped,
}

impl From<tantivy::TantivyError> for TextError {
    fn from(error: tantivy::TantivyError) -> Self {
        match error {
            tantivy::TantivyError::IoError(error) => {
                Self::Io(io::Error::new(error.kind(), error.to_string()))
            }
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// A query that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (character {})", at + 1)]
pub struct QueryError {
    /// Before which character, counted from 0.
    pub at: usize,
    /// What is wrong there, and what to write.
    pub what: String,
}

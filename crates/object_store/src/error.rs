//! What can go wrong between a database and its object store, and how the storage is told.
//!
//! The storage knows files: an error here becomes one of its errors with the path that it asked for ([`ObjectError::at`]), so that an
//! object that is missing is a file that is missing.

use std::io;
use std::path::{Path, PathBuf};

use orrery_storage::Error;

/// An error of an object store, or of what was found there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// An address names no place for a database.
    #[error(
        "{address} is no place for a database: {what}; write s3://BUCKET/PREFIX or file:///DIRECTORY"
    )]
    Address {
        /// The address as it was given.
        address: String,
        /// What is wrong with it.
        what: String,
    },
    /// The store answered with an error, again and again where that could help.
    #[error("cannot {operation} {object} in {store}: {source}")]
    Store {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The object's name below the database's address.
        object: String,
        /// The database's address.
        store: String,
        /// What the store said.
        source: Box<object_store::Error>,
    },
    /// The store did not answer.
    #[error(
        "cannot {operation} {object} in {store}: no answer within {seconds} seconds; look at the network and the store"
    )]
    TimedOut {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The object's name below the database's address.
        object: String,
        /// The database's address.
        store: String,
        /// How long the last try waited.
        seconds: u64,
    },
    /// An object does not hold what was put there.
    #[error("{object} in {store} is damaged: {what}; restore the database from a backup")]
    Damaged {
        /// The object's name below the database's address.
        object: String,
        /// The database's address.
        store: String,
        /// What was found.
        what: String,
    },
    /// A failure of the local disk, where files are written before they are sent.
    #[error("cannot {operation} {}: {source}", path.display())]
    Local {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The local path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The tasks that speak with stores could not be started, or one ended without an answer.
    #[error("a task of the program that speaks with object stores ended without an answer: {what}")]
    Task {
        /// What is known of it.
        what: String,
    },
    /// A failure of the storage's own files, or of the cache.
    #[error(transparent)]
    Storage(#[from] Error),
}

/// What came of asking a store.
pub(crate) type Asked<T> = std::result::Result<T, ObjectError>;

impl ObjectError {
    /// Whether the object is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Store { source, .. } if matches!(**source, object_store::Error::NotFound { .. }))
    }

    /// Whether the store has understood and refused, so that nothing was changed and another try would bring the same.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Store { source, .. } if is_permanent(source))
    }

    /// The same as an error of the storage about a path.
    pub(crate) fn at(self, path: &Path, operation: &'static str) -> Error {
        let path = path.to_path_buf();
        match self {
            Self::Storage(error) => error,
            Self::Local {
                operation,
                path,
                source,
            } => Error::from_io(&path, operation, source),
            Self::Damaged { .. } => Error::Corrupt {
                path,
                offset: 0,
                what: self.to_string(),
            },
            other if other.is_not_found() => Error::NotFound { path, operation },
            other => Error::Io {
                path,
                operation,
                source: io::Error::other(other),
            },
        }
    }
}

/// Whether asking once more would bring the same answer.
pub(crate) fn is_permanent(error: &object_store::Error) -> bool {
    use object_store::Error as Answer;
    matches!(
        error,
        Answer::NotFound { .. }
            | Answer::InvalidPath { .. }
            | Answer::NotSupported { .. }
            | Answer::AlreadyExists { .. }
            | Answer::Precondition { .. }
            | Answer::NotModified { .. }
            | Answer::NotImplemented { .. }
            | Answer::PermissionDenied { .. }
            | Answer::Unauthenticated { .. }
            | Answer::UnknownConfigurationKey { .. }
    )
}

//! The errors of TLS files.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A file that TLS cannot be served with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl TlsError {
    pub(crate) fn new(path: &Path, reason: impl Display) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

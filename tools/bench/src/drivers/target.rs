//! The target of a workload: a database that is served for it, or an endpoint.

use std::fmt::Display;
use std::path::PathBuf;

use super::{BenchError, Binary, ServerProcess};

/// What is asked.
#[derive(Clone, Debug)]
pub enum Target {
    /// A database, by a server of ours that is started on it and ends with the run.
    Database {
        /// The program that serves.
        binary: Binary,
        /// The directory.
        directory: PathBuf,
    },
    /// An endpoint for queries and updates that somebody serves.
    Endpoint(String),
}

/// A target that answers.
#[derive(Debug)]
pub(super) struct Serving {
    endpoint: String,
    /// Held to the end: the server stops with it.
    _server: Option<ServerProcess>,
}

impl Serving {
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

/// Something of a workload that went wrong.
pub(super) fn failed(what: impl Display, why: impl Display) -> BenchError {
    BenchError::Workload {
        what: what.to_string(),
        message: why.to_string(),
    }
}

impl Target {
    /// Serves it, with further arguments for a server of ours.
    pub(super) fn serve(&self, more: &[&str]) -> Result<Serving, BenchError> {
        match self {
            Self::Endpoint(endpoint) => Ok(Serving {
                endpoint: endpoint.clone(),
                _server: None,
            }),
            Self::Database { binary, directory } => {
                let server = binary.serve_with(directory, more)?;
                Ok(Serving {
                    endpoint: server.endpoint().to_owned(),
                    _server: Some(server),
                })
            }
        }
    }
}

//! The Social Network Benchmark: validation, and the mix.

mod clients;
mod mix;
mod schedule;
mod validate;
mod walk;

use std::fmt::Display;
use std::path::PathBuf;

use super::{BenchError, Binary, ServerProcess};

pub use mix::{KindTimes, SnbOptions, SnbReport, SnbRun, snb};
pub use validate::{Difference, KindReport, ValidationReport, validate};

/// What is asked.
#[derive(Clone, Debug)]
pub enum SnbTarget {
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
    fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

/// Something of the benchmark that went wrong.
fn failed(what: impl Display, why: impl Display) -> BenchError {
    BenchError::Snb {
        what: what.to_string(),
        message: why.to_string(),
    }
}

impl SnbTarget {
    fn serve(&self) -> Result<Serving, BenchError> {
        match self {
            Self::Endpoint(endpoint) => Ok(Serving {
                endpoint: endpoint.clone(),
                _server: None,
            }),
            Self::Database { binary, directory } => {
                let server = binary.serve(directory)?;
                Ok(Serving {
                    endpoint: server.endpoint().to_owned(),
                    _server: Some(server),
                })
            }
        }
    }
}

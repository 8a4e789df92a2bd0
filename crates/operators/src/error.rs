//! The errors of building and running operators.
//!
//! Errors of SPARQL itself (`1 + "a"`, an unbound variable in an arithmetic expression) are not
//! among them: they are values, a null in a column. What stands here ends the query.

use datafusion_common::DataFusionError;
use thiserror::Error;

/// The reason why an operator cannot be built, or its query ends early.
#[derive(Debug, Error)]
pub enum Error {
    /// Reading the database failed.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    /// The generic engine failed: out of memory, cancelled, no space to spill.
    #[error(transparent)]
    Engine(#[from] DataFusionError),
    /// The runtime refuses what the query needs, such as more time to be planned.
    #[error(transparent)]
    Runtime(#[from] orrery_runtime::Error),
    /// The query aggregates with a function that is not known.
    #[error(
        "there is no aggregate function <{iri}>; beside SPARQL's own there are those of geof: (docs/geo.md)"
    )]
    UnknownAggregate {
        /// The IRI in the query.
        iri: String,
    },
    /// An expression cannot be compiled or evaluated.
    #[error(transparent)]
    Expression(orrery_expressions::Error),
    /// Something that the operators cannot run.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// Another endpoint was asked and did not answer as it should.
    #[error("SERVICE <{endpoint}>: {message}")]
    Service {
        /// The endpoint.
        endpoint: String,
        /// What went wrong.
        message: String,
        /// Whether it took too long.
        is_timeout: bool,
    },
}

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<orrery_expressions::Error> for Error {
    fn from(error: orrery_expressions::Error) -> Self {
        match error {
            orrery_expressions::Error::Storage(error) => Self::Storage(error),
            orrery_expressions::Error::Engine(error) => Self::Engine(error),
            other => Self::Expression(other),
        }
    }
}

impl From<Error> for DataFusionError {
    /// An engine error stays what it was, so that the memory limit is still recognized above.
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error,
            Error::Runtime(error) => error.into(),
            other => Self::External(Box::new(other)),
        }
    }
}

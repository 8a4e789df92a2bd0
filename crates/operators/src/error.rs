//! What can go wrong while a query's operators are built or run.
//!
//! Errors of SPARQL itself (`1 + "a"`, an unbound variable in an arithmetic expression) are not
//! among them: they are values, a null in a column. What stands here ends the query.

use datafusion_common::DataFusionError;
use thiserror::Error;

/// Why an operator cannot be built, or why its query ends early.
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
    /// The query calls a function by an IRI that names none.
    #[error("the function <{iri}> is not known; the casts of XML Schema datatypes are")]
    UnknownFunction {
        /// The IRI in the query.
        iri: String,
    },
    /// The query aggregates with a function that is not known.
    #[error("the aggregate function <{iri}> is not known")]
    UnknownAggregate {
        /// The IRI in the query.
        iri: String,
    },
    /// A function is called with too few or too many arguments.
    #[error("{function} takes {expected} argument(s), but {actual} are given")]
    ArgumentCount {
        /// The function as written in the query.
        function: String,
        /// How many it takes.
        expected: &'static str,
        /// How many there are.
        actual: usize,
    },
    /// Something that the operators cannot run.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The base IRI that was given is none.
    #[error("the base IRI <{iri}> is not an absolute IRI: {reason}")]
    BaseIri {
        /// What was given.
        iri: String,
        /// What the parser says of it.
        reason: String,
    },
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
    /// An id that stands for no term met a place where a term is needed. A sign of a damaged
    /// file, or of ids that crossed from one query to another.
    #[error("the id {id:?} stands for no term of this query")]
    NoSuchTerm {
        /// The id.
        id: orrery_term::TermId,
    },
}

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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

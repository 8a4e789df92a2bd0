//! The errors of compiling and evaluating expressions.
//!
//! Errors of SPARQL itself (`1 + "a"`, an unbound variable in an arithmetic expression) are not
//! among them: they are values, a null in a column. What stands here ends the query.

use std::time::Duration;

use datafusion_common::DataFusionError;
use thiserror::Error;

/// The reason why an expression cannot be compiled, or its query ends early.
#[derive(Debug, Error)]
pub enum Error {
    /// Reading the database failed.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    /// The generic engine failed: out of memory, cancelled, no space to spill.
    #[error(transparent)]
    Engine(#[from] DataFusionError),
    /// The query calls a function by an IRI that names none.
    #[error("{}", no_such_function(iri))]
    UnknownFunction {
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
    /// Rows of a batch together need more memory than they may have; fewer at a time do not. Who
    /// evaluates a batch takes fewer then, so that nobody else sees it.
    #[error("too many rows at once for the memory that there is")]
    TooMuchAtOnce,
    /// The query ran longer than it may.
    #[error("the query ran longer than its limit of {} s", limit.as_secs_f64())]
    OutOfTime {
        /// The limit.
        limit: Duration,
    },
    /// Nobody takes the answer any more.
    #[error("nobody waits for the answer any more")]
    NobodyWaits,
    /// Something that expressions cannot do.
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

impl Error {
    /// Whether fewer rows at a time may do.
    pub(crate) fn is_of_many_rows(&self) -> bool {
        matches!(
            self,
            Self::TooMuchAtOnce | Self::Engine(DataFusionError::ResourcesExhausted(_))
        )
    }
}

impl From<Error> for DataFusionError {
    /// An engine error stays what it was, so that the memory limit is still recognized above.
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error,
            other => Self::External(Box::new(other)),
        }
    }
}

/// What to say of a function that does not exist, and which there are instead.
fn no_such_function(iri: &str) -> String {
    let prefixes = [
        (orrery_geo::NAMESPACE, "geof"),
        (orrery_geo::JENA, "spatialF"),
    ];
    for (namespace, prefix) in prefixes {
        if let Some(name) = iri.strip_prefix(namespace) {
            return format!("there is no {prefix}:{name}; see docs/geo.md");
        }
    }
    if let Some(name) = iri.strip_prefix(orrery_term::vocabulary::xsd::NAMESPACE) {
        return format!(
            "there is no cast xsd:{name}; casts are xsd:integer, xsd:decimal, xsd:double, xsd:string and the like"
        );
    }
    format!(
        "there is no function <{iri}>; beside SPARQL's own there are casts such as xsd:integer, and geof: (docs/geo.md)"
    )
}

//! The errors of queries and updates, by what the caller can do about them.
//!
//! DataFusion's errors are translated here once: a refused memory reservation
//! becomes [`QueryError::OutOfMemory`], an error that one of our operators put
//! into the `External` variant comes back as itself.

use std::time::Duration;

use datafusion_common::DataFusionError;
use orrery_runtime::{is_refused_by_account, words_of_refusal};
use orrery_storage::{ByteCount, without_numbers};
use orrery_syntax::SyntaxError;

/// What the parts of this crate give, or why not.
pub(crate) type Result<T> = std::result::Result<T, QueryError>;

/// The reason why a query or an update failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The text is not SPARQL.
    #[error("syntax error at line {line}, column {column}: {message}")]
    Syntax {
        /// What was found and what was expected.
        message: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What the parser knows of it, if it was the parser that found it.
        detail: Option<Box<SyntaxError>>,
    },
    /// The query is right, and asks for something that is not there.
    #[error("not supported: {what}")]
    Unsupported {
        /// The construct.
        what: String,
    },
    /// The query ran longer than it may.
    #[error("the query ran longer than its limit of {} s; ask for less, or raise the limit", limit.as_secs_f64())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// The query needs more memory than it may have, even when spilling.
    #[error(
        "this query needs more than --memory ({}) allows: {message}; ask for less, or raise --memory",
        ByteCount(*limit_bytes)
    )]
    OutOfMemory {
        /// The budget of the engine.
        limit_bytes: u64,
        /// What asked for how much.
        message: String,
    },
    /// The query needs more memory than the requests of whoever asks may hold together.
    #[error("{message}; ask for less, or when another of your requests has ended")]
    MemoryOfAccount {
        /// What asked for how much, of how much.
        message: String,
    },
    /// The answer has more solutions or triples than whoever asks may have.
    #[error("the answer has more than the {rows_max} rows that are allowed; ask for less")]
    TooManyRows {
        /// How many are allowed.
        rows_max: u64,
    },
    /// Other queries have all that may be on its way; there was no room for one more in time.
    #[error("other queries hold all of --memory; try again in a moment, or raise --memory")]
    Busy,
    /// Whoever asks has no touches left
    /// ([`QueryOptions::spending`](crate::QueryOptions::spending)).
    #[error(
        "the budget of touches is used up and nothing was done; try again when there is some again, or ask for less"
    )]
    OverBudget,
    /// `SERVICE`: another endpoint did not answer as it should.
    #[error("SERVICE <{endpoint}>: {message}")]
    Service {
        /// The endpoint.
        endpoint: String,
        /// What went wrong.
        message: String,
        /// Whether it took too long.
        is_timeout: bool,
    },
    /// An update needs answers of other endpoints, which are not asked while other writers wait:
    /// its transaction is to be dropped, [`Engine::ask`](crate::Engine::ask) called, and the update
    /// applied again to another transaction.
    #[error("the update cannot be applied before other endpoints were asked")]
    AskFirst,
    /// The update is right, and cannot be done on the data as they are.
    #[error("the update failed and nothing was changed: {message}")]
    UpdateFailed {
        /// Which operation failed, and of what.
        message: String,
    },
    /// Whoever asks has no right to it.
    #[error("{message}")]
    Forbidden {
        /// What is refused.
        message: String,
    },
    /// The store could not be read or written.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    /// A fault of ours.
    #[error("internal error, please report it: {message}")]
    Internal {
        /// What was seen.
        message: String,
    },
}

impl QueryError {
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::Forbidden {
            message: message.into(),
        }
    }

    pub(crate) fn update_failed(message: impl Into<String>) -> Self {
        Self::UpdateFailed {
            message: message.into(),
        }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::Internal {
            message: without_numbers(&message.into()),
        }
    }

    /// Fills in the budget where it was not known.
    pub(crate) fn with_limit(self, limit_bytes: u64) -> Self {
        match self {
            Self::OutOfMemory {
                limit_bytes: 0,
                message,
            } => Self::OutOfMemory {
                limit_bytes,
                message,
            },
            other => other,
        }
    }

    /// Translates an error of the runtime, unwrapping our own where they travelled in it.
    pub(crate) fn from_datafusion(error: DataFusionError, limit_bytes: u64) -> Self {
        match error {
            DataFusionError::ResourcesExhausted(message) => Self::exhausted(&message, limit_bytes),
            DataFusionError::External(inner) => Self::from_external(inner, limit_bytes),
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
                Self::from_datafusion(*inner, limit_bytes)
            }
            DataFusionError::ArrowError(arrow, backtrace) => match *arrow {
                arrow::error::ArrowError::ExternalError(inner) => {
                    Self::from_external(inner, limit_bytes)
                }
                other => Self::internal(
                    DataFusionError::ArrowError(Box::new(other), backtrace).to_string(),
                ),
            },
            DataFusionError::Shared(shared) => match shared.find_root() {
                DataFusionError::ResourcesExhausted(message) => {
                    Self::exhausted(message, limit_bytes)
                }
                root => Self::of_shared(root).unwrap_or_else(|| Self::internal(shared.to_string())),
            },
            DataFusionError::NotImplemented(what) => Self::Unsupported { what },
            other => Self::internal(other.to_string()),
        }
    }

    /// What a memory pool refused.
    fn exhausted(message: &str, limit_bytes: u64) -> Self {
        let words = words_of_refusal(message);
        match is_refused_by_account(message) {
            true => Self::MemoryOfAccount { message: words },
            false => Self::OutOfMemory {
                limit_bytes,
                message: words,
            },
        }
    }

    /// What the operators say in an error that several readers share, which cannot be taken out of
    /// it.
    fn of_shared(error: &DataFusionError) -> Option<Self> {
        let DataFusionError::External(inner) = error else {
            return None;
        };
        if let Some(error) = inner.downcast_ref() {
            return Some(Self::of_expression(error));
        }
        match inner.downcast_ref()? {
            orrery_operators::Error::Expression(error) => Some(Self::of_expression(error)),
            orrery_operators::Error::Service {
                endpoint,
                message,
                is_timeout,
            } => Some(Self::Service {
                endpoint: endpoint.clone(),
                message: message.clone(),
                is_timeout: *is_timeout,
            }),
            _ => None,
        }
    }

    /// Translates an error of expressions that is none of the store or the engine.
    fn of_expression(error: &orrery_expressions::Error) -> Self {
        match error {
            orrery_expressions::Error::OutOfTime { limit } => Self::Timeout { limit: *limit },
            orrery_expressions::Error::NoSuchTerm { .. } => Self::internal(error.to_string()),
            // A function that is not known, a wrong number of arguments, and the like.
            other => Self::Unsupported {
                what: other.to_string(),
            },
        }
    }

    /// Translates an error of our operators.
    pub(crate) fn from_operators(error: orrery_operators::Error, limit_bytes: u64) -> Self {
        match error {
            orrery_operators::Error::Storage(error) => Self::Storage(error),
            orrery_operators::Error::Engine(error) => Self::from_datafusion(error, limit_bytes),
            orrery_operators::Error::Service {
                endpoint,
                message,
                is_timeout,
            } => Self::Service {
                endpoint,
                message,
                is_timeout,
            },
            orrery_operators::Error::Runtime(error) => Self::from_runtime(error, limit_bytes),
            orrery_operators::Error::Expression(error) => Self::of_expression(&error),
            other => Self::Unsupported {
                what: other.to_string(),
            },
        }
    }

    /// Translates what the runtime refuses.
    pub(crate) fn from_runtime(error: orrery_runtime::Error, limit_bytes: u64) -> Self {
        match error {
            orrery_runtime::Error::OutOfTime { limit } => Self::Timeout { limit },
            orrery_runtime::Error::Busy => Self::Busy,
            orrery_runtime::Error::OverBudget { .. } => Self::OverBudget,
            orrery_runtime::Error::Engine(error) => Self::from_datafusion(error, limit_bytes),
        }
    }

    fn from_external(inner: Box<dyn std::error::Error + Send + Sync>, limit_bytes: u64) -> Self {
        let inner = match inner.downcast::<QueryError>() {
            Ok(own) => return *own,
            Err(inner) => inner,
        };
        let inner = match inner.downcast::<orrery_storage::Error>() {
            Ok(storage) => return Self::Storage(*storage),
            Err(inner) => inner,
        };
        let inner = match inner.downcast::<orrery_operators::Error>() {
            Ok(operator) => return Self::from_operators(*operator, limit_bytes),
            Err(inner) => inner,
        };
        let inner = match inner.downcast::<orrery_runtime::Error>() {
            Ok(refused) => return Self::from_runtime(*refused, limit_bytes),
            Err(inner) => inner,
        };
        let inner = match inner.downcast::<orrery_expressions::Error>() {
            Ok(expression) => return Self::from_operators((*expression).into(), limit_bytes),
            Err(inner) => inner,
        };
        match inner.downcast::<DataFusionError>() {
            Ok(nested) => Self::from_datafusion(*nested, limit_bytes),
            Err(inner) => Self::internal(inner.to_string()),
        }
    }
}

impl From<SyntaxError> for QueryError {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax {
            message: error.message(),
            line: error.line,
            column: error.column,
            detail: Some(Box::new(error)),
        }
    }
}

impl From<orrery_expressions::Error> for QueryError {
    fn from(error: orrery_expressions::Error) -> Self {
        Self::from_operators(error.into(), 0)
    }
}

impl From<orrery_operators::Error> for QueryError {
    fn from(error: orrery_operators::Error) -> Self {
        Self::from_operators(error, 0)
    }
}

impl From<orrery_runtime::Error> for QueryError {
    fn from(error: orrery_runtime::Error) -> Self {
        Self::from_runtime(error, 0)
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        Self::from_datafusion(error, 0)
    }
}

impl From<QueryError> for DataFusionError {
    fn from(error: QueryError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

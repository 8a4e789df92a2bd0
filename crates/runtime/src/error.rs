//! The errors of the runtime: refused memory, time or touches.

use std::time::Duration;

use datafusion_common::DataFusionError;

/// What was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The query was planned for longer than it may, or nobody waits for the plan any more.
    #[error("planning took longer than the limit of {} s", limit.as_secs_f64())]
    OutOfTime {
        /// The limit.
        limit: Duration,
    },
    /// Other queries have all that may be on its way; there was no room for one more in time.
    #[error("other queries hold all of --memory; try again in a moment, or raise --memory")]
    Busy,
    /// Whoever asks has no touches left ([`crate::Spending::spend`]).
    #[error("{words}")]
    OverBudget {
        /// Whose budget it is, and when there is some again, in the words of who limits it.
        words: String,
    },
    /// A pool has no more, or the place for spills cannot be had.
    #[error(transparent)]
    Engine(#[from] DataFusionError),
}

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Error> for DataFusionError {
    /// A refused reservation stays what it was, so that the memory limit is still recognized above.
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error,
            other => Self::External(Box::new(other)),
        }
    }
}

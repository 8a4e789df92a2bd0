//! The limits of a sender that a request can reach, as errors in words.

use std::time::Duration;

use orrery_storage::ByteCount;

use crate::metrics::SpentLimit;

/// The sender's limit that a request has reached.
#[expect(missing_docs, reason = "the sentence of each variant says what it is")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error(
        "{max} of your requests are running already, as many as may; try again when one has ended"
    )]
    Concurrent { max: u32 },
    #[error(
        "the budget of {touches} touches in {seconds} s is used up; there is some again in {} s",
        wait.as_secs() + 1
    )]
    Cost {
        touches: u64,
        seconds: u64,
        /// Time until some of the budget is refilled.
        wait: Duration,
    },
    /// The request costs more than the whole budget.
    #[error(
        "this costs {needed} touches, and you may use {touches} in {seconds} s; send less at a time, or ask an administrator for a larger limit"
    )]
    TooDear {
        needed: u64,
        touches: u64,
        seconds: u64,
    },
    #[error("the answer has more than the {max} rows that you may have; ask for less")]
    Rows { max: u64 },
    #[error("the answer has more than the {} that you may have; ask for less", ByteCount(*max))]
    Bytes { max: u64 },
}

impl Exceeded {
    /// Whether a limit was passed, not just reached.
    pub(super) fn is_overdrawn(self) -> bool {
        match self {
            Self::Cost { wait, .. } => !wait.is_zero(),
            Self::Concurrent { .. }
            | Self::TooDear { .. }
            | Self::Rows { .. }
            | Self::Bytes { .. } => true,
        }
    }

    /// The limit's kind, for the metrics.
    pub fn limit(self) -> SpentLimit {
        match self {
            Self::Concurrent { .. } => SpentLimit::Concurrent,
            Self::Cost { .. } | Self::TooDear { .. } => SpentLimit::Cost,
            Self::Rows { .. } => SpentLimit::Rows,
            Self::Bytes { .. } => SpentLimit::Bytes,
        }
    }

    /// Seconds until another try is worthwhile, if waiting helps.
    pub fn retry_after_s(self) -> Option<u64> {
        match self {
            Self::Concurrent { .. } => Some(1),
            Self::Cost { wait, .. } => Some(wait.as_secs() + 1),
            Self::TooDear { .. } | Self::Rows { .. } | Self::Bytes { .. } => None,
        }
    }
}

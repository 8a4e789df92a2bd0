//! The time limit of a statement.

use std::time::Duration;

use crate::errors::ServiceError;

/// A time limit, and the part of it that is spent.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// The whole limit.
    pub limit: Duration,
    /// The largest limit that the client could ask for.
    pub maximum: Duration,
    /// Time spent before the query itself began.
    pub spent: Duration,
}

impl TimeLimit {
    /// The time that is left.
    pub fn left(self) -> Duration {
        self.limit.saturating_sub(self.spent)
    }

    /// The same limit, capped at `maximum`.
    #[must_use]
    pub fn within(self, maximum: Duration) -> Self {
        Self {
            limit: self.limit.min(maximum),
            maximum: self.maximum.min(maximum),
            ..self
        }
    }

    /// The client's error once the limit is reached.
    pub fn exceeded(self) -> ServiceError {
        ServiceError::Timeout {
            limit: self.limit,
            maximum: self.maximum,
        }
    }
}

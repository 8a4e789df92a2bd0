//! How long a statement may work.

use std::time::Duration;

use crate::errors::ServiceError;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// The whole of it.
    pub limit: Duration,
    /// What the client could ask for at most.
    pub maximum: Duration,
    /// What was needed of it before the query itself began.
    pub spent: Duration,
}

impl TimeLimit {
    /// What is left of it.
    pub fn left(self) -> Duration {
        self.limit.saturating_sub(self.spent)
    }

    /// The same, and no more than this.
    #[must_use]
    pub fn within(self, maximum: Duration) -> Self {
        Self {
            limit: self.limit.min(maximum),
            maximum: self.maximum.min(maximum),
            ..self
        }
    }

    /// What the client is told when it is over.
    pub fn exceeded(self) -> ServiceError {
        ServiceError::Timeout {
            limit: self.limit,
            maximum: self.maximum,
        }
    }
}

//! What the time of a request was spent on: measured as it happens, told to metrics and traces afterwards.

use std::time::{Duration, Instant};

/// The stages, in their order. `write` is that of the answer of a query, and the change of an update with its turn and its way to the disk.
pub const STAGES: [&str; 5] = ["wait", "parse", "plan", "run", "write"];

/// See the module. Parts of a stage that take turns with others are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages {
    /// When the first one began.
    pub begun: Instant,
    spent: [Duration; STAGES.len()],
}

impl Stages {
    /// In the order of [`STAGES`].
    pub fn new(begun: Instant, spent: [Duration; STAGES.len()]) -> Self {
        Self { begun, spent }
    }

    /// What each has taken, in their order.
    pub fn spent(&self) -> impl Iterator<Item = Duration> + use<> {
        self.spent.into_iter()
    }
}

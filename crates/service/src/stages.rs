//! The time of a request, by stage: measured while it runs, reported to metrics and traces
//! afterwards.

use std::time::{Duration, Instant};

/// The stages, in order. `write` is that of a query's answer, or an update's change with its turn
/// and its sync to the disk.
pub const STAGES: [&str; 5] = ["wait", "parse", "plan", "run", "write"];

/// The time spent per stage. Parts of a stage that alternate with others are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages {
    /// Start of the first stage.
    pub begun: Instant,
    spent: [Duration; STAGES.len()],
}

impl Stages {
    /// In the order of [`STAGES`].
    pub fn new(begun: Instant, spent: [Duration; STAGES.len()]) -> Self {
        Self { begun, spent }
    }

    /// The time spent in each stage, in order.
    pub fn spent(&self) -> impl Iterator<Item = Duration> + use<> {
        self.spent.into_iter()
    }
}

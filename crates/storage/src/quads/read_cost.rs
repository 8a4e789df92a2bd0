//! The cost counter of reads, in touches of rows.

use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was read through a view so far.
#[derive(Debug, Default)]
pub(crate) struct ReadCost {
    look_ups: AtomicU64,
    rows: AtomicU64,
}

/// The figures of a `ReadCost`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Ranges that were searched for.
    pub look_ups: u64,
    /// Rows of which at least one column was read. A range that is read again counts again.
    pub rows: u64,
}

impl Sub for ReadCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            look_ups: self.look_ups.saturating_sub(before.look_ups),
            rows: self.rows.saturating_sub(before.rows),
        }
    }
}

impl ReadCost {
    /// Adds what a cursor did; cursors do so when they go.
    pub(crate) fn add(&self, counts: ReadCounts) {
        self.look_ups.fetch_add(counts.look_ups, Ordering::Relaxed);
        self.rows.fetch_add(counts.rows, Ordering::Relaxed);
    }

    /// What was read by cursors that are gone.
    pub(crate) fn counts(&self) -> ReadCounts {
        ReadCounts {
            look_ups: self.look_ups.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
        }
    }
}

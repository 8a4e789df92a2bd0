//! Counters of distributed work.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was divided since the process began.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) divided: AtomicU64,
    pub(crate) begun_anew: AtomicU64,
    pub(crate) alone: AtomicU64,
    pub(crate) worked_for: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl Counts {
    /// To look at, with so many queries that are open.
    pub(crate) fn figures(&self, open: u64) -> Figures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            divided: of(&self.divided),
            begun_anew: of(&self.begun_anew),
            alone: of(&self.alone),
            worked_for: of(&self.worked_for),
            bytes: of(&self.bytes),
            open,
        }
    }

    pub(crate) fn one(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A copy of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Queries that were asked here, and run by several processes.
    pub divided: u64,
    /// How often such a query began anew because a process was lost.
    pub begun_anew: u64,
    /// Queries that were to be divided, and were run here alone in the end.
    pub alone: u64,
    /// Queries of which this process ran parts, its own among them.
    pub worked_for: u64,
    /// Bytes of rows that came from other processes.
    pub bytes: u64,
    /// Queries of which parts are open here now.
    pub open: u64,
}

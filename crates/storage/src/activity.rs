//! Counters of what the storage has done since the database was opened, for metrics:
//!
//! ```text
//! log writers -> LogActivity    records, bytes, fdatasyncs
//! maintenance -> Work           checkpoints, compactions, loads: runs, failures, time, whether one is under way
//! ```
//!
//! Counting takes relaxed additions, beside work that goes to the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::durations::Durations;

/// What an fdatasync of the log takes: from a disk with a cache that survives, to one that is
/// overloaded.
const SYNC_BOUNDS_US: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000,
];

/// See the module.
#[derive(Debug, Default)]
pub struct Activity {
    /// Of the log of commits.
    pub log: Arc<LogActivity>,
    /// Changes in memory that become files.
    pub checkpoints: Work,
    /// Base and changes that become a new base.
    pub compactions: Work,
    /// Tables whose changes become part of their files.
    pub table_compactions: Work,
    /// Loads into the running database, and changes that memory did not hold.
    pub loads: Work,
}

/// Counters of the commit log.
#[derive(Debug)]
pub struct LogActivity {
    records: AtomicU64,
    bytes: AtomicU64,
    syncs: Durations,
    failed_syncs: AtomicU64,
}

impl Default for LogActivity {
    fn default() -> Self {
        Self {
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            syncs: Durations::new(SYNC_BOUNDS_US),
            failed_syncs: AtomicU64::new(0),
        }
    }
}

impl LogActivity {
    /// Commits that were appended.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The fdatasyncs that commits waited for.
    pub fn syncs(&self) -> &Durations {
        &self.syncs
    }

    /// The number of failed syncs; after one, writing has ended.
    pub fn failed_syncs(&self) -> u64 {
        self.failed_syncs.load(Ordering::Relaxed)
    }

    pub(crate) fn appended(&self, bytes: u64) {
        self.records.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn synced(&self, begun: Instant, is_done: bool) {
        self.syncs.add(begun.elapsed());
        if !is_done {
            self.failed_syncs.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Counters of one kind of background work.
#[derive(Debug, Default)]
pub struct Work {
    running: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    ns: AtomicU64,
    /// Seconds since 1970; 0 before the first one.
    last_end_s: AtomicU64,
}

/// A running piece of that work. Dropped without a word, there was nothing to do, or it was given
/// up.
#[derive(Debug)]
pub struct Run<'w> {
    work: &'w Work,
    begun: Instant,
}

impl Work {
    /// Begins a run.
    pub fn begin(&self) -> Run<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Run {
            work: self,
            begun: Instant::now(),
        }
    }

    /// Notes that a run has failed.
    pub fn note_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs that are under way.
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// Runs that came to their end.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Runs that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// The time of those that came to their end.
    pub fn seconds(&self) -> f64 {
        self.ns.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// The time of the last end, in seconds since 1970.
    pub fn last_end_s(&self) -> Option<u64> {
        match self.last_end_s.load(Ordering::Relaxed) {
            0 => None,
            seconds => Some(seconds),
        }
    }
}

impl Run<'_> {
    /// It came to its end.
    pub fn done(&self) {
        let work = self.work;
        let ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        work.ns.fetch_add(ns, Ordering::Relaxed);
        work.done.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        work.last_end_s.store(now, Ordering::Relaxed);
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.work.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_dropped_counts_nowhere() {
        let work = Work::default();
        let run = work.begin();
        assert_eq!(work.running(), 1);
        drop(run);
        assert_eq!(
            (work.running(), work.done(), work.last_end_s()),
            (0, 0, None)
        );
        work.begin().done();
        work.note_failure();
        assert_eq!((work.running(), work.done(), work.failed()), (0, 1, 1));
        assert!(work.last_end_s().is_some() && work.seconds() > 0.0);
    }
}

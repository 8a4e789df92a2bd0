//! A histogram of durations: counts per bucket, and their sum. Two relaxed additions for each;
//! nobody waits for anybody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// See the module.
#[derive(Debug)]
pub struct Durations {
    bounds_us: &'static [u64],
    /// Of those up to each bound, and beyond the one before; the last one has what is beyond all.
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

/// The counts of a histogram so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationCounts {
    /// In microseconds, ascending.
    pub bounds_us: &'static [u64],
    /// Of those up to each bound and beyond the one before, and at last those beyond all.
    pub counts: Vec<u64>,
    /// Of all, in nanoseconds.
    pub sum_ns: u64,
}

impl Durations {
    /// An empty histogram. `bounds_us`: in microseconds, ascending; a few, for they are walked
    /// through.
    pub fn new(bounds_us: &'static [u64]) -> Self {
        debug_assert!(bounds_us.is_sorted());
        Self {
            bounds_us,
            counts: (0..=bounds_us.len()).map(|_| AtomicU64::new(0)).collect(),
            sum_ns: AtomicU64::new(0),
        }
    }

    /// Counts one.
    pub fn add(&self, duration: Duration) {
        let us = duration.as_nanos().div_ceil(1_000);
        let within = self
            .bounds_us
            .partition_point(|&bound| u128::from(bound) < us);
        self.counts[within].fetch_add(1, Ordering::Relaxed);
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The counts so far; concurrent updates may be partially included.
    pub fn counts(&self) -> DurationCounts {
        let counts = self.counts.iter();
        DurationCounts {
            bounds_us: self.bounds_us,
            counts: counts.map(|count| count.load(Ordering::Relaxed)).collect(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_belongs_to_the_first_bound_that_it_does_not_exceed() {
        let durations = Durations::new(&[10, 1_000]);
        for ns in [0, 10_000, 10_001, 1_000_000, 1_000_001, 9_000_000_000] {
            durations.add(Duration::from_nanos(ns));
        }
        let counts = durations.counts();
        assert_eq!(counts.counts, [2, 2, 2]);
        assert_eq!(counts.sum_ns, 9_002_020_002);
    }
}

//! The queue of morsels from which a scan's partitions take positions.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use orrery_storage::table::file::GROUP_ROWS;

/// Positions of a morsel: a group, whose blocks are then touched by one partition alone.
const MORSEL_POSITIONS: u64 = GROUP_ROWS as u64;

/// In the engine's configuration: partitions of scans have shares of the rows, as they may be in
/// different processes. Else they take rows from one queue.
#[derive(Debug, Clone, Copy)]
pub struct ScansInShares;

/// The morsels that no partition took yet.
#[derive(Debug)]
pub(super) struct Morsels {
    ranges: Vec<Range<u64>>,
    next: AtomicUsize,
}

impl Morsels {
    /// Of ranges of positions, which ascend and do not overlap.
    pub(super) fn new(positions: &[Range<u64>]) -> Self {
        let mut ranges = Vec::new();
        for range in positions {
            let mut start = range.start;
            while start < range.end {
                let end = (start / MORSEL_POSITIONS + 1).saturating_mul(MORSEL_POSITIONS);
                let end = end.min(range.end);
                ranges.push(start..end);
                start = end;
            }
        }
        Self {
            ranges,
            next: AtomicUsize::new(0),
        }
    }

    /// The number of all.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The next morsel.
    pub(super) fn take(&self) -> Option<Range<u64>> {
        // Beyond the last one it is counted on, once for each partition.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.ranges.get(number).cloned()
    }

    /// Divided into so many shares of as many morsels each, or one less, in order.
    pub(super) fn shares(self, count: usize) -> Vec<Arc<Self>> {
        let all = self.ranges.len();
        let share = |at: usize| at * all / count.max(1);
        let shares = (0..count).map(|at| Self {
            ranges: self.ranges[share(at)..share(at + 1)].to_vec(),
            next: AtomicUsize::new(0),
        });
        shares.map(Arc::new).collect()
    }

    /// The same, none taken.
    pub(super) fn untouched(&self) -> Self {
        Self {
            ranges: self.ranges.clone(),
            next: AtomicUsize::new(0),
        }
    }
}

/// The morsels of all partitions: one queue, or one for each.
#[derive(Debug, Clone)]
pub(super) enum Queues {
    Shared(Arc<Morsels>),
    OfEach(Vec<Arc<Morsels>>),
}

impl Queues {
    /// Those of a partition.
    pub(super) fn of(&self, partition: usize) -> Arc<Morsels> {
        match self {
            Self::Shared(all) => Arc::clone(all),
            Self::OfEach(each) => match each.get(partition) {
                Some(its) => Arc::clone(its),
                None => Arc::new(Morsels::new(&[])),
            },
        }
    }

    /// The same, none taken.
    pub(super) fn untouched(&self) -> Self {
        match self {
            Self::Shared(all) => Self::Shared(Arc::new(all.untouched())),
            Self::OfEach(each) => {
                let each = each.iter().map(|its| Arc::new(its.untouched()));
                Self::OfEach(each.collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_all_morsels_once_in_order() {
        for count in [1, 2, 3, 7, 40] {
            let all = Morsels::new(&[0..500_000, 600_000..600_001]);
            let expected: Vec<_> = std::iter::from_fn(|| all.take()).collect();
            let shares = all.untouched().shares(count);
            assert_eq!(shares.len(), count);
            let found: Vec<_> = shares
                .iter()
                .flat_map(|share| std::iter::from_fn(|| share.take()))
                .collect();
            assert_eq!(found, expected);
            let lengths = shares.iter().map(|share| share.len());
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }
    }

    #[test]
    fn morsels_are_all_positions_once_in_order() {
        for positions in [0..0, 0..1, 5..90_000, 32_768..65_536, 70_000..70_001] {
            let morsels = Morsels::new(&[positions.clone(), 100_000..100_002]);
            let mut next = positions.start;
            for _ in 1..morsels.len() {
                let morsel = morsels.take().unwrap();
                assert_eq!(morsel.start, next);
                assert!(morsel.end - morsel.start <= MORSEL_POSITIONS);
                next = morsel.end;
            }
            assert_eq!(next, positions.end);
            assert_eq!(morsels.take(), Some(100_000..100_002));
            assert_eq!(morsels.take(), None);
            assert_eq!(morsels.untouched().len(), morsels.len());
        }
    }
}

//! Positions divided among the partitions of a scan.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_storage::table::file::GROUP_ROWS;

/// Positions of a morsel: a group, whose blocks are then touched by one partition alone.
const MORSEL_POSITIONS: u64 = GROUP_ROWS as u64;

/// The morsels that no partition took yet.
#[derive(Debug)]
pub(super) struct Morsels {
    positions: Range<u64>,
    next: AtomicU64,
}

impl Morsels {
    /// Of a range of positions.
    pub(super) fn new(positions: Range<u64>) -> Self {
        let first = positions.start / MORSEL_POSITIONS;
        Self {
            positions,
            next: AtomicU64::new(first),
        }
    }

    /// The next morsel.
    pub(super) fn take(&self) -> Option<Range<u64>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let start = number.saturating_mul(MORSEL_POSITIONS);
        let end = start.saturating_add(MORSEL_POSITIONS);
        let morsel = start.max(self.positions.start)..end.min(self.positions.end);
        (!morsel.is_empty()).then_some(morsel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn morsels_are_all_positions_once_in_order() {
        for positions in [0..0, 0..1, 5..90_000, 32_768..65_536, 70_000..70_001] {
            let morsels = Morsels::new(positions.clone());
            let mut next = positions.start;
            while let Some(morsel) = morsels.take() {
                assert_eq!(morsel.start, next);
                next = morsel.end;
            }
            assert_eq!(next, positions.end);
            assert_eq!(morsels.take(), None);
        }
    }
}

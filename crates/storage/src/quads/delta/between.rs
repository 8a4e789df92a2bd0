//! An iterator over the entries of a delta between two rows.

use super::DeltaIndex;
use super::slots::Slot;
use crate::Result;
use crate::quads::delta::TouchedSets;
use crate::quads::index::QuadRow;

impl DeltaIndex {
    /// Whether an entry is between two rows, both included. A binary search.
    pub(crate) fn touches(&self, [low, high]: &[QuadRow; 2]) -> Result<bool> {
        let after = self.root.firsts.partition_point(|first| first < low);
        if self
            .root
            .firsts
            .get(after)
            .is_some_and(|first| first <= high)
        {
            return Ok(true);
        }
        let Some(number) = after.checked_sub(1) else {
            return Ok(false);
        };
        let chunk = self.chunk(number)?;
        let rows = chunk.rows();
        let found = rows.get(rows.partition_point(|row| row < low));
        Ok(found.is_some_and(|row| row <= high))
    }

    /// At least as many as there are entries between two rows; up to two chunks more.
    pub(crate) fn entries_at_most(&self, bounds: &[QuadRow; 2]) -> u64 {
        let chunks = self.chunks_of(bounds);
        self.root.starts[chunks.end] - self.root.starts[chunks.start]
    }

    /// Calls `found` with the rows of the entries between two rows, both included, in their order.
    pub(crate) fn for_each(
        &self,
        bounds: &[QuadRow; 2],
        mut found: impl FnMut(&QuadRow),
    ) -> Result<()> {
        let [low, high] = bounds;
        for number in self.chunks_of(bounds) {
            let chunk = self.chunk(number)?;
            let rows = chunk.rows();
            let first = rows.partition_point(|row| row < low);
            rows[first..]
                .iter()
                .take_while(|row| *row <= high)
                .for_each(&mut found);
        }
        Ok(())
    }

    /// The chunks in which rows between two rows can be.
    fn chunks_of(&self, [low, high]: &[QuadRow; 2]) -> std::ops::Range<usize> {
        let firsts = &self.root.firsts;
        let start = firsts
            .partition_point(|first| first <= low)
            .saturating_sub(1);
        start..firsts.partition_point(|first| first <= high)
    }

    /// Whether it is in a file, and so serves many snapshots.
    pub(crate) fn is_flushed(&self) -> bool {
        matches!(self.root.chunks.get(0), Some(Slot::File { .. })) && self.root.file.is_some()
    }

    /// The sets of keys that were made of it.
    pub(crate) fn touched_sets(&self) -> &TouchedSets {
        &self.root.touched
    }
}

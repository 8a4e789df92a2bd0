//! Cursors: repeated look-ups in a permutation that remember their position.

use std::ops::Bound;
use std::sync::Arc;

use orrery_term::TermId;

use super::base::BaseCursor;
use super::level::{DeltaLevel, Stack};
use super::piece::Piece;
use super::{COLUMNS, Prefix, QuadIndex, QuadRow, RowRange, Side};
use crate::Result;
use crate::quads::read_cost::{ReadCost, ReadCounts};

/// A position in a permutation, with the vectors it decoded last.
///
/// Any order of look-ups is answered correctly; ascending prefixes cost least, for each search
/// begins where the last one ended. Two vectors are kept: the one where the last range began and
/// the one where it ended.
#[derive(Debug)]
pub struct Cursor {
    index: Arc<QuadIndex>,
    base: BaseCursor,
    /// One for each delta, from the file up.
    levels: Vec<DeltaLevel>,
    /// What the range that was read last is made of: mostly several columns of a range are read.
    pieces: Vec<Piece>,
    planned: Option<RowRange>,
    /// Where it is counted what was read, when the cursor goes.
    cost: Option<Arc<ReadCost>>,
    counts: ReadCounts,
    /// The range that was read last: its other columns are the same rows.
    last_read: RowRange,
}

/// Longer ranges are planned part by part.
const PLANNED_ROWS_MAX: u64 = 1 << 20;
/// The same where rows of the file are hidden: each row may be a piece of its own.
const PLANNED_MASKED_ROWS_MAX: u64 = 1 << 16;

impl QuadIndex {
    /// The rows that begin with `prefix`, exactly. Decodes at most two vectors.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than four ids.
    pub fn range(self: &Arc<Self>, prefix: &[TermId]) -> Result<RowRange> {
        self.cursor().seek(prefix)
    }

    /// The rows that begin with `prefix` and have the next column within the bounds, exactly.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than three ids.
    pub fn range_between(
        self: &Arc<Self>,
        prefix: &[TermId],
        low: Bound<TermId>,
        high: Bound<TermId>,
    ) -> Result<RowRange> {
        self.cursor().seek_between(prefix, low, high)
    }

    /// The deltas' change in the number of rows that begin with `prefix`. Nothing of the file is
    /// touched.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than four ids.
    pub fn net(&self, prefix: &[TermId]) -> Result<i64> {
        let prefix = Prefix::new(prefix);
        let mut net = 0;
        for delta in self.deltas() {
            let nets = DeltaLevel::new(delta.clone()).nets_around(&prefix)?;
            net += nets.end - nets.start;
        }
        Ok(net)
    }

    /// A cursor, which makes a series of look-ups cheap.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor::new(Arc::clone(self))
    }
}

impl Cursor {
    pub(crate) fn new(index: Arc<QuadIndex>) -> Self {
        Self {
            base: BaseCursor::new(&index),
            levels: index
                .deltas()
                .iter()
                .cloned()
                .map(DeltaLevel::new)
                .collect(),
            index,
            pieces: Vec::new(),
            planned: None,
            cost: None,
            counts: ReadCounts::default(),
            last_read: RowRange::default(),
        }
    }

    /// The same, and what it reads is counted.
    pub(crate) fn counted(mut self, cost: &Arc<ReadCost>) -> Self {
        self.cost = Some(Arc::clone(cost));
        self
    }

    /// Whether parts of the file that are touched now come from the disk, so that it is worth while
    /// to [say](Self::will_seek) which look-ups will follow. Costs nothing.
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.base.is_cold()
    }

    /// Asks the disk for what look-ups of these prefixes, which should ascend, will touch, and does
    /// not wait for it. Changes since the file was written are in memory, or in a file that is
    /// small.
    ///
    /// # Panics
    ///
    /// If a prefix has more than four ids.
    pub fn will_seek<'p>(&self, prefixes: impl Iterator<Item = &'p [u64]>) -> Result<()> {
        self.base.will_seek(prefixes.map(Prefix::from_values))
    }

    /// The rows that begin with `prefix`, exactly; an empty range where there are none.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than four ids.
    pub fn seek(&mut self, prefix: &[TermId]) -> Result<RowRange> {
        let prefix = Prefix::new(prefix);
        self.counts.look_ups += 1;
        let mut range = self.base.seek(&prefix)?;
        for level in &mut self.levels {
            let nets = level.nets_around(&prefix)?;
            range.start = range.start.saturating_add_signed(nets.start);
            range.end = range.end.saturating_add_signed(nets.end);
        }
        Ok(range)
    }

    /// The rows that begin with `prefix` and have the next column within the bounds, exactly.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than three ids.
    pub fn seek_between(
        &mut self,
        prefix: &[TermId],
        low: Bound<TermId>,
        high: Bound<TermId>,
    ) -> Result<RowRange> {
        let prefix = Prefix::new(prefix);
        self.counts.look_ups += 1;
        let start = match low {
            Bound::Included(id) => self.boundary(&prefix.with(id.bits()), Side::Before)?,
            Bound::Excluded(id) => self.boundary(&prefix.with(id.bits()), Side::After)?,
            Bound::Unbounded => self.boundary(&prefix, Side::Before)?,
        };
        let end = match high {
            Bound::Included(id) => self.boundary(&prefix.with(id.bits()), Side::After)?,
            Bound::Excluded(id) => self.boundary(&prefix.with(id.bits()), Side::Before)?,
            Bound::Unbounded => self.boundary(&prefix, Side::After)?,
        };
        Ok(RowRange::new(start, end))
    }

    /// Appends one column (0 to 3 in the permutation's order) of a range that lies within the rows.
    pub fn read(&mut self, range: RowRange, column: usize, out: &mut Vec<u64>) -> Result<()> {
        let range = RowRange::new(range.start, range.end.min(self.index.rows()));
        if self.last_read != range {
            self.last_read = range;
            self.counts.rows += range.len();
        }
        if self.levels.is_empty() && !self.base.is_masked() {
            return self.base.read(range, column, out);
        }
        out.reserve(range.len() as usize);
        let part_rows = match self.base.is_masked() {
            true => PLANNED_MASKED_ROWS_MAX,
            false => PLANNED_ROWS_MAX,
        };
        let mut start = range.start;
        while start < range.end {
            let part = RowRange::new(start, range.end.min(start + part_rows));
            self.plan(part)?;
            self.base.read_pieces(&self.pieces, column, out)?;
            start = part.end;
        }
        Ok(())
    }

    /// Finds out which pieces a range is made of, unless that is known.
    fn plan(&mut self, range: RowRange) -> Result<()> {
        if self.planned != Some(range) {
            self.planned = None; // should reading fail
            self.pieces.clear();
            Stack::new(&mut self.base, &mut self.levels).plan(range, &mut self.pieces)?;
            self.planned = Some(range);
        }
        Ok(())
    }

    /// One row, or `None` beyond the last.
    pub fn row(&mut self, row: u64) -> Result<Option<QuadRow>> {
        if row >= self.index.rows() {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(COLUMNS);
        for column in 0..COLUMNS {
            self.read(RowRange::new(row, row + 1), column, &mut values)?;
        }
        Ok(values.try_into().ok())
    }

    /// The smallest id above `after` that stands behind the prefix in any row: visits the distinct
    /// values of a column without reading their repetitions.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than three ids.
    pub fn distinct_next(
        &mut self,
        prefix: &[TermId],
        after: Option<TermId>,
    ) -> Result<Option<TermId>> {
        let prefix = Prefix::new(prefix);
        self.counts.look_ups += 1;
        let row = match after {
            Some(id) => self.boundary(&prefix.with(id.bits()), Side::After)?,
            None => self.boundary(&prefix, Side::Before)?,
        };
        let row = self.row(row)?.filter(|row| prefix.matches(row));
        Ok(row.map(|row| TermId::from_bits(row[prefix.columns])))
    }

    fn boundary(&mut self, prefix: &Prefix, side: Side) -> Result<u64> {
        Stack::new(&mut self.base, &mut self.levels).boundary(prefix, side)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if let Some(cost) = &self.cost {
            cost.add(self.counts);
        }
    }
}

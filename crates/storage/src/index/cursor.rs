//! Look-ups that remember where they were.

use std::ops::Bound;
use std::sync::Arc;

use orrery_column::{VECTOR_ROWS, VectorBuffer};
use orrery_term::TermId;

use super::slot::VectorSlot;
use super::{COLUMNS, Prefix, QuadIndex, QuadRow, RowRange, Side};
use crate::Result;

/// A position in a permutation, with the vectors it decoded last.
///
/// Any order of look-ups is answered correctly; ascending prefixes cost least, for each search begins where the last
/// one ended. Two vectors are kept: the one where the last range began and the one where it ended.
#[derive(Debug)]
pub struct Cursor {
    index: Arc<QuadIndex>,
    slots: [VectorSlot; 2],
    /// Which slot was used last.
    recent: usize,
}

impl Cursor {
    pub(super) fn new(index: Arc<QuadIndex>) -> Self {
        Self {
            index,
            slots: Default::default(),
            recent: 0,
        }
    }

    /// The permutation that the cursor moves in.
    pub fn index(&self) -> &Arc<QuadIndex> {
        &self.index
    }

    /// The rows that begin with `prefix`, exactly; an empty range where there are none.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than four ids.
    pub fn seek(&mut self, prefix: &[TermId]) -> Result<RowRange> {
        let prefix = Prefix::new(prefix);
        if prefix.columns == 0 {
            return Ok(self.index.all());
        }
        // A third of the time of dense ascending look-ups: 18 ns instead of 25 where each key follows the last.
        let slot = &mut self.slots[self.recent];
        if let (Some(vector), Some(rows)) = (slot.vector(), slot.glance(&prefix)) {
            let first_row = (vector * VECTOR_ROWS) as u64;
            return Ok(RowRange::new(
                first_row + rows.start as u64,
                first_row + rows.end as u64,
            ));
        }
        let Some(vector) = self.boundary_vector(&prefix, Side::Before)? else {
            let end = self.boundary(&prefix, Side::After)?;
            return Ok(RowRange::new(0, end));
        };
        let slot = load(&self.index, &mut self.slots, &mut self.recent, vector)?;
        let rows = slot.equal_range(&self.index, &prefix)?;
        let goes_on =
            rows.end == slot.rows() && slot.next().is_some_and(|next| prefix.matches(next));
        let first_row = (vector * VECTOR_ROWS) as u64;
        let end = match goes_on {
            true => self.boundary(&prefix, Side::After)?,
            false => first_row + rows.end as u64,
        };
        Ok(RowRange::new(first_row + rows.start as u64, end))
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
        let mut start = range.start;
        let range_end = range.end.min(self.index.rows());
        out.reserve(range_end.saturating_sub(start) as usize);
        while start < range_end {
            let vector = (start / VECTOR_ROWS as u64) as usize;
            let first_row = (vector * VECTOR_ROWS) as u64;
            let rows = self.index.rows_of(vector);
            let end = range_end.min(first_row + rows as u64);
            if end - start == rows as u64 && !self.slots.iter().any(|s| s.vector() == Some(vector))
            {
                self.append_vector(vector, column, out)?;
            } else {
                let rows = (start - first_row) as usize..(end - first_row) as usize;
                load(&self.index, &mut self.slots, &mut self.recent, vector)?.read(
                    &self.index,
                    column,
                    rows,
                    out,
                )?;
            }
            start = end;
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

    /// The smallest id above `after` that stands behind the prefix in any row: visits the distinct values of a column without
    /// reading their repetitions.
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
        let row = match after {
            Some(id) => self.boundary(&prefix.with(id.bits()), Side::After)?,
            None => self.boundary(&prefix, Side::Before)?,
        };
        let row = self.row(row)?.filter(|row| prefix.matches(row));
        Ok(row.map(|row| TermId::from_bits(row[prefix.columns])))
    }

    /// The number of rows before the boundary.
    fn boundary(&mut self, prefix: &Prefix, side: Side) -> Result<u64> {
        let Some(vector) = self.boundary_vector(prefix, side)? else {
            return Ok(0);
        };
        let slot = load(&self.index, &mut self.slots, &mut self.recent, vector)?;
        let rows = slot.equal_range(&self.index, prefix)?;
        let row = match side {
            Side::Before => rows.start,
            Side::After => rows.end,
        };
        Ok((vector * VECTOR_ROWS + row) as u64)
    }

    /// The last vector whose first row stands before the boundary; `None` when the boundary is at row 0.
    fn boundary_vector(&self, prefix: &Prefix, side: Side) -> Result<Option<usize>> {
        let mut known_behind = 0; // all vectors below this one begin behind the boundary
        let mut known_ahead = self.index.vectors(); // none from this one on do
        for slot in &self.slots {
            let Some(vector) = slot.vector() else {
                continue;
            };
            if slot.holds_boundary(prefix, side) {
                return Ok(Some(vector));
            }
            if slot.begins_behind(prefix, side) {
                known_behind = known_behind.max(vector + 1);
            } else {
                known_ahead = known_ahead.min(vector);
            }
        }
        if known_behind > 0 {
            let mut step = 1;
            while known_behind + step < known_ahead {
                let probe = known_behind + step;
                if !prefix.is_behind(&self.index.fence(probe)?, side) {
                    known_ahead = probe;
                    break;
                }
                known_behind = probe + 1;
                step *= 2;
            }
        }
        let behind = self
            .index
            .partition_fences(known_behind, known_ahead, prefix, side)?;
        Ok(behind.checked_sub(1))
    }

    /// Decodes a whole vector to the end of `out`, past the slots.
    fn append_vector(&self, vector: usize, column: usize, out: &mut Vec<u64>) -> Result<()> {
        let encoded = self.index.column(vector, column)?;
        let start = out.len();
        if let Some(value) = encoded.constant() {
            out.resize(start + encoded.rows(), value);
            return Ok(());
        }
        out.resize(start + VECTOR_ROWS, 0);
        let decoded = match <&mut VectorBuffer>::try_from(&mut out[start..]) {
            Ok(buffer) => encoded.decode(buffer),
            Err(_) => Ok(()), // not reached: the vector was given this length
        };
        out.truncate(start + encoded.rows());
        decoded.map_err(|error| self.index.undecodable(vector, error))
    }
}

/// The slot that holds the vector; the one used longer ago takes it up if none does.
fn load<'a>(
    index: &QuadIndex,
    slots: &'a mut [VectorSlot; 2],
    recent: &mut usize,
    vector: usize,
) -> Result<&'a mut VectorSlot> {
    let held = slots.iter().position(|slot| slot.vector() == Some(vector));
    let number = held.unwrap_or(1 - *recent);
    *recent = number;
    let slot = &mut slots[number];
    if held.is_none() {
        slot.load(index, vector)?;
    }
    Ok(slot)
}

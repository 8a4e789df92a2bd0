//! One vector of a permutation, with its columns as far as they are decoded.

use std::ops::Range;

use orrery_column::EncodedVector;

use super::file::FileIndex;
use super::spare::SpareBuffer;
use super::{COLUMNS, Prefix, QuadRow, Side};
use crate::Result;

/// So many rows are read one by one, rather than by decoding the whole column.
const FEW_ROWS: usize = 16;
/// What is done with an encoded column before it is decoded after all, in rows that are read one by
/// one. On BSBM a search or a few rows take between a twentieth and a half of decoding, and
/// look-ups of one product need one or two of either in a vector.
const EFFORT_MAX: usize = 64;
/// A search in a column that can be read at any row, and in another one: with four of the latter in
/// each vector, BSBM BI Q6 took a third more instructions than by decoding at once.
const EFFORT_OF_SEARCH: usize = 16;
const EFFORT_OF_LONG_SEARCH: usize = 64;
/// A few rows of a column that cannot be read at any row.
const EFFORT_OF_READ: usize = 32;

/// A vector in the hands of a cursor.
#[derive(Debug)]
pub(super) struct VectorSlot {
    vector: Option<usize>,
    rows: usize,
    /// The vector's first row, and that of the vector behind it.
    first: QuadRow,
    next: Option<QuadRow>,
    columns: [ColumnSlot; COLUMNS],
    /// Where the last search ended.
    hint: usize,
}

#[derive(Debug, Default)]
struct ColumnSlot {
    state: ColumnState,
    /// What was done with the encoded column.
    effort: usize,
    /// Allocated at the first need and kept for further vectors.
    buffer: Option<SpareBuffer>,
}

#[derive(Debug, Clone, Copy, Default)]
enum ColumnState {
    #[default]
    Unread,
    Constant(u64),
    Decoded,
}

/// The values of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum ColumnValues<'a> {
    Constant(u64),
    Decoded(&'a [u64]),
}

impl ColumnValues<'_> {
    /// Appends the values of some rows.
    #[inline]
    pub(super) fn append(self, rows: Range<usize>, out: &mut Vec<u64>) {
        match self {
            Self::Constant(value) => out.extend(std::iter::repeat_n(value, rows.len())),
            Self::Decoded(values) => out.extend_from_slice(&values[rows]),
        }
    }
}

impl Default for VectorSlot {
    fn default() -> Self {
        Self {
            vector: None,
            rows: 0,
            first: [0; COLUMNS],
            next: None,
            columns: Default::default(),
            hint: 0,
        }
    }
}

impl VectorSlot {
    pub(super) fn vector(&self) -> Option<usize> {
        self.vector
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The first row of the vector behind this one.
    pub(super) fn next(&self) -> Option<&QuadRow> {
        self.next.as_ref()
    }

    /// Takes up another vector; nothing is decoded yet.
    pub(super) fn load(&mut self, index: &FileIndex, vector: usize) -> Result<()> {
        self.vector = None; // should reading the fences fail
        (self.first, self.next) = index.fences_of(vector)?;
        self.rows = index.rows_of(vector);
        self.hint = 0;
        let mut is_constant = true;
        for (number, column) in self.columns.iter_mut().enumerate() {
            // Sorted rows: while the fences agree from the first column on, so does all between.
            is_constant &= self
                .next
                .is_some_and(|next| next[number] == self.first[number]);
            column.effort = 0;
            column.state = match is_constant {
                true => ColumnState::Constant(self.first[number]),
                false => ColumnState::Unread,
            };
        }
        self.vector = Some(vector);
        Ok(())
    }

    /// Whether the boundary lies behind this vector's first row and not behind its last.
    pub(super) fn holds_boundary(&self, prefix: &Prefix, side: Side) -> bool {
        self.vector.is_some()
            && prefix.is_behind(&self.first, side)
            && !self.next.is_some_and(|next| prefix.is_behind(&next, side))
    }

    /// Whether the vector's first row stands before the boundary.
    pub(super) fn begins_behind(&self, prefix: &Prefix, side: Side) -> bool {
        prefix.is_behind(&self.first, side)
    }

    /// The rows that begin with the prefix, if a glance is enough: only the prefix's last column
    /// changes in this vector and is decoded already, and the rows end on both sides within the
    /// vector.
    #[inline]
    pub(super) fn glance(&mut self, prefix: &Prefix) -> Option<Range<usize>> {
        let (&key, constants) = prefix.as_slice().split_last()?;
        for (column, &value) in self.columns.iter().zip(constants) {
            match column.state {
                ColumnState::Constant(constant) if constant == value => {}
                ColumnState::Constant(_) | ColumnState::Unread | ColumnState::Decoded => {
                    return None;
                }
            }
        }
        let column = &self.columns[constants.len()];
        let (ColumnState::Decoded, Some(buffer)) = (column.state, &column.buffer) else {
            return None;
        };
        let values = &buffer[..self.rows];
        let start = gallop(values, self.hint, |&value| value < key);
        let end = gallop(values, start, |&value| value <= key);
        if start == 0 || end == self.rows {
            return None;
        }
        self.hint = start;
        Some(start..end)
    }

    /// The rows of this vector that begin with the prefix; where there are none, an empty range
    /// where they would stand.
    pub(super) fn equal_range(
        &mut self,
        index: &FileIndex,
        prefix: &Prefix,
    ) -> Result<Range<usize>> {
        let mut range = 0..self.rows;
        for (column, &key) in prefix.as_slice().iter().enumerate() {
            range = self.narrow(index, column, range, key)?;
            if range.is_empty() {
                break;
            }
        }
        self.hint = range.start;
        Ok(range)
    }

    /// The rows within `range`, where the column ascends, that have the key; an empty range where
    /// it would stand.
    fn narrow(
        &mut self,
        index: &FileIndex,
        column: usize,
        range: Range<usize>,
        key: u64,
    ) -> Result<Range<usize>> {
        if self.columns[column].effort < EFFORT_MAX
            && let Some(encoded) = self.undecoded(index, column)?
            && let Some(found) = encoded.search(range.clone(), key)
        {
            self.columns[column].effort += match encoded.has_random_access() {
                true => EFFORT_OF_SEARCH,
                false => EFFORT_OF_LONG_SEARCH,
            };
            return Ok(found);
        }
        let hint = self.hint;
        Ok(match self.values(index, column)? {
            ColumnValues::Constant(value) if value == key => range,
            ColumnValues::Constant(value) if value < key => range.end..range.end,
            ColumnValues::Constant(_) => range.start..range.start,
            ColumnValues::Decoded(values) => {
                let within = &values[range.clone()];
                let hint = hint.saturating_sub(range.start);
                let start = gallop(within, hint, |&value| value < key);
                let end = gallop(within, start, |&value| value <= key);
                range.start + start..range.start + end
            }
        })
    }

    /// The column as encoded, unless its values are at hand.
    fn undecoded<'a>(
        &self,
        index: &'a FileIndex,
        column: usize,
    ) -> Result<Option<EncodedVector<'a>>> {
        match (self.columns[column].state, self.vector) {
            (ColumnState::Unread, Some(vector)) => index.column(vector, column).map(Some),
            _ => Ok(None),
        }
    }

    /// All values of a column, decoded now if they were not.
    pub(super) fn values(&mut self, index: &FileIndex, column: usize) -> Result<ColumnValues<'_>> {
        if let Some(encoded) = self.undecoded(index, column)? {
            let slot = &mut self.columns[column];
            slot.state = match encoded.constant() {
                Some(value) => ColumnState::Constant(value),
                None => {
                    let buffer = slot.buffer.get_or_insert_with(SpareBuffer::take);
                    encoded
                        .decode(buffer)
                        .map_err(|error| index.undecodable(self.vector.unwrap_or(0), error))?;
                    ColumnState::Decoded
                }
            };
        }
        let slot = &self.columns[column];
        Ok(match (slot.state, &slot.buffer) {
            (ColumnState::Constant(value), _) => ColumnValues::Constant(value),
            (_, Some(buffer)) => ColumnValues::Decoded(&buffer[..self.rows]),
            // Not reached: a decoded column has a buffer.
            (_, None) => ColumnValues::Decoded(&[]),
        })
    }

    /// Appends some rows of a column.
    pub(super) fn read(
        &mut self,
        index: &FileIndex,
        column: usize,
        rows: Range<usize>,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        if rows.len() <= FEW_ROWS
            && self.columns[column].effort < EFFORT_MAX
            && let Some(encoded) = self.undecoded(index, column)?
            && encoded.read_few(rows.clone(), out)
        {
            self.columns[column].effort += match encoded.has_random_access() {
                true => rows.len(),
                false => EFFORT_OF_READ,
            };
            return Ok(());
        }
        self.values(index, column)?.append(rows, out);
        Ok(())
    }
}

/// The number of values at the start that are behind, searched for from `hint` on in growing steps.
pub(super) fn gallop<T>(values: &[T], hint: usize, is_behind: impl Fn(&T) -> bool) -> usize {
    let hint = hint.min(values.len());
    let ahead = &values[hint..];
    if !ahead.first().is_some_and(&is_behind) {
        // At the hint or before it.
        return match hint.checked_sub(1) {
            Some(before) if !is_behind(&values[before]) => {
                values[..before].partition_point(&is_behind)
            }
            _ => hint,
        };
    }
    let mut low = 0;
    let mut step = 1;
    while ahead.get(low + step).is_some_and(&is_behind) {
        low += step;
        step *= 2;
    }
    let high = ahead.len().min(low + step);
    hint + low + ahead[low..high].partition_point(is_behind)
}

#[cfg(test)]
mod tests {
    use super::gallop;

    #[test]
    fn galloping_finds_the_same_place_from_any_hint() {
        let values: Vec<u64> = (0..40).map(|n| n * n / 3).collect();
        for key in 0..550 {
            let expected = values.partition_point(|&value| value < key);
            for hint in 0..45 {
                assert_eq!(gallop(&values, hint, |&value| value < key), expected);
            }
        }
        assert_eq!(gallop(&[], 3, |&value: &u64| value < 5), 0);
    }
}

//! The rows of a file range that pass the conditions.

use std::ops::Range;

use datafusion::arrow::array::BooleanBufferBuilder;
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::common::Result;
use orrery_storage::table::{Projection, ProjectionFile, SomeRows};

use super::condition::Condition;
use super::number_test::{NumberTest, Scratch};

/// Where fewer rows than one of so many are left, these are read one by one.
const SPARSE: usize = 8;
/// Rows of a chunk that are left.
pub(super) enum Left {
    All,
    Mask(BooleanBuffer),
    Rows(Vec<u64>),
}

/// How many rows of a range of the file pass conditions; for estimates.
pub(super) fn passing(
    projection: &Projection,
    conditions: &[Condition],
    rows: Range<u64>,
) -> Result<usize> {
    let Some(file) = projection.file() else {
        return Ok(0);
    };
    let mut left = not_deleted(projection, rows.clone());
    for condition in conditions {
        left = left.and(condition, file, rows.clone())?;
    }
    Ok(left.len(&rows))
}

/// The rows of a range of the file that are still there.
pub(super) fn not_deleted(projection: &Projection, rows: Range<u64>) -> Left {
    let changes = projection.changes();
    if changes.deleted() == 0 {
        return Left::All;
    }
    let gone = changes
        .within(rows.clone())
        .filter(|entry| entry.row.is_none());
    let mut gone = gone
        .map(|entry| (entry.position - rows.start) as usize)
        .peekable();
    if gone.peek().is_none() {
        return Left::All;
    }
    let count = (rows.end - rows.start) as usize;
    let mut mask = BooleanBufferBuilder::new(count);
    mask.append_n(count, true);
    gone.for_each(|row| mask.set_bit(row, false));
    Left::Mask(mask.finish())
}

impl Left {
    pub(super) fn len(&self, rows: &Range<u64>) -> usize {
        match self {
            Self::All => (rows.end - rows.start) as usize,
            Self::Mask(mask) => mask.count_set_bits(),
            Self::Rows(rows) => rows.len(),
        }
    }

    pub(super) fn numbers(self, rows: Range<u64>) -> Vec<u64> {
        match self {
            Self::All => rows.collect(),
            Self::Mask(mask) => mask
                .set_indices()
                .map(|row| rows.start + row as u64)
                .collect(),
            Self::Rows(rows) => rows,
        }
    }

    /// Those whose numbers pass, too.
    pub(super) fn and_numbers(
        self,
        test: &NumberTest,
        file: &ProjectionFile,
        rows: Range<u64>,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let (count, left) = ((rows.end - rows.start) as usize, self.len(&rows));
        if left == 0 {
            return Ok(Self::Rows(Vec::new()));
        }
        let before = match self {
            Self::All => None,
            Self::Mask(mask) if left * SPARSE >= count => Some(mask),
            few => {
                let numbers = few.numbers(rows);
                let passes = test.of(file, &SomeRows::Ascending(&numbers), scratch)?;
                let left = passes.set_indices().map(|row| numbers[row]);
                return Ok(Self::Rows(left.collect()));
            }
        };
        let mask = test.of_range(file, rows, scratch)?;
        Ok(match before {
            Some(before) => Self::Mask(&before & &mask),
            None if mask.count_set_bits() == count => Self::All,
            None => Self::Mask(mask),
        })
    }

    /// Those that pass a condition, too.
    pub(super) fn and(
        self,
        condition: &Condition,
        file: &ProjectionFile,
        rows: Range<u64>,
    ) -> Result<Self> {
        let (count, left) = ((rows.end - rows.start) as usize, self.len(&rows));
        if left == 0 {
            return Ok(Self::Rows(Vec::new()));
        }
        let is_whole = match &self {
            Self::All => true,
            Self::Mask(_) => condition.is_simple && left * SPARSE >= count,
            Self::Rows(_) => false,
        };
        if !is_whole {
            let numbers = self.numbers(rows);
            let mask = condition.of_rows(file, &numbers)?;
            return Ok(Self::Rows(
                mask.set_indices().map(|row| numbers[row]).collect(),
            ));
        }
        let mask = condition.of_range(file, rows)?;
        Ok(match self {
            Self::Mask(before) => Self::Mask(&before & &mask),
            _ if mask.count_set_bits() == count => Self::All,
            _ => Self::Mask(mask),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_has_numbers_of_the_file() {
        let mask = BooleanBuffer::from(vec![true, false, true]);
        assert_eq!(Left::Mask(mask).numbers(10..13), [10, 12]);
        assert_eq!(Left::All.numbers(4..6), [4, 5]);
        assert_eq!(Left::All.len(&(4..6)), 2);
    }
}

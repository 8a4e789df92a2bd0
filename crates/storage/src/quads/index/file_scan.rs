//! A scan over a range of rows of a permutation file, vector by vector.

use std::ops::Range;
use std::sync::Arc;

use orrery_column::{VECTOR_ROWS, VectorBuffer};

use super::file::FileIndex;
use super::scan_vector::ScanVector;
use super::{COLUMNS, RowRange};
use crate::Result;

/// Reads the wanted columns of a range, at most 1,024 rows at a time.
#[derive(Debug)]
pub(super) struct FileScan {
    index: Arc<FileIndex>,
    /// What is left to read.
    range: RowRange,
    buffers: [Option<Box<VectorBuffer>>; COLUMNS],
}

impl FileScan {
    pub(super) fn new(index: Arc<FileIndex>, range: RowRange, columns: [bool; COLUMNS]) -> Self {
        let range = RowRange::new(range.start, range.end.min(index.rows()));
        Self {
            index,
            range,
            buffers: columns.map(|is_wanted| is_wanted.then(|| Box::new([0; VECTOR_ROWS]))),
        }
    }

    /// The rows that are still to come.
    pub(super) fn remaining(&self) -> RowRange {
        self.range
    }

    /// The next rows, or `None` at the end of the range.
    pub(super) fn next_vector(&mut self) -> Result<Option<ScanVector<'_>>> {
        if self.range.is_empty() {
            return Ok(None);
        }
        let vector = (self.range.start / VECTOR_ROWS as u64) as usize;
        let first_row = (vector * VECTOR_ROWS) as u64;
        let end = self.range.end.min(first_row + VECTOR_ROWS as u64);
        let rows = RowRange::new(self.range.start, end);
        for (column, buffer) in self.buffers.iter_mut().enumerate() {
            if let Some(buffer) = buffer {
                self.index
                    .column(vector, column)?
                    .decode(buffer)
                    .map_err(|error| self.index.undecodable(vector, error))?;
            }
        }
        self.range.start = end;
        let within = (rows.start - first_row) as usize..(end - first_row) as usize;
        let columns = std::array::from_fn(|column| clip(&self.buffers[column], &within));
        Ok(Some(ScanVector::new(rows, columns)))
    }
}

fn clip<'a>(buffer: &'a Option<Box<VectorBuffer>>, rows: &Range<usize>) -> &'a [u64] {
    match buffer {
        Some(buffer) => &buffer[rows.clone()],
        None => &[],
    }
}

//! Walking over a range of rows, some hundred at a time.

use std::sync::Arc;

use orrery_column::VECTOR_ROWS;

use super::file_scan::FileScan;
use super::{COLUMNS, Cursor, QuadIndex, RowRange};
use crate::Result;

/// Reads the wanted columns of a range, at most 1,024 rows at a time.
///
/// Not an `Iterator`, because each vector is lent from the scan's buffers.
#[derive(Debug)]
pub struct Scan(Source);

#[derive(Debug)]
enum Source {
    /// Vectors as they are in the file.
    File(FileScan),
    Cursor {
        cursor: Box<Cursor>,
        /// What is left to read.
        range: RowRange,
        wanted: [bool; COLUMNS],
        buffers: [Vec<u64>; COLUMNS],
    },
}

/// Consecutive rows of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanVector<'a> {
    rows: RowRange,
    columns: [&'a [u64]; COLUMNS],
}

impl<'a> ScanVector<'a> {
    pub(super) fn new(rows: RowRange, columns: [&'a [u64]; COLUMNS]) -> Self {
        Self { rows, columns }
    }

    /// Which rows these are.
    pub fn rows(&self) -> RowRange {
        self.rows
    }

    /// The values of a column, one per row; empty for a column that was not asked for.
    pub fn column(&self, column: usize) -> &[u64] {
        self.columns[column]
    }
}

impl Scan {
    pub(super) fn new(index: &Arc<QuadIndex>, range: RowRange, columns: [bool; COLUMNS]) -> Self {
        let range = RowRange::new(range.start, range.end.min(index.rows()));
        if let Some(file) = index.as_file() {
            return Self(Source::File(FileScan::new(
                Arc::clone(file),
                range,
                columns,
            )));
        }
        Self(Source::Cursor {
            cursor: Box::new(index.cursor()),
            range,
            wanted: columns,
            buffers: Default::default(),
        })
    }

    /// The rows that are still to come.
    pub fn remaining(&self) -> RowRange {
        match &self.0 {
            Source::File(scan) => scan.remaining(),
            Source::Cursor { range, .. } => *range,
        }
    }

    /// The next rows, or `None` at the end of the range.
    pub fn next_vector(&mut self) -> Result<Option<ScanVector<'_>>> {
        match &mut self.0 {
            Source::File(scan) => scan.next_vector(),
            Source::Cursor {
                cursor,
                range,
                wanted,
                buffers,
            } => {
                if range.is_empty() {
                    return Ok(None);
                }
                let rows =
                    RowRange::new(range.start, range.end.min(range.start + VECTOR_ROWS as u64));
                for (column, buffer) in buffers.iter_mut().enumerate() {
                    buffer.clear();
                    if wanted[column] {
                        cursor.read(rows, column, buffer)?;
                    }
                }
                range.start = rows.end;
                let columns = std::array::from_fn(|column| &buffers[column][..]);
                Ok(Some(ScanVector::new(rows, columns)))
            }
        }
    }
}

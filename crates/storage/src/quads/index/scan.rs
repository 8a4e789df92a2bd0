//! A scan over a range of rows, in batches of some hundred.

use crate::quads::index::scan_vector::ScanVector;
use std::sync::Arc;

use orrery_column::VECTOR_ROWS;

use super::file_scan::FileScan;
use super::{COLUMNS, Cursor, QuadIndex, RowRange};
use crate::Result;
use crate::quads::read_cost::{ReadCost, ReadCounts};

/// Reads the wanted columns of a range, at most 1,024 rows at a time.
///
/// Not an `Iterator`, because each vector is lent from the scan's buffers.
#[derive(Debug)]
pub struct Scan {
    source: Source,
    /// Where it is counted what was read, when the scan goes, and how many rows there were to read.
    counted: Option<(Arc<ReadCost>, u64)>,
}

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

impl QuadIndex {
    /// Walks over a range, and decodes the columns that are asked for.
    pub fn scan(self: &Arc<Self>, range: RowRange, columns: [bool; COLUMNS]) -> Scan {
        Scan::new(self, range, columns)
    }
}

impl Scan {
    pub(crate) fn new(index: &Arc<QuadIndex>, range: RowRange, columns: [bool; COLUMNS]) -> Self {
        let range = RowRange::new(range.start, range.end.min(index.rows()));
        if let Some(file) = index.as_file() {
            let file = FileScan::new(Arc::clone(file), range, columns);
            return Self::of(Source::File(file));
        }
        Self::of(Source::Cursor {
            cursor: Box::new(index.cursor()),
            range,
            wanted: columns,
            buffers: Default::default(),
        })
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            counted: None,
        }
    }

    /// The same, and what it reads is counted.
    pub(crate) fn counted(mut self, cost: &Arc<ReadCost>) -> Self {
        self.counted = Some((Arc::clone(cost), self.remaining().len()));
        self
    }

    /// The rows that are still to come.
    pub fn remaining(&self) -> RowRange {
        match &self.source {
            Source::File(scan) => scan.remaining(),
            Source::Cursor { range, .. } => *range,
        }
    }

    /// The next rows, or `None` at the end of the range.
    pub fn next_vector(&mut self) -> Result<Option<ScanVector<'_>>> {
        match &mut self.source {
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

impl Drop for Scan {
    fn drop(&mut self) {
        if let Some((cost, rows)) = &self.counted {
            let rows = rows - self.remaining().len();
            cost.add(ReadCounts { look_ups: 0, rows });
        }
    }
}

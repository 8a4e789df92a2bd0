//! Permutations: all quads in several sort orders, so that a pattern is one range of rows.
//!
//! A permutation holds all quads as rows of four ids, in one column order, sorted and without
//! duplicates. Rows are cut into vectors of [`VECTOR_ROWS`]; row `r` stands in vector `r / 1024`,
//! so a position in the file follows from a row number without any search. Each column of a vector
//! is compressed by itself and read only when wanted.
//!
//! The block file's content, little endian:
//!
//! ```text
//! data block      per vector and column: end of its bytes in this block u32 | the encoded columns
//!                 eight vectors to a block, four columns to a vector in the permutation's order
//! fence block     first row of each vector, 32 bytes; 2,048 vectors to a block
//! metadata        rows u64 | permutation u8
//! ```
//!
//! A look-up is a binary search over the fences, and then within one vector for each end of the
//! range; only the columns of the prefix are decoded. A range is exact, so counting needs nothing
//! more. A [`Cursor`] keeps the vectors it decoded and searches forward from its last position, so
//! ascending keys cost little more than walking along.
//!
//! Invariants: rows ascend strictly; all vectors but the last are full. The writer refuses rows
//! that break the order; [`QuadIndex::verify`] checks it again. A [`QuadIndex`] is such a file or a
//! *view* of one through the [deltas](crate::quads::delta) that were committed since; all that
//! reads works on both. Not done here: which permutation serves a pattern, and what the ids mean.

use orrery_column::VECTOR_ROWS;
use orrery_term::TermId;

use crate::files::block_file::{FileKind, FileSummary};

mod base;
mod cursor;
mod file;
mod file_check;
mod file_cursor;
mod file_scan;
mod level;
mod mask;
mod permutation;
mod piece;
mod scan;
mod scan_vector;
mod slot;
mod spare;
mod view;
mod writer;

pub use cursor::Cursor;
pub use permutation::{COLUMNS, PerPermutation, Permutation, QuadPosition, QuadRow};
pub use scan::Scan;
pub use scan_vector::ScanVector;
pub(crate) use view::QuadIndex;
pub use writer::QuadIndexWriter;

const KIND: FileKind = FileKind(*b"QIDX");
const VECTORS_PER_BLOCK: usize = 8;
const FENCES_PER_BLOCK: usize = 2048;
const FENCE_BYTES: usize = 32;
/// Bytes that tell where one column of one vector ends.
const COLUMN_END_BYTES: usize = 4;

/// Rows of a permutation from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowRange {
    /// The first row.
    pub start: u64,
    /// The row behind the last.
    pub end: u64,
}

impl RowRange {
    /// The rows from `start` up to, not including, `end`; none if they are the wrong way round.
    #[inline]
    pub const fn new(start: u64, end: u64) -> Self {
        Self {
            start,
            end: if end < start { start } else { end },
        }
    }

    /// Number of rows.
    #[inline]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether there are no rows.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The summary of a finished index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSummary {
    /// The permutation.
    pub permutation: Permutation,
    /// Number of rows.
    pub rows: u64,
    /// Length and checksum of the file.
    pub file: FileSummary,
}

/// The first columns of a row, as numbers.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    values: QuadRow,
    columns: usize,
}

impl Prefix {
    /// # Panics
    ///
    /// If there are more than four ids.
    fn new(ids: &[TermId]) -> Self {
        let mut values = [0; COLUMNS];
        for (value, id) in values[..ids.len()].iter_mut().zip(ids) {
            *value = id.bits();
        }
        Self {
            values,
            columns: ids.len(),
        }
    }

    /// # Panics
    ///
    /// If there are more than four values.
    fn from_values(values: &[u64]) -> Self {
        let mut all = [0; COLUMNS];
        all[..values.len()].copy_from_slice(values);
        Self {
            values: all,
            columns: values.len(),
        }
    }

    /// # Panics
    ///
    /// If there are four values already.
    fn with(mut self, value: u64) -> Self {
        self.values[self.columns] = value;
        self.columns += 1;
        self
    }

    fn as_slice(&self) -> &[u64] {
        &self.values[..self.columns]
    }

    /// Whether a row begins with this prefix.
    fn matches(&self, row: &QuadRow) -> bool {
        row[..self.columns] == *self.as_slice()
    }

    /// Whether a row stands before the boundary that `side` draws at this prefix.
    fn is_behind(&self, row: &QuadRow, side: Side) -> bool {
        for (value, bound) in row.iter().zip(self.as_slice()) {
            if value != bound {
                return value < bound;
            }
        }
        side == Side::After
    }
}

/// On which side of the rows with a prefix a boundary is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// Number of vectors that so many rows make.
fn vectors_of(rows: u64) -> u64 {
    rows.div_ceil(VECTOR_ROWS as u64)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;

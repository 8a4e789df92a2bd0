//! One batch of a scan.

use super::{COLUMNS, RowRange};

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

    /// The range of these rows.
    pub fn rows(&self) -> RowRange {
        self.rows
    }

    /// The values of a column, one per row; empty for a column that was not asked for.
    pub fn column(&self, column: usize) -> &[u64] {
        self.columns[column]
    }
}

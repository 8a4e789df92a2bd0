//! A piece of a range of rows, the unit of parallel scans.

use super::{QuadRow, RowRange};

/// Rows to be read one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece {
    /// Of the file.
    File(RowRange),
    /// Of a delta.
    Inserted(QuadRow),
}

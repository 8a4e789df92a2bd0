//! A part of a range, by where its rows are.

use super::{QuadRow, RowRange};

/// Rows to be read one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece {
    /// Of the file.
    File(RowRange),
    /// Of a delta.
    Inserted(QuadRow),
}

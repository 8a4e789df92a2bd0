//! The adaptive batch size of table scans, smaller where rows are long.

use datafusion::arrow::array::{Array, ArrayRef};

use crate::values::sizes::bytes_of_array;

/// Rows of the first piece: of the longest texts these are some megabytes.
const FIRST_ROWS: usize = 16;
/// A piece has so many times the rows of the one before it at most.
const GROWTH_MAX: usize = 8;
/// Rows of a piece.
const ROWS_MAX: usize = 32 * 1024;
/// What a value takes beside its bytes.
const VALUE_BYTES: usize = 16;
/// Bytes of a piece, about. Some wait for the thread that writes them.
const BYTES_MAX: usize = 2 << 20;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsAtOnce {
    rows: usize,
}

impl Default for RowsAtOnce {
    fn default() -> Self {
        Self { rows: FIRST_ROWS }
    }
}

impl RowsAtOnce {
    /// Of the next piece, at most.
    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    /// Takes note of a piece; its bytes, without those of a dictionary that it shares with others:
    /// these are there once, however few rows are read.
    pub(crate) fn have_come(&mut self, columns: &[ArrayRef]) -> usize {
        let bytes = columns.iter();
        let bytes = bytes.map(|it| bytes_of_array(it) as usize + VALUE_BYTES * it.len());
        let bytes = bytes.sum();
        self.rows = next_rows(self.rows, columns.first().map_or(0, |it| it.len()), bytes);
        bytes
    }
}

/// Behind a piece of so many rows and bytes, which might have had so many rows.
fn next_rows(before: usize, rows: usize, bytes: usize) -> usize {
    let of_bytes = BYTES_MAX / bytes.div_ceil(rows.max(1)).max(1);
    of_bytes.clamp(1, ROWS_MAX.min(before * GROWTH_MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn what_pieces_share_makes_them_no_smaller() {
        let texts = (0..200_000).map(|row| format!("a text of some length, {row}"));
        let all: ArrayRef = Arc::new(texts.map(Some).collect::<StringViewArray>());
        assert!(all.get_array_memory_size() > 2 * BYTES_MAX);
        let mut at_once = RowsAtOnce::default();
        for expected in [128, 1_024, 8_192] {
            at_once.have_come(&[all.slice(0, at_once.rows())]);
            assert_eq!(at_once.rows(), expected);
        }
    }

    #[test]
    fn pieces_grow_step_by_step_to_what_their_rows_allow() {
        // Short rows.
        let mut rows = FIRST_ROWS;
        for expected in [128, 1_024, 8_192, ROWS_MAX, ROWS_MAX] {
            rows = next_rows(rows, rows, 16 * rows);
            assert_eq!(rows, expected);
        }
        // They become longer, and longer than a piece may be.
        assert_eq!(next_rows(ROWS_MAX, 1_000, 8_000_000), 262);
        assert_eq!(next_rows(1_048, 10, 1 << 30), 1);
        assert_eq!(next_rows(1, 0, 0), 8);
    }
}

//! Chunks: a bounded number of partial solutions, column by column.

use arrow::array::{Array, AsArray, BooleanArray, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat, filter, prep_null_mask_filter};
use arrow::datatypes::UInt64Type;
use datafusion_common::Result;

/// Partial solutions between two steps.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// One array per variable of the layout, all of the same length.
    pub(crate) columns: Vec<UInt64Array>,
    /// The length; also right when there are no columns.
    pub(crate) rows: usize,
}

impl Chunk {
    /// Keeps the rows where the mask is true.
    pub(super) fn filter(self, mask: &BooleanArray) -> Result<Self> {
        debug_assert_eq!(mask.len(), self.rows);
        let rows = mask.true_count();
        if rows == self.rows {
            return Ok(self);
        }
        let without_nulls;
        let mask = if mask.null_count() > 0 {
            without_nulls = prep_null_mask_filter(mask);
            &without_nulls
        } else {
            mask
        };
        let columns = self
            .columns
            .iter()
            .map(|column| Ok(filter(column, mask)?.as_primitive::<UInt64Type>().clone()))
            .collect::<Result<_>>()?;
        Ok(Self { columns, rows })
    }

    /// One chunk of several with the same layout.
    pub(super) fn concatenate(mut chunks: Vec<Self>) -> Result<Option<Self>> {
        if chunks.len() <= 1 {
            return Ok(chunks.pop());
        }
        let rows = chunks.iter().map(|chunk| chunk.rows).sum();
        let columns = (0..chunks[0].columns.len())
            .map(|column| {
                let parts: Vec<&dyn Array> = chunks
                    .iter()
                    .map(|chunk| &chunk.columns[column] as &dyn Array)
                    .collect();
                Ok(concat(&parts)?.as_primitive::<UInt64Type>().clone())
            })
            .collect::<Result<_>>()?;
        Ok(Some(Self { columns, rows }))
    }
}

/// A column that says `row` in row `row`.
pub(super) fn row_numbers(rows: usize) -> UInt64Array {
    UInt64Array::from_iter_values(0..rows as u64)
}

/// A column with the first value of another in so many rows.
pub(super) fn repeat(column: &UInt64Array, rows: usize) -> UInt64Array {
    if column.is_null(0) {
        return UInt64Array::new_null(rows);
    }
    UInt64Array::new(ScalarBuffer::from(vec![column.value(0); rows]), None)
}

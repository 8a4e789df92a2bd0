//! The compaction of text and blob columns, which otherwise keep shared buffers alive.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, GenericByteViewArray};
use datafusion::arrow::datatypes::ByteViewType;

/// A column that keeps no more bytes than it shows. Batches that are read from a file share its
/// buffers, and a sort counts these with each of them.
pub(crate) fn without_others(column: &ArrayRef) -> ArrayRef {
    if let Some(texts) = column.as_string_view_opt() {
        if keeps_too_much(texts) {
            return Arc::new(texts.gc());
        }
    } else if let Some(bytes) = column.as_binary_view_opt()
        && keeps_too_much(bytes)
    {
        return Arc::new(bytes.gc());
    }
    Arc::clone(column)
}

fn keeps_too_much<T: ByteViewType>(column: &GenericByteViewArray<T>) -> bool {
    let kept: usize = column
        .data_buffers()
        .iter()
        .map(|buffer| buffer.capacity())
        .sum();
    kept > 2 * column.total_buffer_bytes_used()
}

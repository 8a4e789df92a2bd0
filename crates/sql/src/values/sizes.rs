//! The byte sizes of row values, for answer limits and logs.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// The bytes of the values of a batch: of texts and bytes their own, of lists those of what is in
/// them, of others those of their type, and at least one for each value: NULL is sent, too. What
/// arrays share with others does not count. Looks at each text.
pub fn bytes_of_values(batch: &RecordBatch) -> u64 {
    let bytes: u64 = batch.columns().iter().map(bytes_of_array).sum();
    // Rows without columns are sent, too.
    bytes.max(batch.num_rows() as u64)
}

pub(crate) fn bytes_of_array(array: &ArrayRef) -> u64 {
    bytes_of_own(array).max(array.len() as u64)
}

fn bytes_of_own(array: &ArrayRef) -> u64 {
    let between = |offsets: &[i32]| (offsets[array.len()] - offsets[0]) as usize;
    match array.data_type() {
        DataType::Utf8View => bytes_of_views(array, array.as_string_view().lengths()),
        DataType::BinaryView => bytes_of_views(array, array.as_binary_view().lengths()),
        DataType::Utf8 => between(array.as_string::<i32>().value_offsets()) as u64,
        DataType::Binary => between(array.as_binary::<i32>().value_offsets()) as u64,
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let first = lists.value_offsets()[0] as usize;
            let values = lists.values();
            bytes_of_array(&values.slice(first, between(lists.value_offsets())))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(bytes_of_array).sum(),
        _ => {
            let data = array.to_data();
            let bytes = data.get_slice_memory_size();
            bytes.unwrap_or_else(|_| data.get_buffer_memory_size()) as u64
        }
    }
}

fn bytes_of_views(array: &ArrayRef, lengths: impl Iterator<Item = u32>) -> u64 {
    let lengths = lengths.map(u64::from);
    match array.nulls() {
        None => lengths.sum(),
        // What a view has that is none is left open.
        Some(nulls) => {
            let known = lengths.zip(nulls.iter()).filter(|(_, is_valid)| *is_valid);
            known.map(|(length, _)| length).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        BinaryViewArray, Int64Array, ListArray, NullArray, StringArray, StringViewArray,
    };
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn values_count_and_not_what_arrays_share() {
        let long = "x".repeat(1_000);
        let texts = [Some("a"), Some(long.as_str()), None, Some("bc")];
        let lists = [
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
            Some(vec![Some(3)]),
        ];
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let none: [Option<&str>; 4] = [None; 4];
        let columns: [(ArrayRef, u64, u64); 8] = [
            (Arc::new(NullArray::new(4)), 4, 1),
            (Arc::new(StringViewArray::from_iter(none)), 4, 1),
            (Arc::new(StringArray::from(vec!["", "", "", ""])), 4, 1),
            (Arc::new(Int64Array::from(vec![1, 2, 3, 4])), 32, 8),
            (Arc::new(StringViewArray::from_iter(texts)), 1_003, 2),
            (
                Arc::new(BinaryViewArray::from_iter(
                    texts.map(|it| it.map(str::as_bytes)),
                )),
                1_003,
                2,
            ),
            (Arc::new(StringArray::from_iter(texts)), 1_003, 2),
            (Arc::new(lists), 24, 8),
        ];
        for (column, all, last) in columns {
            let name = column.data_type().to_string();
            let batch = RecordBatch::try_from_iter([("of", column)]).unwrap();
            assert_eq!(bytes_of_values(&batch), all, "{name}");
            assert_eq!(bytes_of_values(&batch.slice(3, 1)), last, "{name}");
        }
    }
}

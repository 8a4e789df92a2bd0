use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::table::testing::{Value, any_column, array_of, value_of};

/// A key's columns, and rows of values for them.
fn any_rows() -> impl Strategy<Value = (Vec<ProjectionColumn>, Vec<Vec<Value>>)> {
    prop::collection::vec(any_column(), 1..4).prop_flat_map(|columns| {
        let row: Vec<_> = columns.iter().map(value_of).collect();
        (Just(columns), prop::collection::vec(row, 0..20))
    })
}

fn arrays(columns: &[ProjectionColumn], rows: &[Vec<Value>]) -> Vec<ArrayRef> {
    let column = |number: usize| rows.iter().map(move |row| row[number].clone());
    let arrays = columns.iter().enumerate();
    arrays
        .map(|(number, of)| array_of(of.column_type, column(number)))
        .collect()
}

proptest! {
    #[test]
    fn order_of_bytes_is_order_of_values((columns, rows) in any_rows()) {
        let mut keys = KeyRows::default();
        KeyEncoder::new(&columns).encode_rows(&arrays(&columns, &rows), &mut keys).unwrap();
        prop_assert_eq!(keys.len(), rows.len());
        for (a, row_a) in rows.iter().enumerate() {
            for (b, row_b) in rows.iter().enumerate() {
                let expected: Ordering = row_a.cmp(row_b);
                prop_assert_eq!(keys.get(a).cmp(keys.get(b)), expected, "{:?} {:?}", row_a, row_b);
            }
        }
    }

    #[test]
    fn keys_take_no_more_than_is_asked_for((columns, rows) in any_rows()) {
        let encoder = KeyEncoder::new(&columns);
        let arrays = arrays(&columns, &rows);
        let mut keys = KeyRows::default();
        encoder.encode_rows(&arrays, &mut keys).unwrap();
        keys.shrink_to_fit();
        prop_assert!(keys.memory_bytes() as u64 <= encoder.bytes_max(&arrays));
    }

    #[test]
    fn keys_come_back_as_values((columns, rows) in any_rows()) {
        let encoder = KeyEncoder::new(&columns);
        let arrays = arrays(&columns, &rows);
        let mut keys = KeyRows::default();
        encoder.encode_rows(&arrays, &mut keys).unwrap();
        prop_assert_eq!(&encoder.decode(keys.iter(), columns.len()).unwrap(), &arrays);
    }

    #[test]
    fn first_columns_are_a_prefix_and_what_begins_so_is_before_its_end((columns, rows) in any_rows()) {
        let encoder = KeyEncoder::new(&columns);
        let arrays = arrays(&columns, &rows);
        let (mut keys, mut prefixes) = (KeyRows::default(), KeyRows::default());
        encoder.encode_rows(&arrays, &mut keys).unwrap();
        encoder.encode_rows(&arrays[..1], &mut prefixes).unwrap();
        for (prefix, of) in prefixes.iter().zip(&rows) {
            // Nothing is behind the greatest value.
            let end = behind_prefix(prefix);
            for (key, row) in keys.iter().zip(&rows) {
                prop_assert_eq!(key.starts_with(prefix), row[0] == of[0]);
                prop_assert_eq!(key.starts_with(prefix), prefix <= key && end.as_deref().is_none_or(|end| key < end));
            }
        }
    }

    #[test]
    fn any_bytes_are_keys_or_not(columns in prop::collection::vec(any_column(), 1..4), bytes: Vec<u8>) {
        let encoder = KeyEncoder::new(&columns);
        let _ = encoder.decode([&bytes[..]], columns.len());
    }
}

#[test]
fn an_array_of_another_type_is_refused() {
    let column = ProjectionColumn {
        id: crate::table::ColumnId(1),
        column_type: ColumnType::Integer,
        is_nullable: false,
    };
    let array = array_of(ColumnType::BigInt, [Value::Number(1)]);
    let refused = KeyEncoder::new(&[column]).encode_rows(&[array], &mut KeyRows::default());
    assert_eq!(
        refused.unwrap_err().to_string(),
        "a column wants values of type Int32 and got Int64; this is a fault of the program, please report it"
    );
}

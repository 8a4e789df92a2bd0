//! Generators of values of all types, for property tests.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use proptest::prelude::*;

use super::{ColumnId, ColumnType, ProjectionColumn};

/// A value as tests have it; NULL is behind all others.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Number(i128),
    Double(f64),
    Bytes(Vec<u8>),
    Null,
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Double(a), Self::Double(b)) => a.total_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Greater,
            (_, Self::Null) => Ordering::Less,
            _ => panic!("values of one column are of one type"),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

pub(super) fn any_type() -> impl Strategy<Value = ColumnType> {
    let text = (any::<bool>(), prop::option::of(1u32..50));
    prop_oneof![
        Just(ColumnType::Boolean),
        Just(ColumnType::SmallInt),
        Just(ColumnType::Integer),
        Just(ColumnType::BigInt),
        (1u8..=38).prop_map(|precision| ColumnType::Decimal {
            precision,
            scale: precision / 2
        }),
        Just(ColumnType::Real),
        Just(ColumnType::Double),
        Just(ColumnType::Date),
        Just(ColumnType::Timestamp),
        Just(ColumnType::TimestampWithTimeZone),
        text.prop_map(|(is_padded, length_max)| ColumnType::Text {
            length_max,
            is_padded
        }),
        Just(ColumnType::Blob),
    ]
}

pub(super) fn any_column() -> impl Strategy<Value = ProjectionColumn> {
    (any_type(), any::<bool>()).prop_map(|(column_type, is_nullable)| ProjectionColumn {
        id: ColumnId(1),
        column_type,
        is_nullable,
    })
}

/// Values of a column, many of them equal.
pub(super) fn value_of(column: &ProjectionColumn) -> BoxedStrategy<Value> {
    let numbers = |least: i128, greatest: i128| {
        let near = (-3i128..4).prop_map(move |n| Value::Number(n.clamp(least, greatest)));
        let far = (least..=greatest).prop_map(Value::Number);
        prop_oneof![
            near,
            far,
            Just(Value::Number(least)),
            Just(Value::Number(greatest))
        ]
        .boxed()
    };
    let values = match column.column_type {
        ColumnType::Boolean => numbers(0, 1),
        ColumnType::SmallInt => numbers(i128::from(i16::MIN), i128::from(i16::MAX)),
        ColumnType::Integer | ColumnType::Date => {
            numbers(i128::from(i32::MIN), i128::from(i32::MAX))
        }
        ColumnType::BigInt | ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
            numbers(i128::from(i64::MIN), i128::from(i64::MAX))
        }
        ColumnType::Decimal { precision, .. } => {
            let end = 10i128.pow(u32::from(precision)) - 1;
            numbers(-end, end)
        }
        ColumnType::Real => any::<f32>()
            .prop_map(|value| Value::Double(f64::from(normal(f64::from(value)) as f32)))
            .boxed(),
        ColumnType::Double => any::<f64>()
            .prop_map(|value| Value::Double(normal(value)))
            .boxed(),
        ColumnType::Text { is_padded, .. } => prop_oneof!["[ab\u{0}\u{1}\u{2}é ]{0,4}", ".{0,30}"]
            .prop_map(move |text| {
                let text = if is_padded {
                    text.trim_end_matches(' ')
                } else {
                    &text
                };
                Value::Bytes(text.as_bytes().to_vec())
            })
            .boxed(),
        ColumnType::Blob => prop::collection::vec(prop_oneof![0u8..3, any::<u8>()], 0..20)
            .prop_map(Value::Bytes)
            .boxed(),
    };
    match column.is_nullable {
        true => prop_oneof![4 => values, 1 => Just(Value::Null)].boxed(),
        false => values,
    }
}

/// One zero, and one that is not a number.
fn normal(value: f64) -> f64 {
    match value {
        0.0 => 0.0,
        _ if value.is_nan() => f64::NAN.abs(),
        _ => value,
    }
}

/// The array of values of a type.
pub(super) fn array_of(
    column_type: ColumnType,
    values: impl IntoIterator<Item = Value>,
) -> ArrayRef {
    let values: Vec<Value> = values.into_iter().collect();
    let numbers = || {
        values.iter().map(|value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    };
    let doubles = || {
        values.iter().map(|value| match value {
            Value::Double(number) => Some(*number),
            _ => None,
        })
    };
    let bytes = || {
        values.iter().map(|value| match value {
            Value::Bytes(bytes) => Some(&bytes[..]),
            _ => None,
        })
    };
    let i64s = || numbers().map(|number| number.map(|number| number as i64));
    let i32s = || numbers().map(|number| number.map(|number| number as i32));
    let array: ArrayRef = match column_type {
        ColumnType::Boolean => {
            let values = numbers().map(|number| number.map(|number| number == 1));
            Arc::new(values.collect::<BooleanArray>())
        }
        ColumnType::SmallInt => {
            let values = numbers().map(|number| number.map(|number| number as i16));
            Arc::new(values.collect::<Int16Array>())
        }
        ColumnType::Integer => Arc::new(i32s().collect::<Int32Array>()),
        ColumnType::Date => Arc::new(i32s().collect::<Date32Array>()),
        ColumnType::BigInt => Arc::new(i64s().collect::<Int64Array>()),
        ColumnType::Timestamp => Arc::new(i64s().collect::<TimestampMicrosecondArray>()),
        ColumnType::TimestampWithTimeZone => {
            let values = i64s().collect::<TimestampMicrosecondArray>();
            Arc::new(values.with_timezone("UTC"))
        }
        ColumnType::Decimal { .. } => {
            let values = numbers().collect::<Decimal128Array>();
            Arc::new(values.with_data_type(column_type.arrow()))
        }
        ColumnType::Real => {
            let values = doubles().map(|number| number.map(|number| number as f32));
            Arc::new(values.collect::<Float32Array>())
        }
        ColumnType::Double => Arc::new(doubles().collect::<Float64Array>()),
        ColumnType::Text { .. } => {
            let values =
                bytes().map(|bytes| bytes.map(|bytes| std::str::from_utf8(bytes).unwrap()));
            Arc::new(values.collect::<StringViewArray>())
        }
        ColumnType::Blob => Arc::new(bytes().collect::<BinaryViewArray>()),
    };
    assert_eq!(*array.data_type(), column_type.arrow());
    array
}

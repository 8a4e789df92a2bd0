//! Conversion between Arrow arrays and lanes, for fixed-width types. See `types` for what a lane
//! is.
//!
//! Both ways are loops without branches over slices, which the compiler turns into vector
//! instructions; whether a row is NULL is not looked at here: its lane is that of whatever value
//! the array has in its place.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Date32Array, Decimal128Array,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};

use super::types::{ColumnType, Physical};
use crate::{Error, Result};

pub(super) const SIGN: u64 = 1 << 63;

/// Checks that an array is of the type in which values of a column come.
pub(super) fn check_array(column_type: ColumnType, array: &dyn Array) -> Result<()> {
    let expected = column_type.arrow();
    if *array.data_type() == expected {
        return Ok(());
    }
    Err(Error::WrongArray {
        expected: expected.to_string(),
        found: array.data_type().to_string(),
    })
}

/// Appends the lanes of some rows; the second ones only where the type has two. An array of another
/// type has none.
pub(super) fn append_lanes(
    column_type: ColumnType,
    array: &dyn Array,
    rows: Range<usize>,
    first: &mut Vec<u64>,
    second: &mut Vec<u64>,
) -> Result<()> {
    check_array(column_type, array)?;
    match column_type {
        ColumnType::Boolean => {
            let values = array.as_boolean().values();
            first.extend(rows.map(|row| u64::from(values.value(row))));
        }
        ColumnType::SmallInt => {
            let values = &array.as_primitive::<Int16Type>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of(i64::from(value))));
        }
        ColumnType::Integer => {
            let values = &array.as_primitive::<Int32Type>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of(i64::from(value))));
        }
        ColumnType::Date => {
            let values = &array.as_primitive::<Date32Type>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of(i64::from(value))));
        }
        ColumnType::BigInt => {
            let values = &array.as_primitive::<Int64Type>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of(value)));
        }
        ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
            let values = &array.as_primitive::<TimestampMicrosecondType>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of(value)));
        }
        ColumnType::Real => {
            let values = &array.as_primitive::<Float32Type>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of_real(value)));
        }
        ColumnType::Double => {
            let values = &array.as_primitive::<Float64Type>().values()[rows];
            first.extend(values.iter().map(|&value| lane_of_double(value)));
        }
        ColumnType::Decimal { .. } => {
            let values = &array.as_primitive::<Decimal128Type>().values()[rows];
            match column_type.physical() {
                Physical::TwoLanes => {
                    first.extend(values.iter().map(|&value| lanes_of_wide(value).0));
                    second.extend(values.iter().map(|&value| lanes_of_wide(value).1));
                }
                Physical::Lane | Physical::Bytes => {
                    first.extend(values.iter().map(|&value| lane_of(value as i64)));
                }
            }
        }
        ColumnType::Text { .. } | ColumnType::Blob => {}
    }
    Ok(())
}

/// The lane of a number.
#[inline]
pub(super) fn lane_of(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

/// The number of a lane.
#[inline]
pub(super) fn number_of(lane: u64) -> i64 {
    (lane ^ SIGN).cast_signed()
}

/// The two lanes of a number of 128 bits.
#[inline]
pub(super) fn lanes_of_wide(value: i128) -> (u64, u64) {
    (((value >> 64) as u64) ^ SIGN, value as u64)
}

#[inline]
pub(super) fn wide_of(first: u64, second: u64) -> i128 {
    i128::from(number_of(first)) << 64 | i128::from(second)
}

#[inline]
fn lane_of_double(value: f64) -> u64 {
    let bits = match value {
        0.0 => 0,
        _ if value.is_nan() => f64::NAN.to_bits() & !SIGN,
        _ => value.to_bits(),
    };
    bits ^ (((bits.cast_signed() >> 63).cast_unsigned()) | SIGN)
}

#[inline]
fn double_of(lane: u64) -> f64 {
    let negative = (!lane).cast_signed() >> 63;
    f64::from_bits(lane ^ (negative.cast_unsigned() | SIGN))
}

#[inline]
fn lane_of_real(value: f32) -> u64 {
    const SIGN: u32 = 1 << 31;
    let bits = match value {
        0.0 => 0,
        _ if value.is_nan() => f32::NAN.to_bits() & !SIGN,
        _ => value.to_bits(),
    };
    u64::from(bits ^ (((bits.cast_signed() >> 31).cast_unsigned()) | SIGN))
}

#[inline]
fn real_of(lane: u64) -> f32 {
    const SIGN: u32 = 1 << 31;
    let lane = lane as u32;
    let negative = (!lane).cast_signed() >> 31;
    f32::from_bits(lane ^ (negative.cast_unsigned() | SIGN))
}

/// Lanes on their way into an array.
#[derive(Debug)]
pub(super) struct LaneBuilder {
    column_type: ColumnType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Boolean(BooleanBufferBuilder),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I128(Vec<i128>),
}

impl LaneBuilder {
    /// Room for so many rows of a type that is not of bytes.
    pub(super) fn new(column_type: ColumnType, rows: usize) -> Self {
        let values = match column_type {
            ColumnType::Boolean => Values::Boolean(BooleanBufferBuilder::new(rows)),
            ColumnType::SmallInt => Values::I16(Vec::with_capacity(rows)),
            ColumnType::Integer | ColumnType::Date => Values::I32(Vec::with_capacity(rows)),
            ColumnType::Real => Values::F32(Vec::with_capacity(rows)),
            ColumnType::Double => Values::F64(Vec::with_capacity(rows)),
            ColumnType::Decimal { .. } => Values::I128(Vec::with_capacity(rows)),
            ColumnType::BigInt
            | ColumnType::Timestamp
            | ColumnType::TimestampWithTimeZone
            | ColumnType::Text { .. }
            | ColumnType::Blob => Values::I64(Vec::with_capacity(rows)),
        };
        Self {
            column_type,
            values,
        }
    }

    /// Appends rows; `second` is read only where the type has two lanes.
    pub(super) fn push(&mut self, first: &[u64], second: &[u64]) {
        match &mut self.values {
            Values::Boolean(values) => first.iter().for_each(|&lane| values.append(lane & 1 == 1)),
            Values::I16(values) => values.extend(first.iter().map(|&lane| lane as i16)),
            Values::I32(values) => values.extend(first.iter().map(|&lane| lane as i32)),
            Values::I64(values) => values.extend(first.iter().map(|&lane| number_of(lane))),
            Values::F32(values) => values.extend(first.iter().map(|&lane| real_of(lane))),
            Values::F64(values) => values.extend(first.iter().map(|&lane| double_of(lane))),
            Values::I128(values) => match self.column_type.physical() {
                Physical::TwoLanes => {
                    let pairs = first.iter().zip(second);
                    values.extend(pairs.map(|(&first, &second)| wide_of(first, second)));
                }
                Physical::Lane | Physical::Bytes => {
                    values.extend(first.iter().map(|&lane| i128::from(number_of(lane))));
                }
            },
        }
    }

    /// The array of all rows that were appended, with a bit for each of them in `nulls`.
    pub(super) fn finish(self, nulls: Option<NullBuffer>) -> ArrayRef {
        match self.values {
            Values::Boolean(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::I16(values) => Arc::new(Int16Array::new(values.into(), nulls)),
            Values::I32(values) => match self.column_type {
                ColumnType::Date => Arc::new(Date32Array::new(values.into(), nulls)),
                _ => Arc::new(Int32Array::new(values.into(), nulls)),
            },
            Values::F32(values) => Arc::new(Float32Array::new(values.into(), nulls)),
            Values::F64(values) => Arc::new(Float64Array::new(values.into(), nulls)),
            Values::I64(values) => {
                let values: ScalarBuffer<i64> = values.into();
                let zone = |zone| {
                    TimestampMicrosecondArray::new(values.clone(), nulls.clone())
                        .with_timezone_opt(zone)
                };
                match self.column_type {
                    ColumnType::Timestamp => Arc::new(zone(None::<Arc<str>>)),
                    ColumnType::TimestampWithTimeZone => Arc::new(zone(Some("UTC".into()))),
                    _ => Arc::new(Int64Array::new(values, nulls)),
                }
            }
            Values::I128(values) => {
                let array = Decimal128Array::new(values.into(), nulls);
                Arc::new(array.with_data_type(self.column_type.arrow()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_and_reals_keep_their_order_and_bits() {
        let doubles = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            5e-324,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(doubles.map(lane_of_double).is_sorted_by(|a, b| a < b));
        for value in doubles {
            assert_eq!(double_of(lane_of_double(value)).to_bits(), value.to_bits());
            // What is too small for 32 bits is zero, of which there is one.
            let real = value as f32 + 0.0;
            assert_eq!(real_of(lane_of_real(real)).to_bits(), real.to_bits());
        }
        assert_eq!(lane_of_double(-0.0), lane_of_double(0.0));
        assert_eq!(lane_of_real(-0.0), lane_of_real(0.0));
        assert_eq!(lane_of_double(-f64::NAN), lane_of_double(f64::NAN));
    }
}

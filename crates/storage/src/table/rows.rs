//! The row encoding of the log, of flushed deltas, and of rows in memory.
//!
//! ```text
//! row     bit per column: whether it is NULL, padded to whole bytes | values of the others, in the order of the columns
//! value   boolean                u8
//!         integers, decimals, dates, timestamps    the number, zigzag, as LEB128 (of two lanes: up to 19 bytes)
//!         real, double           4, 8 bytes, little endian
//!         text, blob             length as LEB128 | bytes
//! ```
//!
//! Encoding and decoding go column by column over many rows, so that types are looked at once a
//! column and not once a value.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanBuilder, PrimitiveArray, PrimitiveBuilder,
    StringViewBuilder,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};

use super::types::ColumnType;

/// The reason why bytes or arrays are no rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// An array is not of its column's type.
    #[error("column {column} has values of the type {found}, expected {expected}")]
    Type {
        /// Number of the column, from 0.
        column: usize,
        /// What the array holds.
        found: DataType,
        /// What it should hold.
        expected: DataType,
    },
    /// The arrays are not as many as the columns, or not of one length.
    #[error("columns are missing, or of different lengths")]
    Shape,
    /// The bytes end too early, go on too long, or hold what no value of the type is.
    #[error("the bytes are not a row of these columns")]
    Bytes,
}

/// Rows, one after the other in one piece of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowBytes {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowBytes {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    /// Appends a row.
    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// All rows in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// Encodes rows and decodes them again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCodec {
    types: Vec<ColumnType>,
}

impl RowCodec {
    /// A codec for rows of these types.
    pub fn new(types: impl IntoIterator<Item = ColumnType>) -> Self {
        Self {
            types: types.into_iter().collect(),
        }
    }

    /// The rows of arrays, which are of [`ColumnType::arrow`] of the columns' types, and of one
    /// length.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<RowBytes, RowError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let is_even = columns.iter().all(|column| column.len() == rows);
        if columns.len() != self.types.len() || !is_even {
            return Err(RowError::Shape);
        }
        let columns = self.types.iter().zip(columns).enumerate();
        let columns: Vec<Values<'_>> = columns
            .map(|(number, (&of, array))| Values::of(number, of, array))
            .collect::<Result<_, _>>()?;
        let mut out = RowBytes::default();
        out.ends.reserve(rows);
        for row in 0..rows {
            let nulls_at = out.bytes.len();
            out.bytes.resize(nulls_at + self.null_bytes(), 0);
            for (number, column) in columns.iter().enumerate() {
                match column.is_null(row) {
                    true => out.bytes[nulls_at + number / 8] |= 1 << (number % 8),
                    false => column.write(row, &mut out.bytes),
                }
            }
            out.ends.push(out.bytes.len());
        }
        // They stay for long, and a buffer that grew may be twice as large as what is in it.
        out.bytes.shrink_to_fit();
        Ok(out)
    }

    /// The wanted columns of rows, as arrays in the order of `wanted`, which must ascend.
    pub fn decode<'r>(
        &self,
        rows: impl ExactSizeIterator<Item = &'r [u8]>,
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>, RowError> {
        debug_assert!(wanted.is_sorted_by(|a, b| a < b));
        let last = wanted.last().map_or(0, |last| last + 1);
        let types = self.types.get(..last).ok_or(RowError::Shape)?;
        let mut next = wanted.iter().peekable();
        let mut builders: Vec<Option<Builder>> = (0..last)
            .map(|number| {
                next.next_if_eq(&&number)
                    .map(|_| Builder::of(types[number], rows.len()))
            })
            .collect();
        for row in rows {
            let (nulls, mut rest) = row
                .split_at_checked(self.null_bytes())
                .ok_or(RowError::Bytes)?;
            for (number, (&of, builder)) in types.iter().zip(&mut builders).enumerate() {
                let is_null = nulls[number / 8] & (1 << (number % 8)) != 0;
                match (is_null, builder) {
                    (true, Some(builder)) => builder.push_null(),
                    (true, None) => {}
                    (false, Some(builder)) => builder.push(&mut rest).ok_or(RowError::Bytes)?,
                    (false, None) => skip(of, &mut rest).ok_or(RowError::Bytes)?,
                }
            }
            if last == self.types.len() && !rest.is_empty() {
                return Err(RowError::Bytes);
            }
        }
        let built = types.iter().zip(builders);
        Ok(built
            .filter_map(|(of, builder)| Some(builder?.finish(*of)))
            .collect())
    }

    fn null_bytes(&self) -> usize {
        self.types.len().div_ceil(8)
    }
}

/// The values of a column, by how they are written.
enum Values<'a> {
    Boolean(&'a arrow::array::BooleanArray),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    Date(&'a PrimitiveArray<Date32Type>),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    Decimal(&'a PrimitiveArray<Decimal128Type>),
    Real(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Text(&'a arrow::array::StringViewArray),
    Blob(&'a arrow::array::BinaryViewArray),
}

impl<'a> Values<'a> {
    fn of(column: usize, of: ColumnType, array: &'a ArrayRef) -> Result<Self, RowError> {
        if *array.data_type() != of.arrow() {
            return Err(RowError::Type {
                column,
                found: array.data_type().clone(),
                expected: of.arrow(),
            });
        }
        Ok(match of {
            ColumnType::Boolean => Self::Boolean(array.as_boolean()),
            ColumnType::SmallInt => Self::Int16(array.as_primitive()),
            ColumnType::Integer => Self::Int32(array.as_primitive()),
            ColumnType::BigInt => Self::Int64(array.as_primitive()),
            ColumnType::Decimal { .. } => Self::Decimal(array.as_primitive()),
            ColumnType::Real => Self::Real(array.as_primitive()),
            ColumnType::Double => Self::Double(array.as_primitive()),
            ColumnType::Date => Self::Date(array.as_primitive()),
            ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
                Self::Timestamp(array.as_primitive())
            }
            ColumnType::Text { .. } => Self::Text(array.as_string_view()),
            ColumnType::Blob => Self::Blob(array.as_binary_view()),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Boolean(array) => array.is_null(row),
            Self::Int16(array) => array.is_null(row),
            Self::Int32(array) => array.is_null(row),
            Self::Int64(array) => array.is_null(row),
            Self::Date(array) => array.is_null(row),
            Self::Timestamp(array) => array.is_null(row),
            Self::Decimal(array) => array.is_null(row),
            Self::Real(array) => array.is_null(row),
            Self::Double(array) => array.is_null(row),
            Self::Text(array) => array.is_null(row),
            Self::Blob(array) => array.is_null(row),
        }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Boolean(array) => out.push(u8::from(array.value(row))),
            Self::Int16(array) => write_number(array.value(row).into(), out),
            Self::Int32(array) => write_number(array.value(row).into(), out),
            Self::Int64(array) => write_number(array.value(row).into(), out),
            Self::Date(array) => write_number(array.value(row).into(), out),
            Self::Timestamp(array) => write_number(array.value(row).into(), out),
            Self::Decimal(array) => write_number(array.value(row), out),
            Self::Real(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::Double(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::Text(array) => write_bytes(array.value(row).as_bytes(), out),
            Self::Blob(array) => write_bytes(array.value(row), out),
        }
    }
}

/// An array that is made of bytes.
enum Builder {
    Boolean(BooleanBuilder),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    Decimal(PrimitiveBuilder<Decimal128Type>),
    Real(PrimitiveBuilder<Float32Type>),
    Double(PrimitiveBuilder<Float64Type>),
    Text(StringViewBuilder),
    Blob(BinaryViewBuilder),
}

impl Builder {
    fn of(of: ColumnType, rows: usize) -> Self {
        match of {
            ColumnType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            ColumnType::SmallInt => Self::Int16(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Integer => Self::Int32(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::BigInt => Self::Int64(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Decimal { .. } => Self::Decimal(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Real => Self::Real(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Double => Self::Double(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Date => Self::Date(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
                Self::Timestamp(PrimitiveBuilder::with_capacity(rows))
            }
            ColumnType::Text { .. } => Self::Text(StringViewBuilder::with_capacity(rows)),
            ColumnType::Blob => Self::Blob(BinaryViewBuilder::with_capacity(rows)),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Boolean(builder) => builder.append_null(),
            Self::Int16(builder) => builder.append_null(),
            Self::Int32(builder) => builder.append_null(),
            Self::Int64(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
            Self::Decimal(builder) => builder.append_null(),
            Self::Real(builder) => builder.append_null(),
            Self::Double(builder) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Blob(builder) => builder.append_null(),
        }
    }

    /// Takes a value off the bytes; `None` if they are none of the type.
    fn push(&mut self, bytes: &mut &[u8]) -> Option<()> {
        match self {
            Self::Boolean(builder) => builder.append_value(match take(bytes, 1)? {
                [0] => false,
                [1] => true,
                _ => return None,
            }),
            Self::Int16(builder) => push_number(builder, bytes)?,
            Self::Int32(builder) => push_number(builder, bytes)?,
            Self::Int64(builder) => push_number(builder, bytes)?,
            Self::Date(builder) => push_number(builder, bytes)?,
            Self::Timestamp(builder) => push_number(builder, bytes)?,
            Self::Decimal(builder) => push_number(builder, bytes)?,
            Self::Real(builder) => {
                builder.append_value(f32::from_le_bytes(*take(bytes, 4)?.first_chunk()?));
            }
            Self::Double(builder) => {
                builder.append_value(f64::from_le_bytes(*take(bytes, 8)?.first_chunk()?));
            }
            Self::Text(builder) => {
                builder.append_value(std::str::from_utf8(take_bytes(bytes)?).ok()?);
            }
            Self::Blob(builder) => builder.append_value(take_bytes(bytes)?),
        }
        Some(())
    }

    fn finish(self, of: ColumnType) -> ArrayRef {
        /// Decimals and timestamps have more to their type than how wide they are.
        fn typed<T: ArrowPrimitiveType>(
            mut builder: PrimitiveBuilder<T>,
            of: ColumnType,
        ) -> ArrayRef {
            Arc::new(builder.finish().with_data_type(of.arrow()))
        }
        match self {
            Self::Boolean(mut builder) => Arc::new(builder.finish()),
            Self::Int16(builder) => typed(builder, of),
            Self::Int32(builder) => typed(builder, of),
            Self::Int64(builder) => typed(builder, of),
            Self::Date(builder) => typed(builder, of),
            Self::Timestamp(builder) => typed(builder, of),
            Self::Decimal(builder) => typed(builder, of),
            Self::Real(builder) => typed(builder, of),
            Self::Double(builder) => typed(builder, of),
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Blob(mut builder) => Arc::new(builder.finish()),
        }
    }
}

fn push_number<T>(builder: &mut PrimitiveBuilder<T>, bytes: &mut &[u8]) -> Option<()>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    builder.append_value(T::Native::try_from(take_number(bytes)?).ok()?);
    Some(())
}

/// Passes over a value.
fn skip(of: ColumnType, bytes: &mut &[u8]) -> Option<()> {
    match of {
        ColumnType::Boolean => take(bytes, 1).map(drop),
        ColumnType::SmallInt
        | ColumnType::Integer
        | ColumnType::BigInt
        | ColumnType::Decimal { .. }
        | ColumnType::Date
        | ColumnType::Timestamp
        | ColumnType::TimestampWithTimeZone => take_number(bytes).map(drop),
        ColumnType::Real => take(bytes, 4).map(drop),
        ColumnType::Double => take(bytes, 8).map(drop),
        ColumnType::Text { .. } | ColumnType::Blob => take_bytes(bytes).map(drop),
    }
}

fn write_number(number: i128, out: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 127)).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<i128> {
    let (mut zigzag, mut shift) = (0u128, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u128::from(byte & 0x7f);
        if shift > 126 || (shift == 126 && part > 3) {
            return None;
        }
        zigzag |= part << shift;
        if byte & 0x80 == 0 {
            return Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
        }
        shift += 7;
    }
}

fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    crate::files::varint::write(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn take_bytes<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = crate::files::varint::read_length(bytes)?;
    take(bytes, length)
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, BooleanArray, StringViewArray};
    use proptest::prelude::*;

    use super::*;

    const DECIMAL: ColumnType = ColumnType::Decimal {
        precision: 38,
        scale: 2,
    };
    const TEXT: ColumnType = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(
            rows in prop::collection::vec(
                (any::<Option<bool>>(), any::<Option<i16>>(), any::<Option<i64>>(), any::<Option<i128>>(),
                 any::<Option<f64>>(), any::<Option<String>>(), any::<Option<Vec<u8>>>(), any::<Option<i32>>()), 0..40),
            mask in any::<u8>(),
        ) {
            let types = [ColumnType::Boolean, ColumnType::SmallInt, ColumnType::TimestampWithTimeZone, DECIMAL,
                ColumnType::Double, TEXT, ColumnType::Blob, ColumnType::Date];
            let codec = RowCodec::new(types);
            let blobs: Vec<Option<&[u8]>> = rows.iter().map(|row| row.6.as_deref()).collect();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(rows.iter().map(|row| row.0).collect::<BooleanArray>()),
                Arc::new(rows.iter().map(|row| row.1).collect::<PrimitiveArray<Int16Type>>()),
                Arc::new(rows.iter().map(|row| row.2).collect::<PrimitiveArray<TimestampMicrosecondType>>().with_timezone("UTC")),
                Arc::new(rows.iter().map(|row| row.3).collect::<PrimitiveArray<Decimal128Type>>().with_data_type(DECIMAL.arrow())),
                Arc::new(rows.iter().map(|row| row.4).collect::<PrimitiveArray<Float64Type>>()),
                Arc::new(rows.iter().map(|row| row.5.as_deref()).collect::<StringViewArray>()),
                Arc::new(BinaryViewArray::from(blobs)),
                Arc::new(rows.iter().map(|row| row.7).collect::<PrimitiveArray<Date32Type>>()),
            ];
            let encoded = codec.encode(&columns).unwrap();
            prop_assert_eq!(encoded.len(), rows.len());
            let wanted: Vec<usize> = (0..types.len()).filter(|bit| mask & (1 << bit) != 0).collect();
            let decoded = codec.decode(encoded.iter(), &wanted).unwrap();
            prop_assert_eq!(decoded.len(), wanted.len());
            for (array, &column) in decoded.iter().zip(&wanted) {
                prop_assert_eq!(array, &columns[column]);
            }
        }

        #[test]
        fn any_bytes_are_a_row_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let codec = RowCodec::new([ColumnType::Boolean, DECIMAL, TEXT, ColumnType::Real, ColumnType::Integer]);
            let row = bytes.as_slice();
            let _ = codec.decode(std::iter::once(row), &[0, 1, 2, 3, 4]);
            let _ = codec.decode(std::iter::once(row), &[2]);
        }
    }

    #[test]
    fn an_array_of_another_type_is_refused() {
        let codec = RowCodec::new([ColumnType::Integer]);
        let found: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from(vec![1]));
        assert!(matches!(
            codec.encode(&[found]),
            Err(RowError::Type { column: 0, .. })
        ));
        assert_eq!(codec.encode(&[]), Err(RowError::Shape));
    }
}

//! Encodes rows for a client: as text, or in PostgreSQL's binary formats.
//!
//! ```text
//!   DataRow   'D' length  count (2)  { length or -1 (4)  bytes }
//!   dates     days since 2000-01-01            time stamps   microseconds since then
//!   numeric   digits (2) weight (2) sign (2) scale (2), then each four decimal digits as 2 bytes
//! ```
//!
//! A column is inspected once per batch; a value costs a match and its bytes.

use std::fmt::Write as _;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};
use orrery_sql::ValueTexts;

use crate::message::put_message;
use crate::refusal::Refusal;
use crate::texts::{cut_zeros, write_double, write_element, write_real};
use crate::types::{element_of, modifier_of, oid_of, oid_of_column, size_of};

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_MICROSECONDS: i64 = 86_400_000_000 * EPOCH_DAYS as i64;
/// Most bytes of a value; PostgreSQL refuses longer ones, too.
const VALUE_BYTES_MAX: usize = 1 << 30;

/// Whether a column is wanted in binary: no formats mean text, one is for all columns.
pub(crate) fn is_binary(formats: &[i16], column: usize) -> bool {
    let format = match formats {
        [] => 0,
        [all] => *all,
        each => each.get(column).copied().unwrap_or(0),
    };
    format == 1
}

/// Writes RowDescription: the columns of the rows that follow.
pub(crate) fn put_columns(output: &mut BytesMut, schema: &Schema, formats: &[i16]) {
    put_message(output, b'T', |body| {
        body.put_u16(u16::try_from(schema.fields().len()).unwrap_or(u16::MAX));
        for (place, field) in schema.fields().iter().enumerate() {
            put_column(body, field, is_binary(formats, place));
        }
    });
}

fn put_column(body: &mut BytesMut, field: &Field, is_binary: bool) {
    let oid = oid_of_column(field);
    body.extend(field.name().bytes().filter(|byte| *byte != 0));
    body.put_u8(0);
    // No table and no column number: a column of an answer may come from anywhere.
    body.put_u32(0);
    body.put_i16(0);
    body.put_u32(oid);
    body.put_i16(size_of(oid));
    body.put_i32(modifier_of(field.data_type()));
    body.put_i16(i16::from(is_binary));
}

/// The columns of a batch, prepared for writing.
pub(crate) struct Rows<'a> {
    columns: Vec<Column<'a>>,
    text: String,
}

/// A column, in its format.
struct Column<'a> {
    array: &'a ArrayRef,
    values: Values<'a>,
    /// Of types whose texts are more than a number's digits.
    texts: Option<ValueTexts<'a>>,
    is_binary: bool,
}

enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    Float32(&'a Float32Array),
    Float64(&'a Float64Array),
    Decimal(&'a Decimal128Array, i8),
    Date(&'a Date32Array),
    Timestamp(&'a TimestampMicrosecondArray),
    Texts(&'a StringViewArray),
    /// Encoded element by element, as text or in binary.
    Lists(&'a ArrayRef),
    Other,
}

/// Casts the columns of a batch to types that can be written.
pub(crate) fn plain(batch: &RecordBatch) -> Result<Vec<ArrayRef>, Refusal> {
    batch.columns().iter().map(plain_column).collect()
}

fn plain_column(column: &ArrayRef) -> Result<ArrayRef, Refusal> {
    let target = match column.data_type() {
        DataType::Dictionary(_, values) => return plain_column(&cast_to(column, values)?),
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            DataType::List(element.clone())
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => return Ok(column.clone()),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        _ => return Ok(column.clone()),
    };
    cast_to(column, &target)
}

fn cast_to(column: &ArrayRef, target: &DataType) -> Result<ArrayRef, Refusal> {
    cast(column, target).map_err(|error| Refusal::new("XX000", error.to_string()))
}

impl<'a> Rows<'a> {
    /// Prepares columns that [`plain`] has made.
    pub(crate) fn new(columns: &'a [ArrayRef], formats: &[i16]) -> Result<Self, Refusal> {
        let columns = columns
            .iter()
            .enumerate()
            .map(|(place, array)| Column::new(array, is_binary(formats, place)));
        Ok(Self {
            columns: columns.collect::<Result<_, Refusal>>()?,
            text: String::new(),
        })
    }

    /// Writes a row as DataRow.
    pub(crate) fn put(&mut self, row: usize, output: &mut BytesMut) -> Result<(), Refusal> {
        let begin = output.len();
        let done = self.put_whole(row, output);
        if done.is_err() {
            // The client would take what follows for the rest of an incomplete message.
            output.truncate(begin);
        }
        done
    }

    fn put_whole(&mut self, row: usize, output: &mut BytesMut) -> Result<(), Refusal> {
        output.put_u8(b'D');
        let start = output.len();
        output.put_u32(0);
        output.put_u16(u16::try_from(self.columns.len()).unwrap_or(u16::MAX));
        for column in &self.columns {
            column.put(row, &mut self.text, output)?;
        }
        let length = output.len() - start;
        match u32::try_from(length) {
            Ok(length) if (length as usize) < VALUE_BYTES_MAX => {
                output[start..start + 4].copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            _ => Err(Refusal::new(
                "54000",
                format!("a row of {length} bytes is too long"),
            )),
        }
    }
}

impl<'a> Values<'a> {
    fn new(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Boolean => Self::Boolean(array.as_boolean()),
            DataType::Int16 => Self::Int16(array.as_primitive()),
            DataType::Int32 => Self::Int32(array.as_primitive()),
            DataType::Int64 => Self::Int64(array.as_primitive()),
            DataType::Float32 => Self::Float32(array.as_primitive()),
            DataType::Float64 => Self::Float64(array.as_primitive()),
            DataType::Decimal128(_, scale) => Self::Decimal(array.as_primitive(), *scale),
            DataType::Date32 => Self::Date(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Self::Timestamp(array.as_primitive()),
            DataType::Utf8View => Self::Texts(array.as_string_view()),
            DataType::List(_) => Self::Lists(array),
            _ => Self::Other,
        }
    }
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef, is_binary: bool) -> Result<Self, Refusal> {
        let values = Values::new(array);
        let texts = match values {
            Values::Decimal(..) | Values::Date(_) | Values::Timestamp(_) | Values::Other => {
                Some(ValueTexts::new(array)?)
            }
            _ => None,
        };
        Ok(Self {
            array,
            values,
            texts,
            is_binary,
        })
    }

    /// Writes the length of a value and the value.
    fn put(&self, row: usize, text: &mut String, output: &mut BytesMut) -> Result<(), Refusal> {
        if self.array.is_null(row) || *self.array.data_type() == DataType::Null {
            output.put_i32(-1);
            return Ok(());
        }
        if self.is_binary && self.put_binary(row, output)? {
            return Ok(());
        }
        text.clear();
        self.write_text(row, text)?;
        put_value(text.as_bytes(), output);
        Ok(())
    }

    fn write_text(&self, row: usize, text: &mut String) -> Result<(), Refusal> {
        let start = text.len();
        // Writing to a String does not fail.
        match &self.values {
            Values::Texts(values) => text.push_str(values.value(row)),
            Values::Float32(values) => write_real(values.value(row), text),
            Values::Float64(values) => write_double(values.value(row), text),
            Values::Lists(values) => write_list(&values.as_list::<i32>().value(row), text)?,
            Values::Boolean(values) => text.push(if values.value(row) { 't' } else { 'f' }),
            Values::Int16(values) => {
                let _ = write!(text, "{}", values.value(row));
            }
            Values::Int32(values) => {
                let _ = write!(text, "{}", values.value(row));
            }
            Values::Int64(values) => {
                let _ = write!(text, "{}", values.value(row));
            }
            Values::Decimal(..) | Values::Date(_) | Values::Timestamp(_) | Values::Other => {
                if let Some(texts) = &self.texts {
                    texts.write(row, text)?;
                }
            }
        }
        if let Values::Timestamp(_) = self.values {
            cut_zeros(text, start);
        }
        Ok(())
    }

    /// Writes a value in binary; false if its type has no binary format here.
    fn put_binary(&self, row: usize, output: &mut BytesMut) -> Result<bool, Refusal> {
        match &self.values {
            Values::Boolean(values) => put_value(&[u8::from(values.value(row))], output),
            Values::Int16(values) => put_value(&values.value(row).to_be_bytes(), output),
            Values::Int32(values) => put_value(&values.value(row).to_be_bytes(), output),
            Values::Int64(values) => put_value(&values.value(row).to_be_bytes(), output),
            Values::Float32(values) => put_value(&values.value(row).to_be_bytes(), output),
            Values::Float64(values) => put_value(&values.value(row).to_be_bytes(), output),
            Values::Decimal(values, scale) => put_numeric(values.value(row), *scale, output),
            Values::Date(values) => {
                let days = values.value(row).saturating_sub(EPOCH_DAYS);
                put_value(&days.to_be_bytes(), output);
            }
            Values::Timestamp(values) => {
                let time = values.value(row).saturating_sub(EPOCH_MICROSECONDS);
                put_value(&time.to_be_bytes(), output);
            }
            Values::Texts(values) => put_value(values.value(row).as_bytes(), output),
            // Lists of elements without an array type in PostgreSQL go as text.
            Values::Lists(values) if oid_of(values.data_type()) == crate::types::TEXT => {
                return Ok(false);
            }
            Values::Lists(values) => {
                let elements = plain_column(&values.as_list::<i32>().value(row))?;
                put_list(&elements, oid_of(values.data_type()), output)?;
            }
            Values::Other => return self.put_other(row, output),
        }
        Ok(true)
    }

    fn put_other(&self, row: usize, output: &mut BytesMut) -> Result<bool, Refusal> {
        match self.array.data_type() {
            DataType::BinaryView => put_value(self.array.as_binary_view().value(row), output),
            DataType::Binary => put_value(self.array.as_binary::<i32>().value(row), output),
            DataType::LargeBinary => put_value(self.array.as_binary::<i64>().value(row), output),
            DataType::FixedSizeBinary(_) => {
                put_value(self.array.as_fixed_size_binary().value(row), output);
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let times = cast_to(self.array, &DataType::Time64(TimeUnit::Microsecond))?;
                let times = times.as_primitive::<arrow::datatypes::Time64MicrosecondType>();
                put_value(&times.value(row).to_be_bytes(), output);
            }
            DataType::Interval(_) | DataType::Duration(_) => {
                let unit = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
                let values = cast_to(self.array, &unit)?;
                let values = values.as_primitive::<arrow::datatypes::IntervalMonthDayNanoType>();
                let value = values.value(row);
                output.put_i32(16);
                output.put_i64(value.nanoseconds / 1_000);
                output.put_i32(value.days);
                output.put_i32(value.months);
            }
            // Types that go as text; its binary format is the text.
            other if oid_of(other) == crate::types::TEXT => return Ok(false),
            DataType::Decimal256(_, scale) => {
                let values = cast_to(self.array, &DataType::Decimal128(38, *scale))?;
                let values: &Decimal128Array = values.as_primitive();
                if values.is_null(row) {
                    return Err(too_long(self.array.data_type()));
                }
                put_numeric(values.value(row), *scale, output);
            }
            other => return Err(too_long(other)),
        }
        Ok(true)
    }
}

fn too_long(data_type: &DataType) -> Refusal {
    Refusal::new(
        "0A000",
        format!("a value of type {data_type} has no binary format here; ask for text"),
    )
}

fn put_value(value: &[u8], output: &mut BytesMut) {
    // Values come from columns, whose texts are shorter than this.
    output.put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
    output.put_slice(value);
}

/// Writes a list as `{1,NULL,"a b"}`.
fn write_list(elements: &ArrayRef, text: &mut String) -> Result<(), Refusal> {
    let elements = plain_column(elements)?;
    let column = Column::new(&elements, false)?;
    text.push('{');
    let mut element = String::new();
    for place in 0..elements.len() {
        if place > 0 {
            text.push(',');
        }
        if elements.is_null(place) || *elements.data_type() == DataType::Null {
            text.push_str("NULL");
            continue;
        }
        element.clear();
        column.write_text(place, &mut element)?;
        match column.values {
            Values::Lists(_) => text.push_str(&element),
            _ => write_element(&element, text),
        }
    }
    text.push('}');
    Ok(())
}

/// Writes an array: dimensions, flag, type; length and lower bound of each dimension; elements.
fn put_list(elements: &ArrayRef, oid: u32, output: &mut BytesMut) -> Result<(), Refusal> {
    let element = element_of(oid).ok_or_else(|| too_long(elements.data_type()))?;
    let column = Column::new(elements, true)?;
    let start = output.len();
    output.put_i32(0);
    output.put_i32(i32::from(!elements.is_empty()));
    output.put_i32(i32::from(elements.null_count() > 0));
    output.put_u32(element);
    if !elements.is_empty() {
        output.put_i32(i32::try_from(elements.len()).unwrap_or(i32::MAX));
        output.put_i32(1);
        let mut text = String::new();
        for place in 0..elements.len() {
            column.put(place, &mut text, output)?;
        }
    }
    let length = i32::try_from(output.len() - start - 4).unwrap_or(i32::MAX);
    output[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Writes a numeric as PostgreSQL does (numeric.c: numeric_send).
fn put_numeric(value: i128, scale: i8, output: &mut BytesMut) {
    let shown = u16::try_from(scale).unwrap_or(0);
    let mut magnitude = value.unsigned_abs();
    // Groups of four digits, counted from the point both ways: the fraction is padded with zeros.
    let fill = (4 - shown % 4) % 4;
    let mut groups = Vec::with_capacity(12);
    let behind = (shown + fill) / 4;
    if fill > 0 {
        // Only the last group is padded, so that nothing overflows.
        let unit = 10_u128.pow(4 - u32::from(fill));
        groups.push((magnitude % unit) as u16 * 10_u16.pow(u32::from(fill)));
        magnitude /= unit;
    }
    while magnitude > 0 {
        groups.push((magnitude % 10_000) as u16);
        magnitude /= 10_000;
    }
    let weight = groups.len() as i16 - behind as i16 - 1;
    groups.reverse();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let weight = weight - leading as i16;
    let mut digits = &groups[leading..];
    while let [rest @ .., 0] = digits {
        digits = rest;
    }
    output.put_i32(8 + 2 * digits.len() as i32);
    output.put_i16(digits.len() as i16);
    output.put_i16(if digits.is_empty() { 0 } else { weight });
    output.put_u16(if value < 0 { 0x4000 } else { 0 });
    output.put_u16(shown);
    for digit in digits {
        output.put_u16(*digit);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::numeric_text;

    proptest! {
        #[test]
        fn a_numeric_is_read_as_it_was_written(value in any::<i64>(), more in 0_i64..1_000_000, scale in 0_i8..38) {
            let value = i128::from(value) * i128::from(more);
            let mut output = BytesMut::new();
            put_numeric(value, scale, &mut output);
            let text = numeric_text(&output[4..]).unwrap();
            let digits: String = text.chars().filter(|it| *it != '.').collect();
            prop_assert_eq!(digits.parse::<i128>().unwrap(), value, "{}", text);
            let behind = text.split_once('.').map_or(0, |(_, behind)| behind.len());
            prop_assert_eq!(behind, scale as usize);
        }
    }

    #[test]
    fn a_row_that_cannot_be_written_leaves_nothing_of_itself() {
        let far: ArrayRef = std::sync::Arc::new(Date32Array::from(vec![0, i32::MAX]));
        let columns = [far];
        let mut rows = Rows::new(&columns, &[]).unwrap();
        let mut output = BytesMut::new();
        rows.put(0, &mut output).unwrap();
        let whole = output.clone();
        assert!(rows.put(1, &mut output).is_err());
        assert_eq!(output, whole);
    }

    #[test]
    fn lists_of_any_form_are_those_of_postgresql() {
        use arrow::array::{FixedSizeListArray, ListArray};
        use arrow::datatypes::Int32Type;
        let elements = || [Some(vec![Some(1), None])];
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(elements());
        let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(elements(), 2);
        let large =
            arrow::array::LargeListArray::from_iter_primitive::<Int32Type, _, _>(elements());
        let arrays: [ArrayRef; 3] = [
            std::sync::Arc::new(list),
            std::sync::Arc::new(fixed),
            std::sync::Arc::new(large),
        ];
        let written = |array: &ArrayRef, formats: &[i16]| {
            let columns = [plain_column(array).unwrap()];
            let mut output = BytesMut::new();
            Rows::new(&columns, formats)
                .unwrap()
                .put(0, &mut output)
                .unwrap();
            output
        };
        for array in &arrays {
            assert!(written(array, &[]).ends_with(b"{1,NULL}"), "{array:?}");
            assert_eq!(written(array, &[1]), written(&arrays[0], &[1]));
        }
        // A list of lists goes as text, so that its binary form is the text.
        let field = Field::new_list_field(arrays[0].data_type().clone(), true);
        let nested: ArrayRef = std::sync::Arc::new(ListArray::new(
            field.into(),
            arrow::buffer::OffsetBuffer::from_lengths([1]),
            arrays[0].clone(),
            None,
        ));
        assert!(written(&nested, &[1]).ends_with(b"{{1,NULL}}"));
    }
}

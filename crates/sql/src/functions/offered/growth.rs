//! The size estimate of a function's result, from its arguments.
//!
//! Never less than what comes of it, but for a few bytes a value; often more, where it depends on
//! what texts hold. Costs a look at the lengths of the arguments.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

use crate::values::sizes::bytes_of_array;

/// What a function's result is bounded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// Nothing: a value of a few bytes, or a part of an argument.
    Within,
    /// So many times its arguments together.
    Arguments(u64),
    /// Its arguments, with the first between any two.
    Separated,
    /// The first, so many times.
    Repeated,
    /// So many letters.
    Padded,
    /// The first, with the third in the place of each second in it.
    Replaced,
    /// The same by a regular expression.
    Rewritten,
    /// What a pattern of a time says.
    Formatted,
    /// From the first to the second by steps of the third.
    Series,
    /// An array of the first, so many times.
    Copies,
    /// An array of so many elements.
    Resized,
    /// An array with the third argument for some of its elements.
    Elements,
    /// The elements of an array as a text.
    Listed,
    /// A number without its sign.
    Absolute,
    /// A cast to a type that is named.
    Cast,
}

/// Bytes that the text of a number, a date or a truth has at most, within an array.
const TEXT_OF_VALUE_BYTES: u64 = 64;
/// Bytes that one sign of a pattern of a time gives at most.
const FORMATTED_BYTES: u64 = 32;
/// Bytes of an element beside what a text has.
const ELEMENT_BYTES: u64 = 16;
const LETTER_BYTES: u64 = 4;
const NANOSECONDS_A_DAY: i64 = 86_400_000_000_000;

impl Growth {
    /// The bytes that come of these arguments for so many rows.
    pub(super) fn bytes(self, args: &[ColumnarValue], rows: usize) -> Result<u64> {
        let rows = match args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)))
        {
            true => 1,
            false => rows,
        };
        self.bytes_of_rows(args, 0..rows)
    }

    /// The same for these rows alone.
    pub(super) fn bytes_of_rows(self, args: &[ColumnarValue], rows: Range<usize>) -> Result<u64> {
        if let Self::Arguments(times) = self {
            let all = args.iter().map(|arg| total_of(arg, &rows));
            return Ok(all.fold(0, u64::saturating_add).saturating_mul(times));
        }
        let of = Looked { args, rows };
        Ok(match self {
            Self::Within | Self::Arguments(_) | Self::Absolute | Self::Cast => 0,
            Self::Separated => {
                let between = (args.len() as u64).saturating_sub(2);
                let all = args.iter().skip(1).map(|arg| total_of(arg, &of.rows));
                let separators = of.total(0).saturating_mul(between);
                all.fold(separators, u64::saturating_add)
            }
            Self::Repeated => of.sum(|row| of.bytes(0, row).saturating_mul(of.count(1, row)))?,
            Self::Padded => of.sum(|row| of.count(1, row).saturating_mul(LETTER_BYTES))?,
            Self::Replaced => of.sum(|row| {
                let (text, from, to) = (of.bytes(0, row), of.bytes(1, row), of.bytes(2, row));
                // An empty text stands before each letter and at the end.
                let times = match from {
                    0 => text + 1,
                    from => text / from,
                };
                text.saturating_add(times.saturating_mul(to.saturating_sub(from)))
            })?,
            Self::Rewritten => {
                let is_global = is_global(args);
                of.sum(|row| {
                    let (text, to) = (of.bytes(0, row), of.bytes(2, row));
                    let times = if is_global { text + 1 } else { 1 };
                    // Each two letters of the replacement may stand for a group, all of which
                    // together have the text's letters for each.
                    let groups = (to / 2).min(of.groups(2, row)).saturating_mul(text);
                    text.saturating_add(times.saturating_mul(to))
                        .saturating_add(groups)
                })?
            }
            Self::Formatted => of.sum(|row| of.bytes(1, row).saturating_mul(FORMATTED_BYTES))?,
            Self::Series => of.sum(|row| of.series(row).saturating_mul(8))?,
            Self::Copies => of.sum(|row| {
                let element = of.bytes(0, row).saturating_add(ELEMENT_BYTES);
                element.saturating_mul(of.count(1, row))
            })?,
            Self::Resized => of
                .sum(|row| {
                    let with = if args.len() > 2 { of.bytes(2, row) } else { 0 };
                    with.saturating_add(ELEMENT_BYTES)
                        .saturating_mul(of.count(1, row))
                })?
                .saturating_add(of.total(0)),
            Self::Elements => of
                .sum(|row| of.elements(0, row).saturating_mul(of.bytes(2, row)))?
                .saturating_add(of.total(0).saturating_mul(2)),
            Self::Listed => of
                .sum(|row| {
                    let others = if args.len() > 2 { of.bytes(2, row) } else { 0 };
                    let each = of
                        .bytes(1, row)
                        .saturating_add(others)
                        .saturating_add(of.text_bytes(0));
                    of.elements(0, row).saturating_mul(each)
                })?
                .saturating_add(of.total(0)),
        })
    }
}

/// Arguments that are looked at row by row.
struct Looked<'a> {
    args: &'a [ColumnarValue],
    rows: Range<usize>,
}

impl Looked<'_> {
    fn sum(&self, of_row: impl Fn(usize) -> u64) -> Result<u64> {
        Ok(self.rows.clone().map(of_row).fold(0, u64::saturating_add))
    }

    fn total(&self, at: usize) -> u64 {
        self.args.get(at).map_or(0, |arg| total_of(arg, &self.rows))
    }

    fn bytes(&self, at: usize, row: usize) -> u64 {
        self.args.get(at).map_or(0, |arg| bytes_of(arg, row))
    }

    /// A count that is asked for; one below zero is none.
    fn count(&self, at: usize, row: usize) -> u64 {
        let count = self.args.get(at).and_then(|arg| integer(arg, row));
        count.map_or(0, |count| u64::try_from(count).unwrap_or(0))
    }

    /// Elements of an array.
    fn elements(&self, at: usize, row: usize) -> u64 {
        let Some(arg) = self.args.get(at) else {
            return 0;
        };
        with_array(arg, row, elements_of)
    }

    /// What the text of an element that is none has.
    fn text_bytes(&self, at: usize) -> u64 {
        let data_type = self.args.get(at).map(ColumnarValue::data_type);
        let element = match &data_type {
            Some(DataType::List(field) | DataType::LargeList(field)) => Some(field.data_type()),
            _ => None,
        };
        match element {
            Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => 0,
            _ => TEXT_OF_VALUE_BYTES,
        }
    }

    /// Signs of a replacement that stand for what was found.
    fn groups(&self, at: usize, row: usize) -> u64 {
        let Some(arg) = self.args.get(at) else {
            return 0;
        };
        with_text(arg, row, |text| {
            let signs = text
                .iter()
                .filter(|byte| matches!(byte, b'\\' | b'$' | b'&'));
            signs.count() as u64
        })
    }

    /// Elements of a series.
    fn series(&self, row: usize) -> u64 {
        let ends = match self.args.len() {
            1 => [None, Some(0)],
            _ => [Some(0), Some(1)],
        };
        let [first, last] = ends.map(|at| match at.and_then(|at| self.args.get(at)) {
            Some(arg) => instant(arg, row),
            None => Some(0),
        });
        let (Some(first), Some(last)) = (first, last) else {
            return 0;
        };
        let step = match self.args.get(2) {
            Some(step) => step_of(step, row),
            None => Some(1),
        };
        // One of zero is refused.
        let Some(step) = step.filter(|step| *step != 0) else {
            return 0;
        };
        let span = last.abs_diff(first);
        u64::try_from(span / step.unsigned_abs())
            .unwrap_or(u64::MAX)
            .saturating_add(1)
    }
}

/// The bytes of an argument in all rows.
fn total_of(arg: &ColumnarValue, rows: &Range<usize>) -> u64 {
    match arg {
        ColumnarValue::Scalar(value) => scalar_bytes(value).saturating_mul(rows.len() as u64),
        ColumnarValue::Array(array) if rows.len() == array.len() => bytes_of_array(array),
        ColumnarValue::Array(array) => bytes_of_array(&array.slice(rows.start, rows.len())),
    }
}

fn bytes_of(arg: &ColumnarValue, row: usize) -> u64 {
    match arg {
        ColumnarValue::Scalar(value) => scalar_bytes(value),
        ColumnarValue::Array(array) => row_bytes(array, row),
    }
}

/// The bytes of a constant.
pub(super) fn scalar_bytes(value: &ScalarValue) -> u64 {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map_or(0, |text| text.len() as u64)
        }
        ScalarValue::Binary(bytes)
        | ScalarValue::LargeBinary(bytes)
        | ScalarValue::BinaryView(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
        ScalarValue::List(_)
        | ScalarValue::LargeList(_)
        | ScalarValue::FixedSizeList(_)
        | ScalarValue::Struct(_)
        | ScalarValue::Map(_) => value
            .to_array()
            .map_or(u64::MAX, |array| bytes_of_array(&array)),
        _ => ELEMENT_BYTES,
    }
}

pub(super) fn row_bytes(array: &ArrayRef, row: usize) -> u64 {
    if array.is_null(row) {
        return 0;
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value_length(row) as u64,
        DataType::LargeUtf8 => array.as_string::<i64>().value_length(row) as u64,
        DataType::Binary => array.as_binary::<i32>().value_length(row) as u64,
        DataType::LargeBinary => array.as_binary::<i64>().value_length(row) as u64,
        // The length is the lower half of a view.
        DataType::Utf8View => u64::from(array.as_string_view().views()[row] as u32),
        DataType::BinaryView => u64::from(array.as_binary_view().views()[row] as u32),
        _ => bytes_of_array(&array.slice(row, 1)),
    }
}

/// The first row of a constant's array, or this row of a column.
fn with_array(arg: &ColumnarValue, row: usize, look: impl Fn(&ArrayRef, usize) -> u64) -> u64 {
    match arg {
        ColumnarValue::Scalar(value) => value.to_array().map_or(0, |array| look(&array, 0)),
        ColumnarValue::Array(array) => look(array, row),
    }
}

fn elements_of(array: &ArrayRef, row: usize) -> u64 {
    if array.is_null(row) {
        return 0;
    }
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            // Elements of arrays within arrays are written too.
            leaves_of(&lists.value(row))
        }
        DataType::LargeList(_) => leaves_of(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => leaves_of(&array.as_fixed_size_list().value(row)),
        _ => 0,
    }
}

/// The values within arrays within arrays.
fn leaves_of(values: &ArrayRef) -> u64 {
    match values.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => (0..values
            .len())
            .map(|row| elements_of(values, row))
            .fold(0, u64::saturating_add),
        _ => values.len() as u64,
    }
}

pub(super) fn with_text(arg: &ColumnarValue, row: usize, look: impl Fn(&[u8]) -> u64) -> u64 {
    match arg {
        ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
        ) => look(text.as_bytes()),
        ColumnarValue::Scalar(_) => 0,
        ColumnarValue::Array(array) if array.is_null(row) => 0,
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 => look(array.as_string::<i32>().value(row).as_bytes()),
            DataType::LargeUtf8 => look(array.as_string::<i64>().value(row).as_bytes()),
            DataType::Utf8View => look(array.as_string_view().value(row).as_bytes()),
            _ => 0,
        },
    }
}

/// Whether a regular expression replaces all that it finds, in some row.
pub(super) fn is_global(args: &[ColumnarValue]) -> bool {
    let Some(arg) = args.get(3) else { return false };
    let has = |text: &[u8]| u64::from(text.contains(&b'g'));
    let rows = match arg {
        ColumnarValue::Scalar(_) => 1,
        ColumnarValue::Array(array) => array.len(),
    };
    (0..rows).any(|row| with_text(arg, row, has) > 0)
}

/// An integer of some size; none of NULL.
pub(super) fn integer(arg: &ColumnarValue, row: usize) -> Option<i64> {
    match arg {
        ColumnarValue::Scalar(ScalarValue::Int64(value)) => *value,
        ColumnarValue::Scalar(value) if value.data_type().is_integer() => {
            match value.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(value)) => value,
                _ => Some(i64::MAX),
            }
        }
        ColumnarValue::Scalar(_) => None,
        ColumnarValue::Array(array) if array.is_null(row) => None,
        ColumnarValue::Array(array) => match array.as_primitive_opt::<Int64Type>() {
            Some(values) => Some(values.value(row)),
            None => {
                let value = cast(&array.slice(row, 1), &DataType::Int64).ok()?;
                let value: &Int64Array = value.as_primitive_opt()?;
                value.is_valid(0).then(|| value.value(0))
            }
        },
    }
}

/// An integer, a day as its nanoseconds, or a time as its own: with them steps count.
fn instant(arg: &ColumnarValue, row: usize) -> Option<i128> {
    let array = match arg {
        ColumnarValue::Scalar(value) => value.to_array().ok()?,
        ColumnarValue::Array(array) => array.slice(row, 1),
    };
    let units = match array.data_type() {
        DataType::Date32 => i128::from(NANOSECONDS_A_DAY),
        DataType::Date64 => 1_000_000,
        DataType::Timestamp(unit, _) => match unit {
            datafusion::arrow::datatypes::TimeUnit::Second => 1_000_000_000,
            datafusion::arrow::datatypes::TimeUnit::Millisecond => 1_000_000,
            datafusion::arrow::datatypes::TimeUnit::Microsecond => 1_000,
            datafusion::arrow::datatypes::TimeUnit::Nanosecond => 1,
        },
        _ => 1,
    };
    let value = cast(&array, &DataType::Int64)
        .or_else(|_| cast(&cast(&array, &DataType::Int32)?, &DataType::Int64))
        .ok()?;
    let value: &Int64Array = value.as_primitive_opt()?;
    value
        .is_valid(0)
        .then(|| i128::from(value.value(0)) * units)
}

/// A step; of a span of months the shortest that these may be.
fn step_of(arg: &ColumnarValue, row: usize) -> Option<i128> {
    let array = match arg {
        ColumnarValue::Scalar(value) => value.to_array().ok()?,
        ColumnarValue::Array(array) => array.slice(row, 1),
    };
    if array.is_null(0) {
        return None;
    }
    let Some(spans) = array.as_primitive_opt::<IntervalMonthDayNanoType>() else {
        return integer(&ColumnarValue::Array(array), 0).map(i128::from);
    };
    let span = spans.value(0);
    let days = i128::from(span.months) * 28 + i128::from(span.days);
    let step = days * i128::from(NANOSECONDS_A_DAY) + i128::from(span.nanoseconds);
    // Parts that nearly cancel each other move by little.
    Some(if step == 0 { 1 } else { step })
}

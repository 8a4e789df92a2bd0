//! The check for arguments on which a function would fail.

use std::collections::HashSet;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

use super::growth::{Growth, integer, with_text};
use crate::{Error, SqlState};

/// Bytes of a pattern of a regular expression, or of LIKE: it takes hundreds of times as much while
/// it is read.
pub(super) const PATTERN_BYTES_MAX: u64 = 64 << 10;
/// Patterns with repetitions or classes that rows of a batch may have: each may be of 10 MB.
const LARGE_PATTERNS_MAX: usize = 8;

/// Refuses what cannot be answered at all, or with patterns that are too large.
pub(super) fn refuse(growth: Growth, name: &str, args: &[ColumnarValue]) -> Result<()> {
    if name.starts_with("regexp_")
        && let Some(patterns) = args.get(1)
    {
        refuse_patterns(patterns)?;
    }
    if let Some(first) = args.first() {
        match name {
            "chr" => refuse_characters(first)?,
            "to_timestamp" => refuse_times(first)?,
            _ => {}
        }
    }
    match growth {
        Growth::Absolute if args.iter().any(is_least) => Err(Error::new(
            SqlState::NumericValueOutOfRange,
            format!("{name} of the least integer is out of range: cast it to numeric"),
        )
        .into()),
        _ => Ok(()),
    }
}

/// Refuses numbers that are those of no character that a text may have.
fn refuse_characters(numbers: &ColumnarValue) -> Result<()> {
    let refused = |message: String| Err(Error::new(SqlState::ProgramLimitExceeded, message).into());
    let rows = rows_of(numbers);
    for number in (0..rows).filter_map(|row| integer(numbers, row)) {
        if number == 0 {
            return refused("null character not permitted".to_owned());
        }
        if u32::try_from(number)
            .ok()
            .and_then(char::from_u32)
            .is_none()
        {
            return refused(format!("no character has the number {number}"));
        }
    }
    Ok(())
}

/// Refuses seconds of times that the engine would take for the first or the last that it has.
fn refuse_times(seconds: &ColumnarValue) -> Result<()> {
    /// Seconds from 1970 to the end of the engine's nanoseconds, in the year 2262.
    const SECONDS_MAX: f64 = 9_223_372_036.0;
    let is_time = |seconds: f64| seconds.abs() <= SECONDS_MAX;
    let are_times = match seconds {
        ColumnarValue::Scalar(ScalarValue::Float64(seconds)) => seconds.is_none_or(is_time),
        ColumnarValue::Scalar(ScalarValue::Float32(seconds)) => {
            seconds.is_none_or(|seconds| is_time(seconds.into()))
        }
        ColumnarValue::Scalar(_) => true,
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Float64 => {
                let seconds = array.as_primitive::<Float64Type>().iter();
                seconds.flatten().all(is_time)
            }
            DataType::Float32 => {
                let seconds = array.as_primitive::<Float32Type>().iter();
                seconds.flatten().all(|seconds| is_time(seconds.into()))
            }
            _ => true,
        },
    };
    match are_times {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::DatetimeFieldOverflow,
            "to_timestamp: timestamp out of range: it takes seconds from 1677 to 2262",
        )
        .into()),
    }
}

fn rows_of(arg: &ColumnarValue) -> usize {
    match arg {
        ColumnarValue::Scalar(_) => 1,
        ColumnarValue::Array(array) => array.len(),
    }
}

/// Refuses patterns that take much memory when they are read: one that is long, or many that are
/// kept beside each other for a batch of rows.
pub(super) fn refuse_patterns(patterns: &ColumnarValue) -> Result<()> {
    let rows = rows_of(patterns);
    let longest = (0..rows).map(|row| with_text(patterns, row, |text| text.len() as u64));
    if longest.max().unwrap_or(0) > PATTERN_BYTES_MAX {
        return Err(too_complex(format!(
            "a pattern has more than {PATTERN_BYTES_MAX} bytes: give a shorter one"
        )));
    }
    let ColumnarValue::Array(array) = patterns else {
        return Ok(());
    };
    let mut large = HashSet::new();
    let mut note = |text: Option<&str>| {
        if let Some(text) = text
            && large.len() <= LARGE_PATTERNS_MAX
            && (text.contains('{') || text.contains('\\'))
        {
            large.insert(text.to_owned());
        }
    };
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(&mut note),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(&mut note),
        DataType::Utf8View => array.as_string_view().iter().for_each(&mut note),
        _ => {}
    }
    match large.len() > LARGE_PATTERNS_MAX {
        true => Err(too_complex(format!(
            "rows have more than {LARGE_PATTERNS_MAX} different patterns with repetitions or classes of letters: ask for the rows of some patterns at a time"
        ))),
        false => Ok(()),
    }
}

fn too_complex(what: String) -> DataFusionError {
    Error::new(SqlState::StatementTooComplex, what).into()
}

/// Whether a number has no counterpart with the other sign.
fn is_least(arg: &ColumnarValue) -> bool {
    match arg {
        ColumnarValue::Scalar(value) => matches!(
            value,
            ScalarValue::Int64(Some(i64::MIN))
                | ScalarValue::Int32(Some(i32::MIN))
                | ScalarValue::Int16(Some(i16::MIN))
                | ScalarValue::Int8(Some(i8::MIN))
        ),
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Int64 => array
                .as_primitive::<Int64Type>()
                .iter()
                .any(|it| it == Some(i64::MIN)),
            DataType::Int32 => array
                .as_primitive::<Int32Type>()
                .iter()
                .any(|it| it == Some(i32::MIN)),
            DataType::Int16 => array
                .as_primitive::<Int16Type>()
                .iter()
                .any(|it| it == Some(i16::MIN)),
            DataType::Int8 => array
                .as_primitive::<Int8Type>()
                .iter()
                .any(|it| it == Some(i8::MIN)),
            _ => false,
        },
    }
}

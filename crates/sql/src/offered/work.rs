//! Arguments that a function would fail on, or work on for too long without a look at the clock.

use std::collections::HashSet;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

use super::growth::{Growth, is_global, with_text};
use crate::{Error, SqlState};

/// Pairs of letters that distances of the texts of a batch of rows may compare: about a tenth of a second.
const DISTANCE_PAIRS_MAX: u64 = 1 << 27;
/// The same of what is looked for letter by letter.
const FOUND_PAIRS_MAX: u64 = 1 << 31;
/// The same of regular expressions that are looked for again and again, each time to the end of the text in the worst case.
const COUNTED_PAIRS_MAX: u64 = 1 << 36;

/// Bytes of a pattern of a regular expression, or of LIKE: it takes hundreds of times as much while it is read.
pub(super) const PATTERN_BYTES_MAX: u64 = 64 << 10;
/// Patterns with repetitions or classes that rows of a batch may have: each may be of 10 MB.
const LARGE_PATTERNS_MAX: usize = 8;

/// Refuses what cannot be answered in time, or at all.
pub(super) fn refuse(
    growth: Growth,
    name: &str,
    args: &[ColumnarValue],
    rows: usize,
) -> Result<()> {
    if name.starts_with("regexp_")
        && let Some(patterns) = args.get(1)
    {
        refuse_patterns(patterns)?;
    }
    let max = match growth {
        Growth::Absolute if args.iter().any(is_least) => {
            return Err(Error::new(
                SqlState::NumericValueOutOfRange,
                format!("{name} of the least integer is out of range: cast it to numeric"),
            )
            .into());
        }
        Growth::Distance => DISTANCE_PAIRS_MAX,
        Growth::Found => FOUND_PAIRS_MAX,
        Growth::Counted => COUNTED_PAIRS_MAX,
        Growth::Rewritten if is_global(args) => COUNTED_PAIRS_MAX,
        _ => return Ok(()),
    };
    let with_itself = matches!(growth, Growth::Counted | Growth::Rewritten);
    refuse_long(name, args, rows, with_itself, max)
}

/// Refuses patterns that take much memory when they are read: one that is long, or many that are kept beside each other for a batch of rows.
pub(super) fn refuse_patterns(patterns: &ColumnarValue) -> Result<()> {
    let rows = match patterns {
        ColumnarValue::Scalar(_) => 1,
        ColumnarValue::Array(array) => array.len(),
    };
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
            && text.contains(['{', '\\'])
            && large.len() <= LARGE_PATTERNS_MAX
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

fn refuse_long(
    name: &str,
    args: &[ColumnarValue],
    rows: usize,
    with_itself: bool,
    max: u64,
) -> Result<()> {
    let [one, others @ ..] = args else {
        return Ok(());
    };
    let other = if with_itself {
        Some(one)
    } else {
        others.first()
    };
    // Without a second text it is a blank.
    let Some(other) = other else { return Ok(()) };
    let length = |text: &[u8]| text.len() as u64;
    let rows = match args
        .iter()
        .all(|arg| matches!(arg, ColumnarValue::Scalar(_)))
    {
        true => 1,
        false => rows,
    };
    let mut pairs = 0_u64;
    for row in 0..rows {
        let (one, other) = (with_text(one, row, length), with_text(other, row, length));
        pairs = pairs.saturating_add(one.saturating_mul(other));
        if pairs > max {
            let of = match with_itself {
                true => format!("a text of {one} bytes"),
                false => format!("texts of {one} and {other} bytes"),
            };
            return Err(Error::new(
                SqlState::ProgramLimitExceeded,
                format!(
                    "{name} of {of} may take too long: in one batch of rows it may compare {max} pairs of letters; give it shorter texts, as left(x, 255)"
                ),
            )
            .into());
        }
    }
    Ok(())
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

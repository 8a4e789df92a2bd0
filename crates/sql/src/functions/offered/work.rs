//! The time estimate of a function call, in picoseconds of a current processor.
//!
//! A function is called with a batch of rows and does not look at the clock. So a batch whose work
//! is more than [`SLICE_PS`] is given to it in slices of rows, between which somebody looks
//! (`slices`); and a row whose work is more than [`ROW_PS_MAX`] is refused, for nothing can be
//! looked at within a row.
//!
//! What is reckoned is what it may be for texts that are as bad as can be, which is often more than
//! it is. For most batches a look at the lengths of the whole arguments tells that they are small.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

use super::growth::{Growth, is_global, row_bytes, scalar_bytes, with_text};
use super::patterns::{SHORT_POSITIONS_MAX, is_linear_again, positions};
use crate::values::sizes::bytes_of_array;
use crate::{Error, SqlState};

/// Work between two looks at the clock.
pub(super) const SLICE_PS: u64 = 10_000_000_000;
/// Work on one row, half a second.
pub(super) const ROW_PS_MAX: u64 = 500_000_000_000;
/// Patterns are read again for each slice, and what is reckoned of them is far more than what is
/// mostly so.
const SLICE_OF_PATTERN_PS: u64 = 3 * SLICE_PS;

/// A letter of a text that an automaton reads which is ready, and a place of a pattern that may be
/// at each letter while it is made: for long patterns that is so for each letter, for they have
/// more states than are kept.
const LETTER_PS: u64 = 1_000;
const POSITION_PS: u64 = 1_500;
const POSITION_OF_LONG_PS: u64 = 12_000;
/// Patterns of a batch that are looked at before they are looked for.
const PATTERNS_BYTES_MAX: u64 = 16 << 10;
/// What an element of an array has beside its bytes.
const ELEMENT_BYTES: u64 = 8;
/// A pair of elements of arrays that are compared, and a byte of these.
const ELEMENTS_PS: u64 = 5_000;
const COMPARED_BYTE_PS: u64 = 100;
/// A time that is a step of months or days behind another, as a byte of it.
const STEP_OF_TIME_BYTE_PS: u64 = 10_000;
const NUMBER_BYTE_PS: u64 = 200;

/// What the work of a function depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Little, whatever it is given.
    Little,
    /// So much for a byte of its arguments.
    Bytes(u64),
    /// The same, and for a byte of its result, which is as large as a number says.
    Made(u64),
    /// Numbers or times one behind the other.
    Series,
    /// So much for a pair of a letter of the first and one of the second; of a blank, if there is
    /// none.
    Pairs(u64),
    /// The same where the second is another in each row: one that is a constant is looked for in
    /// the time of the first alone.
    Found(u64),
    /// A pair of elements of the first and the second.
    Elements,
    /// A regular expression that is looked for once.
    Matched,
    /// One that is looked for again and again: each time to the end of the text, where the pattern
    /// is of that kind.
    Again,
    /// The same where flags say so.
    AgainIfGlobal,
}

impl Work {
    /// Whether little text may be much work.
    pub(super) fn is_steep(self) -> bool {
        match self {
            Self::Little | Self::Bytes(_) => false,
            Self::Made(_)
            | Self::Series
            | Self::Pairs(_)
            | Self::Found(_)
            | Self::Elements
            | Self::Matched
            | Self::Again
            | Self::AgainIfGlobal => true,
        }
    }

    fn slice_ps(self) -> u64 {
        match self {
            Self::Matched | Self::Again | Self::AgainIfGlobal => SLICE_OF_PATTERN_PS,
            _ => SLICE_PS,
        }
    }

    /// Whether the work on a batch is more than what may be done without a look at the clock, as
    /// far as a look at the whole arguments tells. `bytes` is what the result may have.
    pub(super) fn may_be_long(self, args: &[ColumnarValue], rows: usize, bytes: u64) -> bool {
        self != Self::Little && self.most(args, rows_of(args, rows), bytes) > self.slice_ps()
    }

    /// No less than the work on a batch, at a look.
    fn most(self, args: &[ColumnarValue], rows: usize, made: u64) -> u64 {
        let of = |at: usize| args.get(at).map_or(0, |arg| extent_of(arg, rows));
        // A constant is beside each row of the other once.
        let beside = |at: usize| args.get(at).map_or(1, |arg| extent_of(arg, 1));
        let (first, second) = match self {
            Self::Pairs(_) | Self::Found(_) | Self::Elements => (beside(0), beside(1)),
            Self::Matched | Self::Again | Self::AgainIfGlobal => (of(0), 0),
            Self::Little | Self::Bytes(_) | Self::Made(_) | Self::Series => (0, 0),
        };
        let all = match self {
            Self::Bytes(_) | Self::Made(_) => (0..args.len()).map(of).fold(0, u64::saturating_add),
            _ => 0,
        };
        let pattern = match self.is_of_pattern() {
            true if has_many_patterns(args) => return u64::MAX,
            true => most_of_patterns(args),
            false => OfPattern::default(),
        };
        self.work(
            args,
            &Measured {
                first,
                second,
                all,
                made,
                pattern,
            },
        )
    }

    fn of_row(
        self,
        growth: Growth,
        args: &[ColumnarValue],
        constants: &[Option<u64>],
        row: usize,
    ) -> Result<u64> {
        let of = |at: usize| match (constants.get(at), args.get(at)) {
            (Some(Some(extent)), _) => *extent,
            (_, Some(ColumnarValue::Array(array))) => extent_at(array, row),
            _ => 1,
        };
        let made = match self {
            Self::Made(_) | Self::Series => growth.bytes_of_rows(args, row..row + 1)?,
            _ => 0,
        };
        let pattern = self.is_of_pattern().then(|| of_pattern(args.get(1), row));
        let measured = Measured {
            first: of(0),
            second: of(1),
            all: (0..args.len()).map(of).fold(0, u64::saturating_add),
            made,
            pattern: pattern.unwrap_or_default(),
        };
        Ok(self.work(args, &measured))
    }

    fn is_of_pattern(self) -> bool {
        matches!(self, Self::Matched | Self::Again | Self::AgainIfGlobal)
    }

    fn work(self, args: &[ColumnarValue], of: &Measured) -> u64 {
        match self {
            Self::Little => 0,
            Self::Bytes(ps) => of.all.saturating_mul(ps),
            Self::Made(ps) => of.all.saturating_add(of.made).saturating_mul(ps),
            Self::Series => {
                let first = args.first().map(ColumnarValue::data_type);
                let ps = match first {
                    Some(first) if first.is_integer() => NUMBER_BYTE_PS,
                    _ => STEP_OF_TIME_BYTE_PS,
                };
                of.made.saturating_mul(ps)
            }
            Self::Found(_) if is_found_in_column(args) => of.first.saturating_mul(LETTER_PS),
            Self::Pairs(ps) | Self::Found(ps) => {
                of.first.saturating_mul(of.second).saturating_mul(ps)
            }
            Self::Elements => {
                let elements = |extent: u64| extent / ELEMENT_BYTES + 1;
                let pairs = elements(of.first).saturating_mul(elements(of.second));
                let compared = of.first.saturating_mul(of.second) / ELEMENT_BYTES;
                pairs
                    .saturating_mul(ELEMENTS_PS)
                    .saturating_add(compared.saturating_mul(COMPARED_BYTE_PS))
            }
            Self::Matched | Self::Again | Self::AgainIfGlobal => {
                let is_again = match self {
                    Self::Again => true,
                    Self::AgainIfGlobal => is_global(args),
                    _ => false,
                };
                let position_ps = match of.pattern.positions > SHORT_POSITIONS_MAX {
                    true => POSITION_OF_LONG_PS,
                    false => POSITION_PS,
                };
                let once = of.pattern.positions.saturating_mul(position_ps);
                let once = once.saturating_add(LETTER_PS);
                let again = match is_again && !of.pattern.is_linear_again {
                    true => of.first.saturating_mul(LETTER_PS),
                    false => 0,
                };
                of.first.saturating_mul(once.max(again))
            }
        }
    }

    fn too_long(self, name: &str, args: &[ColumnarValue], row: usize) -> DataFusionError {
        let of = |at: usize| match args.get(at) {
            Some(ColumnarValue::Array(array)) => extent_at(array, row),
            Some(constant) => extent_of(constant, 1),
            None => 1,
        };
        let (what, instead) = match self {
            Self::Pairs(_) | Self::Found(_) => (
                format!("texts of {} and {} bytes", of(0), of(1)),
                "give it shorter texts, as left(x, 255)",
            ),
            Self::Elements => (
                format!("arrays of {} and {} bytes", of(0), of(1)),
                "give it shorter arrays, or unnest them and join",
            ),
            Self::Matched => (
                format!("a text of {} bytes and a pattern of {}", of(0), of(1)),
                "give it a shorter text, or a pattern with fewer repetitions",
            ),
            Self::Again | Self::AgainIfGlobal => (
                format!("a text of {} bytes", of(0)),
                "give it a shorter text, or a pattern with * and + at its end alone",
            ),
            Self::Little | Self::Bytes(_) | Self::Made(_) | Self::Series => (
                format!(
                    "{} bytes",
                    (0..args.len()).map(of).fold(0, u64::saturating_add)
                ),
                "give it shorter values, or ask for fewer",
            ),
        };
        Error::new(
            SqlState::ProgramLimitExceeded,
            format!("{name} of {what} may take more than half a second for one row: {instead}"),
        )
        .into()
    }
}

/// A batch that is given to a function in slices.
pub(super) struct Slices<'a> {
    name: &'a str,
    work: Work,
    growth: Growth,
    args: &'a [ColumnarValue],
    /// The extents of those that are.
    constants: Vec<Option<u64>>,
    rows: usize,
}

impl<'a> Slices<'a> {
    pub(super) fn new(
        name: &'a str,
        (growth, work): (Growth, Work),
        args: &'a [ColumnarValue],
        rows: usize,
    ) -> Self {
        Self {
            name,
            work,
            growth,
            args,
            constants: args.iter().map(constant_extent).collect(),
            rows,
        }
    }

    /// Where the slice ends that begins there.
    ///
    /// # Errors
    /// When a row of it alone is too much work.
    pub(super) fn end(&self, begin: usize) -> Result<usize> {
        let mut sum = 0_u64;
        for row in begin..begin.max(rows_of(self.args, self.rows)) {
            let Self {
                growth,
                args,
                constants,
                ..
            } = self;
            let work = self.work.of_row(*growth, args, constants, row)?;
            if work > ROW_PS_MAX {
                return Err(self.work.too_long(self.name, args, row));
            }
            sum = sum.saturating_add(work);
            if sum > self.work.slice_ps() && row > begin {
                return Ok(row);
            }
        }
        Ok(self.rows)
    }
}

/// Rows that differ.
fn rows_of(args: &[ColumnarValue], rows: usize) -> usize {
    match args.iter().all(is_constant) {
        true => rows.min(1),
        false => rows,
    }
}

/// What the work of a row, or of a batch, is reckoned by.
struct Measured {
    /// Letters and elements of the first argument, of the second, and of all.
    first: u64,
    second: u64,
    all: u64,
    /// Bytes of the result.
    made: u64,
    pattern: OfPattern,
}

/// What a pattern says of the work with it.
#[derive(Clone, Copy, Default)]
struct OfPattern {
    positions: u64,
    is_linear_again: bool,
}

fn is_constant(arg: &ColumnarValue) -> bool {
    matches!(arg, ColumnarValue::Scalar(_))
}

/// Whether a constant is looked for in a column.
fn is_found_in_column(args: &[ColumnarValue]) -> bool {
    matches!(
        args,
        [ColumnarValue::Array(_), ColumnarValue::Scalar(_), ..]
    )
}

fn of_pattern(patterns: Option<&ColumnarValue>, row: usize) -> OfPattern {
    let Some(patterns) = patterns else {
        return OfPattern::default();
    };
    OfPattern {
        positions: with_text(patterns, row, positions),
        is_linear_again: with_text(patterns, row, |it| u64::from(!is_linear_again(it))) == 0,
    }
}

/// Whether the patterns of a batch are more than can be looked at at once.
fn has_many_patterns(args: &[ColumnarValue]) -> bool {
    match args.get(1) {
        Some(ColumnarValue::Array(array)) => extent(array) > PATTERNS_BYTES_MAX,
        _ => false,
    }
}

/// The most that any pattern of a batch says.
fn most_of_patterns(args: &[ColumnarValue]) -> OfPattern {
    let patterns = args.get(1);
    let rows = match patterns {
        Some(ColumnarValue::Array(array)) => array.len(),
        _ => 1,
    };
    let least = OfPattern {
        positions: 0,
        is_linear_again: true,
    };
    (0..rows).fold(least, |most, row| {
        let of = of_pattern(patterns, row);
        OfPattern {
            positions: most.positions.max(of.positions),
            is_linear_again: most.is_linear_again && of.is_linear_again,
        }
    })
}

fn constant_extent(arg: &ColumnarValue) -> Option<u64> {
    is_constant(arg).then(|| extent_of(arg, 1))
}

fn extent_at(array: &ArrayRef, row: usize) -> u64 {
    match is_of_bytes(array.data_type()) {
        true => row_bytes(array, row),
        false => extent(&array.slice(row, 1)),
    }
}

fn is_of_bytes(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// Of an argument in so many rows.
fn extent_of(arg: &ColumnarValue, rows: usize) -> u64 {
    match arg {
        ColumnarValue::Scalar(value) => extent_of_constant(value).saturating_mul(rows as u64),
        ColumnarValue::Array(array) => extent(array),
    }
}

fn extent_of_constant(value: &ScalarValue) -> u64 {
    match value {
        ScalarValue::Utf8(_)
        | ScalarValue::LargeUtf8(_)
        | ScalarValue::Utf8View(_)
        | ScalarValue::Binary(_)
        | ScalarValue::LargeBinary(_)
        | ScalarValue::BinaryView(_) => scalar_bytes(value),
        ScalarValue::List(list) => extent(&(Arc::clone(list) as ArrayRef)),
        ScalarValue::LargeList(list) => extent(&(Arc::clone(list) as ArrayRef)),
        ScalarValue::FixedSizeList(list) => extent(&(Arc::clone(list) as ArrayRef)),
        ScalarValue::Struct(of) => extent(&(Arc::clone(of) as ArrayRef)),
        ScalarValue::Map(map) => extent(&(Arc::clone(map) as ArrayRef)),
        _ => ELEMENT_BYTES,
    }
}

/// The letters of texts, and the elements of arrays, also of those without bytes.
pub(super) fn extent(array: &ArrayRef) -> u64 {
    let elements = (array.len() as u64).saturating_mul(ELEMENT_BYTES);
    let between = |offsets: &[i32]| match offsets {
        [first, .., last] => (*first as usize, (*last - *first) as usize),
        _ => (0, 0),
    };
    let within = |values: &ArrayRef, offsets: &[i32]| {
        let (first, length) = between(offsets);
        elements.saturating_add(extent_of_elements(&values.slice(first, length)))
    };
    match array.data_type() {
        of if is_of_bytes(of) => bytes_of_array(array),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            within(lists.values(), lists.value_offsets())
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let (first, length) = match lists.value_offsets() {
                [first, .., last] => (*first as usize, (*last - *first) as usize),
                _ => (0, 0),
            };
            elements.saturating_add(extent_of_elements(&lists.values().slice(first, length)))
        }
        DataType::FixedSizeList(..) => {
            elements.saturating_add(extent_of_elements(array.as_fixed_size_list().values()))
        }
        DataType::Map(..) => {
            let maps = array.as_map();
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            within(&entries, maps.value_offsets())
        }
        DataType::Struct(_) => array
            .as_struct()
            .columns()
            .iter()
            .map(extent_of_elements)
            .fold(elements, u64::saturating_add),
        _ => elements,
    }
}

/// The same of elements, of which texts are one more than their letters.
fn extent_of_elements(values: &ArrayRef) -> u64 {
    let each = match is_of_bytes(values.data_type()) {
        true => (values.len() as u64).saturating_mul(ELEMENT_BYTES),
        false => 0,
    };
    each.saturating_add(extent(values))
}

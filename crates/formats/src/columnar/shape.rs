//! What the values of a column have in common, and so its type.
//!
//! ```text
//!                       Terms
//!        /        |        |          \
//!   Iri  BlankNode  String  Language   Typed(datatype)
//!                                      /       |     \
//!                             Integer(d) Decimal ... DateTime, Instant, Date
//!                                   Empty
//! ```
//!
//! A column has the lowest shape that is above all of its values. A value type is only chosen where
//! every lexical form is a value of it that the column can hold exactly. A column of `xsd:integer`
//! with one value beyond 64 bits is text with that datatype, as is one of `xsd:byte` with `"300"`.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use orrery_term::inline::{DAYS_TO_1970, IntegerType, days_from_civil};
use orrery_term::lexical::{parse_double, parse_float};
use orrery_term::{LiteralKind, Term, vocabulary::xsd};
use oxsdatatypes::{Boolean, Date, DateTime};

/// Digits of a decimal column.
pub(super) const DECIMAL_DIGITS: u8 = 38;
/// Where 10 to the power of 18 is one second in `oxsdatatypes`, this is a microsecond.
const DECIMAL_PER_MICROSECOND: i128 = 1_000_000_000_000;
const MICROSECONDS_PER_SECOND: i128 = 1_000_000;

/// What all values of a column are; see the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// There is none.
    Empty,
    Iri,
    BlankNode,
    /// `xsd:string`.
    String,
    /// With this language tag.
    Language(Cow<'a, str>),
    /// A type derived from `xsd:integer`, in 64 bits.
    Integer(Cow<'a, str>),
    /// `xsd:decimal` with at most this many digits before and behind the point.
    Decimal {
        whole: u8,
        scale: u8,
    },
    Double,
    Float,
    Boolean,
    /// `xsd:date` without a time zone.
    Date,
    /// `xsd:dateTime` without a time zone.
    DateTime,
    /// `xsd:dateTime` with a time zone.
    Instant,
    /// Any other values of one datatype.
    Typed(Cow<'a, str>),
    /// Anything.
    Terms,
}

impl<'a> Shape<'a> {
    fn of(term: &'a Term<'_>) -> Self {
        let literal = match term {
            Term::Iri(_) => return Self::Iri,
            Term::BlankNode(_) => return Self::BlankNode,
            Term::Triple(_) => return Self::Terms,
            Term::Literal(literal) => literal,
        };
        let text = literal.lexical.as_ref();
        match &literal.kind {
            LiteralKind::String => Self::String,
            LiteralKind::Language(tag) => Self::Language(Cow::Borrowed(tag)),
            LiteralKind::Directional(..) => Self::Terms,
            LiteralKind::Typed(datatype) => {
                Self::of_value(datatype, text).unwrap_or(Self::Typed(Cow::Borrowed(datatype)))
            }
        }
    }

    fn of_value(datatype: &'a str, text: &str) -> Option<Self> {
        match datatype {
            xsd::DECIMAL => {
                let (_, whole, fraction) = decimal_parts(text)?;
                let (whole, scale) = (whole.len(), fraction.len());
                if whole + scale > usize::from(DECIMAL_DIGITS) {
                    return None;
                }
                Some(Self::Decimal {
                    whole: u8::try_from(whole).ok()?,
                    scale: u8::try_from(scale).ok()?,
                })
            }
            xsd::DOUBLE => parse_double(text).map(|_| Self::Double),
            xsd::FLOAT => parse_float(text).map(|_| Self::Float),
            xsd::BOOLEAN => text.parse::<Boolean>().ok().map(|_| Self::Boolean),
            xsd::DATE => days(text).map(|_| Self::Date),
            xsd::DATE_TIME => {
                let (_, is_zoned) = microseconds(text)?;
                Some(if is_zoned {
                    Self::Instant
                } else {
                    Self::DateTime
                })
            }
            _ => {
                let integer_type = IntegerType::of_datatype(datatype)?;
                let is_integer = integer_type.admits(integer(text)?.into());
                is_integer.then_some(Self::Integer(Cow::Borrowed(datatype)))
            }
        }
    }

    fn datatype(&self) -> Option<&str> {
        match self {
            Self::Integer(datatype) | Self::Typed(datatype) => Some(datatype),
            Self::Decimal { .. } => Some(xsd::DECIMAL),
            Self::Double => Some(xsd::DOUBLE),
            Self::Float => Some(xsd::FLOAT),
            Self::Boolean => Some(xsd::BOOLEAN),
            Self::Date => Some(xsd::DATE),
            Self::DateTime | Self::Instant => Some(xsd::DATE_TIME),
            Self::Empty
            | Self::Iri
            | Self::BlankNode
            | Self::String
            | Self::Language(_)
            | Self::Terms => None,
        }
    }

    /// The type of the column.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Empty
            | Self::Iri
            | Self::BlankNode
            | Self::String
            | Self::Language(_)
            | Self::Typed(_) => DataType::Utf8,
            Self::Integer(_) => DataType::Int64,
            Self::Decimal { scale, .. } => {
                // At most DECIMAL_DIGITS, so it fits.
                DataType::Decimal128(DECIMAL_DIGITS, i8::try_from(*scale).unwrap_or(i8::MAX))
            }
            Self::Double => DataType::Float64,
            Self::Float => DataType::Float32,
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::DateTime => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Terms => DataType::Struct(term_fields()),
        }
    }

    /// What the column holds, for those who want terms again.
    pub(super) fn metadata(&self) -> HashMap<String, String> {
        let kind = match self {
            Self::Empty => "none",
            Self::Iri => "iri",
            Self::BlankNode => "bnode",
            Self::Terms => "term",
            _ => "literal",
        };
        let mut metadata = HashMap::from([("orrery.kind".to_owned(), kind.to_owned())]);
        match self {
            Self::String => {
                metadata.insert("orrery.datatype".to_owned(), xsd::STRING.to_owned());
            }
            Self::Language(tag) => {
                metadata.insert("orrery.language".to_owned(), tag.to_string());
            }
            other => {
                if let Some(datatype) = other.datatype() {
                    metadata.insert("orrery.datatype".to_owned(), datatype.to_owned());
                }
            }
        }
        metadata
    }
}

impl Shape<'static> {
    /// Takes a value in.
    pub(super) fn absorb(&mut self, term: &Term<'_>) {
        let other = Shape::of(term);
        if *self == other || *self == Shape::Terms {
            return;
        }
        let merged = match (&*self, &other) {
            (Shape::Empty, _) => other,
            (
                Shape::Decimal { whole, scale },
                Shape::Decimal {
                    whole: other_whole,
                    scale: other_scale,
                },
            ) => {
                let (whole, scale) = (*whole.max(other_whole), *scale.max(other_scale));
                if whole + scale > DECIMAL_DIGITS {
                    Shape::Typed(Cow::Borrowed(xsd::DECIMAL))
                } else {
                    Shape::Decimal { whole, scale }
                }
            }
            (held, other) => match (held.datatype(), other.datatype()) {
                (Some(held), Some(other)) if held == other => {
                    Shape::Typed(Cow::Owned(held.to_owned()))
                }
                _ => Shape::Terms,
            },
        };
        *self = merged.into_owned();
    }
}

impl Shape<'_> {
    fn into_owned(self) -> Shape<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Language(tag) => Shape::Language(owned(tag)),
            Self::Integer(datatype) => Shape::Integer(owned(datatype)),
            Self::Typed(datatype) => Shape::Typed(owned(datatype)),
            Self::Decimal { whole, scale } => Shape::Decimal { whole, scale },
            Self::Empty => Shape::Empty,
            Self::Iri => Shape::Iri,
            Self::BlankNode => Shape::BlankNode,
            Self::String => Shape::String,
            Self::Double => Shape::Double,
            Self::Float => Shape::Float,
            Self::Boolean => Shape::Boolean,
            Self::Date => Shape::Date,
            Self::DateTime => Shape::DateTime,
            Self::Instant => Shape::Instant,
            Self::Terms => Shape::Terms,
        }
    }
}

/// The columns of a term in a mixed column.
pub(super) fn term_fields() -> Fields {
    Fields::from(vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, false),
        Field::new("datatype", DataType::Utf8, true),
        Field::new("language", DataType::Utf8, true),
    ])
}

pub(super) fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Sign, digits before the point without leading zeros, digits behind it without trailing ones.
fn decimal_parts(text: &str) -> Option<(bool, &str, &str)> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    Some((
        is_negative,
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    ))
}

/// The value times 10 to the power of `scale`.
pub(super) fn decimal(text: &str, scale: u8) -> Option<i128> {
    let (is_negative, whole, fraction) = decimal_parts(text)?;
    let padding = usize::from(scale).checked_sub(fraction.len())?;
    let digits = whole.bytes().chain(fraction.bytes());
    let mut value: i128 = 0;
    for digit in digits.chain(std::iter::repeat_n(b'0', padding)) {
        value = value
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))?;
    }
    Some(if is_negative { -value } else { value })
}

/// Days since 1970-01-01 of a date without a time zone.
pub(super) fn days(text: &str) -> Option<i32> {
    let date: Date = text.parse().ok()?;
    if date.timezone_offset().is_some() {
        return None;
    }
    i32::try_from(days_since_1970(date.year(), date.month(), date.day())).ok()
}

/// Microseconds since 1970-01-01T00:00:00 (of UTC, if it has a time zone), and whether it has one.
pub(super) fn microseconds(text: &str) -> Option<(i64, bool)> {
    let time: DateTime = text.parse().ok()?;
    let second = i128::from_be_bytes(time.second().to_be_bytes());
    if second % DECIMAL_PER_MICROSECOND != 0 {
        return None;
    }
    let offset_minutes = time
        .timezone_offset()
        .map(|offset| i16::from_be_bytes(offset.to_be_bytes()));
    let days = i128::from(days_since_1970(time.year(), time.month(), time.day()));
    let minutes = (days * 24 + i128::from(time.hour())) * 60 + i128::from(time.minute())
        - i128::from(offset_minutes.unwrap_or(0));
    let microseconds = minutes * 60 * MICROSECONDS_PER_SECOND + second / DECIMAL_PER_MICROSECOND;
    Some((i64::try_from(microseconds).ok()?, offset_minutes.is_some()))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn days_since_1970(year: i64, month: u8, day: u8) -> i64 {
    days_from_civil(year, i64::from(month), i64::from(day)) - DAYS_TO_1970
}

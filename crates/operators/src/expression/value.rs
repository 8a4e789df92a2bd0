//! Terms as values: what SPARQL's operators and functions compute with.
//!
//! A [`Value`] is a term read once: the number of a numeric literal, the instant of a dateTime,
//! the text of a string. Calendar types, and numbers as far as they fit into 64 bits (decimals: 128), are those of
//! `oxsdatatypes`; their exact arithmetic, and what is larger, is [`exact`]'s.
//!
//! A value forgets how its literal was written: `"01"^^xsd:integer` and `1` are the same value. So
//! a variable that is only passed on stays an id, and only what is computed becomes a term again,
//! in canonical form, by [`Value::to_term`].
//!
//! A literal whose lexical form does not belong to its datatype (`"abc"^^xsd:integer`, `"300"^^xsd:byte`) and one of
//! an unknown datatype are [`Value::Other`].

use std::borrow::Cow;

use num_bigint::BigInt;
use orrery_term::inline::{InlineDate, InlineDateTime, InlineValue, IntegerType, TimeZone};
use orrery_term::lexical::{parse_double, parse_float};
use orrery_term::vocabulary::{rdf, xsd};
use orrery_term::{Direction, Literal, LiteralKind, Term, TermId, TermKind, Triple};
use oxrdf::BaseDirection;
use oxsdatatypes::{
    Boolean, Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, GDay, GMonth,
    GMonthDay, GYear, GYearMonth, Integer, Time, TimezoneOffset, YearMonthDuration,
};

use super::exact;

/// Days from 0000-01-01, where inline dates begin, to 0001-01-01, where XML Schema's time line does.
const DAYS_OF_YEAR_ZERO: i128 = 366;
const SECONDS_PER_DAY: i128 = 86_400;
/// What a millionth is in the raw number of an `oxsdatatypes::Decimal`, which counts 10^-18.
const RAW_MILLIONTH: i128 = 1_000_000_000_000;

/// A term as a value; see the module's documentation.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of XML Schema")]
pub enum Value {
    Iri(Box<str>),
    /// A blank node, by its number.
    BlankNode(u64),
    String(Box<str>),
    /// A string with a language tag, which is in lower case, and perhaps a base direction.
    LanguageString {
        lexical: Box<str>,
        language: Box<str>,
        direction: Option<Direction>,
    },
    Boolean(bool),
    /// `xsd:integer` and the types derived from it.
    Integer(Integer),
    /// An integer that is too large for [`Value::Integer`].
    LargeInteger(Box<BigInt>),
    Decimal(Decimal),
    /// A decimal that is too large for [`Value::Decimal`], in units of 10^-18.
    LargeDecimal(Box<BigInt>),
    Float(Float),
    Double(Double),
    DateTime(DateTime),
    Date(Date),
    Time(Time),
    GYearMonth(GYearMonth),
    GYear(GYear),
    GMonthDay(GMonthDay),
    GMonth(GMonth),
    GDay(GDay),
    Duration(Duration),
    YearMonthDuration(YearMonthDuration),
    DayTimeDuration(DayTimeDuration),
    /// A literal of a datatype that is not known, or whose lexical form is not of its datatype.
    Other {
        lexical: Box<str>,
        datatype: Box<str>,
    },
    /// A triple term, its parts as written.
    Triple(Box<Triple<'static>>),
}

/// What a string says of its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Language<'a> {
    /// The tag, in lower case.
    pub(crate) tag: &'a str,
    /// The base direction, if there is one.
    pub(crate) direction: Option<Direction>,
}

impl Value {
    /// A string.
    pub(crate) fn string(text: impl Into<Box<str>>) -> Self {
        Self::String(text.into())
    }

    /// An integer.
    pub(crate) fn integer(value: i64) -> Self {
        Self::Integer(value.into())
    }

    /// A string, with a language tag if there is one.
    pub(crate) fn text(lexical: impl Into<Box<str>>, language: Option<Language<'_>>) -> Self {
        match language {
            None => Self::String(lexical.into()),
            Some(Language { tag, direction }) => Self::LanguageString {
                lexical: lexical.into(),
                language: tag.into(),
                direction,
            },
        }
    }

    /// The value of a term.
    pub fn from_term(term: &Term<'_>) -> Self {
        match term {
            Term::BlankNode(number) => Self::BlankNode(*number),
            Term::Iri(iri) => Self::Iri(iri.as_ref().into()),
            Term::Literal(literal) => match &literal.kind {
                LiteralKind::Typed(datatype) => parse_typed(&literal.lexical, datatype)
                    .unwrap_or_else(|| Self::unread(&literal.lexical, datatype)),
                LiteralKind::String | LiteralKind::Language(_) | LiteralKind::Directional(..) => {
                    Self::text_of(literal)
                }
            },
            Term::Triple(_) => Self::written(term),
        }
    }

    /// The term with its text as written: a typed literal becomes [`Value::Other`] although its
    /// datatype is known. For functions that want the lexical form.
    pub(crate) fn written(term: &Term<'_>) -> Self {
        match term {
            Term::Literal(literal) => match &literal.kind {
                LiteralKind::Typed(datatype) => Self::unread(&literal.lexical, datatype),
                LiteralKind::String | LiteralKind::Language(_) | LiteralKind::Directional(..) => {
                    Self::text_of(literal)
                }
            },
            Term::BlankNode(_) | Term::Iri(_) => Self::from_term(term),
            Term::Triple(triple) => Self::Triple(Box::new(triple.as_ref().clone().into_owned())),
        }
    }

    fn unread(lexical: &str, datatype: &str) -> Self {
        Self::Other {
            lexical: lexical.into(),
            datatype: datatype.into(),
        }
    }

    fn text_of(literal: &Literal<'_>) -> Self {
        let language = literal.language_tag().map(|tag| Language {
            tag,
            direction: literal.direction(),
        });
        Self::text(literal.lexical.as_ref(), language)
    }

    /// The value inside an id, without a look into the dictionary.
    #[inline]
    pub fn from_inline(id: TermId) -> Option<Self> {
        if id.kind() == TermKind::BlankNode {
            return Some(Self::BlankNode(id.payload()));
        }
        Some(match id.inline_value()? {
            InlineValue::Boolean(value) => Self::Boolean(value),
            InlineValue::Integer(value, _) => Self::Integer(value.into()),
            InlineValue::Decimal(millionths) => Self::Decimal(decimal(millionths)?),
            InlineValue::Double(value) => Self::Double(value.into()),
            InlineValue::Date(date) => Self::Date(from_inline_date(date)?),
            InlineValue::DateTime(date_time) => Self::DateTime(from_inline_date_time(date_time)?),
            InlineValue::String(text) => Self::string(text.as_str()),
        })
    }

    /// The id, if the value's canonical form fits into one and no text is needed to find that out.
    #[inline]
    pub(crate) fn to_inline(&self) -> Option<TermId> {
        match self {
            Self::Boolean(value) => Some(TermId::boolean(*value)),
            Self::Integer(value) => TermId::integer((*value).into()),
            Self::Decimal(value) => {
                let raw = exact::raw(*value);
                (raw % RAW_MILLIONTH == 0)
                    .then(|| i64::try_from(raw / RAW_MILLIONTH).ok())
                    .flatten()
                    .and_then(TermId::decimal)
            }
            Self::Double(value) => TermId::double((*value).into()),
            Self::String(text) => orrery_term::inline_string(text),
            Self::BlankNode(number) if *number < TermId::PAYLOAD_LIMIT => {
                Some(TermId::blank_node(*number))
            }
            _ => None,
        }
    }

    /// The term of the value, in canonical form.
    pub fn to_term(&self) -> Term<'_> {
        match self {
            Self::Iri(iri) => Term::iri(iri.as_ref()),
            Self::BlankNode(number) => Term::BlankNode(*number),
            Self::String(text) => Term::string(text.as_ref()),
            Self::LanguageString {
                lexical,
                language,
                direction: None,
            } => Term::language(lexical.as_ref(), language.as_ref()),
            Self::LanguageString {
                lexical,
                language,
                direction: Some(direction),
            } => Term::directional(lexical.as_ref(), language.as_ref(), *direction),
            Self::Triple(triple) => Term::Triple(Box::new(triple.borrowed())),
            Self::Other { lexical, datatype } => Term::typed(lexical.as_ref(), datatype.as_ref()),
            _ => Term::typed(
                self.lexical().unwrap_or_default(),
                self.datatype().unwrap_or_default(),
            ),
        }
    }

    /// What `STR()` returns: an IRI's text, a literal's lexical form; none of a blank node or triple term.
    pub(crate) fn lexical(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::BlankNode(_) | Self::Triple(_) => return None,
            Self::Iri(text) | Self::String(text) => Cow::Borrowed(text),
            Self::LanguageString { lexical, .. } | Self::Other { lexical, .. } => {
                Cow::Borrowed(lexical)
            }
            Self::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Self::Integer(value) => Cow::Owned(value.to_string()),
            Self::LargeInteger(value) => Cow::Owned(value.to_string()),
            Self::Decimal(value) => Cow::Owned(value.to_string()),
            Self::LargeDecimal(raw) => Cow::Owned(exact::decimal_text(raw)),
            Self::Float(value) => Cow::Owned(value.to_string()),
            Self::Double(value) => Cow::Owned(value.to_string()),
            Self::DateTime(value) => Cow::Owned(value.to_string()),
            Self::Date(value) => Cow::Owned(value.to_string()),
            Self::Time(value) => Cow::Owned(value.to_string()),
            Self::GYearMonth(value) => Cow::Owned(value.to_string()),
            Self::GYear(value) => Cow::Owned(value.to_string()),
            Self::GMonthDay(value) => Cow::Owned(value.to_string()),
            Self::GMonth(value) => Cow::Owned(value.to_string()),
            Self::GDay(value) => Cow::Owned(value.to_string()),
            Self::Duration(value) => Cow::Owned(value.to_string()),
            Self::YearMonthDuration(value) => Cow::Owned(value.to_string()),
            Self::DayTimeDuration(value) => Cow::Owned(value.to_string()),
        })
    }

    /// What `DATATYPE()` returns; none of an IRI, blank node or triple term.
    pub(crate) fn datatype(&self) -> Option<&str> {
        Some(match self {
            Self::Iri(_) | Self::BlankNode(_) | Self::Triple(_) => return None,
            Self::String(_) => xsd::STRING,
            Self::LanguageString {
                direction: None, ..
            } => rdf::LANG_STRING,
            Self::LanguageString { .. } => rdf::DIR_LANG_STRING,
            Self::Boolean(_) => xsd::BOOLEAN,
            Self::Integer(_) | Self::LargeInteger(_) => xsd::INTEGER,
            Self::Decimal(_) | Self::LargeDecimal(_) => xsd::DECIMAL,
            Self::Float(_) => xsd::FLOAT,
            Self::Double(_) => xsd::DOUBLE,
            Self::DateTime(_) => xsd::DATE_TIME,
            Self::Date(_) => xsd::DATE,
            Self::Time(_) => xsd::TIME,
            Self::GYearMonth(_) => xsd::G_YEAR_MONTH,
            Self::GYear(_) => xsd::G_YEAR,
            Self::GMonthDay(_) => xsd::G_MONTH_DAY,
            Self::GMonth(_) => xsd::G_MONTH,
            Self::GDay(_) => xsd::G_DAY,
            Self::Duration(_) => xsd::DURATION,
            Self::YearMonthDuration(_) => xsd::YEAR_MONTH_DURATION,
            Self::DayTimeDuration(_) => xsd::DAY_TIME_DURATION,
            Self::Other { datatype, .. } => datatype,
        })
    }

    /// Whether the value is a literal.
    pub(crate) fn is_literal(&self) -> bool {
        !matches!(self, Self::Iri(_) | Self::BlankNode(_) | Self::Triple(_))
    }

    /// The text and language of a string, tagged or not; none of other values.
    #[inline]
    pub(crate) fn as_text(&self) -> Option<(&str, Option<Language<'_>>)> {
        match self {
            Self::String(text) => Some((text, None)),
            Self::LanguageString {
                lexical,
                language,
                direction,
            } => {
                let direction = *direction;
                let tag = language;
                Some((lexical, Some(Language { tag, direction })))
            }
            _ => None,
        }
    }

    /// The text of a plain string; none of other values.
    #[inline]
    pub(crate) fn as_plain_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the value is a number.
    pub(crate) fn is_numeric(&self) -> bool {
        matches!(
            self,
            Self::Integer(_)
                | Self::LargeInteger(_)
                | Self::Decimal(_)
                | Self::LargeDecimal(_)
                | Self::Float(_)
                | Self::Double(_)
        )
    }

    /// The effective boolean value (SPARQL 1.1, 17.2.2): false of an ill-typed number. An ill-typed boolean has none, for the
    /// test suite of SPARQL 1.2 wants an error; a string with a language tag has none either, as 1.2 has it, where 1.1 says "plain
    /// literal".
    #[inline]
    pub(crate) fn effective_boolean(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            Self::String(text) => Some(!text.is_empty()),
            Self::Integer(value) => Some(Boolean::from(*value).into()),
            Self::Decimal(value) => Some(Boolean::from(*value).into()),
            Self::Float(value) => Some(Boolean::from(*value).into()),
            Self::Double(value) => Some(Boolean::from(*value).into()),
            // Zero is not large.
            Self::LargeInteger(_) | Self::LargeDecimal(_) => Some(true),
            Self::Other { datatype, .. } => is_numeric_datatype(datatype).then_some(false),
            _ => None,
        }
    }
}

/// Whether literals of a datatype are numbers, where their form belongs to it.
fn is_numeric_datatype(datatype: &str) -> bool {
    matches!(datatype, xsd::DECIMAL | xsd::FLOAT | xsd::DOUBLE)
        || IntegerType::of_datatype(datatype).is_some()
}

/// The decimal of an inline one.
pub(crate) fn decimal(millionths: i64) -> Option<Decimal> {
    Decimal::new(millionths.into(), 6).ok()
}

fn from_inline_date(date: InlineDate) -> Option<Date> {
    let seconds = i128::from(date.start_minutes()) * 60 - DAYS_OF_YEAR_ZERO * SECONDS_PER_DAY;
    Some(Date::from_be_bytes(timestamp_bytes(
        Decimal::new(seconds, 0).ok()?,
        date.zone,
    )))
}

fn from_inline_date_time(date_time: InlineDateTime) -> Option<DateTime> {
    let milliseconds =
        i128::from(date_time.instant_ms) - DAYS_OF_YEAR_ZERO * SECONDS_PER_DAY * 1000;
    Some(DateTime::from_be_bytes(timestamp_bytes(
        Decimal::new(milliseconds, 3).ok()?,
        date_time.zone,
    )))
}

/// The bytes that oxsdatatypes writes a timestamp as: seconds from 0001-01-01 in UTC, then the time
/// zone in minutes, all ones if absent.
fn timestamp_bytes(seconds: Decimal, zone: TimeZone) -> [u8; 18] {
    let mut bytes = [u8::MAX; 18];
    bytes[..16].copy_from_slice(&seconds.to_be_bytes());
    match zone {
        TimeZone::Absent => {}
        TimeZone::Utc => bytes[16..].copy_from_slice(&TimezoneOffset::UTC.to_be_bytes()),
        TimeZone::Offset(minutes) => bytes[16..].copy_from_slice(&minutes.to_be_bytes()),
    }
    bytes
}

/// The value of a typed literal, if the datatype is known and the lexical form belongs to it.
fn parse_typed(lexical: &str, datatype: &str) -> Option<Value> {
    Some(match datatype {
        xsd::STRING => Value::string(lexical),
        xsd::BOOLEAN => Value::Boolean(lexical.parse::<Boolean>().ok()?.into()),
        xsd::INTEGER => exact::parse_integer(lexical, IntegerType::Integer)?,
        xsd::DECIMAL => exact::parse_decimal(lexical)?,
        xsd::FLOAT => Value::Float(parse_float(lexical)?.into()),
        xsd::DOUBLE => Value::Double(parse_double(lexical)?.into()),
        xsd::DATE_TIME | xsd::DATE_TIME_STAMP => Value::DateTime(lexical.parse().ok()?),
        xsd::DATE => Value::Date(lexical.parse().ok()?),
        xsd::TIME => Value::Time(lexical.parse().ok()?),
        xsd::G_YEAR_MONTH => Value::GYearMonth(lexical.parse().ok()?),
        xsd::G_YEAR => Value::GYear(lexical.parse().ok()?),
        xsd::G_MONTH_DAY => Value::GMonthDay(lexical.parse().ok()?),
        xsd::G_MONTH => Value::GMonth(lexical.parse().ok()?),
        xsd::G_DAY => Value::GDay(lexical.parse().ok()?),
        xsd::DURATION => Value::Duration(lexical.parse().ok()?),
        xsd::YEAR_MONTH_DURATION => Value::YearMonthDuration(lexical.parse().ok()?),
        xsd::DAY_TIME_DURATION => Value::DayTimeDuration(lexical.parse().ok()?),
        _ => exact::parse_integer(lexical, IntegerType::of_datatype(datatype)?)?,
    })
}

/// The term of a constant in a query.
pub(crate) fn term_of_literal(literal: &spargebra::term::Literal) -> Term<'static> {
    if let Some(language) = literal.language() {
        let (lexical, language) = (literal.value().to_owned(), language.to_owned());
        return match literal.direction() {
            None => Term::language(lexical, language),
            Some(BaseDirection::Ltr) => {
                Term::directional(lexical, language, Direction::LeftToRight)
            }
            Some(BaseDirection::Rtl) => {
                Term::directional(lexical, language, Direction::RightToLeft)
            }
        };
    }
    Term::typed(
        literal.value().to_owned(),
        literal.datatype().as_str().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn inline_dates_are_the_values_of_their_text() {
        for lexical in [
            "2024-02-29",
            "0000-03-01",
            "0001-01-01",
            "1969-12-31Z",
            "9999-12-31-14:00",
            "2000-01-01+05:30",
        ] {
            let id = orrery_term::inline_typed(lexical, xsd::DATE).unwrap();
            let Some(Value::Date(date)) = Value::from_inline(id) else {
                panic!("{lexical} is no date")
            };
            let parsed: Date = lexical.parse().unwrap();
            assert!(date.is_identical_with(parsed), "{lexical}: {date}");
        }
    }

    #[test]
    fn inline_date_times_are_the_values_of_their_text() {
        for lexical in [
            "2024-02-29T23:59:59",
            "0000-03-01T00:00:00Z",
            "0001-01-01T00:00:00.5+14:00",
            "1969-12-31T12:34:56.789Z",
            "4458-12-31T12:34:56.700-13:59",
        ] {
            let id = orrery_term::inline_typed(lexical, xsd::DATE_TIME).unwrap();
            let Some(Value::DateTime(value)) = Value::from_inline(id) else {
                panic!("{lexical} is no dateTime")
            };
            let parsed: DateTime = lexical.parse().unwrap();
            assert!(value.is_identical_with(parsed), "{lexical}: {value}");
        }
    }

    #[test]
    fn inline_numbers_are_the_values_of_their_text() {
        for (lexical, datatype) in [
            ("-17", xsd::INTEGER),
            ("200", xsd::UNSIGNED_BYTE),
            ("1.25", xsd::DECIMAL),
            ("-0.000001", xsd::DECIMAL),
            ("1.5E10", xsd::DOUBLE),
            ("0.1", xsd::DOUBLE),
            ("true", xsd::BOOLEAN),
        ] {
            let id = orrery_term::inline_typed(lexical, datatype).unwrap();
            let inline = Value::from_inline(id).unwrap();
            let parsed = parse_typed(lexical, datatype).unwrap();
            assert_eq!(format!("{inline:?}"), format!("{parsed:?}"));
        }
    }

    proptest! {
        /// Numbers get their ids without a look at their text, and must get the same.
        #[test]
        fn numbers_become_the_ids_of_their_text(
            value in prop_oneof![
                any::<f64>().prop_map(|value| Value::Double(value.into())),
                (-1000i64..1000).prop_map(|value| Value::Double((value as f64 / 8.0).into())),
                (any::<i64>(), 0u32..19).prop_map(|(digits, scale)| {
                    Value::Decimal(Decimal::new(digits.into(), scale).unwrap())
                }),
                (-100_000i64..100_000, 0u32..7).prop_map(|(digits, scale)| {
                    Value::Decimal(Decimal::new(digits.into(), scale).unwrap())
                }),
                any::<i64>().prop_map(Value::integer),
            ],
        ) {
            prop_assert_eq!(value.to_inline(), orrery_term::inline(&value.to_term()), "{:?}", value);
        }
    }

    #[test]
    fn ill_typed_and_unknown_literals_are_other() {
        for (lexical, datatype) in [
            ("abc", xsd::INTEGER),
            ("300", xsd::BYTE),
            ("-1", xsd::UNSIGNED_LONG),
            ("inf", xsd::DOUBLE),
            ("+NaN", xsd::FLOAT),
            ("2024-02-30", xsd::DATE),
            ("x", "http://example.com/datatype"),
        ] {
            let value = Value::from_term(&Term::typed(lexical, datatype));
            assert!(matches!(value, Value::Other { .. }), "{value:?}");
            assert_eq!(value.to_term(), Term::typed(lexical, datatype));
        }
    }
}

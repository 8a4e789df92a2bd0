//! The values of terms, ids and literals of a query.

use orrery_term::inline::{InlineDate, InlineDateTime, InlineValue, IntegerType, TimeZone};
use orrery_term::lexical::{parse_double, parse_float};
use orrery_term::vocabulary::xsd;
use orrery_term::{Direction, Literal, LiteralKind, Term, TermId, TermKind};
use oxrdf::BaseDirection;
use oxsdatatypes::{Boolean, Date, DateTime, Decimal, TimezoneOffset};

use crate::values::exact;
use crate::values::value::{Language, Value};

/// Days from 0000-01-01, where inline dates begin, to 0001-01-01, where XML Schema's time line
/// does.
const DAYS_OF_YEAR_ZERO: i128 = 366;

const SECONDS_PER_DAY: i128 = 86_400;

impl Value {
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
            InlineValue::Decimal(millionths) => Self::Decimal(decimal_of_millionths(millionths)?),
            InlineValue::Double(value) => Self::Double(value.into()),
            InlineValue::Date(date) => Self::Date(from_inline_date(date)?),
            InlineValue::DateTime(date_time) => Self::DateTime(from_inline_date_time(date_time)?),
            InlineValue::String(text) => Self::string(text.as_str()),
        })
    }
}

/// The decimal of an inline one.
pub(crate) fn decimal_of_millionths(millionths: i64) -> Option<Decimal> {
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

//! The value of a term, the operand of SPARQL's operators and functions.
//!
//! A [`Value`] is a term read once: the number of a numeric literal, the instant of a dateTime, the
//! text of a string. Calendar types, and numbers as far as they fit into 64 bits (decimals: 128),
//! are those of `oxsdatatypes`; their exact arithmetic, and what is larger, is [`exact`]'s.
//!
//! A value forgets how its literal was written: `"01"^^xsd:integer` and `1` are the same value. So
//! a variable that is only passed on stays an id, and only what is computed becomes a term again,
//! in canonical form, by [`Value::to_term`].
//!
//! A literal whose lexical form does not belong to its datatype (`"abc"^^xsd:integer`,
//! `"300"^^xsd:byte`) and one of an unknown datatype are [`Value::Other`].

use std::borrow::Cow;

use num_bigint::BigInt;
use orrery_term::inline::IntegerType;
use orrery_term::vocabulary::{rdf, xsd};
use orrery_term::{Direction, Term, TermId, Triple};
use oxsdatatypes::{
    Boolean, Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, GDay, GMonth,
    GMonthDay, GYear, GYearMonth, Integer, Time, YearMonthDuration,
};

use crate::values::decimal;

/// What a millionth is in the raw number of an `oxsdatatypes::Decimal`, which counts 10^-18.
const RAW_MILLIONTH: i128 = 1_000_000_000_000;

/// What a number takes that is too large for the value itself, at most.
const LARGE_NUMBER_BYTES: usize = 2_048;

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
    #[inline]
    pub fn string(text: impl Into<Box<str>>) -> Self {
        Self::String(text.into())
    }

    /// An integer.
    #[inline]
    pub fn integer(value: i64) -> Self {
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

    /// The id, if the value's canonical form fits into one and no text is needed to find that out.
    #[inline]
    pub(crate) fn to_inline(&self) -> Option<TermId> {
        match self {
            Self::Boolean(value) => Some(TermId::boolean(*value)),
            Self::Integer(value) => TermId::integer((*value).into()),
            Self::Decimal(value) => {
                let raw = decimal::raw(*value);
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

    /// The bytes that the value holds beside its own few.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Iri(text) | Self::String(text) => text.len(),
            Self::LanguageString {
                lexical, language, ..
            } => lexical.len() + language.len(),
            Self::Other { lexical, datatype } => lexical.len() + datatype.len(),
            Self::LargeInteger(_) | Self::LargeDecimal(_) => LARGE_NUMBER_BYTES,
            Self::Triple(triple) => triple.text_bytes(),
            _ => 0,
        }
    }

    /// The result of `STR()`: an IRI's text, a literal's lexical form; none of a blank node or
    /// triple term.
    pub fn lexical(&self) -> Option<Cow<'_, str>> {
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
            Self::LargeDecimal(raw) => Cow::Owned(decimal::decimal_text(raw)),
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
    pub fn is_numeric(&self) -> bool {
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

    /// The effective boolean value (SPARQL 1.1, 17.2.2): false of an ill-typed number. An ill-typed
    /// boolean has none, for the test suite of SPARQL 1.2 wants an error; a string with a language
    /// tag has none either, as 1.2 has it, where 1.1 says "plain literal".
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

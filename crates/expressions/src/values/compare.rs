//! Comparison of values: `=` and `<`.
//!
//! Both are partial: `None` is SPARQL's type error. Numbers compare by value across their types;
//! NaN is equal to nothing, and neither less nor greater than anything, which is an answer and no
//! error (XPath Functions 3.1, 4.3). Then strings by code point, strings with a language tag only
//! within one language, dates and durations as XML Schema says, which leaves some pairs without an
//! order (with and without a time zone); those are neither equal nor unequal, as W3C's test
//! `open-world/date-2` wants.
//!
//! `=` on a literal of a datatype that is not known is true for the same term and an error for any
//! other literal, for nobody can tell whether two lexical forms mean the same value.
//!
//! Triple terms are equal if their parts are, and ordered by their objects if subject and predicate
//! are the same term.

use std::cmp::Ordering;

use orrery_term::Triple;
use oxsdatatypes::Decimal;

use crate::values::exact;
use crate::values::value::Value;

/// A comparison operator of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether an order of the left side against the right one makes the comparison true.
    #[inline]
    pub(crate) fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// The comparison with its sides exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    /// As written in a query.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// `a = b`.
pub(crate) fn equals(a: &Value, b: &Value) -> Option<bool> {
    if let (Some(a), Some(b)) = (Class::of(a), Class::of(b)) {
        if a != b {
            return Some(false);
        }
    } else {
        return equals_other(a, b);
    }
    Some(match (a, b) {
        (Value::Iri(a), Value::Iri(b)) | (Value::String(a), Value::String(b)) => a == b,
        (Value::BlankNode(a), Value::BlankNode(b)) => a == b,
        (
            Value::LanguageString {
                lexical: lexical_a,
                language: language_a,
                direction: direction_a,
            },
            Value::LanguageString {
                lexical: lexical_b,
                language: language_b,
                direction: direction_b,
            },
        ) => lexical_a == lexical_b && language_a == language_b && direction_a == direction_b,
        (Value::Triple(a), Value::Triple(b)) => return equal_triples(a, b),
        (Value::Boolean(a), Value::Boolean(b)) => a == b,
        (Value::DateTime(a), Value::DateTime(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::Date(a), Value::Date(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::Time(a), Value::Time(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::GYearMonth(a), Value::GYearMonth(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::GYear(a), Value::GYear(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::GMonthDay(a), Value::GMonthDay(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::GMonth(a), Value::GMonth(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::GDay(a), Value::GDay(b)) => a.partial_cmp(b)?.is_eq(),
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Duration(a), Value::YearMonthDuration(b)) => a == b,
        (Value::Duration(a), Value::DayTimeDuration(b)) => a == b,
        (Value::YearMonthDuration(a), Value::Duration(b)) => a == b,
        (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => a == b,
        (Value::YearMonthDuration(a), Value::DayTimeDuration(b)) => a == b,
        (Value::DayTimeDuration(a), Value::Duration(b)) => a == b,
        (Value::DayTimeDuration(a), Value::YearMonthDuration(b)) => a == b,
        (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => a == b,
        _ => compare_numbers(a, b) == Some(Ordering::Equal),
    })
}

/// `=` of triple terms: of their parts, as `&&` would have it.
fn equal_triples(a: &Triple<'_>, b: &Triple<'_>) -> Option<bool> {
    if a.subject() != b.subject() || a.predicate() != b.predicate() {
        return Some(false);
    }
    equals(&Value::from_term(a.object()), &Value::from_term(b.object()))
}

/// `=` where at least one side is [`Value::Other`].
fn equals_other(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (
            Value::Other {
                lexical: lexical_a,
                datatype: datatype_a,
            },
            Value::Other {
                lexical: lexical_b,
                datatype: datatype_b,
            },
        ) => (lexical_a == lexical_b && datatype_a == datatype_b).then_some(true),
        (known, Value::Other { .. }) | (Value::Other { .. }, known) => match known {
            Value::Iri(_)
            | Value::BlankNode(_)
            | Value::LanguageString { .. }
            | Value::Triple(_) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Values of different classes are never equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Iri,
    BlankNode,
    String,
    LanguageString,
    Boolean,
    Number,
    DateTime,
    Date,
    Time,
    GYearMonth,
    GYear,
    GMonthDay,
    GMonth,
    GDay,
    Duration,
    Triple,
}

impl Class {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Iri(_) => Self::Iri,
            Value::BlankNode(_) => Self::BlankNode,
            Value::String(_) => Self::String,
            Value::LanguageString { .. } => Self::LanguageString,
            Value::Boolean(_) => Self::Boolean,
            Value::Integer(_)
            | Value::LargeInteger(_)
            | Value::Decimal(_)
            | Value::LargeDecimal(_)
            | Value::Float(_)
            | Value::Double(_) => Self::Number,
            Value::DateTime(_) => Self::DateTime,
            Value::Date(_) => Self::Date,
            Value::Time(_) => Self::Time,
            Value::GYearMonth(_) => Self::GYearMonth,
            Value::GYear(_) => Self::GYear,
            Value::GMonthDay(_) => Self::GMonthDay,
            Value::GMonth(_) => Self::GMonth,
            Value::GDay(_) => Self::GDay,
            Value::Duration(_) | Value::YearMonthDuration(_) | Value::DayTimeDuration(_) => {
                Self::Duration
            }
            Value::Triple(_) => Self::Triple,
            Value::Other { .. } => return None,
        })
    }
}

/// `a < b` and its kin.
pub(crate) fn compares(comparison: Comparison, a: &Value, b: &Value) -> Option<bool> {
    if let (Value::Triple(a), Value::Triple(b)) = (a, b) {
        if a.subject() != b.subject() || a.predicate() != b.predicate() {
            return None;
        }
        let (a, b) = (Value::from_term(a.object()), Value::from_term(b.object()));
        return compares(comparison, &a, &b);
    }
    match compare(a, b) {
        Some(ordering) => Some(comparison.accepts(ordering)),
        // One is NaN.
        None => (a.is_numeric() && b.is_numeric()).then_some(false),
    }
}

/// The order of `a` against `b`, if they have one; triple terms and NaN have none here.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (
            Value::LanguageString {
                lexical: lexical_a,
                language: language_a,
                direction: direction_a,
            },
            Value::LanguageString {
                lexical: lexical_b,
                language: language_b,
                direction: direction_b,
            },
        ) => (language_a == language_b && direction_a == direction_b)
            .then(|| lexical_a.cmp(lexical_b)),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => a.partial_cmp(b),
        (Value::Date(a), Value::Date(b)) => a.partial_cmp(b),
        (Value::Time(a), Value::Time(b)) => a.partial_cmp(b),
        (Value::GYearMonth(a), Value::GYearMonth(b)) => a.partial_cmp(b),
        (Value::GYear(a), Value::GYear(b)) => a.partial_cmp(b),
        (Value::GMonthDay(a), Value::GMonthDay(b)) => a.partial_cmp(b),
        (Value::GMonth(a), Value::GMonth(b)) => a.partial_cmp(b),
        (Value::GDay(a), Value::GDay(b)) => a.partial_cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.partial_cmp(b),
        (Value::Duration(a), Value::YearMonthDuration(b)) => a.partial_cmp(b),
        (Value::Duration(a), Value::DayTimeDuration(b)) => a.partial_cmp(b),
        (Value::YearMonthDuration(a), Value::Duration(b)) => a.partial_cmp(b),
        (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => a.partial_cmp(b),
        (Value::YearMonthDuration(a), Value::DayTimeDuration(b)) => a.partial_cmp(b),
        (Value::DayTimeDuration(a), Value::Duration(b)) => a.partial_cmp(b),
        (Value::DayTimeDuration(a), Value::YearMonthDuration(b)) => a.partial_cmp(b),
        (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => a.partial_cmp(b),
        // The same IRI, blank node or unknown literal is neither less nor greater than itself, so
        // `<=` and `>=` hold, as in the ox* family; between different ones there is no order.
        (Value::Iri(a), Value::Iri(b)) => (a == b).then_some(Ordering::Equal),
        (Value::BlankNode(a), Value::BlankNode(b)) => (a == b).then_some(Ordering::Equal),
        (Value::Other { .. }, Value::Other { .. }) => equals_other(a, b).map(|_| Ordering::Equal),
        _ => compare_numbers(a, b),
    }
}

/// Numbers by value, in the wider of the two types (XPath 2.0, B.1).
fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Integer(a), Value::Decimal(b)) => Some(Decimal::from(*a).cmp(b)),
        (Value::Decimal(a), Value::Integer(b)) => Some(a.cmp(&Decimal::from(*b))),
        (Value::Decimal(a), Value::Decimal(b)) => Some(a.cmp(b)),
        (Value::Double(_), _) | (_, Value::Double(_)) => {
            exact::to_double(a)?.partial_cmp(&exact::to_double(b)?)
        }
        (Value::Float(_), _) | (_, Value::Float(_)) => {
            exact::to_float(a)?.partial_cmp(&exact::to_float(b)?)
        }
        _ => exact::compare(a, b),
    }
}

/// What is asked of two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermComparison {
    /// `=`.
    Equal,
    /// `<` and its kin.
    Order(Comparison),
}

impl TermComparison {
    pub(crate) fn answer(self, a: &Value, b: &Value) -> Option<bool> {
        match self {
            Self::Equal => equals(a, b),
            Self::Order(comparison) => compares(comparison, a, b),
        }
    }

    /// The answer by the order of two numbers, or of other values that have one.
    #[inline]
    pub(crate) fn of_order(self, order: Option<Ordering>) -> bool {
        match self {
            // Incomparable numbers (NaN) are not equal, and none is less.
            Self::Equal => order == Some(Ordering::Equal),
            Self::Order(comparison) => order.is_some_and(|order| comparison.accepts(order)),
        }
    }

    /// The answer for two terms of classes that never mix.
    #[inline]
    pub(crate) fn of_strangers(self) -> Option<bool> {
        match self {
            Self::Equal => Some(false),
            Self::Order(_) => None,
        }
    }

    /// The question with its sides exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::Order(comparison) => Self::Order(comparison.mirrored()),
        }
    }
}

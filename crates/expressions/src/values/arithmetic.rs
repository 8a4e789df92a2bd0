//! Arithmetic over values: `+ - * /` and signs.
//!
//! Operands meet in the wider of their types: integer, decimal, float, double (XPath 2.0, B.1).
//! Integers and decimals are exact whatever their size, but for digits after the eighteenth behind
//! the point ([`exact`]); what runs over 64 or 128 bits goes there. A division of exact numbers by
//! zero is SPARQL's error (`None`). Dates, times and durations add and subtract as XPath's
//! operators do (SPARQL 1.2 community proposal SEP-0002); that is beyond SPARQL 1.1, where they are
//! errors.

use oxsdatatypes::{Decimal, Double, Duration, Float, Integer};

use crate::values::decimal;
use crate::values::exact;
use crate::values::operator::Arithmetic;
use crate::values::value::Value;

impl Arithmetic {
    /// The value of `a op b`.
    #[inline]
    pub fn apply(self, a: &Value, b: &Value) -> Option<Value> {
        match NumberPair::of(a, b) {
            Some(NumberPair::Integer(x, y)) => {
                self.integers(x, y).or_else(|| exact::apply(self, a, b))
            }
            Some(NumberPair::Decimal(x, y)) => {
                self.decimals(x, y).or_else(|| exact::apply(self, a, b))
            }
            Some(NumberPair::Large) => exact::apply(self, a, b),
            Some(NumberPair::Float(a, b)) => Some(Value::Float(match self {
                Self::Add => a + b,
                Self::Subtract => a - b,
                Self::Multiply => a * b,
                Self::Divide => a / b,
            })),
            Some(NumberPair::Double(a, b)) => Some(Value::Double(match self {
                Self::Add => a + b,
                Self::Subtract => a - b,
                Self::Multiply => a * b,
                Self::Divide => a / b,
            })),
            None => match self {
                Self::Add => add_calendar(a, b),
                Self::Subtract => subtract_calendar(a, b),
                Self::Multiply | Self::Divide => None,
            },
        }
    }

    /// The result, if 64 bits are enough for it.
    fn integers(self, a: Integer, b: Integer) -> Option<Value> {
        Some(Value::Integer(match self {
            Self::Add => a.checked_add(b)?,
            Self::Subtract => a.checked_sub(b)?,
            Self::Multiply => a.checked_mul(b)?,
            // Integers divide to a decimal.
            Self::Divide => return decimal::quotient(a, b).map(Value::Decimal),
        }))
    }

    /// The result, if 128 bits are enough for it, and on the way.
    fn decimals(self, a: Decimal, b: Decimal) -> Option<Value> {
        Some(Value::Decimal(match self {
            Self::Add => a.checked_add(b)?,
            Self::Subtract => a.checked_sub(b)?,
            Self::Multiply => decimal::product_of_decimals(a, b)?,
            Self::Divide => decimal::quotient_of_decimals(a, b)?,
        }))
    }
}

/// Two numbers in the type they meet in.
enum NumberPair {
    Integer(Integer, Integer),
    Decimal(Decimal, Decimal),
    Float(Float, Float),
    Double(Double, Double),
    /// Exact ones, of which one at least is large.
    Large,
}

impl NumberPair {
    #[inline]
    fn of(a: &Value, b: &Value) -> Option<Self> {
        Some(match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => Self::Integer(*a, *b),
            (Value::Integer(a), Value::Decimal(b)) => Self::Decimal((*a).into(), *b),
            (Value::Decimal(a), Value::Integer(b)) => Self::Decimal(*a, (*b).into()),
            (Value::Decimal(a), Value::Decimal(b)) => Self::Decimal(*a, *b),
            (Value::Float(a), Value::Float(b)) => Self::Float(*a, *b),
            (Value::Double(a), Value::Double(b)) => Self::Double(*a, *b),
            _ => return Self::of_mixed(a, b),
        })
    }

    fn of_mixed(a: &Value, b: &Value) -> Option<Self> {
        if !a.is_numeric() || !b.is_numeric() {
            return None;
        }
        Some(match (a, b) {
            (Value::Double(_), _) | (_, Value::Double(_)) => {
                Self::Double(exact::to_double(a)?.into(), exact::to_double(b)?.into())
            }
            (Value::Float(_), _) | (_, Value::Float(_)) => {
                Self::Float(exact::to_float(a)?.into(), exact::to_float(b)?.into())
            }
            _ => Self::Large,
        })
    }
}

/// A value as a duration of the general kind.
fn duration(value: &Value) -> Option<Duration> {
    match value {
        Value::Duration(value) => Some(*value),
        Value::YearMonthDuration(value) => Some((*value).into()),
        Value::DayTimeDuration(value) => Some((*value).into()),
        _ => None,
    }
}

fn add_calendar(a: &Value, b: &Value) -> Option<Value> {
    Some(match (a, b) {
        (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => {
            Value::YearMonthDuration(a.checked_add(*b)?)
        }
        (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => {
            Value::DayTimeDuration(a.checked_add(*b)?)
        }
        (Value::DateTime(a), _) => Value::DateTime(a.checked_add_duration(duration(b)?)?),
        (Value::Date(a), _) => Value::Date(a.checked_add_duration(duration(b)?)?),
        (Value::Time(_), Value::YearMonthDuration(_)) => return None,
        (Value::Time(a), _) => Value::Time(a.checked_add_duration(duration(b)?)?),
        _ => Value::Duration(duration(a)?.checked_add(duration(b)?)?),
    })
}

fn subtract_calendar(a: &Value, b: &Value) -> Option<Value> {
    Some(match (a, b) {
        (Value::DateTime(a), Value::DateTime(b)) => Value::DayTimeDuration(a.checked_sub(*b)?),
        (Value::Date(a), Value::Date(b)) => Value::DayTimeDuration(a.checked_sub(*b)?),
        (Value::Time(a), Value::Time(b)) => Value::DayTimeDuration(a.checked_sub(*b)?),
        (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => {
            Value::YearMonthDuration(a.checked_sub(*b)?)
        }
        (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => {
            Value::DayTimeDuration(a.checked_sub(*b)?)
        }
        (Value::DateTime(a), _) => Value::DateTime(a.checked_sub_duration(duration(b)?)?),
        (Value::Date(a), _) => Value::Date(a.checked_sub_duration(duration(b)?)?),
        (Value::Time(_), Value::YearMonthDuration(_)) => return None,
        (Value::Time(a), _) => Value::Time(a.checked_sub_duration(duration(b)?)?),
        _ => Value::Duration(duration(a)?.checked_sub(duration(b)?)?),
    })
}

/// `-value`.
pub(crate) fn negate(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Integer(number) => match number.checked_neg() {
            Some(negative) => Value::Integer(negative),
            None => exact::negate(value)?,
        },
        Value::Decimal(number) => match number.checked_neg() {
            Some(negative) => Value::Decimal(negative),
            None => exact::negate(value)?,
        },
        Value::LargeInteger(_) | Value::LargeDecimal(_) => exact::negate(value)?,
        Value::Float(value) => Value::Float(-*value),
        Value::Double(value) => Value::Double(-*value),
        Value::Duration(value) => Value::Duration(value.checked_neg()?),
        Value::YearMonthDuration(value) => Value::YearMonthDuration(value.checked_neg()?),
        Value::DayTimeDuration(value) => Value::DayTimeDuration(value.checked_neg()?),
        _ => return None,
    })
}

/// `+value`: the value itself, if it has a sign.
pub(crate) fn plus(value: &Value) -> Option<Value> {
    let is_duration = matches!(
        value,
        Value::Duration(_) | Value::YearMonthDuration(_) | Value::DayTimeDuration(_)
    );
    (is_duration || value.is_numeric()).then(|| value.clone())
}

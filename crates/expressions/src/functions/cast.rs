//! Casts to XML Schema datatypes (SPARQL 1.1, 17.5), called by the datatype's IRI.
//!
//! A string is read without the white space around it (XPath Functions 3.1, 19.2), numbers become
//! the nearest ones of the other type ([`exact`]).

use orrery_term::inline::IntegerType;
use orrery_term::lexical::{canonical_exponent, collapsed, parse_double, parse_float};
use orrery_term::vocabulary::xsd;

use super::function::PureFunction;
use crate::columns::column::Reading;
use crate::values::exact::{self, Whole};
use crate::values::value::Value;

/// The cast to a datatype, and how it wants its argument.
pub(super) fn resolve(datatype: &str) -> Option<(PureFunction, Reading)> {
    let cast: PureFunction = match datatype {
        xsd::STRING => to_string,
        xsd::BOOLEAN => to_boolean,
        xsd::INTEGER => to_integer,
        xsd::DECIMAL => to_decimal,
        xsd::FLOAT => to_float,
        xsd::DOUBLE => to_double,
        xsd::DATE_TIME => to_date_time,
        xsd::DATE => to_date,
        xsd::TIME => to_time,
        xsd::DURATION => to_duration,
        xsd::YEAR_MONTH_DURATION => to_year_month_duration,
        xsd::DAY_TIME_DURATION => to_day_time_duration,
        xsd::G_YEAR => to_g_year,
        xsd::G_YEAR_MONTH => to_g_year_month,
        xsd::G_MONTH => to_g_month,
        xsd::G_MONTH_DAY => to_g_month_day,
        xsd::G_DAY => to_g_day,
        _ => return None,
    };
    Some((cast, Reading::Value))
}

/// XPath casts give the canonical form, where `STR` gives the lexical one.
fn to_string(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        Value::Float(number) if has_exponent(f32::from(*number).into()) => {
            Value::string(canonical_exponent(f32::from(*number)))
        }
        Value::Double(number) if has_exponent((*number).into()) => {
            Value::string(canonical_exponent(f64::from(*number)))
        }
        value => Value::string(value.lexical()?),
    })
}

/// Whether the text of a float or double has an exponent: below a millionth and from a million on
/// (XPath Functions 3.1, 19.1.2.2).
fn has_exponent(value: f64) -> bool {
    value != 0.0 && value.is_finite() && !(1e-6..1e6).contains(&value.abs())
}

fn to_boolean(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(match arguments.first()? {
        Value::String(text) => match collapsed(text) {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return None,
        },
        value @ Value::Boolean(_) => value.effective_boolean()?,
        value if value.is_numeric() => value.effective_boolean()?,
        _ => return None,
    }))
}

fn to_integer(arguments: &[&Value]) -> Option<Value> {
    match arguments.first()? {
        value @ (Value::Integer(_) | Value::LargeInteger(_)) => Some((*value).clone()),
        Value::Decimal(value) => exact::integer_of_decimal(*value),
        value @ Value::LargeDecimal(_) => exact::whole(value, Whole::Cut),
        Value::Float(value) => exact::integer_of_double(f32::from(*value).into()),
        Value::Double(value) => exact::integer_of_double((*value).into()),
        Value::Boolean(value) => Some(Value::Integer((*value).into())),
        Value::String(text) => exact::parse_integer(collapsed(text), IntegerType::Integer),
        _ => None,
    }
}

fn to_decimal(arguments: &[&Value]) -> Option<Value> {
    match arguments.first()? {
        Value::Integer(value) => Some(Value::Decimal((*value).into())),
        value @ Value::LargeInteger(_) => exact::whole_decimal(value, Whole::Cut),
        value @ (Value::Decimal(_) | Value::LargeDecimal(_)) => Some((*value).clone()),
        Value::Float(value) => exact::decimal_of_double(f32::from(*value).into()),
        Value::Double(value) => exact::decimal_of_double((*value).into()),
        Value::Boolean(value) => Some(Value::Decimal((*value).into())),
        Value::String(text) => exact::parse_decimal(collapsed(text)),
        _ => None,
    }
}

fn to_float(arguments: &[&Value]) -> Option<Value> {
    let float = match arguments.first()? {
        Value::Boolean(value) => f32::from(u8::from(*value)),
        Value::String(text) => parse_float(collapsed(text))?,
        value => exact::to_float(value)?,
    };
    Some(Value::Float(float.into()))
}

fn to_double(arguments: &[&Value]) -> Option<Value> {
    let double = match arguments.first()? {
        Value::Boolean(value) => f64::from(u8::from(*value)),
        Value::String(text) => parse_double(collapsed(text))?,
        value => exact::to_double(value)?,
    };
    Some(Value::Double(double.into()))
}

fn to_date_time(arguments: &[&Value]) -> Option<Value> {
    Some(Value::DateTime(match arguments.first()? {
        Value::DateTime(value) => *value,
        Value::Date(value) => (*value).try_into().ok()?,
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_date(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Date(match arguments.first()? {
        Value::Date(value) => *value,
        Value::DateTime(value) => (*value).try_into().ok()?,
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_time(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Time(match arguments.first()? {
        Value::Time(value) => *value,
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_duration(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Duration(match arguments.first()? {
        Value::Duration(value) => *value,
        Value::YearMonthDuration(value) => (*value).into(),
        Value::DayTimeDuration(value) => (*value).into(),
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_year_month_duration(arguments: &[&Value]) -> Option<Value> {
    Some(Value::YearMonthDuration(match arguments.first()? {
        Value::Duration(value) => (*value).try_into().ok()?,
        Value::YearMonthDuration(value) => *value,
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_day_time_duration(arguments: &[&Value]) -> Option<Value> {
    Some(Value::DayTimeDuration(match arguments.first()? {
        Value::Duration(value) => (*value).try_into().ok()?,
        Value::DayTimeDuration(value) => *value,
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_g_year(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GYear(match arguments.first()? {
        Value::GYear(value) => *value,
        Value::GYearMonth(value) => (*value).try_into().ok()?,
        Value::Date(value) => (*value).try_into().ok()?,
        Value::DateTime(value) => (*value).try_into().ok()?,
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_g_year_month(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GYearMonth(match arguments.first()? {
        Value::GYearMonth(value) => *value,
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).try_into().ok()?,
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_g_month(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GMonth(match arguments.first()? {
        Value::GMonth(value) => *value,
        Value::GYearMonth(value) => (*value).into(),
        Value::GMonthDay(value) => (*value).into(),
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_g_month_day(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GMonthDay(match arguments.first()? {
        Value::GMonthDay(value) => *value,
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

fn to_g_day(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GDay(match arguments.first()? {
        Value::GDay(value) => *value,
        Value::GMonthDay(value) => (*value).into(),
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => collapsed(text).parse().ok()?,
        _ => return None,
    }))
}

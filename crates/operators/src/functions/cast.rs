//! Casts to XML Schema datatypes (SPARQL 1.1, 17.5), called by the datatype's IRI.

use orrery_term::vocabulary::xsd;

use super::PureFunction;
use crate::expression::column::Reading;
use crate::expression::value::Value;

/// The cast to a datatype, and how it wants its argument.
pub(super) fn resolve(datatype: &str) -> Option<(PureFunction, Reading)> {
    let cast: PureFunction = match datatype {
        // XPath casts give the canonical form, where STR gives the lexical one.
        xsd::STRING => super::term::str,
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

fn to_boolean(arguments: &[&Value]) -> Option<Value> {
    use oxsdatatypes::Boolean;
    let boolean = match arguments.first()? {
        Value::Boolean(value) => return Some(Value::Boolean(*value)),
        Value::Integer(value) => Boolean::from(*value),
        Value::Decimal(value) => Boolean::from(*value),
        Value::Float(value) => Boolean::from(*value),
        Value::Double(value) => Boolean::from(*value),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    Some(Value::Boolean(boolean.into()))
}

fn to_integer(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Integer(match arguments.first()? {
        Value::Integer(value) => *value,
        Value::Decimal(value) => (*value).try_into().ok()?,
        Value::Float(value) => (*value).try_into().ok()?,
        Value::Double(value) => (*value).try_into().ok()?,
        Value::Boolean(value) => (*value).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_decimal(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Decimal(match arguments.first()? {
        Value::Integer(value) => (*value).into(),
        Value::Decimal(value) => *value,
        Value::Float(value) => (*value).try_into().ok()?,
        Value::Double(value) => (*value).try_into().ok()?,
        Value::Boolean(value) => (*value).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_float(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Float(match arguments.first()? {
        Value::Integer(value) => (*value).into(),
        Value::Decimal(value) => (*value).into(),
        Value::Float(value) => *value,
        Value::Double(value) => (*value).into(),
        Value::Boolean(value) => f32::from(u8::from(*value)).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_double(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Double(match arguments.first()? {
        Value::Integer(value) => (*value).into(),
        Value::Decimal(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Double(value) => *value,
        Value::Boolean(value) => f64::from(u8::from(*value)).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_date_time(arguments: &[&Value]) -> Option<Value> {
    Some(Value::DateTime(match arguments.first()? {
        Value::DateTime(value) => *value,
        Value::Date(value) => (*value).try_into().ok()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_date(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Date(match arguments.first()? {
        Value::Date(value) => *value,
        Value::DateTime(value) => (*value).try_into().ok()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_time(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Time(match arguments.first()? {
        Value::Time(value) => *value,
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_duration(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Duration(match arguments.first()? {
        Value::Duration(value) => *value,
        Value::YearMonthDuration(value) => (*value).into(),
        Value::DayTimeDuration(value) => (*value).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_year_month_duration(arguments: &[&Value]) -> Option<Value> {
    Some(Value::YearMonthDuration(match arguments.first()? {
        Value::Duration(value) => (*value).try_into().ok()?,
        Value::YearMonthDuration(value) => *value,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_day_time_duration(arguments: &[&Value]) -> Option<Value> {
    Some(Value::DayTimeDuration(match arguments.first()? {
        Value::Duration(value) => (*value).try_into().ok()?,
        Value::DayTimeDuration(value) => *value,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_g_year(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GYear(match arguments.first()? {
        Value::GYear(value) => *value,
        Value::GYearMonth(value) => (*value).try_into().ok()?,
        Value::Date(value) => (*value).try_into().ok()?,
        Value::DateTime(value) => (*value).try_into().ok()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_g_year_month(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GYearMonth(match arguments.first()? {
        Value::GYearMonth(value) => *value,
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).try_into().ok()?,
        Value::String(text) => text.parse().ok()?,
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
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_g_month_day(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GMonthDay(match arguments.first()? {
        Value::GMonthDay(value) => *value,
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn to_g_day(arguments: &[&Value]) -> Option<Value> {
    Some(Value::GDay(match arguments.first()? {
        Value::GDay(value) => *value,
        Value::GMonthDay(value) => (*value).into(),
        Value::Date(value) => (*value).into(),
        Value::DateTime(value) => (*value).into(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    }))
}

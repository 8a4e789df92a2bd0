//! Parts of dates and times (SPARQL 1.1, 17.4.5).
//!
//! SPARQL defines them for `xsd:dateTime`; other calendar types answer for the parts that they
//! have.

use oxsdatatypes::{DayTimeDuration, TimezoneOffset};

use crate::values::value::Value;

pub(super) fn year(arguments: &[&Value]) -> Option<Value> {
    Some(Value::integer(match arguments.first()? {
        Value::DateTime(value) => value.year(),
        Value::Date(value) => value.year(),
        Value::GYearMonth(value) => value.year(),
        Value::GYear(value) => value.year(),
        _ => return None,
    }))
}

pub(super) fn month(arguments: &[&Value]) -> Option<Value> {
    Some(Value::integer(i64::from(match arguments.first()? {
        Value::DateTime(value) => value.month(),
        Value::Date(value) => value.month(),
        Value::GYearMonth(value) => value.month(),
        Value::GMonthDay(value) => value.month(),
        Value::GMonth(value) => value.month(),
        _ => return None,
    })))
}

pub(super) fn day(arguments: &[&Value]) -> Option<Value> {
    Some(Value::integer(i64::from(match arguments.first()? {
        Value::DateTime(value) => value.day(),
        Value::Date(value) => value.day(),
        Value::GMonthDay(value) => value.day(),
        Value::GDay(value) => value.day(),
        _ => return None,
    })))
}

pub(super) fn hours(arguments: &[&Value]) -> Option<Value> {
    Some(Value::integer(i64::from(match arguments.first()? {
        Value::DateTime(value) => value.hour(),
        Value::Time(value) => value.hour(),
        _ => return None,
    })))
}

pub(super) fn minutes(arguments: &[&Value]) -> Option<Value> {
    Some(Value::integer(i64::from(match arguments.first()? {
        Value::DateTime(value) => value.minute(),
        Value::Time(value) => value.minute(),
        _ => return None,
    })))
}

pub(super) fn seconds(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Decimal(match arguments.first()? {
        Value::DateTime(value) => value.second(),
        Value::Time(value) => value.second(),
        _ => return None,
    }))
}

/// The time zone of a calendar value: outer `None` if it is no calendar value.
fn zone(value: &Value) -> Option<Option<TimezoneOffset>> {
    Some(match value {
        Value::DateTime(value) => value.timezone_offset(),
        Value::Date(value) => value.timezone_offset(),
        Value::Time(value) => value.timezone_offset(),
        Value::GYearMonth(value) => value.timezone_offset(),
        Value::GYear(value) => value.timezone_offset(),
        Value::GMonthDay(value) => value.timezone_offset(),
        Value::GMonth(value) => value.timezone_offset(),
        Value::GDay(value) => value.timezone_offset(),
        _ => return None,
    })
}

/// The time zone as a duration; an error if there is none.
pub(super) fn timezone(arguments: &[&Value]) -> Option<Value> {
    let zone = zone(arguments.first()?)??;
    Some(Value::DayTimeDuration(DayTimeDuration::from(zone)))
}

/// The time zone as it is written, empty if there is none.
pub(super) fn tz(arguments: &[&Value]) -> Option<Value> {
    let zone = zone(arguments.first()?)?;
    Some(Value::string(
        zone.map_or_else(String::new, |zone| zone.to_string()),
    ))
}

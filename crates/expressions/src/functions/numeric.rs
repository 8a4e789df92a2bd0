//! Functions on numbers (SPARQL 1.1, 17.4.4). The result has the type of the argument.

use crate::values::exact::{self, Whole};
use crate::values::value::Value;

pub(super) fn is_numeric(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(arguments.first()?.is_numeric()))
}

pub(super) fn abs(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        value @ Value::Integer(number) => match number.checked_abs() {
            Some(number) => Value::Integer(number),
            None => exact::absolute(value)?,
        },
        value @ Value::Decimal(number) => match number.checked_abs() {
            Some(number) => Value::Decimal(number),
            None => exact::absolute(value)?,
        },
        value @ (Value::LargeInteger(_) | Value::LargeDecimal(_)) => exact::absolute(value)?,
        Value::Float(value) => Value::Float(value.abs()),
        Value::Double(value) => Value::Double(value.abs()),
        _ => return None,
    })
}

pub(super) fn ceil(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        value @ (Value::Integer(_) | Value::LargeInteger(_)) => (*value).clone(),
        value @ Value::Decimal(number) => match number.checked_ceil() {
            Some(number) => Value::Decimal(number),
            None => exact::whole_decimal(value, Whole::Ceiling)?,
        },
        value @ Value::LargeDecimal(_) => exact::whole_decimal(value, Whole::Ceiling)?,
        Value::Float(value) => Value::Float(value.ceil()),
        Value::Double(value) => Value::Double(value.ceil()),
        _ => return None,
    })
}

pub(super) fn floor(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        value @ (Value::Integer(_) | Value::LargeInteger(_)) => (*value).clone(),
        value @ Value::Decimal(number) => match number.checked_floor() {
            Some(number) => Value::Decimal(number),
            None => exact::whole_decimal(value, Whole::Floor)?,
        },
        value @ Value::LargeDecimal(_) => exact::whole_decimal(value, Whole::Floor)?,
        Value::Float(value) => Value::Float(value.floor()),
        Value::Double(value) => Value::Double(value.floor()),
        _ => return None,
    })
}

/// The nearest whole number, the greater of two (fn:round).
pub(super) fn round(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        value @ (Value::Integer(_) | Value::LargeInteger(_)) => (*value).clone(),
        value @ Value::Decimal(number) => match number.checked_round() {
            Some(number) => Value::Decimal(number),
            None => exact::whole_decimal(value, Whole::Nearest)?,
        },
        value @ Value::LargeDecimal(_) => exact::whole_decimal(value, Whole::Nearest)?,
        Value::Float(value) => Value::Float(value.round()),
        Value::Double(value) => Value::Double(value.round()),
        _ => return None,
    })
}

//! Functions on numbers (SPARQL 1.1, 17.4.4). The result has the type of the argument.

use crate::expression::value::Value;

pub(super) fn is_numeric(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(arguments.first()?.is_numeric()))
}

pub(super) fn abs(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        Value::Integer(value) => Value::Integer(value.checked_abs()?),
        Value::Decimal(value) => Value::Decimal(value.checked_abs()?),
        Value::Float(value) => Value::Float(value.abs()),
        Value::Double(value) => Value::Double(value.abs()),
        _ => return None,
    })
}

pub(super) fn ceil(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        Value::Integer(value) => Value::Integer(*value),
        Value::Decimal(value) => Value::Decimal(value.checked_ceil()?),
        Value::Float(value) => Value::Float(value.ceil()),
        Value::Double(value) => Value::Double(value.ceil()),
        _ => return None,
    })
}

pub(super) fn floor(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        Value::Integer(value) => Value::Integer(*value),
        Value::Decimal(value) => Value::Decimal(value.checked_floor()?),
        Value::Float(value) => Value::Float(value.floor()),
        Value::Double(value) => Value::Double(value.floor()),
        _ => return None,
    })
}

/// The nearest whole number, the greater of two (fn:round).
pub(super) fn round(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        Value::Integer(value) => Value::Integer(*value),
        Value::Decimal(value) => Value::Decimal(value.checked_round()?),
        Value::Float(value) => Value::Float(value.round()),
        Value::Double(value) => Value::Double(value.round()),
        _ => return None,
    })
}

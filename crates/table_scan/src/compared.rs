//! Comparisons of one column with values, for zone maps and key look-ups.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use orrery_storage::table::ColumnType;
use std::sync::Arc;

/// A column compared with a value, the column on the left.
pub(super) fn comparison(
    condition: &Arc<dyn PhysicalExpr>,
) -> Option<(&Column, Operator, &ScalarValue)> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let operator = *binary.op();
    let (left, right) = (binary.left(), binary.right());
    if let (Some(column), Some(value)) = (left.downcast_ref(), right.downcast_ref::<Literal>()) {
        return Some((column, operator, value.value()));
    }
    let (column, value) = (right.downcast_ref()?, left.downcast_ref::<Literal>()?);
    Some((column, operator.swap()?, value.value()))
}

/// A column and the values of which it has one.
pub(super) fn values_of_list(list: &InListExpr) -> Option<(&Column, Vec<&ScalarValue>)> {
    if list.negated() {
        return None;
    }
    let column = list.expr().downcast_ref()?;
    let values = list.list().iter().map(|value| {
        let literal: Option<&Literal> = value.downcast_ref();
        literal.map(Literal::value)
    });
    Some((column, values.collect::<Option<_>>()?))
}

/// A value as an array of one row, of the type in which the column's values come. `None` if it is
/// of another one.
pub(super) fn array_of(value: &ScalarValue, column_type: ColumnType) -> Option<ArrayRef> {
    let wanted = column_type.arrow();
    let value = match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) => {
            ScalarValue::Utf8View(text.clone())
        }
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) => {
            ScalarValue::BinaryView(bytes.clone())
        }
        other => other.clone(),
    };
    let array = value.to_array().ok()?;
    (*array.data_type() == wanted).then_some(array)
}

/// The number that an integer, a date or a decimal of one lane is in a file.
pub(super) fn number_of(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        ScalarValue::Decimal128(value, ..) => value.and_then(|value| i64::try_from(value).ok()),
        _ => None,
    }
}

/// Whether it is a `CHAR(n)`, the spaces at whose end the engine does not pass over.
pub(super) fn is_padded(column_type: ColumnType) -> bool {
    matches!(
        column_type,
        ColumnType::Text {
            is_padded: true,
            ..
        }
    )
}

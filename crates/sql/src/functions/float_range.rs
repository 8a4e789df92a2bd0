//! Arithmetic of floats that fails where PostgreSQL's does.
//!
//! By IEEE 754, and so in arrow, a result that is too large is `Infinity`, one that is too small is
//! 0, and a division by zero has a result. PostgreSQL refuses each of them (22003, 22012), unless
//! an operand was infinite already. One pass over a batch looks for infinities and zeros, which
//! most batches lack; operands are looked at only for such results.

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;

use crate::{Error, SqlState};

/// How an operator comes to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Addition,
    Multiplication,
    Division,
}

/// Refuses a result that is too large or too small for its float type, or divided by zero. Other
/// types always pass.
pub(super) fn refuse_out_of_range(
    by: By,
    operands: [&ColumnarValue; 2],
    result: &ColumnarValue,
) -> Result<()> {
    match result.data_type() {
        DataType::Float64 => refused::<Float64Type>(by, operands, result),
        DataType::Float32 => refused::<Float32Type>(by, operands, result),
        _ => Ok(()),
    }
}

fn refused<T>(by: By, operands: [&ColumnarValue; 2], result: &ColumnarValue) -> Result<()>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64>,
{
    let result = as_array(result)?;
    let result = result.as_primitive::<T>();
    let (infinity, zero) = (f64::INFINITY, 0.0);
    // Without a branch, so that it is done for several at once.
    let is_rare = |of: T::Native| {
        let of: f64 = of.into();
        (of.abs() == infinity)
            | ((of == zero) & (by != By::Addition))
            | (of.is_nan() & (by == By::Division))
    };
    let values = result.values().iter();
    if !values.fold(false, |found, value| found | is_rare(*value)) {
        return Ok(());
    }
    let [left, right] = [as_array(operands[0])?, as_array(operands[1])?];
    let [left, right] = [&left, &right].map(|of| Operand(of.as_primitive::<T>()));
    for row in 0..result.len() {
        if result.is_valid(row) && is_rare(result.value(row)) {
            refuse_row(
                by,
                left.value(row),
                right.value(row),
                result.value(row).into(),
            )?;
        }
    }
    Ok(())
}

/// As PostgreSQL's `float8_pl`, `float8_mul` and `float8_div` decide.
fn refuse_row(by: By, left: f64, right: f64, result: f64) -> Result<()> {
    if by == By::Division && right == 0.0 && !left.is_nan() {
        return Err(Error::new(SqlState::DivisionByZero, "division by zero").into());
    }
    let is_too_large =
        result.is_infinite() && !left.is_infinite() && (by == By::Division || !right.is_infinite());
    let is_too_small = result == 0.0
        && left != 0.0
        && match by {
            By::Addition => false,
            By::Multiplication => right != 0.0,
            By::Division => !right.is_infinite(),
        };
    match (is_too_large, is_too_small) {
        (true, _) => Err(overflow()),
        (_, true) => Err(out_of_range("underflow")),
        (false, false) => Ok(()),
    }
}

/// A result that is too large.
pub(super) fn overflow() -> DataFusionError {
    out_of_range("overflow")
}

fn out_of_range(what: &str) -> DataFusionError {
    let message = format!("value out of range: {what}");
    Error::new(SqlState::NumericValueOutOfRange, message).into()
}

/// What is there for each row: a column, or one value for all.
struct Operand<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType> Operand<'_, T>
where
    T::Native: Into<f64>,
{
    fn value(&self, row: usize) -> f64 {
        let row = if self.0.len() == 1 { 0 } else { row };
        self.0.value(row).into()
    }
}

fn as_array(value: &ColumnarValue) -> Result<ArrayRef> {
    match value {
        ColumnarValue::Array(array) => Ok(ArrayRef::clone(array)),
        ColumnarValue::Scalar(scalar) => scalar.to_array(),
    }
}

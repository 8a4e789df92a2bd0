//! The coercion of function arguments, as in PostgreSQL.
//!
//! | call | DataFusion | PostgreSQL, and here |
//! | --- | --- | --- |
//! | `sqrt(real)` and its like | computed in 24 bits | a `double precision` |
//! | `ceil(0.25)`, `floor(-9.5)` | fails where the whole number has a digit more than the type | has it |

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};

/// Functions that PostgreSQL has of `double precision` and not of `real`.
const OF_DOUBLES: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh",
    "cot", "degrees", "exp", "floor", "ln", "log", "log10", "log2", "power", "radians", "round",
    "signum", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
];
/// Functions whose result can have one digit more than their argument.
const UP_A_DIGIT: &[&str] = &["ceil", "floor", "round"];

/// A call whose arguments are done, with these in the types that PostgreSQL computes in.
pub(crate) fn as_taken(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, mut args }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let of_doubles = OF_DOUBLES.contains(&func.name());
    let up_a_digit = UP_A_DIGIT.contains(&func.name());
    let mut is_changed = false;
    if of_doubles || up_a_digit {
        for (at, arg) in args.iter_mut().enumerate() {
            // What has no type yet is left to the engine.
            let to = match arg.get_type(schema) {
                Ok(DataType::Float32) if of_doubles => DataType::Float64,
                Ok(DataType::Decimal128(digits, behind_point))
                    if up_a_digit
                        && at == 0
                        && behind_point > 0
                        && digits < DECIMAL128_MAX_PRECISION =>
                {
                    DataType::Decimal128(digits + 1, behind_point)
                }
                _ => continue,
            };
            *arg = std::mem::take(arg).cast_to(&to, schema)?;
            is_changed = true;
        }
    }
    let call = Expr::ScalarFunction(ScalarFunction { func, args });
    Ok(match is_changed {
        true => Transformed::yes(call),
        false => Transformed::no(call),
    })
}

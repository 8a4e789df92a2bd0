//! Number literals that the planner would misread or refuse.
//!
//! The planner makes `bigint` and `numeric` of numbers, as PostgreSQL does, but `numeric` has 38
//! digits here:
//!
//! | in the text | PostgreSQL | here |
//! | --- | --- | --- |
//! | `9223372036854775808` | `numeric` | `numeric(19,0)` |
//! | `1e3`, `1.5e-3` | `numeric` | `numeric(4,0)`, `numeric(5,4)` |
//! | `1e300`, or more than 38 digits | `numeric` | `double precision` |
//! | `1e400` | `numeric` | refused: it is no double either |

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, ExactNumberInfo, UnaryOperator, Value, VisitMut, VisitorMut,
};

use crate::parse::visit::visit_mut;

/// Digits of a `numeric`, at most.
const DIGITS_MAX: usize = 38;

/// Gives such numbers their types.
pub(crate) fn with_types_of_numbers<T: VisitMut>(part: &mut T) {
    let _: ControlFlow<()> = visit_mut(part, &mut Numbers);
}

struct Numbers;

impl VisitorMut for Numbers {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let typed = match expr {
            // The least bigint is written as a number that is none, and a sign.
            ast::Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: of,
            } if number_of(of) == Some("9223372036854775808") => {
                Some((i64::MIN.to_string(), DataType::BigInt(None)))
            }
            _ => number_of(expr).and_then(typed),
        };
        if let Some((digits, data_type)) = typed {
            *expr = ast::Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(ast::Expr::value(Value::SingleQuotedString(digits))),
                data_type,
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

fn number_of(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// The digits and the type of a number that needs one.
fn typed(number: &str) -> Option<(String, DataType)> {
    let number = number.replace('_', "");
    if number.parse::<i64>().is_ok() {
        return None;
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.parse::<i64>().ok()?)),
        None => (number.as_str(), None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain(whole) || !is_plain(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    // Digits before the point.
    let before = (whole.len() as i64).saturating_add(exponent.unwrap_or(0));
    let behind = (digits.len() as i64).saturating_sub(before);
    let scale = usize::try_from(behind.max(0)).ok();
    let significant = digits.trim_start_matches('0').len() as i64;
    let whole_digits = before.saturating_sub(digits.len() as i64 - significant);
    let whole_digits = whole_digits.max(0);
    let fits = |scale: usize| whole_digits.saturating_add(scale as i64) <= DIGITS_MAX as i64;
    let Some(scale) = scale.filter(|scale| fits(*scale)) else {
        let value: f64 = number.parse().ok()?;
        return value
            .is_finite()
            .then_some((number, DataType::DoublePrecision));
    };
    // What has no exponent and fits is read as it should be, but for integers of 64 bits without a
    // sign.
    if exponent.is_none() && mantissa.contains('.') {
        return None;
    }
    let precision = (whole_digits as usize + scale).max(1) as u64;
    let data_type = DataType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale as i64));
    Some((plain(&digits, before), data_type))
}

/// Digits with the point behind so many of them.
fn plain(digits: &str, before: i64) -> String {
    match usize::try_from(before) {
        Ok(before) if before >= digits.len() => {
            format!("{digits}{}", "0".repeat(before - digits.len()))
        }
        Ok(before) => format!("{}.{}", &digits[..before], &digits[before..]),
        Err(_) => format!("0.{}{digits}", "0".repeat(before.unsigned_abs() as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_expression;

    #[test]
    fn numbers_have_the_types_that_hold_them() {
        for (text, expected) in [
            ("1", "1"),
            ("1.50", "1.50"),
            ("9223372036854775807", "9223372036854775807"),
            (
                "9223372036854775808",
                "CAST('9223372036854775808' AS NUMERIC(19,0))",
            ),
            (
                "-9223372036854775808",
                "CAST('-9223372036854775808' AS BIGINT)",
            ),
            ("1e3", "CAST('1000' AS NUMERIC(4,0))"),
            ("1.5E+1", "CAST('15' AS NUMERIC(2,0))"),
            ("12.5e-3", "CAST('0.0125' AS NUMERIC(4,4))"),
            ("12.50e1", "CAST('125.0' AS NUMERIC(4,1))"),
            ("0e0", "CAST('0' AS NUMERIC(1,0))"),
            (
                "1e37",
                "CAST('10000000000000000000000000000000000000' AS NUMERIC(38,0))",
            ),
            ("1e300", "CAST('1e300' AS DOUBLE PRECISION)"),
            ("-1e-300", "-CAST('1e-300' AS DOUBLE PRECISION)"),
            ("1e400", "1e400"),
        ] {
            let mut expr = parse_expression(text).unwrap();
            with_types_of_numbers(&mut expr);
            assert_eq!(expr.to_string(), expected);
        }
        let long = format!("0.{}1", "0".repeat(60));
        let mut expr = parse_expression(&long).unwrap();
        with_types_of_numbers(&mut expr);
        assert_eq!(
            expr.to_string(),
            format!("CAST('{long}' AS DOUBLE PRECISION)")
        );
    }
}

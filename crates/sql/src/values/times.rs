//! Timestamps in microseconds.
//!
//! DataFusion's timestamps have nanoseconds and end in the year 2262: `TIMESTAMP '9999-12-31'`
//! would be refused, and a date of that year could not be compared with `now()`. So the type
//! `TIMESTAMP` in a text has six digits ([`with_precisions`]), `now()` is cast to that type,
//! `current_time` to a time of six digits, and a date that meets a timestamp is cast to the
//! timestamp's type. Local times are UTC ([`with_local_times`]).

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::{self, VisitMut, VisitorMut};

use crate::parse::visit::visit_mut;
use crate::parse::words::{call, parts};
use crate::values::floats::is_comparison;

/// Digits behind the seconds' point.
const DIGITS: u64 = 6;

/// A part of a statement in which the type `TIMESTAMP` has its six digits wherever none are said.
pub(crate) fn with_precisions<T: VisitMut>(part: &mut T) {
    let _: ControlFlow<()> = visit_mut(part, &mut Precisions);
}

struct Precisions;

impl VisitorMut for Precisions {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let data_type = match expr {
            ast::Expr::Cast { data_type, .. } => data_type,
            ast::Expr::TypedString(typed) => &mut typed.data_type,
            _ => return ControlFlow::Continue(()),
        };
        match data_type {
            ast::DataType::Timestamp(digits @ None, _) => *digits = Some(DIGITS),
            // As in PostgreSQL a length of an array says nothing. To the engine it is one that is
            // taken at once.
            ast::DataType::Array(_) => without_lengths(data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Replaces `localtime` and `localtimestamp`, which the engine lacks, in a part of a statement. To
/// be called after columns have their names.
pub(crate) fn with_local_times<T: VisitMut>(part: &mut T) {
    let _: ControlFlow<()> = part.visit(&mut LocalTimes);
}

struct LocalTimes;

impl VisitorMut for LocalTimes {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let ast::Expr::Function(asked) = &*expr else {
            return ControlFlow::Continue(());
        };
        // Only a keyword stands without brackets.
        if !matches!(asked.args, ast::FunctionArguments::None) {
            return ControlFlow::Continue(());
        }
        match parts(&asked.name).as_slice() {
            [name] if name == "localtime" => *expr = call("current_time", Vec::new()),
            [name] if name == "localtimestamp" => {
                *expr = ast::Expr::Cast {
                    kind: ast::CastKind::Cast,
                    expr: Box::new(call("now", Vec::new())),
                    data_type: ast::DataType::Timestamp(Some(DIGITS), ast::TimezoneInfo::None),
                    array: false,
                    format: None,
                };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn without_lengths(data_type: &mut ast::DataType) {
    let mut data_type = data_type;
    while let ast::DataType::Array(element) = data_type {
        match element {
            ast::ArrayElemTypeDef::SquareBracket(of, length) => {
                *length = None;
                data_type = &mut **of;
            }
            ast::ArrayElemTypeDef::AngleBracket(of) | ast::ArrayElemTypeDef::Parenthesis(of) => {
                data_type = &mut **of;
            }
            ast::ArrayElemTypeDef::None => return,
        }
    }
}

/// An expression whose types are not settled yet; its parts are done.
pub(crate) fn in_microseconds(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { ref func, .. }) if func.name() == "now" => {
            match expr.get_type(schema)? {
                DataType::Timestamp(TimeUnit::Nanosecond, zone) => Ok(Transformed::yes(cast(
                    expr,
                    DataType::Timestamp(TimeUnit::Microsecond, zone),
                ))),
                _ => Ok(Transformed::no(expr)),
            }
        }
        Expr::ScalarFunction(ScalarFunction { ref func, .. }) if func.name() == "current_time" => {
            let time = DataType::Time64(TimeUnit::Microsecond);
            match expr.get_type(schema)? {
                DataType::Time64(TimeUnit::Nanosecond) => Ok(Transformed::yes(cast(expr, time))),
                _ => Ok(Transformed::no(expr)),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) || op == Operator::Minus =>
        {
            let mut both = [*left, *right];
            let is_changed = dates_as_times(&mut both, schema)?;
            let [left, right] = both.map(Box::new);
            let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
            Ok(transformed(expr, is_changed))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => {
            let mut all = [*expr, *low, *high];
            let is_changed = dates_as_times(&mut all, schema)?;
            let [expr, low, high] = all.map(Box::new);
            let between = Between {
                expr,
                negated,
                low,
                high,
            };
            Ok(transformed(Expr::Between(between), is_changed))
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) => {
            let mut all = list;
            all.insert(0, *expr);
            let is_changed = dates_as_times(&mut all, schema)?;
            let expr = Box::new(all.remove(0));
            let list = InList {
                expr,
                list: all,
                negated,
            };
            Ok(transformed(Expr::InList(list), is_changed))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn transformed(expr: Expr, is_changed: bool) -> Transformed<Expr> {
    match is_changed {
        true => Transformed::yes(expr),
        false => Transformed::no(expr),
    }
}

/// Casts the dates among expressions that are compared to the type of the timestamp among them, if
/// there are both.
fn dates_as_times(of: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let mut time = None;
    let mut has_date = false;
    for expr in of.iter() {
        // What has no type yet, such as a parameter, is none.
        match expr.get_type(schema) {
            Ok(DataType::Date32) => has_date = true,
            Ok(found @ DataType::Timestamp(..)) if time.is_none() => time = Some(found),
            _ => {}
        }
    }
    let (Some(time), true) = (time, has_date) else {
        return Ok(false);
    };
    for expr in of {
        if matches!(expr.get_type(schema), Ok(DataType::Date32)) {
            let date = std::mem::take(expr);
            *expr = cast(date, time.clone());
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_expression;

    #[test]
    fn timestamps_have_six_digits_where_none_are_said() {
        for (text, expected) in [
            ("CAST(x AS TIMESTAMP)", "CAST(x AS TIMESTAMP(6))"),
            ("TIMESTAMP '9999-12-31'", "TIMESTAMP(6) '9999-12-31'"),
            ("CAST(x AS TIMESTAMP(3))", "CAST(x AS TIMESTAMP(3))"),
        ] {
            let mut expr = parse_expression(text).unwrap();
            with_precisions(&mut expr);
            assert_eq!(expr.to_string(), expected);
        }
    }
}

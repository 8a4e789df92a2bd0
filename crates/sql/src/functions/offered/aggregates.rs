//! Limits for aggregate parameters that decide how much is held.

use datafusion::common::Result;
use datafusion::logical_expr::Expr;

use crate::{Error, SqlState};

/// Arguments of an estimate of a part of values: the values, and which part.
const PERCENTILE_ARGUMENTS_MAX: usize = 2;

/// Refuses an aggregate, also over a window, that is told how much to keep: the engine takes memory
/// for that before there is a row.
pub(crate) fn refuse_parameters(expr: &Expr) -> Result<()> {
    let (name, arguments) = match expr {
        Expr::AggregateFunction(of) => (of.func.name(), of.params.args.len()),
        Expr::WindowFunction(of) => (of.fun.name(), of.params.args.len()),
        _ => return Ok(()),
    };
    if name == "approx_percentile_cont" && arguments > PERCENTILE_ARGUMENTS_MAX {
        return Err(Error::new(
            SqlState::FeatureNotSupported,
            "approx_percentile_cont takes a value and a fraction; leave the number of centroids out, or use percentile_cont",
        )
        .into());
    }
    Ok(())
}

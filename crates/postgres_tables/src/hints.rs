//! Dynamic filters of operators above, such as a join's keys, sent to the foreign server. It only
//! spares rows, for the join looks again, so whatever is not understood is left out.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal,
};
use datafusion::physical_expr::utils::split_conjunction;

use crate::columns::ForeignColumn;
use crate::condition::{compared, one_of};

/// The conditions that hints are now, on the columns of a scan.
pub(crate) fn conditions(
    hints: &[Arc<dyn PhysicalExpr>],
    columns: &[ForeignColumn],
) -> Result<Vec<String>> {
    let mut known = Vec::new();
    for hint in hints {
        let now = match hint.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(dynamic) => dynamic.current()?,
            None => Arc::clone(hint),
        };
        known.extend(
            split_conjunction(&now)
                .into_iter()
                .filter_map(|part| condition(part, columns)),
        );
    }
    Ok(known)
}

fn condition(part: &Arc<dyn PhysicalExpr>, columns: &[ForeignColumn]) -> Option<String> {
    let column_of = |expr: &Arc<dyn PhysicalExpr>| {
        let column = expr.downcast_ref::<Column>()?;
        columns.get(column.index())
    };
    if let Some(list) = part.downcast_ref::<InListExpr>() {
        if list.negated() {
            return None;
        }
        let column = column_of(list.expr())?;
        let values: Vec<ScalarValue> = list.list().iter().map(constant).collect::<Option<_>>()?;
        // A NULL among the keys of a join finds nothing.
        let values: Vec<&ScalarValue> = values.iter().filter(|value| !value.is_null()).collect();
        return match values.is_empty() {
            true => None,
            false => one_of(column, &values),
        };
    }
    let comparison = part.downcast_ref::<BinaryExpr>()?;
    let column = column_of(comparison.left())?;
    compared(column, *comparison.op(), &constant(comparison.right())?)
}

fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    Some(expr.downcast_ref::<Literal>()?.value().clone())
}

//! The detection of plans whose functions may take long. Such a plan is executed, and planned, so
//! that it can be stopped (`crate::execute::stopping`).

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::growth::scalar_bytes;
use super::lists::bounds_of;
use super::spread::LARGE_BYTES;

use crate::plan::walk::{Walk, WalkPlan};

/// Whether a function in a plan may take long for a batch of rows.
pub(crate) fn may_take_long(plan: &LogicalPlan) -> bool {
    has_call(plan, |_| true)
}

/// Whether one of constants may, which the optimizer computes.
pub(crate) fn may_plan_long(plan: &LogicalPlan) -> bool {
    has_call(plan, |call| !call.any_column_refs())
}

fn has_call(plan: &LogicalPlan, also: impl Fn(&Expr) -> bool) -> bool {
    let mut is_found = false;
    let walked = plan.apply_with_subqueries_by(&mut |node| {
        node.apply_expressions_by(&mut |expr| {
            expr.apply_by(&mut |part| {
                is_found = is_found || (is_long(part) && also(part));
                Ok(next(is_found))
            })
        })
    });
    debug_assert!(walked.is_ok());
    is_found
}

fn next(is_found: bool) -> TreeNodeRecursion {
    match is_found {
        true => TreeNodeRecursion::Stop,
        false => TreeNodeRecursion::Continue,
    }
}

/// Whether it is a call whose work is more than that of the bytes of a row, or whose constant is
/// beside each row of a batch.
fn is_long(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else {
        return false;
    };
    match bounds_of(call.func.name()) {
        Some((_, work)) if work.is_steep() => true,
        Some(_) => call
            .args
            .iter()
            .any(|arg| matches!(arg, Expr::Literal(value, _) if scalar_bytes(value) > LARGE_BYTES)),
        None => false,
    }
}

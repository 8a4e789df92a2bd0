//! A fix for conditions above aggregates without groups.
//!
//! A condition about the keys of groups may be asked of the rows below them. DataFusion does that
//! with one that names no column at all, or none any more where a column is a constant, and with no
//! keys, too: but without groups there is one row of the answer whatever comes from below, which
//! the condition would have taken away.
//!
//! ```text
//! SELECT n FROM (SELECT count(*) AS n FROM t) c WHERE 1 = (SELECT max(i) FROM u)    has no row where that is false, not one with 0
//! ```
//!
//! So it is with the set of all rows of ROLLUP and its like. Such an aggregate, below a filter or a
//! join, gets a limit that takes nothing away, and through which no condition goes.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that moves conditions.
pub(super) const MOVES_CONDITIONS: &str = "push_down_filter";

/// What comes before that rule.
#[derive(Debug)]
pub(super) struct KeepConditionsAbove;

impl OptimizerRule for KeepConditionsAbove {
    fn name(&self) -> &str {
        "keep_conditions_above"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        limited(plan, false)
    }
}

/// A plan that stands below a condition, or not.
#[recursive::recursive]
fn limited(plan: LogicalPlan, is_below: bool) -> Result<Transformed<LogicalPlan>> {
    let is_below = is_below || matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let is_limit = matches!(plan, LogicalPlan::Limit(_));
    plan.map_subqueries(|subquery| limited(subquery, false))?
        .transform_children(|plan| {
            plan.map_children(|child| {
                let child = limited(child, is_below)?;
                Ok(
                    match rows_max(&child.data).filter(|_| is_below && !is_limit) {
                        Some(rows) => Transformed::yes(LogicalPlan::Limit(Limit {
                            skip: None,
                            fetch: Some(Box::new(lit(rows))),
                            input: Arc::new(child.data),
                        })),
                        None => child,
                    },
                )
            })
        })
}

/// The rows at most of an aggregate that has one whatever comes from below.
fn rows_max(plan: &LogicalPlan) -> Option<i64> {
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return None;
    };
    match aggregate.group_expr.as_slice() {
        [] => Some(1),
        [Expr::GroupingSet(_)] => Some(i64::MAX),
        _ => None,
    }
}

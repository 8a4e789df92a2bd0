//! Conditions above aggregates without groups.
//!
//! A condition about the keys of groups may be asked of the rows below them. DataFusion does that with one that names no column at all, and with no keys, too: but without
//! groups there is one row of the answer whatever comes from below, which the condition would have taken away.
//!
//! ```text
//! SELECT n FROM (SELECT count(*) AS n FROM t) c WHERE 1 = (SELECT max(i) FROM u)    has no row where that is false, not one with 0
//! ```
//!
//! So it is with the set of all rows of ROLLUP and its like. Such an aggregate gets a limit that takes nothing away, and through which no condition goes.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The first rule, before conditions are moved.
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
        if !has_condition_without_columns(&plan)? {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| {
            if matches!(node, LogicalPlan::Limit(_)) {
                return Ok(Transformed::no(node));
            }
            node.map_children(|child| {
                Ok(match rows_max(&child) {
                    Some(rows) => Transformed::yes(LogicalPlan::Limit(Limit {
                        skip: None,
                        fetch: Some(Box::new(lit(rows))),
                        input: Arc::new(child),
                    })),
                    None => Transformed::no(child),
                })
            })
        })
    }
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

/// Whether a filter, or a join, asks something that is the same for all rows, and is not known yet.
fn has_condition_without_columns(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let condition = match node {
            LogicalPlan::Filter(filter) => Some(&filter.predicate),
            LogicalPlan::Join(join) => join.filter.as_ref(),
            _ => None,
        };
        let parts = condition.map(split_conjunction).unwrap_or_default();
        found = parts
            .into_iter()
            .any(|part| !matches!(part, Expr::Literal(..)) && part.column_refs().is_empty());
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

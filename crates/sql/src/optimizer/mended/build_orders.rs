//! A fix for the sort order of a hash join's build side.
//!
//! A hash join gives its rows in the order of the probe side. DataFusion assumes that rows of equal
//! probe order have the order of the hashed side:
//!
//! ```text
//! SELECT DISTINCT a.x, b.y FROM a JOIN b ON a.id = b.id
//!     a in the order of x, b in that of y: assumed to be in the order of x, y, so that a group occurs twice
//! ```
//!
//! That holds only where no two probe rows are equal in the columns of that order, which nothing
//! ensures. The order of the hashed side is of no other use; so plans do not learn of it.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use orrery_table_scan::scan_without_order;

use super::nodes::{Changed, NodeRule, over};
use super::orders::UnorderedExec;

/// The rule after which it is known which side is hashed.
pub(super) const CHOOSES_SIDES: &str = "join_selection";

/// Has the hashed sides of joins say nothing of their order.
pub(super) const FORGET_BUILD_ORDERS: NodeRule = NodeRule {
    name: "forget_build_orders",
    change: hashed_without_order,
};

fn hashed_without_order(node: Arc<dyn ExecutionPlan>) -> Changed {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else {
        return Ok(Transformed::no(node));
    };
    let is_kind = matches!(join.join_type(), JoinType::Inner | JoinType::Right);
    if !(is_kind && has_order(join.left()) && has_order(join.right())) {
        return Ok(Transformed::no(node));
    }
    let sides = vec![without_order(join.left())?, Arc::clone(join.right())];
    over(&node, sides).map(Transformed::yes)
}

fn has_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    !plan.equivalence_properties().oeq_class().is_empty()
}

/// The same without an order: where it comes from the scans of tables these do not tell it, for
/// other rules look for them below such nodes.
fn without_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if !has_order(plan) {
        return Ok(Arc::clone(plan));
    }
    if let Some(scan) = scan_without_order(plan) {
        return Ok(scan);
    }
    let below = if plan.is::<ProjectionExec>() || plan.is::<FilterExec>() {
        over(plan, vec![without_order(plan.children()[0])?])?
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let sides = vec![Arc::clone(join.left()), without_order(join.right())?];
        over(plan, sides)?
    } else {
        Arc::clone(plan)
    };
    Ok(match has_order(&below) {
        true => UnorderedExec::over(&below),
        false => below,
    })
}

//! The tracing of a plan's column down to the scan that reads it.
//!
//! Nodes above must give the same answer if the scan leaves out rows by that column: so the way
//! leads through what keeps or drops rows one by one, or by groups of that column.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use orrery_storage::table::ColumnId;

use super::keys::KeysExec;
use super::node::ScanExec;

/// The scan of a column of what a plan gives, and the column of its table.
pub(super) fn scan_of(
    plan: &Arc<dyn ExecutionPlan>,
    column: usize,
) -> Option<(&Arc<dyn ExecutionPlan>, ColumnId)> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let id = scan.given().0.get(column)?;
        return scan.is_of_all_rows().then_some((plan, *id));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = place_of(&projection.expr().get(column)?.expr)?;
        return scan_of(projection.input(), below);
    }
    if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        let keys = groups.group_expr();
        let is_plain = keys.groups().len() == 1 && groups.limit_options().is_none();
        let (key, _) = keys.expr().get(column).filter(|_| is_plain)?;
        return scan_of(groups.input(), place_of(key)?);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let column = match &join.projection {
            Some(projection) => *projection.get(column)?,
            None => column,
        };
        let left = join.left().schema().fields().len();
        return match join.join_type() {
            JoinType::Inner if column >= left => scan_of(join.right(), column - left),
            JoinType::Inner | JoinType::LeftSemi | JoinType::LeftAnti if !join.null_aware => {
                scan_of(join.left(), column)
            }
            JoinType::RightSemi | JoinType::RightAnti => scan_of(join.right(), column),
            _ => None,
        };
    }
    let filter = plan.downcast_ref::<FilterExec>();
    let is_as_below = plan.is::<RepartitionExec>()
        || plan.is::<KeysExec>()
        || plan
            .downcast_ref::<CoalescePartitionsExec>()
            .is_some_and(|it| it.fetch().is_none())
        || filter.is_some_and(|it| it.fetch().is_none() && it.projection().is_none());
    match plan.children()[..] {
        [input] if is_as_below => scan_of(input, column),
        _ => None,
    }
}

fn place_of(expression: &PhysicalExprRef) -> Option<usize> {
    Some(expression.downcast_ref::<Column>()?.index())
}

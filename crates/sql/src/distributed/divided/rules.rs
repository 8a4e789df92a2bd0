//! The rules for distributing SQL plans: roles of nodes, and plans that qualify.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use orrery_distributed::Rules;

use crate::execute::counted_windows::is_of_windows;
use crate::execute::grouping_rows::is_input_of_sets;
use crate::execute::sort_keys::{SortedRowsExec, is_input_of_sort};
use crate::plan::walk::WalkPlan;

pub(super) type Plan = Arc<dyn ExecutionPlan>;

pub(super) const RULES: Rules = Rules {
    is_leaf: orrery_table_scan::reads_by_itself,
    is_dealt: orrery_table_scan::is_in_shares,
    is_by_partition,
    is_with_reader: orrery_table_scan::tells_keys,
    rows,
    label,
    extent: label,
    may_divide_by_hash: true,
};

fn is_by_partition(node: &Plan) -> bool {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return *join.partition_mode() == PartitionMode::Partitioned;
    }
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return sort.preserve_partitioning();
    }
    if let Some(sorted) = node.downcast_ref::<SortedRowsExec>() {
        return is_by_partition(sorted.input());
    }
    node.is::<AggregateExec>()
        || is_input_of_sort(node)
        || is_input_of_sets(node)
        || is_of_windows(node)
        || node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<UnnestExec>()
        || node.is::<WindowAggExec>()
        || node.is::<BoundedWindowAggExec>()
        || orrery_table_scan::tells_keys(node)
}

/// The rows that a node gives, where that is known.
fn rows(node: &Plan) -> f64 {
    let told = StatisticsContext::new().compute(node.as_ref(), &StatisticsArgs::new());
    let told = told.ok();
    let told = told.and_then(|told| told.num_rows.get_value().copied());
    match told {
        Some(rows) => rows as f64,
        // No more than it reads, as a rule.
        None => {
            let below = node.children().into_iter().map(rows);
            below.fold(0.0, f64::max)
        }
    }
}

/// A node in words, without what it finds out while it runs.
fn label(node: &Plan) -> String {
    let mut text = displayable(node.as_ref()).one_line().to_string();
    for found in [", hints=", ", filter=[", "DynamicFilter"] {
        if let Some(at) = text.find(found) {
            text.truncate(at);
        }
    }
    text
}

/// Whether a plan, or a scalar subquery in it, reads so many rows of stored tables and may be
/// divided.
pub(super) fn is_large(plan: &Plan, least_rows: f64) -> bool {
    let mut subqueries = Vec::new();
    let own = read_rows(plan, &mut subqueries);
    own.is_some_and(|rows| rows >= least_rows)
        || subqueries.into_iter().any(|it| is_large(it, least_rows))
}

/// The same of a plan that has no scalar subqueries any more.
pub(super) fn is_large_itself(plan: &Plan, least_rows: f64) -> bool {
    let mut subqueries = Vec::new();
    let own = read_rows(plan, &mut subqueries);
    subqueries.is_empty() && own.is_some_and(|rows| rows >= least_rows)
}

/// The rows that a plan reads of stored tables beside its scalar subqueries; none where it must not
/// be divided.
fn read_rows<'p>(plan: &'p Plan, subqueries: &mut Vec<&'p Plan>) -> Option<f64> {
    if plan.is::<RecursiveQueryExec>() || plan.is::<WorkTableExec>() {
        return None;
    }
    if let Some(node) = plan.downcast_ref::<ScalarSubqueryExec>() {
        subqueries.extend(node.subqueries().iter().map(|link| &link.plan));
        return read_rows(node.input(), subqueries);
    }
    let mut children = plan.children().into_iter();
    if children.len() == 0 {
        return Some(rows(plan));
    }
    children.try_fold(0.0, |sum, child| Some(sum + read_rows(child, subqueries)?))
}

/// Whether a plan has a function that may give something else from one row, or from one statement,
/// to the next.
pub(super) fn gives_other_rows(plan: &LogicalPlan, from: Volatility) -> bool {
    let is_of = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => call.func.signature().volatility >= from,
        _ => false,
    };
    let mut found = false;
    let looked = plan.apply_with_subqueries_by(&mut |node| {
        for expr in node.expressions() {
            found |= expr.exists(|expr| Ok(is_of(expr)))?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found || looked.is_err()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;

    use super::*;

    #[test]
    fn what_a_node_finds_out_is_not_in_its_label() {
        let schema = datafusion::arrow::datatypes::Schema::empty();
        let empty = datafusion::physical_plan::empty::EmptyExec::new(Arc::new(schema));
        let plan: Plan = Arc::new(CoalescePartitionsExec::new(Arc::new(empty)));
        assert_eq!(label(&plan), "CoalescePartitionsExec\n");
    }
}

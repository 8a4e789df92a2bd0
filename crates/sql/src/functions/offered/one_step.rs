//! The rule that row-holding aggregations run in a single phase.
//!
//! The engine groups in two: each thread its rows, and then what the threads have of each group.
//! That is less work where a group becomes a few numbers. Where it keeps its rows nothing becomes
//! less, and there are more copies: the rows of the first step, their states on the way, which
//! nobody counts, and the rows of the second. So the rows go to where their group is at once:
//!
//! ```text
//! rows -> groups of each thread -> states by key -> groups        ->        rows by key -> groups
//! ```

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use super::kept_rows::keeps_each_row;

/// Such an aggregation in one step; a rule of [`NodeRule`](crate::optimizer::mended).
pub(crate) fn in_one_step(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(last) = node.downcast_ref::<AggregateExec>() else {
        return Ok(Transformed::no(node));
    };
    let is_last = matches!(
        last.mode(),
        AggregateMode::Final | AggregateMode::FinalPartitioned
    );
    if !is_last || !last.aggr_expr().iter().any(|it| keeps_each_row(it)) {
        return Ok(Transformed::no(node));
    }
    let mut below = last.input();
    while below.is::<RepartitionExec>() || below.is::<CoalescePartitionsExec>() {
        let Some(input) = below.children().first().copied() else {
            return Ok(Transformed::no(node));
        };
        below = input;
    }
    let first = below.downcast_ref::<AggregateExec>();
    // Where there are sets of keys a row is in several groups, so it has no place of its own.
    let is_first = |it: &&AggregateExec| {
        *it.mode() == AggregateMode::Partial && !it.group_expr().has_grouping_set()
    };
    let Some(first) = first.filter(is_first) else {
        return Ok(Transformed::no(node));
    };
    let input = Arc::clone(first.input());
    let keys = first.group_expr();
    let is_divided = *last.mode() == AggregateMode::FinalPartitioned;
    let (mode, input): (_, Arc<dyn ExecutionPlan>) = match is_divided {
        true => {
            let keys = keys.input_exprs();
            let parts = node.output_partitioning().partition_count();
            let by_key = RepartitionExec::try_new(input, Partitioning::Hash(keys, parts))?;
            (AggregateMode::SinglePartitioned, Arc::new(by_key))
        }
        false if input.output_partitioning().partition_count() > 1 => (
            AggregateMode::Single,
            Arc::new(CoalescePartitionsExec::new(input)),
        ),
        false => (AggregateMode::Single, input),
    };
    let whole = AggregateExec::try_new(
        mode,
        keys.clone(),
        first.aggr_expr().to_vec(),
        first.filter_expr().to_vec(),
        input,
        first.input_schema(),
    )?;
    Ok(Transformed::yes(Arc::new(whole)))
}

//! The left side of a nested loop join, run again where its rows exceed memory.
//!
//! DataFusion's nested loop join collects its left side. Where memory ends it runs that side a
//! second time, to a file, from which it takes as many rows at once as fit. But partitions of a
//! scan take their rows from one queue, of which the first run has had a part: the second found the
//! rest alone, or nothing, which the join calls a fault of its own.
//!
//! ```text
//! NestedLoopJoinExec   ->   NestedLoopJoinExec
//!   left                      SecondRunExec      first run: left; further ones: left with its state reset, or ResourcesExhausted
//!   right                       left
//!                             right
//! ```
//!
//! The second run is refused, so that the query ends for want of memory, in two cases. Joins that
//! give left rows by what matched (LEFT, left semi, anti and mark, FULL) do that for each partition
//! of the right side by itself once they have spilled, so they give rows twice. And a left side
//! that is more than scans, filters and projections may have changed what its scans read: a sort of
//! the first rows tells them where it ended.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, reset_plan_states,
};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use orrery_distributed::gives_unmatched_left;

use orrery_plan_node::{Passing, passing_methods};

/// Nodes whose rows are the same again when their state is reset.
const REPEATABLE: [&str; 5] = [
    "ScanExec",
    "FilterExec",
    "ProjectionExec",
    "CoalescePartitionsExec",
    "RepartitionExec",
];

/// A nested loop join whose left side may run again; any other node as it is.
pub(crate) fn joins_that_run_again(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
        return Ok(Transformed::no(node));
    };
    let is_one = join.right().output_partitioning().partition_count() == 1;
    let left = SecondRunExec {
        may_repeat: (is_one || !gives_unmatched_left(*join.join_type()))
            && is_repeatable(join.left()),
        input: Arc::clone(join.left()),
        has_run: AtomicBool::new(false),
    };
    let inputs: Vec<Arc<dyn ExecutionPlan>> = vec![Arc::new(left), Arc::clone(join.right())];
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Ok(Transformed::yes(node.replace_children(inputs, options)?))
}

fn is_repeatable(plan: &Arc<dyn ExecutionPlan>) -> bool {
    REPEATABLE.contains(&plan.name()) && plan.children().into_iter().all(is_repeatable)
}

/// Rows of the left side, however often it runs; see the module.
#[derive(Debug)]
struct SecondRunExec {
    input: Arc<dyn ExecutionPlan>,
    may_repeat: bool,
    /// Whether its one partition was asked for.
    has_run: AtomicBool,
}

impl DisplayAs for SecondRunExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecondRunExec")
    }
}

impl Passing for SecondRunExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>, _: ChildrenPropertiesMode) -> Result<Self> {
        Ok(Self {
            may_repeat: self.may_repeat,
            input,
            has_run: AtomicBool::new(false),
        })
    }
}

impl ExecutionPlan for SecondRunExec {
    passing_methods!(|_| "SecondRunExec");

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if !self.has_run.swap(true, Ordering::Relaxed) {
            return self.input.execute(partition, task);
        }
        if !self.may_repeat {
            return Err(DataFusionError::ResourcesExhausted(
                "the left side of a join without equal columns does not fit".to_owned(),
            ));
        }
        reset_plan_states(Arc::clone(&self.input))?.execute(partition, task)
    }
}

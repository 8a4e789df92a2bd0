//! A limiter of batch sizes for aggregations with many grouping sets.
//!
//! DataFusion's aggregation makes a group of each row of a batch for each set, and asks for their
//! memory when all of them are there: a batch of 8,192 rows and 4,096 sets are 33 million groups.
//!
//! ```text
//! AggregateExec(sets)   ->   AggregateExec(sets)
//!   input                      FewRowsExec      slices of GROUPS_MAX / sets rows, at least one
//!                                input
//! ```
//!
//! Slices share the memory of their batch. Order, partitions and columns are those of the input.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use orrery_plan_node::{Passing, passing_methods};

/// Groups that one batch may come to: those of a batch of 8,192 rows in 16 sets.
const GROUPS_MAX: usize = 8_192 * 16;
/// Sets of which a whole batch is no more.
const SETS_FEW: usize = 16;

/// An aggregation with many sets over few rows at once; any other node as it is.
pub(crate) fn few_rows_for_many_sets(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(aggregation) = node.downcast_ref::<AggregateExec>() else {
        return Ok(Transformed::no(node));
    };
    let sets = aggregation.group_expr().groups().len();
    if sets <= SETS_FEW {
        return Ok(Transformed::no(node));
    }
    let input = FewRowsExec {
        input: Arc::clone(aggregation.input()),
        rows_max: (GROUPS_MAX / sets).max(1),
    };
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let inputs: Vec<Arc<dyn ExecutionPlan>> = vec![Arc::new(input)];
    Ok(Transformed::yes(node.replace_children(inputs, options)?))
}

/// Whether a node that a plan is divided at may stand in the part that each process has for itself.
pub(crate) fn is_input_of_sets(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<FewRowsExec>()
}

/// The rows of its input in short batches; see the module.
#[derive(Debug, Clone)]
struct FewRowsExec {
    input: Arc<dyn ExecutionPlan>,
    /// Of one batch.
    rows_max: usize,
}

impl DisplayAs for FewRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FewRowsExec: rows={}", self.rows_max)
    }
}

impl Passing for FewRowsExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>, _: ChildrenPropertiesMode) -> Result<Self> {
        let rows_max = self.rows_max;
        Ok(Self { input, rows_max })
    }
}

impl ExecutionPlan for FewRowsExec {
    passing_methods!(|_| "FewRowsExec");

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows_max = self.rows_max;
        let rows = self.input.execute(partition, task)?;
        let rows =
            rows.map(move |batch| Ok::<_, DataFusionError>(stream::iter(slices(batch?, rows_max))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            rows.try_flatten(),
        )))
    }
}

/// A batch from its first row to its last, so many rows at a time.
fn slices(batch: RecordBatch, rows_max: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let rows = batch.num_rows();
    let starts = (0..rows).step_by(rows_max);
    starts.map(move |start| Ok(batch.slice(start, rows_max.min(rows - start))))
}

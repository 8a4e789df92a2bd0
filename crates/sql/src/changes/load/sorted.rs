//! The sort of a plan's rows by a key, within a memory limit.
//!
//! ```text
//! partitions of the plan -> texts copied into their batches, no batch too large
//!                        -> each sorted, spilled beyond its share -> merged -> texts as they were
//! ```
//!
//! A merged batch of views holds the buffers of all batches that it was merged of: forty runs of a
//! megabyte each make it forty megabytes large, and the memory ends long before it is full of rows.
//! So views are sorted as what they show.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, cast};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::TryStreamExt;
use orrery_runtime::Runtime;

use crate::execute::stopping::ending_with;

/// Sorts have so much of the memory together; the rest is for merging what they give, and for what
/// makes their rows.
const SORTS_SHARE: (usize, usize) = (3, 4);
/// A sort that has less would merge few runs at once, and often.
const SHARE_BYTES_MIN: usize = 32 << 20;
/// A sort holds many batches at least, however long their rows are.
const BATCHES_MIN: usize = 32;

/// Rows in one partition. Each sort has an equal share of the task's memory, and one does the work
/// of all where that would be little.
pub(super) fn sorted(
    plan: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
    task: &Arc<TaskContext>,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let partitions = plan.output_partitioning().partition_count();
    if partitions == 0 {
        return Ok(plan);
    }
    let of_views = plan.schema();
    let plan = cast_columns(plan, |_, data_type| match data_type {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    })?;
    let sorts_bytes = match task.memory_pool().memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / SORTS_SHARE.1 * SORTS_SHARE.0,
        MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
    };
    let is_enough = sorts_bytes / SHARE_BYTES_MIN >= partitions;
    let (plan, count): (Arc<dyn ExecutionPlan>, _) = match is_enough {
        true => (plan, partitions),
        false => (Arc::new(CoalescePartitionsExec::new(plan)), 1),
    };
    let share_bytes = sorts_bytes / count;
    let schema = plan.schema();
    let input = in_parts(count, &schema, None, |partition| PartWithTask {
        plan: Arc::clone(&plan),
        partition,
        task: Arc::clone(task),
        batch_bytes_max: Some(share_bytes / BATCHES_MIN),
    })?;
    let sort: Arc<dyn ExecutionPlan> =
        Arc::new(SortExec::new(ordering.clone(), input).with_preserve_partitioning(true));
    let parts = in_parts(count, &schema, Some(ordering.clone()), |partition| {
        PartWithTask {
            plan: Arc::clone(&sort),
            partition,
            task: Runtime::task_with_share(task, share_bytes),
            batch_bytes_max: None,
        }
    })?;
    let merged = SortPreservingMergeExec::new(ordering, parts);
    cast_columns(Arc::new(merged), |column, _| {
        of_views.field(column).data_type().clone()
    })
}

/// A plan of so many partitions, each with a task of its own.
fn in_parts(
    count: usize,
    schema: &SchemaRef,
    ordering: Option<LexOrdering>,
    part: impl Fn(usize) -> PartWithTask,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let parts = (0..count).map(|partition| Arc::new(part(partition)) as Arc<dyn PartitionStream>);
    let schema = Arc::clone(schema);
    let parts = StreamingTableExec::try_new(schema, parts.collect(), None, ordering, false, None)?;
    Ok(Arc::new(parts))
}

/// The columns of a plan as other types, of each column's place and type.
fn cast_columns(
    plan: Arc<dyn ExecutionPlan>,
    type_of: impl Fn(usize, &DataType) -> DataType,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let schema = plan.schema();
    let expressions = schema.fields().iter().enumerate().map(|(place, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
        let cast = cast(column, &schema, type_of(place, field.data_type()))?;
        Ok((cast, field.name().clone()))
    });
    let expressions: Vec<_> = expressions.collect::<Result<_, DataFusionError>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}

/// One partition of a plan, with memory of its own whatever the plan above is run with: a sort has
/// its share, what makes its rows has not to fit into it. It ends with the plan above.
#[derive(Debug)]
struct PartWithTask {
    plan: Arc<dyn ExecutionPlan>,
    partition: usize,
    task: Arc<TaskContext>,
    /// Larger batches are divided.
    batch_bytes_max: Option<usize>,
}

impl PartitionStream for PartWithTask {
    fn schema(&self) -> &SchemaRef {
        self.plan.properties().eq_properties.schema()
    }

    fn execute(&self, asked: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = self.plan.schema();
        let task = ending_with(&self.task, &asked);
        let rows = match self.plan.execute(self.partition, task) {
            Ok(rows) => rows,
            Err(error) => {
                let failed = futures::stream::once(async { Err(error) });
                return Box::pin(RecordBatchStreamAdapter::new(schema, failed));
            }
        };
        let Some(bytes_max) = self.batch_bytes_max else {
            return rows;
        };
        let rows = rows.map_ok(move |batch| futures::stream::iter(divided(batch, bytes_max)));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten()))
    }
}

/// The rows of a batch in as many as it takes for each to have so many bytes, of its own, where
/// rows are of one length.
fn divided(
    batch: RecordBatch,
    bytes_max: usize,
) -> impl Iterator<Item = Result<RecordBatch, DataFusionError>> {
    let rows = batch.num_rows();
    let parts = batch.get_array_memory_size().div_ceil(bytes_max.max(1));
    let rows_at_once = rows.div_ceil(parts.max(1)).max(1);
    (0..rows).step_by(rows_at_once).map(move |start| {
        if rows_at_once == rows {
            return Ok(batch.clone());
        }
        let end = rows.min(start + rows_at_once);
        // A slice would hold, and count for, all of its batch.
        let places = UInt64Array::from_iter_values(start as u64..end as u64);
        Ok(take_record_batch(&batch, &places)?)
    })
}

//! A stream that maps each input batch to one output batch.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::node_metrics::NodeMetrics;

/// The stream of a node that makes one batch of each batch of its input, in order, and counts the
/// rows.
pub(super) fn batch_by_batch(
    input: &Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    metrics: &ExecutionPlanMetricsSet,
    partition: usize,
    context: Arc<TaskContext>,
    mut change: impl FnMut(&RecordBatch) -> Result<RecordBatch> + Send + 'static,
) -> Result<SendableRecordBatchStream> {
    let baseline = NodeMetrics::new(metrics, partition);
    let batches = input.execute(partition, context)?.map(move |batch| {
        let changed = change(&batch?)?;
        baseline.record_output(changed.num_rows());
        Ok(changed)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

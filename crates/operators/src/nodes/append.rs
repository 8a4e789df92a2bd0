//! The concatenation of several inputs on one thread.
//!
//! For unions of few rows: `UnionExec` gives each input a partition, and each partition costs a
//! task and a channel, which is more than a look-up of some hundred rows takes. Short batches are
//! put together: whoever looks up what the rows say does it for as many as can be.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};

use crate::node_metrics::NodeMetrics;
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, node_methods};

/// The plan node that concatenates its inputs, each of one partition and with the same columns.
#[derive(Debug)]
pub struct AppendExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl AppendExec {
    /// Appends inputs to a first one.
    pub fn new(
        first: Arc<dyn ExecutionPlan>,
        others: impl IntoIterator<Item = Arc<dyn ExecutionPlan>>,
    ) -> Self {
        let properties = plan_properties(&first.schema());
        Self {
            inputs: std::iter::once(first).chain(others).collect(),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for AppendExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppendExec")
    }
}

impl Inputs for AppendExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn with_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let properties = Arc::clone(&self.properties);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self {
            inputs,
            properties,
            metrics,
        }))
    }
}

impl ExecutionPlan for AppendExec {
    node_methods!("AppendExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let batch_rows = context.session_config().batch_size();
        let rows = futures::stream::iter(self.inputs.clone())
            .map(move |input| input.execute(0, Arc::clone(&context)))
            .try_flatten();
        let schema = Arc::clone(self.properties.eq_properties.schema());
        let batches = gathered(Box::pin(rows), Arc::clone(&schema), batch_rows)
            .inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// The same rows in batches of at least so many, but for the last one.
fn gathered(
    batches: BoxStream<'static, Result<RecordBatch>>,
    schema: SchemaRef,
    batch_rows: usize,
) -> impl Stream<Item = Result<RecordBatch>> {
    futures::stream::try_unfold((batches, schema), move |(mut batches, schema)| async move {
        let (mut parts, mut rows) = (Vec::new(), 0);
        while rows < batch_rows
            && let Some(batch) = batches.try_next().await?
        {
            rows += batch.num_rows();
            parts.push(batch);
        }
        if rows == 0 {
            return Ok(None);
        }
        let batch = match parts.as_slice() {
            [only] => only.clone(),
            parts => concat_batches(&schema, parts)?,
        };
        Ok(Some((batch, (batches, schema))))
    })
}

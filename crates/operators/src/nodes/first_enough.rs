//! A choice among alternative plans at run time: the first that yields enough rows.
//!
//! ```text
//! the 10 nearest of what is within 100 m  --10 rows?--> these, and the others are not run
//! the 10 nearest of what is within 2 km   --fewer?--> the next
//! the 10 nearest of all                   --the last one, whatever it gives
//! ```
//!
//! Each input but the last is sure to give what the last would give, if it gives so many rows.
//! Nobody reads more of them, so what is kept until it is known whether there are enough is no more
//! than these.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};

use crate::node_metrics::NodeMetrics;
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, node_methods};

/// The plan node that returns its first input with enough rows, or its last one.
#[derive(Debug)]
pub struct FirstEnoughExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    pub(crate) rows: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FirstEnoughExec {
    /// Ways to so many rows, and one that is right however many there are.
    pub fn new(
        ways: impl IntoIterator<Item = Arc<dyn ExecutionPlan>>,
        last: Arc<dyn ExecutionPlan>,
        rows: usize,
    ) -> Self {
        let properties = plan_properties(&last.schema());
        Self {
            inputs: ways.into_iter().chain([last]).collect(),
            rows,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for FirstEnoughExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FirstEnoughExec: {} rows", self.rows)
    }
}

impl Inputs for FirstEnoughExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn with_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            inputs,
            rows: self.rows,
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl ExecutionPlan for FirstEnoughExec {
    node_methods!("FirstEnoughExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let (inputs, enough) = (self.inputs.clone(), self.rows);
        let rows = async move {
            let ways = inputs.len() - 1;
            for input in &inputs[..ways] {
                let batches = input.execute(0, Arc::clone(&context))?;
                let batches: Vec<RecordBatch> = batches.try_collect().await?;
                if batches.iter().map(RecordBatch::num_rows).sum::<usize>() >= enough {
                    let batches = batches.into_iter().map(Ok);
                    return Ok::<_, DataFusionError>(futures::stream::iter(batches).boxed());
                }
            }
            Ok(inputs[ways].execute(0, context)?.boxed())
        };
        let rows = futures::stream::once(rows).try_flatten();
        let rows = rows.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        let schema = Arc::clone(self.properties.eq_properties.schema());
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

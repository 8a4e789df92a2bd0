//! A common subplan that several parts of a plan read, computed once.
//!
//! The batches of its result are kept in memory until the query ends, counted against the memory
//! pool.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::node_metrics::NodeMetrics;
use crate::solutions::plan_properties;
use arrow::array::RecordBatch;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt};
use orrery_plan_node::{Inputs, node_methods};

/// Batches with what they hold of the memory pool.
struct KeptBatches {
    batches: Vec<RecordBatch>,
    _reservation: MemoryReservation,
}

type SharedBatches =
    Shared<BoxFuture<'static, std::result::Result<Arc<KeptBatches>, Arc<DataFusionError>>>>;

/// Computes its input once per execution of the plan, and gives it to every reader.
pub struct SharedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    /// What is collected, and the execution that it belongs to.
    collected: Mutex<Option<(Weak<TaskContext>, SharedBatches)>>,
    metrics: ExecutionPlanMetricsSet,
}

impl SharedExec {
    /// The plan that is computed once.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// The rows of the input for whoever reads them.
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            properties: plan_properties(&input.schema()),
            input,
            collected: Mutex::new(None),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn collect(&self, context: &Arc<TaskContext>) -> Result<SharedBatches> {
        let mut collected = self
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, running)) = collected.as_ref()
            && owner.as_ptr() == Arc::as_ptr(context)
        {
            return Ok(running.clone());
        }
        let stream = self.input.execute(0, Arc::clone(context))?;
        let reservation = MemoryConsumer::new("SharedExec").register(context.memory_pool());
        let baseline = NodeMetrics::new(&self.metrics, 0);
        let running = keep(stream, reservation, baseline)
            .map_err(Arc::new)
            .boxed()
            .shared();
        *collected = Some((Arc::downgrade(context), running.clone()));
        Ok(running)
    }
}

async fn keep(
    mut stream: SendableRecordBatchStream,
    reservation: MemoryReservation,
    baseline: NodeMetrics,
) -> Result<Arc<KeptBatches>> {
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        reservation.try_grow(batch.get_array_memory_size())?;
        baseline.record_output(batch.num_rows());
        batches.push(batch);
    }
    Ok(Arc::new(KeptBatches {
        batches,
        _reservation: reservation,
    }))
}

impl fmt::Debug for SharedExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedExec")
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedExec: computed once")
    }
}

impl Inputs for SharedExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Who reads the same node reads the same rows, also of what is another each time (RAND()).
        let input = inputs.swap_remove(0);
        match Arc::ptr_eq(&input, &self.input) {
            true => Ok(self),
            false => Ok(Arc::new(Self::new(input))),
        }
    }
}

impl ExecutionPlan for SharedExec {
    node_methods!("SharedExec");

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let running = self.collect(&context)?;
        let batches = async move {
            // The context stays alive, so that its address stays its own.
            let _context = context;
            let kept = running.await.map_err(DataFusionError::Shared)?;
            let rows = (0..kept.batches.len()).map(move |at| Ok(kept.batches[at].clone()));
            Ok::<_, DataFusionError>(futures::stream::iter(rows))
        };
        let schema = self.input.schema();
        let stream = futures::stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

//! The exchange: the leaf of a stage that reads another stage's output.
//!
//! ```text
//! as they are      partition p of the exchange  <- partition p of the stage, from the worker that has it;
//!                                                  without rows if the stage has fewer
//! repartitioned    partition b of the exchange  <- part b of what each worker has of the stage
//! ```

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::links::Links;
use orrery_plan_node::node_methods;

/// Where an exchange finds the processes, once it is known.
pub(crate) type Place = Arc<OnceLock<Arc<Links>>>;

/// Reads the partitions of another stage.
#[derive(Clone)]
pub(crate) struct ExchangeExec {
    stage: usize,
    place: Place,
    properties: Arc<PlanProperties>,
}

impl ExchangeExec {
    /// The partitions of a stage as they are, in the order in which they come there; if that has
    /// fewer than `partitions`, some without rows.
    pub(crate) fn of(
        stage: usize,
        plan: &Arc<dyn ExecutionPlan>,
        partitions: usize,
        place: &Place,
    ) -> Self {
        let given = plan.properties();
        let partitions = partitions.max(given.partitioning.partition_count());
        // Whatever a leaf below says of how its rows are spread: here it is believed no more.
        let partitioning = Partitioning::UnknownPartitioning(partitions);
        Self::new(stage, given.eq_properties.clone(), partitioning, place)
    }

    /// Rows of all partitions of a stage, divided anew into so many.
    pub(crate) fn repartitioned(
        stage: usize,
        schema: SchemaRef,
        partitions: usize,
        place: &Place,
    ) -> Self {
        let properties = EquivalenceProperties::new(schema);
        let partitioning = Partitioning::UnknownPartitioning(partitions);
        Self::new(stage, properties, partitioning, place)
    }

    fn new(
        stage: usize,
        equivalences: EquivalenceProperties,
        partitioning: Partitioning,
        place: &Place,
    ) -> Self {
        Self {
            stage,
            place: Arc::clone(place),
            properties: Arc::new(PlanProperties::new(
                equivalences,
                partitioning,
                EmissionType::Incremental,
                Boundedness::Bounded,
            )),
        }
    }

    /// The stage that it reads.
    pub(crate) fn stage(&self) -> usize {
        self.stage
    }
}

impl fmt::Debug for ExchangeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeExec")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for ExchangeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitions = self.properties.partitioning.partition_count();
        write!(
            f,
            "ExchangeExec: stage {}, {partitions} partitions",
            self.stage
        )
    }
}

impl ExecutionPlan for ExchangeExec {
    node_methods!("ExchangeExec", leaf, own metrics);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let links = self.place.get();
        let links =
            links.ok_or_else(|| internal_datafusion_err!("an exchange runs without workers"))?;
        let schema = self.schema();
        let sources = links.sources(self.stage, partition);
        // All at once: who is asked first makes its rows while the others do.
        let streams = sources
            .into_iter()
            .map(|source| links.read(source, &schema));
        let rows = futures::stream::select_all(streams);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

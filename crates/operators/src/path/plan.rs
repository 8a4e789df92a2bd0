//! The plan node of a property path.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::compile::{Direction, compile};
use super::compiled::CompiledPath;
use super::run::{PathRun, Share};
use super::specification::PathSpecification;
use crate::context::QueryContext;
use crate::error::Error;
use crate::node::{Inputs, node_methods};
use crate::node_metrics::NodeMetrics;
use crate::pattern::{describe_graph_scope, describe_slot};
use crate::solutions::{
    partitioned_plan_properties, plan_properties, schema_variables, solution_schema,
};

/// Evaluates a property path for every row of its input, or once without an input; see the
/// [module](super)'s documentation.
#[derive(Debug)]
pub struct PathExec {
    input: Option<Arc<dyn ExecutionPlan>>,
    plan: Arc<CompiledPath>,
    /// Each has a share of the nodes to walk from, where neither end is known.
    partitions: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PathExec {
    /// Compiles the path. An end that the input binds is where the walks start; it may be unbound in
    /// some rows.
    pub fn try_new(
        context: Arc<QueryContext>,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: PathSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let schema = solution_schema(&specification.output);
        let path = &specification.path;
        let forward = compile(&context, path, Direction::Forward)?;
        let backward = compile(&context, path, Direction::Backward)?;
        let input_variables = input
            .as_ref()
            .map(|input| schema_variables(&input.schema()));
        Ok(Arc::new(Self {
            properties: plan_properties(&schema),
            partitions: 1,
            plan: Arc::new(CompiledPath {
                context,
                input_variables: input_variables.unwrap_or_default(),
                schema,
                forward,
                backward,
                specification,
            }),
            input,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl PathExec {
    /// What the node is to do.
    pub(crate) fn specification(&self) -> &PathSpecification {
        &self.plan.specification
    }

    /// Whether it walks from all nodes that there are, so that partitions can have a share of them each.
    pub fn is_spreadable(&self) -> bool {
        let PathSpecification {
            subject, object, ..
        } = self.specification();
        self.input.is_none() && subject.variable().is_some() && object.variable().is_some()
    }

    /// The same in so many partitions, if it is spreadable.
    pub fn spread(&self, partitions: usize) -> Option<Arc<dyn ExecutionPlan>> {
        let partitions = Some(partitions).filter(|it| *it > 0 && self.is_spreadable())?;
        Some(Arc::new(Self {
            input: None,
            plan: Arc::clone(&self.plan),
            partitions,
            properties: partitioned_plan_properties(&self.plan.schema, partitions),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl DisplayAs for PathExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CompiledPath {
            context,
            specification,
            ..
        } = &*self.plan;
        write!(f, "PathExec: ")?;
        if let Some(graph) = describe_graph_scope(context, &specification.graph) {
            write!(f, "{graph} ")?;
        }
        write!(
            f,
            "{{ {} {} {} }}",
            describe_slot(context, &specification.subject),
            specification.path,
            describe_slot(context, &specification.object)
        )?;
        match self.partitions {
            1 => Ok(()),
            partitions => write!(f, ", {partitions} partitions"),
        }
    }
}

impl Inputs for PathExec {
    fn takes_any_order(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if inputs.is_empty() {
            return Ok(self);
        }
        Ok(Self::try_new(
            Arc::clone(&self.plan.context),
            inputs.pop(),
            self.plan.specification.clone(),
        )?)
    }
}

impl ExecutionPlan for PathExec {
    node_methods!("PathExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(
            partition < self.partitions,
            "PathExec has no such partition"
        );
        let reservation = MemoryConsumer::new("property path").register(context.memory_pool());
        let input = match &self.input {
            Some(input) => Some(input.execute(0, context)?),
            None => None,
        };
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let share = Share {
            partition,
            partitions: self.partitions,
        };
        let run = PathRun::new(Arc::clone(&self.plan), input, share, reservation, baseline);
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            let batch = run.next_batch().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.plan.schema),
            batches,
        )))
    }
}

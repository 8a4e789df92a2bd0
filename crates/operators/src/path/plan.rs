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
use super::run::PathRun;
use super::specification::PathSpecification;
use crate::context::QueryContext;
use crate::error::Error;
use crate::node::{Inputs, node_methods};
use crate::node_metrics::NodeMetrics;
use crate::pattern::{describe_graph_scope, describe_slot};
use crate::solutions::{plan_properties, schema_variables, solution_schema};

/// Evaluates a property path for every row of its input, or once without an input; see the
/// [module](super)'s documentation.
#[derive(Debug)]
pub struct PathExec {
    input: Option<Arc<dyn ExecutionPlan>>,
    plan: Arc<CompiledPath>,
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
        )
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
        assert_or_internal_err!(partition == 0, "PathExec has one partition");
        let reservation = MemoryConsumer::new("property path").register(context.memory_pool());
        let input = match &self.input {
            Some(input) => Some(input.execute(0, context)?),
            None => None,
        };
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let run = PathRun::new(Arc::clone(&self.plan), input, reservation, baseline);
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

//! The plan node of a property path.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_term::TermId;

use super::PathSpecification;
use super::compile::{Direction, Path, compile};
use super::run::{PathRun, value};
use crate::context::QueryContext;
use crate::error::Error;
use crate::node::optional_input_methods;
use crate::pattern::{GraphScope, Slot, describe_graph_scope, describe_slot};
use crate::solutions::{plan_properties, schema_variables, solution_schema};

/// A compiled path.
#[derive(Debug)]
pub(super) struct PathPlan {
    pub(super) context: Arc<QueryContext>,
    pub(super) specification: PathSpecification,
    pub(super) input_variables: Vec<Arc<str>>,
    pub(super) schema: SchemaRef,
    pub(super) forward: Path,
    pub(super) backward: Path,
}

impl PathPlan {
    /// The input column of a variable.
    pub(super) fn input_column(&self, name: &Arc<str>) -> Option<usize> {
        let mut variables = self.input_variables.iter();
        variables.position(|variable| variable == name)
    }

    /// Whether the path leads from a bound end to itself only if that is a node of the graph: between
    /// two variables, while a constant end need not be one (SPARQL 1.1, 18.4, `ZeroLengthPath`).
    pub(super) fn is_among_nodes(&self) -> bool {
        let ends = [&self.specification.subject, &self.specification.object];
        ends.iter().all(|end| end.variable().is_some()) && self.forward.can_be_empty()
    }

    /// Whether an end can have a value before the path is walked.
    pub(super) fn may_be_bound(&self, slot: &Slot) -> bool {
        match (slot, &self.specification.graph) {
            (Slot::Constant(_), _) => true,
            (Slot::Variable(name), GraphScope::NamedVariable { variable, .. })
                if variable == name =>
            {
                true
            }
            (Slot::Variable(name), _) => self.input_column(name).is_some(),
        }
    }

    /// The value that an end has in an input row, in a graph.
    pub(super) fn value(
        &self,
        columns: &[UInt64Array],
        slot: &Slot,
        graph_name: Option<TermId>,
        row: u32,
    ) -> Option<u64> {
        match slot {
            Slot::Constant(term) => Some(term.bits()),
            Slot::Variable(name) => {
                if let GraphScope::NamedVariable { variable, .. } = &self.specification.graph
                    && variable == name
                {
                    return graph_name.map(TermId::bits);
                }
                value(columns, self.input_column(name), row)
            }
        }
    }
}

/// Evaluates a property path for every row of its input, or once without an input; see the
/// [module](super)'s documentation.
#[derive(Debug)]
pub struct PathExec {
    input: Option<Arc<dyn ExecutionPlan>>,
    plan: Arc<PathPlan>,
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
            plan: Arc::new(PathPlan {
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

impl DisplayAs for PathExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PathPlan {
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

impl PathExec {
    fn with_input(&self, input: Option<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Self::try_new(
            Arc::clone(&self.plan.context),
            input,
            self.plan.specification.clone(),
        )?)
    }
}

impl ExecutionPlan for PathExec {
    optional_input_methods!("PathExec");

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
        let baseline = BaselineMetrics::new(&self.metrics, partition);
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

//! The plan node of a property path.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err, internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::compile::{Direction, compile};
use super::compiled::CompiledPath;
use super::dealt::{Starts, StartsReader};
use super::run::{PathInput, PathRun};
use super::specification::PathSpecification;
use super::starts::starts_max;
use crate::context::QueryContext;
use crate::dealing::{Dealing, Executions, Spread};
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::pattern::{describe_graph_scope, describe_slot};
use crate::solutions::{
    partitioned_plan_properties, plan_properties, schema_variables, solution_schema,
};
use crate::touch_counter::TouchCounter;
use orrery_plan_node::{Inputs, node_methods};

/// Evaluates a property path for every row of its input, or once without an input; see the
/// [module](super)'s documentation.
#[derive(Debug)]
pub struct PathExec {
    input: Option<Arc<dyn ExecutionPlan>>,
    plan: Arc<CompiledPath>,
    /// How the nodes to walk from are spread over partitions, if they are.
    spread: Option<Spread>,
    executions: Executions<Starts>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PathExec {
    /// Compiles the path. An end that the input binds is where the walks start; it may be unbound
    /// in some rows.
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
            spread: None,
            executions: Executions::default(),
            plan: Arc::new(CompiledPath {
                context,
                input_variables: input_variables.unwrap_or_default(),
                schema,
                forward,
                backward,
                specification,
                touches: TouchCounter::default(),
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

    /// Look-ups and rows that they found, in all executions so far.
    pub(crate) fn touches(&self) -> u64 {
        self.plan.touches.total()
    }

    /// How many nodes there are to walk from, at most, if they can be spread over partitions: there
    /// is no input, neither end is known before, and they are all of one graph, or merge of graphs.
    /// (`GRAPH ?g` may bind an end, and is as many walks as there are graphs.)
    pub fn spreadable_starts(&self) -> Result<Option<u64>, Error> {
        let specification = self.specification();
        let ends = [&specification.subject, &specification.object];
        let is_everywhere = self.input.is_none() && ends.iter().all(|end| end.variable().is_some());
        let Some(graph) = self.plan.active_graph().filter(|_| is_everywhere) else {
            return Ok(None);
        };
        let mut edges = self.plan.edges(graph);
        Ok(Some(starts_max(&mut edges, &self.plan.forward)?))
    }

    /// The same path with its start nodes spread over partitions. Only where there are
    /// [`PathExec::spreadable_starts`].
    pub fn spread(&self, spread: Spread) -> Result<Arc<dyn ExecutionPlan>, Error> {
        if self.spreadable_starts()?.is_none() {
            return Err(Error::Unsupported(
                "this path in several partitions".to_owned(),
            ));
        }
        Ok(Arc::new(Self {
            input: None,
            plan: Arc::clone(&self.plan),
            spread: Some(spread),
            executions: Executions::default(),
            properties: partitioned_plan_properties(&self.plan.schema, spread.partitions),
            metrics: self.metrics.clone(),
        }))
    }

    /// How the nodes to walk from are spread over partitions, if they are.
    pub(crate) fn spread_over(&self) -> Option<Spread> {
        self.spread
    }

    /// The nodes that a partition walks from.
    fn starts(
        &self,
        partition: usize,
        spread: Spread,
        context: &Arc<TaskContext>,
    ) -> Result<PathInput> {
        let Some(graph) = self.plan.active_graph() else {
            return internal_err!("a path in graphs of any name is in several partitions");
        };
        let make = || {
            let plan = Arc::clone(&self.plan);
            Ok(Starts::new(plan, graph.clone(), spread))
        };
        let starts = match spread.dealing {
            Dealing::Shares => Arc::new(make()?),
            Dealing::Queue | Dealing::Turns(_) => {
                let place = (partition, spread.partitions);
                self.executions.claim(context, place, make)?
            }
        };
        Ok(PathInput::Starts(
            graph,
            StartsReader::new(starts, partition),
        ))
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
        match self.spread {
            Some(spread) => write!(f, ", {spread}"),
            None => Ok(()),
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
        let input = inputs.pop();
        if let (None, Some(spread)) = (&input, self.spread) {
            return Ok(self.spread(spread)?);
        }
        Ok(Self::try_new(
            Arc::clone(&self.plan.context),
            input,
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
        let partitions = self.properties.partitioning.partition_count();
        assert_or_internal_err!(
            partition < partitions,
            "PathExec has {partitions} partitions, not {partition}"
        );
        let reservation = MemoryConsumer::new("property path").register(context.memory_pool());
        let input = match (&self.input, self.spread) {
            (Some(input), _) => PathInput::Stream(input.execute(partition, context)?),
            (None, None) => PathInput::EmptyRow,
            (None, Some(spread)) => self.starts(partition, spread, &context)?,
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

//! The plan node of a graph algorithm.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::run::{CompiledAlgorithm, compute};
use super::specification::{Algorithm, AlgorithmSpecification};
use crate::context::QueryContext;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, solution_schema};
use crate::touch_counter::TouchCounter;
use orrery_plan_node::{Inputs, node_methods};

type Plan = Arc<dyn ExecutionPlan>;

/// Computes something of each node of the graph whose edges are its input; see the
/// [module](super)'s documentation.
#[derive(Debug)]
pub struct AlgorithmExec {
    edges: Plan,
    plan: Arc<CompiledAlgorithm>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl AlgorithmExec {
    /// An algorithm over these edges, a column for each of their nodes.
    pub fn over(
        context: Arc<QueryContext>,
        edges: Plan,
        specification: AlgorithmSpecification,
    ) -> Plan {
        assert_eq!(edges.schema().fields().len(), 2, "columns of edges");
        let schema = solution_schema(specification.output.iter().map(|(name, _)| name));
        Arc::new(Self {
            edges,
            properties: plan_properties(&schema),
            plan: Arc::new(CompiledAlgorithm {
                context,
                specification,
                schema,
                touches: TouchCounter::default(),
            }),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// What is computed.
    pub(crate) fn specification(&self) -> &AlgorithmSpecification {
        &self.plan.specification
    }

    /// Edges looked at, and rows, in all executions so far.
    pub(crate) fn touches(&self) -> u64 {
        let rows = self.metrics.clone_inner().output_rows();
        self.plan.touches.total() + rows.unwrap_or(0) as u64
    }
}

impl DisplayAs for AlgorithmExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlgorithmExec: ")?;
        match self.plan.specification.algorithm {
            Algorithm::PageRank {
                iterations,
                damping,
            } => write!(f, "PageRank, {iterations} rounds, damping {damping}"),
            Algorithm::Components => write!(f, "connected components"),
            Algorithm::Degree => write!(f, "degrees"),
            Algorithm::Triangles => write!(f, "triangles"),
            Algorithm::Communities { iterations } => {
                write!(f, "communities, {iterations} rounds at most")
            }
        }?;
        for (at, (name, _)) in self.plan.specification.output.iter().enumerate() {
            write!(f, "{}?{name}", if at == 0 { "; gives " } else { " " })?;
        }
        Ok(())
    }
}

impl Inputs for AlgorithmExec {
    fn takes_any_order(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Plan> {
        vec![&self.edges]
    }

    fn with_inputs(self: Arc<Self>, mut inputs: Vec<Plan>) -> Result<Plan> {
        Ok(Self::over(
            Arc::clone(&self.plan.context),
            inputs.swap_remove(0),
            self.plan.specification.clone(),
        ))
    }
}

impl ExecutionPlan for AlgorithmExec {
    node_methods!("AlgorithmExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "AlgorithmExec has one partition");
        let reservation = MemoryConsumer::new("graph algorithm").register(context.memory_pool());
        let metrics = NodeMetrics::new(&self.metrics, partition);
        let edges = self.edges.execute(0, context)?;
        let plan = Arc::clone(&self.plan);
        let found = compute(Arc::clone(&plan), edges, reservation);
        let batches = futures::stream::once(found).map_ok(move |found| {
            let (plan, metrics) = (Arc::clone(&plan), metrics.clone());
            futures::stream::try_unfold((found, 0), move |(found, first)| {
                let batch = found.batch(&plan, first);
                let metrics = metrics.clone();
                async move {
                    Ok(batch?.map(|batch| {
                        metrics.record_output(batch.num_rows());
                        let next = first + batch.num_rows();
                        (batch, (found, next))
                    }))
                }
            })
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.plan.schema),
            batches.try_flatten(),
        )))
    }
}

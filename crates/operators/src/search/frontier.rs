//! The leaf of an edge subplan: the nodes from which a search continues.
//!
//! They come with the task of each run, so that the same plan serves all levels, and several runs
//! at a time.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, solution_batch, solution_schema};
use orrery_plan_node::node_methods;

/// Rows of a batch.
const BATCH_ROWS: usize = 8_192;

/// Nodes of a frontier, ascending.
#[derive(Debug)]
pub(super) struct Frontier(Vec<u64>);

/// A task like another, for a run of a plan of edges from these nodes.
pub(super) fn task_with_frontier(task: &TaskContext, mut nodes: Vec<u64>) -> Arc<TaskContext> {
    nodes.sort_unstable();
    let session = task.session_config().clone();
    Arc::new(TaskContext::new(
        task.task_id(),
        task.session_id(),
        session.with_extension(Arc::new(Frontier(nodes))),
        std::collections::HashMap::new(),
        std::collections::HashMap::new(),
        std::collections::HashMap::new(),
        std::collections::HashMap::new(),
        task.runtime_env(),
    ))
}

/// The plan node that returns the frontier's nodes, which its task brings.
#[derive(Debug)]
pub struct FrontierExec {
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FrontierExec {
    /// A leaf that binds this variable.
    pub fn leaf(variable: &Arc<str>) -> Arc<dyn ExecutionPlan> {
        let schema = solution_schema([variable]);
        Arc::new(Self {
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl DisplayAs for FrontierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrontierExec: ")?;
        match self.schema.fields().first() {
            Some(field) => write!(f, "?{}, as the search reaches it", field.name()),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for FrontierExec {
    node_methods!("FrontierExec", leaf);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "FrontierExec has one partition");
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        let frontier = context.session_config().get_extension::<Frontier>();
        let count = frontier.as_ref().map_or(0, |frontier| frontier.0.len());
        let batches = (0..count).step_by(BATCH_ROWS).map(move |first| {
            let nodes = frontier.as_ref().map_or(&[][..], |it| &it.0);
            let nodes = &nodes[first..count.min(first + BATCH_ROWS)];
            baseline.record_output(nodes.len());
            let column = UInt64Array::from(nodes.to_vec());
            solution_batch(&schema, vec![column], nodes.len())
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::iter(batches),
        )))
    }
}

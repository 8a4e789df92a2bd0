//! An interface for solutions from elsewhere than quads, such as mapped tables.
//!
//! A [`SolutionSource`] hides where they come from: it gets its task when it is made, and begins
//! when the node is asked for its first batch. Its ids come of the query's context, so that joins
//! with stored quads compare ids as everywhere.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_eq_or_internal_err, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use futures::stream::BoxStream;
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, solution_batch, solution_schema};
use orrery_plan_node::node_methods;

/// A source of solutions.
pub trait SolutionSource: fmt::Debug + Send + Sync {
    /// Begins to make them. Each run gives all of them, and the same ids for the same terms.
    fn solutions(&self, context: &Arc<QueryContext>) -> BoxStream<'static, Result<SourceRows>>;

    /// What a plan shows, in one line.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Some solutions.
#[derive(Debug, Default)]
pub struct SourceRows {
    /// How many there are, for there may be no columns.
    pub rows: usize,
    /// A column for each variable, in the order of the node's.
    pub columns: Vec<Vec<TermId>>,
}

/// A leaf of a plan that gives the solutions of a source, in one partition.
#[derive(Debug)]
pub struct SourceExec {
    context: Arc<QueryContext>,
    source: Arc<dyn SolutionSource>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SourceExec {
    /// A leaf with solutions of these variables.
    pub fn leaf(
        context: Arc<QueryContext>,
        source: Arc<dyn SolutionSource>,
        variables: &[Arc<str>],
    ) -> Arc<dyn ExecutionPlan> {
        let schema = solution_schema(variables);
        Arc::new(Self {
            context,
            source,
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl DisplayAs for SourceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceExec:")?;
        for field in self.schema.fields() {
            write!(f, " ?{}", field.name())?;
        }
        write!(f, " of ")?;
        self.source.describe(f)
    }
}

impl ExecutionPlan for SourceExec {
    node_methods!("SourceExec", leaf);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "SourceExec has one partition");
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        let batches = self.source.solutions(&self.context).map(move |rows| {
            let rows = rows?;
            let (given, wanted) = (rows.columns.len(), schema.fields().len());
            assert_eq_or_internal_err!(given, wanted, "columns of a source");
            let columns = rows.columns.into_iter();
            let columns = columns.map(|ids| ids.into_iter().map(TermId::bits).collect());
            let columns: Vec<UInt64Array> = columns.map(|ids: Vec<u64>| ids.into()).collect();
            baseline.record_output(rows.rows);
            solution_batch(&schema, columns, rows.rows)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        )))
    }
}

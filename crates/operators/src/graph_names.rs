//! The node for `GRAPH ?g {}`: the names of all readable graphs.
//!
//! Skips from graph to graph in the permutation that starts with the graph, so the cost is one
//! look-up per graph, however large the graphs are.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::coop::cooperative;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_storage::{Cursor, Permutation};
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, solution_batch, solution_schema, storage_error};
use orrery_plan_node::node_methods;

/// Names per batch.
const NAMES_PER_BATCH: usize = 1_024;

/// The plan node that returns each named graph with at least one quad, once.
#[derive(Debug)]
pub struct GraphNamesExec {
    context: Arc<QueryContext>,
    pub(crate) variable: Arc<str>,
    pub(crate) allowed: Option<Arc<[TermId]>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GraphNamesExec {
    /// Binds the variable to the names; with a list (`FROM NAMED`), to those of the list only.
    pub fn try_new(
        context: Arc<QueryContext>,
        variable: Arc<str>,
        allowed: Option<Arc<[TermId]>>,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let schema = solution_schema([&variable]);
        Ok(Arc::new(Self {
            context,
            variable,
            allowed,
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl DisplayAs for GraphNamesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphNamesExec: ?{}", self.variable)?;
        match &self.allowed {
            Some(graphs) => write!(f, " of {}", graphs.len()),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for GraphNamesExec {
    node_methods!("GraphNamesExec", leaf);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "GraphNamesExec has one partition");
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        let names = GraphNames::new(&self.context, self.allowed.as_deref());
        let batches = std::iter::from_fn({
            let mut names = names;
            move || {
                let next = names.next_names().transpose()?;
                Some(next.and_then(|ids| {
                    baseline.record_output(ids.len());
                    let rows = ids.len();
                    solution_batch(&schema, vec![UInt64Array::from(ids)], rows)
                }))
            }
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::iter(batches),
        ))))
    }
}

/// The named graphs of a snapshot, in ascending order of ids.
pub(crate) struct GraphNames {
    cursor: Option<Cursor>,
    allowed: Option<Vec<TermId>>,
    /// The last name given, or the place in the list of the allowed ones.
    after: TermId,
    next_allowed: usize,
}

impl GraphNames {
    pub(crate) fn new(context: &QueryContext, allowed: Option<&[TermId]>) -> Self {
        let view = context.view();
        let index = view.index(Permutation::Gspo);
        let allowed = allowed.map(|graphs| {
            let mut graphs = graphs.to_vec();
            graphs.sort_unstable();
            graphs.dedup();
            graphs.retain(|graph| *graph != TermId::DEFAULT_GRAPH);
            graphs
        });
        Self {
            cursor: index
                .filter(|_| view.has_named_graphs())
                .map(|index| index.cursor()),
            allowed,
            after: TermId::DEFAULT_GRAPH,
            next_allowed: 0,
        }
    }

    /// The next name.
    pub(crate) fn next_name(&mut self) -> Result<Option<TermId>> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(None);
        };
        let Some(allowed) = &self.allowed else {
            let next = cursor
                .distinct_next(&[], Some(self.after))
                .map_err(storage_error)?;
            if let Some(name) = next {
                self.after = name;
            }
            return Ok(next);
        };
        while let Some(&name) = allowed.get(self.next_allowed) {
            self.next_allowed += 1;
            let rows = cursor.seek(&[name]).map_err(storage_error)?;
            if !rows.is_empty() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The ids of some further names.
    fn next_names(&mut self) -> Result<Option<Vec<u64>>> {
        let mut ids = Vec::new();
        while ids.len() < NAMES_PER_BATCH
            && let Some(name) = self.next_name()?
        {
            ids.push(name.bits());
        }
        Ok((!ids.is_empty()).then_some(ids))
    }
}

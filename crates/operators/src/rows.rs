//! The node of given solutions: `VALUES`, and the empty solution of a group without patterns.

use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_term::{TermId, TermKind};

use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, solution_batch, solution_schema};
use orrery_plan_node::node_methods;

/// The plan node of given solutions, in their order.
#[derive(Debug)]
pub struct RowsExec {
    pub(crate) batch: RecordBatch,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RowsExec {
    /// Solutions for these variables; `None` is unbound. Every row has one entry per variable.
    pub fn try_new(
        variables: &[Arc<str>],
        rows: &[Vec<Option<TermId>>],
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        for row in rows {
            assert_eq!(row.len(), variables.len(), "one entry per variable");
        }
        let columns = (0..variables.len())
            .map(|column| {
                let ids = rows.iter().map(|row| row[column].map(TermId::bits));
                ids.collect::<UInt64Array>()
            })
            .collect();
        let schema = solution_schema(variables);
        Ok(Arc::new(Self {
            batch: solution_batch(&schema, columns, rows.len())?,
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// The same few solutions, counted by themselves; nothing if they are many, or one has a term
    /// of the query's own.
    pub(crate) fn again(&self) -> Option<Arc<dyn ExecutionPlan>> {
        const IDS_MAX: usize = 512;
        if self.batch.num_rows() * self.batch.num_columns() > IDS_MAX {
            return None;
        }
        let mut ids = self.batch.columns().iter().flat_map(|column| {
            let column = column.as_primitive::<UInt64Type>();
            column.iter().flatten()
        });
        if ids.any(|id| TermId::from_bits(id).kind() == TermKind::QueryLocal) {
            return None;
        }
        Some(Arc::new(Self {
            batch: self.batch.clone(),
            schema: Arc::clone(&self.schema),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// The one solution in which nothing is bound.
    pub fn single_empty_row() -> Result<Arc<dyn ExecutionPlan>, Error> {
        Self::try_new(&[], &[Vec::new()])
    }

    /// No solution, of these variables.
    pub fn none(variables: &[Arc<str>]) -> Result<Arc<dyn ExecutionPlan>, Error> {
        Self::try_new(variables, &[])
    }
}

impl DisplayAs for RowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowsExec: {} rows", self.batch.num_rows())?;
        for field in self.schema.fields() {
            write!(f, " ?{}", field.name())?;
        }
        Ok(())
    }
}

impl ExecutionPlan for RowsExec {
    node_methods!("RowsExec", leaf);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "RowsExec has one partition");
        let baseline = NodeMetrics::new(&self.metrics, partition);
        baseline.record_output(self.batch.num_rows());
        let batches = (self.batch.num_rows() > 0).then(|| Ok(self.batch.clone()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::iter(batches),
        )))
    }
}

//! The removal of key columns from sorted rows.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::StreamExt;

use super::task::with_short_batches;

use orrery_plan_node::{Passing, passing_methods};

/// What a sort is by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SortKeys {
    /// Over the columns of the rows.
    pub(super) told: LexOrdering,
    /// The same over these and the columns of keys.
    pub(super) within: LexOrdering,
}

/// A sort of texts, or a merge of such, as who reads it knows it; see the module above.
#[derive(Debug, Clone)]
pub(crate) struct SortedRowsExec {
    input: Arc<dyn ExecutionPlan>,
    keys: SortKeys,
    /// Those of the sort in whose place it is.
    properties: Arc<PlanProperties>,
}

impl SortedRowsExec {
    pub(super) fn new(
        stands_for: &Arc<dyn ExecutionPlan>,
        input: Arc<dyn ExecutionPlan>,
        keys: SortKeys,
    ) -> Self {
        Self {
            input,
            keys,
            properties: Arc::clone(stands_for.properties()),
        }
    }

    /// The sort or merge.
    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    pub(super) fn keys(&self) -> &SortKeys {
        &self.keys
    }

    /// An order of its rows as its input has it, if it is that of the sort.
    pub(super) fn ordering_within(&self, ordering: &LexOrdering) -> Option<LexOrdering> {
        (*ordering == self.keys.told).then(|| self.keys.within.clone())
    }
}

impl DisplayAs for SortedRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SortedRowsExec")
    }
}

impl Passing for SortedRowsExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        properties: ChildrenPropertiesMode,
    ) -> Result<Self> {
        let properties = match properties {
            ChildrenPropertiesMode::Keep => Arc::clone(&self.properties),
            // The order is that of the keys whatever the rows are.
            ChildrenPropertiesMode::Recompute => {
                let properties = PlanProperties::clone(&self.properties);
                let partitioning = input.output_partitioning().clone();
                Arc::new(properties.with_partitioning(partitioning))
            }
        };
        Ok(Self {
            input,
            keys: self.keys.clone(),
            properties,
        })
    }
}

impl ExecutionPlan for SortedRowsExec {
    passing_methods!(|_| "SortedRowsExec", own rows);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, with_short_batches(task))?;
        let schema = self.schema();
        let columns = schema.fields().len();
        if rows.schema().fields().len() == columns {
            return Ok(rows);
        }
        let shown = Arc::clone(&schema);
        let rows = rows.map(move |batch| {
            let batch = batch?;
            let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().iter().take(columns).cloned().collect();
            let shown = Arc::clone(&shown);
            Ok(RecordBatch::try_new_with_options(shown, columns, &count)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn statistics_from_inputs(
        &self,
        of_sort: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let Some(of_sort) = of_sort.first() else {
            return internal_err!("SortedRowsExec has one input");
        };
        let mut known = Statistics::clone(of_sort);
        known
            .column_statistics
            .truncate(self.schema().fields().len());
        Ok(Arc::new(known))
    }
}

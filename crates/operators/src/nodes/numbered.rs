//! A node that numbers rows, so that computed rows find their origin.
//!
//! The number is an opaque value in a column like those of ids; no term is made of it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::batch_by_batch::batch_by_batch;
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, node_methods};

/// Adds a column with the number of each row.
#[derive(Debug)]
pub struct NumberedExec {
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl NumberedExec {
    /// The rows of the input, and their numbers from 0 on in a column of this name.
    pub fn new(input: Arc<dyn ExecutionPlan>, name: &str) -> Self {
        let mut fields: Vec<Arc<Field>> = input.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(name, DataType::UInt64, true)));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        Self {
            input,
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for NumberedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NumberedExec")
    }
}

impl Inputs for NumberedExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        let name = self.schema.field(self.schema.fields().len() - 1).name();
        Ok(Arc::new(Self::new(input, name)))
    }
}

impl ExecutionPlan for NumberedExec {
    node_methods!("NumberedExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&self.schema);
        let mut next = 0_u64;
        batch_by_batch(
            &self.input,
            Arc::clone(&self.schema),
            &self.metrics,
            partition,
            context,
            move |batch| {
                let rows = batch.num_rows();
                let end = next + rows as u64;
                let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
                columns.push(Arc::new(UInt64Array::from_iter_values(next..end)));
                next = end;
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                Ok(RecordBatch::try_new_with_options(
                    Arc::clone(&schema),
                    columns,
                    &options,
                )?)
            },
        )
    }
}

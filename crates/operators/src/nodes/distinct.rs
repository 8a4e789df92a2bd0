//! Distinct solutions in the order of first occurrence, for `DISTINCT` over a sort and under a
//! `LIMIT`.
//!
//! Keeps each distinct row in a hash table, counted against the memory pool; it does not spill.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt64Type;
use datafusion_common::Result;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::batch_by_batch::batch_by_batch;
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, alike_input, node_methods};

/// What a table entry costs beside its ids, in bytes.
const ENTRY_BYTES: usize = 40;
/// Stands for unbound in a row; no term has this id.
const NULL: u64 = 0;

/// Drops rows that came before.
#[derive(Clone, Debug)]
pub struct DistinctExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DistinctExec {
    /// The distinct rows of the input.
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            properties: plan_properties(&input.schema()),
            input,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DistinctExec {
    /// The input.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

/// The rows seen so far.
struct SeenRows {
    rows: HashSet<Box<[u64]>>,
    reservation: MemoryReservation,
}

impl SeenRows {
    fn filter(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| column.as_primitive::<UInt64Type>())
            .collect();
        let mut row = vec![NULL; columns.len()];
        let mut is_new = Vec::with_capacity(batch.num_rows());
        let before = self.rows.len();
        for number in 0..batch.num_rows() {
            for (value, column) in row.iter_mut().zip(&columns) {
                *value = if column.is_null(number) {
                    NULL
                } else {
                    column.value(number)
                };
            }
            let known = self.rows.contains(row.as_slice());
            if !known {
                self.rows.insert(row.as_slice().into());
            }
            is_new.push(!known);
        }
        let added = self.rows.len() - before;
        self.reservation
            .try_grow(added * (ENTRY_BYTES + 8 * columns.len()))?;
        Ok(filter_record_batch(batch, &BooleanArray::from(is_new))?)
    }
}

impl DisplayAs for DistinctExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DistinctExec: first of each, in order")
    }
}

impl Inputs for DistinctExec {
    fn takes_any_order(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(inputs.swap_remove(0))))
    }

    alike_input!();
}

impl ExecutionPlan for DistinctExec {
    node_methods!("DistinctExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("DistinctExec").register(context.memory_pool());
        let mut seen = SeenRows {
            rows: HashSet::new(),
            reservation,
        };
        batch_by_batch(
            &self.input,
            self.input.schema(),
            &self.metrics,
            partition,
            context,
            move |batch| seen.filter(batch),
        )
    }
}

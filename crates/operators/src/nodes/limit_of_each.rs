//! `LIMIT` and `OFFSET` per value of a column, as inside of `GRAPH ?g` and `LATERAL`.
//!
//! Rows come in any order and are passed on in theirs, so over a sort each value gets its first
//! rows. What is kept is a number for each value, counted against the memory pool; it does not
//! spill.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt64Type;
use datafusion_common::Result;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::batch_by_batch::batch_by_batch;
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, alike_input, node_methods};

/// What a value costs, its place in the hash table included, in bytes.
const VALUE_BYTES: usize = 40;

/// Passes on, of the rows with the same value in a column, those from `offset` on, at most `limit`.
#[derive(Clone, Debug)]
pub struct LimitOfEachExec {
    input: Arc<dyn ExecutionPlan>,
    /// One column or two, without nulls.
    pub(crate) columns: Vec<usize>,
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LimitOfEachExec {
    /// For each value of the column, or pair of values of two, the rows from `offset` on, `limit`
    /// of them if there is one.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        columns: Vec<usize>,
        offset: usize,
        limit: Option<usize>,
    ) -> Self {
        Self {
            properties: plan_properties(&input.schema()),
            input,
            columns,
            offset,
            limit,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// How many rows each value had so far.
struct RowCounts {
    columns: Vec<usize>,
    offset: usize,
    /// The first row of a value that is not passed on any more.
    end: usize,
    rows: HashMap<(u64, u64), usize, FixedState>,
    reservation: MemoryReservation,
}

impl RowCounts {
    fn filter(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = self
            .columns
            .iter()
            .map(|at| batch.column(*at).as_primitive::<UInt64Type>().values());
        let (first, second) = (columns.next(), columns.next());
        let value = |of: Option<&ScalarBuffer<u64>>, row: usize| of.map_or(0, |of| of[row]);
        let before = self.rows.len();
        let is_kept: Vec<bool> = (0..batch.num_rows())
            .map(|row| {
                let values = (value(first, row), value(second, row));
                let row = self.rows.entry(values).or_default();
                let is_kept = (self.offset..self.end).contains(row);
                *row += 1;
                is_kept
            })
            .collect();
        let added = self.rows.len() - before;
        self.reservation.try_grow(added * VALUE_BYTES)?;
        Ok(filter_record_batch(batch, &BooleanArray::from(is_kept))?)
    }
}

impl DisplayAs for LimitOfEachExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let schema = self.input.schema();
        f.write_str("LimitOfEachExec:")?;
        for column in &self.columns {
            write!(f, " ?{}", schema.field(*column).name())?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", limit {limit}")?;
        }
        match self.offset {
            0 => Ok(()),
            offset => write!(f, ", offset {offset}"),
        }
    }
}

impl Inputs for LimitOfEachExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        let (columns, offset, limit) = (self.columns.clone(), self.offset, self.limit);
        Ok(Arc::new(Self::new(input, columns, offset, limit)))
    }

    alike_input!();
}

impl ExecutionPlan for LimitOfEachExec {
    node_methods!("LimitOfEachExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut counted = RowCounts {
            columns: self.columns.clone(),
            offset: self.offset,
            end: self
                .limit
                .map_or(usize::MAX, |limit| self.offset.saturating_add(limit)),
            rows: HashMap::default(),
            reservation: MemoryConsumer::new("LimitOfEachExec").register(context.memory_pool()),
        };
        batch_by_batch(
            &self.input,
            self.input.schema(),
            &self.metrics,
            partition,
            context,
            move |batch| counted.filter(batch),
        )
    }
}

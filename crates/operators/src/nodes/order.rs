//! `ORDER BY` in cached plans: few rows are sorted here, many by DataFusion.
//!
//! ```text
//! batches -> up to ROWS_MAX rows, then the input ends -> keys of all -> numbers of the rows, sorted -> one batch
//!            more rows, or no memory for these        -> DataFusion's sort, over what there is and the rest
//! ```
//!
//! DataFusion's `SortExec` finds out its properties when it is made, and they hold its keys, which
//! hold the context of a query; so it had to be made anew for each query whose plan is kept, and
//! was a tenth of explore Q1 beside what a top-k needs to start. This node is known as what it
//! stands for: it has its name and its text.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt32Array, make_comparator};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr_common::sort_expr::LexOrdering;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, Time};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};

use super::StreamExec;
use crate::node_metrics::NodeMetrics;
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, node_methods};

/// Rows that are sorted here. The keys of so many are made before one is dropped.
const ROWS_MAX: usize = if cfg!(test) { 64 } else { 1_024 };

/// The rows of its input in order, or the first ones of these; see the module's documentation.
#[derive(Debug)]
pub(crate) struct OrderExec {
    input: Arc<dyn ExecutionPlan>,
    keys: LexOrdering,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl OrderExec {
    /// What there is to know of a sort of such rows.
    pub(crate) fn properties_of(schema: &SchemaRef) -> Arc<PlanProperties> {
        plan_properties(schema)
    }

    /// All rows by the keys, or the first `fetch` of them; the properties are those of its schema.
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: LexOrdering,
        fetch: Option<usize>,
        properties: Arc<PlanProperties>,
    ) -> Self {
        Self {
            input,
            keys,
            fetch,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same as a node of DataFusion's.
    pub(crate) fn sort(&self) -> SortExec {
        sort(Arc::clone(&self.input), &self.keys, self.fetch)
    }
}

fn sort(input: Arc<dyn ExecutionPlan>, keys: &LexOrdering, fetch: Option<usize>) -> SortExec {
    SortExec::new(keys.clone(), input).with_fetch(fetch)
}

impl DisplayAs for OrderExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sort().fmt_as(kind, f)
    }
}

impl Inputs for OrderExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        let properties = Self::properties_of(&input.schema());
        let keys = self.keys.clone();
        Ok(Arc::new(Self::new(input, keys, self.fetch, properties)))
    }
}

impl ExecutionPlan for OrderExec {
    node_methods!("SortExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let schema = self.input.schema();
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let rows = Rows {
            elapsed: baseline.elapsed_compute().clone(),
            keys: self.keys.clone(),
            fetch: self.fetch,
            batches: Vec::new(),
            rows: 0,
            reservation: MemoryConsumer::new("SortExec").register(context.memory_pool()),
        };
        let batches = futures::stream::once(rows.of_all(input, context)).try_flatten();
        let counted = batches.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}

/// The rows of one execution.
struct Rows {
    keys: LexOrdering,
    fetch: Option<usize>,
    batches: Vec<RecordBatch>,
    rows: usize,
    reservation: MemoryReservation,
    elapsed: Time,
}

impl Rows {
    async fn of_all(
        mut self,
        mut input: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            self.rows += batch.num_rows();
            self.batches.push(batch);
            if self.rows > ROWS_MAX {
                return self.hand_over(input, &context);
            }
        }
        if self.rows == 0 {
            let none = futures::stream::empty();
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, none)));
        }
        let elapsed = self.elapsed.clone();
        let _timer = elapsed.timer();
        let batch = match self.batches.as_slice() {
            [only] => only.clone(),
            several => concat_batches(&schema, several)?,
        };
        let Some(columns) = self.key_columns(&batch)? else {
            let rest = RecordBatchStreamAdapter::new(schema, futures::stream::empty());
            return self.hand_over(Box::pin(rest), &context);
        };
        let sorted = take_record_batch(&batch, &self.sorted(&columns)?)?;
        let sorted = futures::stream::iter([Ok(sorted)]);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, sorted)))
    }

    /// The keys of all rows; nothing if there is no memory for them. One that is a column of the
    /// batch is counted as if it were a copy.
    fn key_columns(&mut self, batch: &RecordBatch) -> Result<Option<Vec<Arc<dyn Array>>>> {
        let mut columns = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let column = key.expr.evaluate(batch)?.into_array(batch.num_rows())?;
            if self
                .reservation
                .try_grow(column.get_array_memory_size())
                .is_err()
            {
                self.reservation.free();
                return Ok(None);
            }
            columns.push(column);
        }
        Ok(Some(columns))
    }

    /// The numbers of the first rows, in order; equal ones as they came.
    fn sorted(&self, columns: &[Arc<dyn Array>]) -> Result<UInt32Array> {
        let mut compared = Vec::with_capacity(columns.len());
        for (key, column) in self.keys.iter().zip(columns) {
            compared.push(make_comparator(column, column, key.options)?);
        }
        let order = |a: &u32, b: &u32| {
            let (row, other) = (*a as usize, *b as usize);
            let mut keys = compared.iter().map(|compare| compare(row, other));
            let first = keys.find(|order| *order != Ordering::Equal);
            first.unwrap_or(Ordering::Equal).then(a.cmp(b))
        };
        let mut numbers: Vec<u32> = (0..).take(self.rows).collect();
        if let Some(fetch) = self.fetch.filter(|fetch| *fetch < self.rows) {
            if fetch > 0 {
                numbers.select_nth_unstable_by(fetch - 1, order);
            }
            numbers.truncate(fetch);
        }
        numbers.sort_unstable_by(order);
        Ok(UInt32Array::from(numbers))
    }

    /// The rows so far and the rest of the input through DataFusion's sort, which spills.
    fn hand_over(
        self,
        rest: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = rest.schema();
        let before = futures::stream::iter(self.batches.into_iter().map(Ok));
        let all = RecordBatchStreamAdapter::new(schema, before.chain(rest));
        let input = Arc::new(StreamExec::new(Box::pin(all)));
        sort(input, &self.keys, self.fetch).execute(0, Arc::clone(context))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, UInt64Array};
    use arrow::compute::SortOptions;
    use arrow::datatypes::UInt64Type;
    use datafusion_execution::memory_pool::GreedyMemoryPool;
    use datafusion_execution::runtime_env::RuntimeEnvBuilder;
    use datafusion_physical_expr_common::sort_expr::PhysicalSortExpr;
    use datafusion_physical_plan::collect;
    use datafusion_physical_plan::expressions::Column;
    use datafusion_physical_plan::test::TestMemoryExec;
    use proptest::prelude::*;

    use super::*;
    use crate::solutions::{solution_batch, solution_schema};

    type Row = (Option<u64>, Option<u64>);

    fn keys(descending: [bool; 2]) -> LexOrdering {
        let key = |at: usize| PhysicalSortExpr {
            expr: Arc::new(Column::new(["a", "b"][at], at)),
            options: SortOptions {
                descending: descending[at],
                nulls_first: !descending[at],
            },
        };
        LexOrdering::new([key(0), key(1)]).unwrap()
    }

    fn input(batches: &[Vec<Row>]) -> Arc<dyn ExecutionPlan> {
        let schema = solution_schema(&[Arc::from("a"), Arc::from("b")]);
        let batch = |rows: &Vec<Row>| {
            let columns = vec![
                UInt64Array::from_iter(rows.iter().map(|row| row.0)),
                UInt64Array::from_iter(rows.iter().map(|row| row.1)),
            ];
            solution_batch(&schema, columns, rows.len()).unwrap()
        };
        let batches: Vec<_> = batches.iter().map(batch).collect();
        TestMemoryExec::try_new_exec(&[batches], Arc::clone(&schema), None).unwrap()
    }

    fn run(plan: Arc<dyn ExecutionPlan>, context: TaskContext) -> Vec<Row> {
        let batches = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(collect(plan, Arc::new(context)))
            .unwrap();
        let column = |batch: &RecordBatch, at: usize| -> Vec<Option<u64>> {
            let column = batch.column(at).as_primitive::<UInt64Type>();
            column.iter().collect()
        };
        let rows = batches
            .iter()
            .flat_map(|batch| column(batch, 0).into_iter().zip(column(batch, 1)));
        rows.collect()
    }

    fn order(batches: &[Vec<Row>], descending: [bool; 2], fetch: Option<usize>) -> OrderExec {
        let input = input(batches);
        let properties = OrderExec::properties_of(&input.schema());
        OrderExec::new(input, keys(descending), fetch, properties)
    }

    proptest! {
        #[test]
        fn rows_come_as_from_the_sort_that_it_stands_for(
            batches in proptest::collection::vec(
                proptest::collection::vec((proptest::option::of(0..6_u64), proptest::option::of(0..6_u64)), 0..24),
                0..6,
            ),
            descending in any::<[bool; 2]>(),
            fetch in proptest::option::of(1..40_usize),
        ) {
            let ours = order(&batches, descending, fetch);
            let theirs = Arc::new(ours.sort());
            prop_assert_eq!(
                run(Arc::new(ours), TaskContext::default()),
                run(theirs, TaskContext::default())
            );
        }
    }

    #[test]
    fn few_rows_without_memory_go_to_the_sort_that_spills() {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(64)))
            .build_arc()
            .unwrap();
        let context = || TaskContext::default().with_runtime(Arc::clone(&runtime));
        let ours = order(&[vec![(Some(2), None), (Some(1), None)]], [false; 2], None);
        let stream = ours.execute(0, Arc::new(context())).unwrap();
        let gave = futures::executor::block_on(stream.try_collect::<Vec<_>>());
        assert!(
            gave.is_err(),
            "neither has 64 bytes enough, and the sort says so"
        );
        assert_eq!(runtime.memory_pool.reserved(), 0);
    }
}

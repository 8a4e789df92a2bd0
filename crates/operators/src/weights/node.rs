//! The plan node that looks up edge weights, or returns all of them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use orrery_runtime::Pace;

use super::table::WeightTable;
use crate::context::QueryContext;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{bits, id_columns, plan_properties, solution_batch, solution_schema};
use orrery_plan_node::{Inputs, node_methods};

/// Rows of a batch.
const BATCH_ROWS: usize = 8_192;

/// The specification of a [`WeightsExec`].
#[derive(Clone, Debug)]
pub struct WeightsSpecification {
    /// What plans call the weights.
    pub name: Arc<str>,
    /// The variables of start, end and weight. The first two may be the same; the input has no
    /// weight.
    pub columns: [Arc<str>; 3],
    /// The variables of the output.
    pub output: Vec<Arc<str>>,
}

/// Where a column of the output comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A column of the input that the pair says nothing of.
    Input(usize),
    /// A part of the pair.
    Pair(usize),
}

/// Joins rows with the pairs of a table that they fit.
#[derive(Debug)]
pub struct WeightsExec {
    context: Arc<QueryContext>,
    input: Option<Arc<dyn ExecutionPlan>>,
    table: Arc<WeightTable>,
    specification: WeightsSpecification,
    sources: Arc<[Source]>,
    /// The input's columns of start and end.
    ends: [Option<usize>; 2],
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl WeightsExec {
    /// Over the rows of an input, or by itself.
    pub fn over(
        context: Arc<QueryContext>,
        input: Option<Arc<dyn ExecutionPlan>>,
        table: Arc<WeightTable>,
        specification: WeightsSpecification,
    ) -> Self {
        let of_input = input.as_ref().map(|input| input.schema());
        let column = |name: &Arc<str>| of_input.as_deref().and_then(|it| place(it, name));
        let [start, end, _] = &specification.columns;
        let source = |name: &Arc<str>| {
            let of_pair = specification.columns.iter().position(|it| it == name);
            match (of_pair, column(name)) {
                (Some(part), _) => Source::Pair(part),
                (None, Some(column)) => Source::Input(column),
                // A variable that nothing binds is a column of no plan.
                (None, None) => Source::Pair(0),
            }
        };
        let schema = solution_schema(&specification.output);
        Self {
            sources: specification.output.iter().map(source).collect(),
            ends: [column(start), column(end)],
            properties: plan_properties(&schema),
            schema,
            context,
            input,
            table,
            specification,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

fn place(schema: &Schema, name: &str) -> Option<usize> {
    schema
        .fields()
        .iter()
        .position(|field| field.name() == name)
}

impl DisplayAs for WeightsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specification = &self.specification;
        let [start, end, weight] = &specification.columns;
        write!(f, "WeightsExec: {} ", specification.name)?;
        write!(f, "?{start} ?{end} ?{weight}, {} pairs", self.table.len())?;
        let by = [start, end].into_iter().zip(self.ends);
        let mut by = by.filter_map(|(name, column)| column.map(|_| name));
        match (by.next(), by.next()) {
            (Some(one), None) => write!(f, ", looked up by ?{one}"),
            (Some(one), Some(other)) => write!(f, ", looked up by ?{one} ?{other}"),
            (None, _) => Ok(()),
        }
    }
}

impl Inputs for WeightsExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    fn with_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::over(
            Arc::clone(&self.context),
            inputs.into_iter().next(),
            Arc::clone(&self.table),
            self.specification.clone(),
        )))
    }
}

impl ExecutionPlan for WeightsExec {
    node_methods!("WeightsExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "WeightsExec has one partition");
        let reservation = MemoryConsumer::new("edge weights").register(context.memory_pool());
        let run = Run {
            input: match &self.input {
                Some(input) => Some(input.execute(0, context)?),
                None => None,
            },
            rows: usize::from(self.input.is_none()),
            row: 0,
            columns: Vec::new(),
            found: Vec::new(),
            context: Arc::clone(&self.context),
            table: Arc::clone(&self.table),
            sources: Arc::clone(&self.sources),
            ends: self.ends,
            is_loop: self.specification.columns[0] == self.specification.columns[1],
            schema: Arc::clone(&self.schema),
            metrics: NodeMetrics::new(&self.metrics, partition),
            reservation,
            pace: Pace::new(),
        };
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        )))
    }
}

/// One execution.
struct Run {
    input: Option<SendableRecordBatchStream>,
    /// The batch of the input, and the row that comes next.
    columns: Vec<UInt64Array>,
    rows: usize,
    row: usize,
    /// Pairs of the row before that are not given yet, the last first.
    found: Vec<[u64; 3]>,
    context: Arc<QueryContext>,
    table: Arc<WeightTable>,
    sources: Arc<[Source]>,
    ends: [Option<usize>; 2],
    is_loop: bool,
    schema: SchemaRef,
    metrics: NodeMetrics,
    reservation: MemoryReservation,
    pace: Pace,
}

impl Run {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.pace.must_give_way(Instant::now()) {
            tokio::task::yield_now().await;
        }
        let mut output: Vec<Vec<u64>> = vec![Vec::new(); self.sources.len()];
        let mut count = 0;
        while count < BATCH_ROWS {
            if let Some(pair) = self.found.pop() {
                self.put(pair, &mut output)?;
                count += 1;
            } else if self.row < self.rows {
                self.row += 1;
                self.look_up(self.row - 1)?;
            } else if count > 0 {
                break;
            } else if let Some(input) = &mut self.input {
                let Some(batch) = input.next().await.transpose()? else {
                    break;
                };
                self.columns = id_columns(&batch)?;
                (self.row, self.rows) = (0, batch.num_rows());
            } else {
                break;
            }
        }
        if count == 0 {
            return Ok(None);
        }
        self.metrics.record_output(count);
        let column = |values: Vec<u64>| -> UInt64Array {
            let value = |bits: u64| (bits != u64::MAX).then_some(bits);
            values.into_iter().map(value).collect()
        };
        let columns = output.into_iter().map(column).collect();
        solution_batch(&self.schema, columns, count).map(Some)
    }

    /// Finds the pairs of a row of the input.
    fn look_up(&mut self, row: usize) -> Result<()> {
        let value = |column: Option<usize>| {
            let bits = bits(self.columns.get(column?)?, row);
            (bits != u64::MAX).then_some(bits)
        };
        let table = &self.table;
        match self.ends.map(value) {
            [Some(start), Some(end)] => {
                let weight = table.weight([start, end]);
                self.found.extend(weight.map(|weight| [start, end, weight]));
            }
            [Some(start), None] => self.found.extend(table.from(start)),
            [None, Some(end)] => self.found.extend(table.to(end)),
            [None, None] => {
                let bytes = table.len() * size_of::<[u64; 3]>();
                if self.reservation.size() < bytes {
                    self.reservation.try_resize(bytes)?;
                }
                self.found.reserve_exact(table.len());
                self.found.extend(table.all());
            }
        }
        if self.is_loop {
            self.found.retain(|[start, end, _]| start == end);
        }
        Ok(())
    }

    /// Puts a pair beside the row that it was found for.
    fn put(&self, pair: [u64; 3], output: &mut [Vec<u64>]) -> Result<()> {
        for (source, column) in self.sources.iter().zip(output) {
            column.push(match *source {
                Source::Input(from) => bits(&self.columns[from], self.row - 1),
                Source::Pair(2) => match self.table.own_term(pair[2]) {
                    Some(term) => self.context.intern(term)?.bits(),
                    None => pair[2],
                },
                Source::Pair(part) => pair[part],
            });
        }
        Ok(())
    }
}

//! The cost of statements in touches, independent of asker, storage and threads.
//!
//! | node | touches |
//! | --- | --- |
//! | a scan of a table | one for each row that its key, its zones and its index leave to be looked at |
//! | rows of a file, of another server, of values | one for each row |
//! | solutions of a query of SPARQL | what that query costs |
//! | a join | one for each row that comes out; a nested loop one for each pair |
//! | a sort, a window, groups, `UNNEST`, a recursion | one for each row that comes out; of a sort for its first rows, no more than are asked for |
//! | any other | nothing: what it hands on was counted where it came from |
//!
//! An answer costs one more for each of its values, a change one for each row that came, changed or
//! went, a definition one for each row that it reads and one for each that it writes, in the table
//! or an index, and one at least. What divides rows among threads, or gathers them, counts nothing,
//! and groups that each thread makes for itself count when they are put together.
//!
//! Who pays is said by a [`Spending`] that travels with the engine's configuration; where there is
//! none, nothing is wrapped or walked.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{
    RecordBatchStream, SendableRecordBatchStream, SessionState, TaskContext,
};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{Stream, StreamExt, ready, stream};
use orrery_runtime::{Spending, Touched, Watched, environment_with_pool};

use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::execute::stopping::{OwnTaskRows, StopOnDrop, Stoppable, stoppable};
use crate::graph::is_of_graphs;

/// Begins to run a plan, counted where somebody pays for it. It ends when its rows are dropped.
pub(crate) fn counted_stream(
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let counted = watched(&plan, &task);
    let Stoppable {
        task,
        stop,
        wants_own_task,
    } = stoppable(&plan, task);
    let mut rows = execute_stream(plan, task)?;
    if wants_own_task {
        rows = Box::pin(OwnTaskRows::new(rows));
    }
    match counted.is_some() || stop.is_some() {
        true => Ok(Box::pin(CountedRows {
            _stop: stop,
            rows,
            _counted: counted,
        })),
        false => Ok(rows),
    }
}

/// Counts a plan that begins, where somebody pays for it, until what is returned is dropped.
pub(crate) fn watched(plan: &Arc<dyn ExecutionPlan>, task: &TaskContext) -> Option<Watched> {
    let spending = task.session_config().get_extension::<Spending>()?;
    Some(spending.watch(RunningPlan(Arc::clone(plan))))
}

/// What runs plans of a session: on the memory of who pays, if that is bounded.
pub(crate) fn task_of(state: &SessionState) -> Arc<TaskContext> {
    Arc::new(TaskContext::from(state).with_runtime(environment_of(state)))
}

/// What they run in.
pub(crate) fn environment_of(state: &SessionState) -> Arc<RuntimeEnv> {
    let spending = state.config().get_extension::<Spending>();
    match spending.as_ref().and_then(|spending| spending.memory()) {
        Some(pool) => environment_with_pool(state.runtime_env(), pool),
        None => Arc::clone(state.runtime_env()),
    }
}

/// What a statement that is done costs beside its plans: a touch for each row that it has changed,
/// and for each value of the rows that it gives back.
pub(crate) fn touches_of(outcome: &Outcome) -> u64 {
    let (tag, columns) = match outcome {
        Outcome::Done(tag) => (tag, 0),
        Outcome::Returned(rows, tag) => (tag, rows.schema().fields().len() as u64),
        // These are counted as they come.
        Outcome::Query(_) | Outcome::CopyIn(_) | Outcome::CopyOut(_) => return 0,
    };
    match *tag {
        Tag::Insert(rows)
        | Tag::Update(rows)
        | Tag::Delete(rows)
        | Tag::Copy(rows)
        | Tag::Materialize(rows)
        // Of a table that was made of them.
        | Tag::Select(rows) => rows.saturating_mul(1 + columns),
        Tag::Fetch(rows) => rows.saturating_mul(columns),
        Tag::Words(_) => 0,
    }
}

/// The same of a definition: what it goes through is paid for as it does, and one that touches no
/// row costs something nevertheless.
pub(crate) fn touches_of_definition(outcome: &Outcome) -> u64 {
    touches_of(outcome).max(1)
}

/// A plan as it is looked at while it runs.
struct RunningPlan(Arc<dyn ExecutionPlan>);

impl Touched for RunningPlan {
    fn touches(&self) -> u64 {
        touches(&self.0)
    }
}

/// The touches of a plan so far. A walk through it.
pub(crate) fn touches(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    touches_beside(plan, &HashSet::new())
}

/// The nodes of a plan whose touches are counted with it.
pub(crate) fn touches_known(plan: &Arc<dyn ExecutionPlan>) -> HashSet<usize> {
    let below = plan.children().into_iter().flat_map(touches_known);
    below.chain([place_of(plan)]).collect()
}

/// The same without those of nodes that are known.
pub(crate) fn touches_beside(plan: &Arc<dyn ExecutionPlan>, known: &HashSet<usize>) -> u64 {
    let own = match known.contains(&place_of(plan)) {
        true => 0,
        false => own_touches(plan),
    };
    let inputs = plan.children().into_iter();
    inputs.fold(own, |sum, input| {
        sum.saturating_add(touches_beside(input, known))
    })
}

/// As long as a plan is held, no other node is there.
fn place_of(node: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(node).cast::<()>() as usize
}

fn own_touches(node: &Arc<dyn ExecutionPlan>) -> u64 {
    if let Some(of_table) = orrery_table_scan::touches(node) {
        return of_table;
    }
    // The query counts for itself.
    if is_of_graphs(node) {
        return 0;
    }
    if let Some(groups) = node.downcast_ref::<AggregateExec>() {
        return match groups.mode() {
            AggregateMode::Partial | AggregateMode::PartialReduce => 0,
            AggregateMode::Final
            | AggregateMode::FinalPartitioned
            | AggregateMode::Single
            | AggregateMode::SinglePartitioned => rows_out(node),
        };
    }
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        // Each thread finds as many for itself.
        let most = sort.fetch().map_or(u64::MAX, |rows| rows as u64);
        return rows_out(node).min(most);
    }
    if node.is::<NestedLoopJoinExec>() {
        let metrics = node.metrics();
        let sum = |name| metrics.as_ref().map_or(0, |metrics| sum_of(metrics, name));
        return sum("build_input_rows").saturating_mul(sum("input_rows"));
    }
    let inputs = node.children().len();
    let is_join = inputs > 1 && !node.is::<UnionExec>() && !node.is::<InterleaveExec>();
    let is_counted = inputs == 0
        || is_join
        || node.is::<WindowAggExec>()
        || node.is::<BoundedWindowAggExec>()
        || node.is::<UnnestExec>()
        || node.is::<RecursiveQueryExec>();
    match is_counted {
        true => rows_out(node),
        false => 0,
    }
}

fn rows_out(node: &Arc<dyn ExecutionPlan>) -> u64 {
    let rows = node.metrics().and_then(|metrics| metrics.output_rows());
    rows.unwrap_or(0) as u64
}

fn sum_of(metrics: &MetricsSet, name: &str) -> u64 {
    let sum = metrics.sum_by_name(name);
    sum.map_or(0, |sum| sum.as_usize() as u64)
}

/// Rows of a plan that is counted, or has to be stopped.
struct CountedRows {
    /// Before the rows: what makes them is told first.
    _stop: Option<StopOnDrop>,
    rows: SendableRecordBatchStream,
    /// Behind the rows: when these are gone, it has all that they have cost.
    _counted: Option<Watched>,
}

impl Stream for CountedRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rows.poll_next_unpin(context)
    }
}

impl RecordBatchStream for CountedRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// A plan that `EXPLAIN ANALYZE` runs, and what was counted before.
pub(crate) struct Analyzed {
    plan: Arc<dyn ExecutionPlan>,
    spending: Option<(Arc<Spending>, u64)>,
}

impl Analyzed {
    pub(crate) fn new(plan: &Arc<dyn ExecutionPlan>, task: &TaskContext) -> Self {
        let spending = task.session_config().get_extension::<Spending>();
        Self {
            plan: Arc::clone(plan),
            spending: spending.map(|spending| {
                let before = spending.touches();
                (spending, before)
            }),
        }
    }

    /// The plan's text with what it cost behind it, as far as that is known: queries of SPARQL
    /// within tell it to who pays alone.
    pub(crate) fn behind(self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let of_line = Arc::clone(&schema);
        let line = async move {
            let touches = match &self.spending {
                Some((spending, before)) => Some(spending.touches() - before),
                None if has_graphs(&self.plan) => None,
                None => Some(touches(&self.plan)),
            };
            let line = touches.map(|touches| {
                let words = ["Cost".to_owned(), format!("cost: {touches} touches")];
                let columns = of_line.fields().iter().zip(words).map(|(field, words)| {
                    let word = ScalarValue::from(words).cast_to(field.data_type())?;
                    word.to_array()
                });
                let columns = columns.collect::<Result<Vec<_>>>()?;
                Ok(RecordBatch::try_new(of_line, columns)?)
            });
            stream::iter(line)
        };
        let rows = rows.chain(stream::once(line).flatten());
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

fn has_graphs(plan: &Arc<dyn ExecutionPlan>) -> bool {
    is_of_graphs(plan) || plan.children().into_iter().any(has_graphs)
}

/// Rows of an answer, of which each value is counted.
pub(crate) struct CountedAnswer {
    rows: SendableRecordBatchStream,
    spending: Arc<Spending>,
}

impl CountedAnswer {
    pub(crate) fn new(rows: SendableRecordBatchStream, spending: Arc<Spending>) -> Self {
        Self { rows, spending }
    }
}

impl Stream for CountedAnswer {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.rows.poll_next_unpin(context));
        if let Some(Ok(batch)) = &next {
            let values = batch.num_rows() * batch.num_columns();
            self.spending.add(values as u64);
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for CountedAnswer {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

//! A prepared query: its plan, ready to run or to be explained.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use futures::StreamExt;
use orrery_operators::context::QueryContext;
use orrery_runtime::{Runtime, Touched as _};
use orrery_storage::{ReadCounts, ReadView, Snapshot};
use orrery_term::TermId;

use crate::error::QueryError;
use crate::execute::{self, Limits, Run, without_tables};
use crate::explain::{self, PlanNode, Told};
use crate::plan::PlanEstimates;
use crate::results::{
    Decoder, IdStream, QueryResults, SolutionStream, Template, TripleStream, construct, describe,
};
use crate::touch_reader::TouchReader;
use crate::work;

/// How long a query waits for room for its working set.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// The four forms of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// `SELECT`: solutions.
    Select,
    /// `ASK`: a truth value.
    Ask,
    /// `CONSTRUCT`: triples made from a template.
    Construct,
    /// `DESCRIBE`: triples about some terms.
    Describe,
}

/// A query with its plan, over the snapshot that was current when it was prepared.
pub struct PreparedQuery {
    pub(crate) kind: QueryKind,
    pub(crate) variables: Arc<[String]>,
    /// The column of each variable of the answer.
    pub(crate) columns: Vec<Option<usize>>,
    pub(crate) template: Template,
    /// No triple of the template can come twice.
    pub(crate) gives_each_triple_once: bool,
    /// The graphs from which `DESCRIBE` describes; all if there is no list.
    pub(crate) described: Option<Arc<[TermId]>>,
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) estimates: PlanEstimates,
    pub(crate) context: Arc<QueryContext>,
    pub(crate) task: Arc<TaskContext>,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) limits: Limits,
    /// What was read to find the plan.
    pub(crate) planning_cost: ReadCounts,
    pub(crate) preparation: Preparation,
    /// What the text declares before its first group, for plans as text.
    pub(crate) prologue: Box<str>,
    /// Whether parts of the plan run as tasks of their own.
    pub(crate) is_parallel: bool,
    /// Whether parts of the plan know by the task's context which execution they belong to.
    pub(crate) has_own_task: bool,
    /// Whether it ran before: hash joins then have what they built.
    pub(crate) has_run: AtomicBool,
}

/// The times of preparing a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preparation {
    /// From the text to the algebra.
    pub parse: Duration,
    /// From the algebra to the plan.
    pub plan: Duration,
}

impl PreparedQuery {
    /// The form of the query, which decides the form of its answer.
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// Whether the answer of a `CONSTRUCT` may have triples of other graphs than the default one.
    pub fn gives_quads(&self) -> bool {
        self.template.has_graphs()
    }

    /// The projected variables of a `SELECT`, without `?`; empty for other forms.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The state that the query reads.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        self.context.snapshot()
    }

    /// The read view of the query.
    pub fn view(&self) -> &Arc<ReadView> {
        self.context.view()
    }

    /// The rows that runs of the query have read so far. Values that are in memory as adjacencies
    /// do not count.
    pub fn cost(&self) -> ReadCounts {
        self.view().cost() - self.planning_cost
    }

    /// What runs of the query have cost so far, in touches ([`orrery_operators::touches`]): the
    /// same for the same query and state, whatever is in memory and however busy the machine is.
    /// Each solution costs one more for each of its terms.
    pub fn touches(&self) -> u64 {
        self.touch_reader().touches()
    }

    /// A reader of the touches of a running query.
    pub fn touch_reader(&self) -> TouchReader {
        TouchReader::new(Arc::clone(&self.plan), Arc::clone(&self.context))
    }

    /// The estimated rows that pass the plan's nodes, infinite where unknown.
    pub fn expected_rows(&self) -> f64 {
        work::expected_rows(&self.plan, &self.estimates)
    }

    /// The times of preparing the query.
    pub fn preparation(&self) -> Preparation {
        self.preparation
    }

    /// Whether parts of the query run as tasks of their own, for which a runtime with several
    /// threads is of use.
    pub fn is_parallel(&self) -> bool {
        self.is_parallel
    }

    /// The plan as text, with estimates.
    pub fn explain(&self) -> String {
        self.plan_text(Told::Estimates)
    }

    /// What is told of a run. Who does not see all graphs is not told how it found its rows.
    fn told_of_run(&self) -> Told {
        match self.view().scope().graphs() {
            None => Told::RunAndLookUps,
            Some(_) => Told::Run,
        }
    }

    fn plan_text(&self, told: Told) -> String {
        let shortener = self.snapshot().prefixes().shortener();
        let (plan, estimates) = (&self.plan, &self.estimates);
        explain::tree(plan, estimates, told, &self.prologue, &shortener)
    }

    /// Runs the query, drops its answer, and returns the plan with actual rows and times.
    ///
    /// Figures add up when the same prepared query was run before.
    pub async fn analyze(&self) -> Result<String, QueryError> {
        self.run_to_end().await?;
        let told = self.told_of_run();
        let mut text = self.plan_text(told);
        if told == Told::RunAndLookUps {
            let ReadCounts { look_ups, rows } = self.cost();
            _ = writeln!(text, "read: {look_ups} look-ups, {rows} rows");
        }
        _ = writeln!(text, "cost: {} touches", self.touches());
        Ok(text)
    }

    /// The plan as a tree, with estimates.
    pub fn plan(&self) -> PlanNode {
        explain::nodes(&self.plan, &self.estimates, Told::Estimates)
    }

    /// The analyzed plan as a tree, see [`PreparedQuery::analyze`].
    pub async fn analyzed_plan(&self) -> Result<PlanNode, QueryError> {
        self.run_to_end().await?;
        Ok(explain::nodes(
            &self.plan,
            &self.estimates,
            self.told_of_run(),
        ))
    }

    async fn run_to_end(&self) -> Result<(), QueryError> {
        match self.execute().await? {
            QueryResults::Solutions(mut stream) => {
                while let Some(batch) = stream.next().await {
                    batch?;
                }
            }
            QueryResults::Triples(mut stream) => {
                while let Some(batch) = stream.next().await {
                    batch?;
                }
            }
            QueryResults::Boolean(_) => {}
        }
        Ok(())
    }

    /// Whether a variable of the answer is unbound in every row.
    pub fn has_unbound_variables(&self) -> bool {
        self.kind == QueryKind::Select && self.variables_without_column().next().is_some()
    }

    /// Variables of the answer for which the plan has nothing.
    pub(crate) fn variables_without_column(&self) -> impl Iterator<Item = &str> {
        let columns = self.variables.iter().zip(&self.columns);
        columns
            .filter(|(_, column)| column.is_none())
            .map(|(name, _)| name.as_str())
    }

    /// Starts the query. Streams run on the caller's tokio runtime, as they are polled;
    /// `ASK` runs here to its end.
    pub async fn execute(&self) -> Result<QueryResults, QueryError> {
        let renewed =
            match self.has_run.swap(true, Ordering::Relaxed) {
                true => Some(without_tables(&self.plan).map_err(|error| {
                    QueryError::from_datafusion(error, self.limits.memory_bytes)
                })?),
                false => self.divided(),
            };
        let run = Run {
            plan: renewed.as_ref().unwrap_or(&self.plan),
            has_own_task: self.has_own_task,
            task: &self.task,
            expressions: self.context.expressions(),
            runtime: &self.runtime,
            limits: self.limits,
            wait_max: WAIT_MAX,
        };
        let ids = run.start().await?;
        let pool = self.task.memory_pool();
        let limit_bytes = self.limits.memory_bytes;
        let decoder = Decoder::new(Arc::clone(&self.context), pool, limit_bytes);
        Ok(match self.kind {
            QueryKind::Select => QueryResults::Solutions(SolutionStream::new(
                Arc::clone(&self.variables),
                ids,
                decoder,
                &self.columns,
            )),
            QueryKind::Ask => QueryResults::Boolean(has_rows(ids).await?),
            QueryKind::Construct => {
                let template = (self.template.clone(), self.gives_each_triple_once);
                let triples = construct(ids, decoder, template, pool, limit_bytes);
                QueryResults::Triples(TripleStream::new(triples))
            }
            QueryKind::Describe => {
                let columns = self.columns.iter().copied().flatten().collect();
                let graphs = self.described.clone();
                let triples = describe(ids, decoder, (columns, graphs), pool, limit_bytes);
                // Most of the work comes after the solutions.
                let triples = execute::within(triples, self.limits);
                QueryResults::Triples(TripleStream::new(triples))
            }
        })
    }
}

async fn has_rows(mut ids: IdStream) -> Result<bool, QueryError> {
    while let Some(batch) = ids.next().await {
        if batch?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

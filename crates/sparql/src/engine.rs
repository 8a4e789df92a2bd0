//! The face of the crate: an engine prepares queries, a prepared query runs.
//!
//! Preparing parses and plans against the newest snapshot; the prepared query keeps that snapshot.
//! The memory pool, the place for spills and the settings are shared by all queries of an
//! engine. A query that could overflow an ordinary stack while it is parsed and planned is
//! prepared on a thread with a large one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::ExecutionPlan;
use futures::StreamExt;
use orrery_operators::adjacencies::{Adjacencies, AdjacencyCounts};
use orrery_operators::context::QueryContext;
use orrery_operators::workers::Workers;
use orrery_storage::{Database, Snapshot};
use orrery_term::TermId;

use crate::error::QueryError;
use crate::execute::{self, Limits, Run, task_context};
use crate::explain::{self, PlanNode};
use crate::memory::{HeldMemory, Memory, WAIT_MAX};
use crate::options::{EngineOptions, QueryOptions};
use crate::parse::{self, ShapeCache, ShapeCounts};
use crate::plan::{Estimates, OrderCache, OrderCounts};
use crate::prepare;
use crate::results::{
    Decoder, IdStream, QueryResults, SolutionStream, Template, TripleStream, construct, describe,
    solutions,
};
use crate::work;

/// How long the `WHERE` of an update waits for room in memory: others wait for its turn to end.
const UPDATE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Answers SPARQL queries over one database. Cheap to share by `Arc`.
pub struct Engine {
    database: Arc<Database>,
    options: EngineOptions,
    memory: Memory,
    /// Settings, memory pool and place for spills, the same for every query: making one takes longer than a
    /// point query.
    task: Arc<TaskContext>,
    shapes: ShapeCache,
    orders: Arc<OrderCache>,
    workers: Arc<Workers>,
    adjacencies: Arc<Adjacencies>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Engine");
        shown
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

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
    pub(crate) estimates: Estimates,
    pub(crate) context: Arc<QueryContext>,
    pub(crate) task: Arc<TaskContext>,
    pub(crate) memory: Memory,
    pub(crate) limits: Limits,
    pub(crate) preparation: Preparation,
    /// What the text declares before its first group, for plans as text.
    pub(crate) prologue: Box<str>,
    /// Whether parts of the plan run as tasks of their own.
    pub(crate) is_parallel: bool,
}

/// How long it took to prepare a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preparation {
    /// From the text to the algebra.
    pub parse: Duration,
    /// From the algebra to the plan.
    pub plan: Duration,
}

impl Engine {
    /// An engine over a database.
    pub fn new(database: Arc<Database>, options: EngineOptions) -> Result<Self, QueryError> {
        let memory = Memory::new(options.memory_bytes, options.is_process_bound);
        let spills = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![options.temp_dir.clone()]));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(&memory.operators))
            .with_disk_manager_builder(spills)
            .build_arc()
            .map_err(|error| QueryError::from_datafusion(error, options.memory_bytes))?;
        let session = SessionConfig::new()
            .with_batch_size(options.batch_rows)
            .with_target_partitions(1);
        Ok(Self {
            workers: Workers::new(options.threads),
            adjacencies: Arc::new(Adjacencies::new(memory.adjacencies_bytes)),
            database,
            options,
            memory,
            task: task_context(session, runtime),
            shapes: ShapeCache::default(),
            orders: Arc::default(),
        })
    }

    /// Parses and plans a query over the newest snapshot.
    pub fn prepare(&self, text: &str, options: &QueryOptions) -> Result<PreparedQuery, QueryError> {
        let text = parse::without_mark(text);
        let shape = parse::measure(text, self.options.query_bytes_max)?;
        let prepare = || prepare::prepare(self, text, options);
        if shape.needs_large_stack() {
            parse::on_large_stack("prepare-query", prepare)
        } else {
            prepare()
        }
        .map_err(|error| error.with_limit(self.options.memory_bytes))
    }

    /// Whether a text can be prepared on any thread and soon: it is short, nests little, and is no larger
    /// than queries mostly are.
    pub fn is_soon_prepared(&self, text: &str) -> bool {
        const BYTES_MAX: usize = 4096;
        let bytes_max = self.options.query_bytes_max.min(BYTES_MAX);
        parse::measure(text, bytes_max).is_ok_and(|shape| !shape.needs_large_stack())
    }

    /// Memory that running queries hold of [`EngineOptions::memory_bytes`].
    pub fn memory_held_bytes(&self) -> usize {
        self.memory.reserved_bytes()
    }

    /// Whether a query that has just run out of memory may find enough once others have ended.
    pub fn is_memory_scarce(&self) -> bool {
        self.memory.is_scarce()
    }

    /// Memory for something beside the queries, called `what` where memory runs out; nothing at first.
    pub fn hold_memory(&self, what: &str) -> HeldMemory {
        HeldMemory::of(self.memory_pool(), what, self.options.memory_bytes)
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The settings.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// How often the shape of a query was known, so that it was not parsed.
    pub fn shape_counts(&self) -> ShapeCounts {
        self.shapes.counts()
    }

    /// How often the order of a join was known, so that it was not looked for.
    pub fn order_counts(&self) -> OrderCounts {
        self.orders.counts()
    }

    /// Adjacencies of predicates that are in memory.
    pub fn adjacency_counts(&self) -> AdjacencyCounts {
        self.adjacencies.counts()
    }

    pub(crate) fn orders(&self) -> &Arc<OrderCache> {
        &self.orders
    }

    pub(crate) fn shapes(&self) -> &ShapeCache {
        &self.shapes
    }

    /// The threads that all queries share.
    pub(crate) fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    /// The adjacencies in memory, which all queries share.
    pub(crate) fn adjacencies(&self) -> &Arc<Adjacencies> {
        &self.adjacencies
    }

    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.memory.operators
    }

    /// What a query runs with: batches of so many rows if it asks for that.
    pub(crate) fn task(&self, batch_rows: Option<usize>) -> Arc<TaskContext> {
        match batch_rows {
            Some(rows) => {
                let session = self.task.session_config().clone().with_batch_size(rows);
                task_context(session, self.task.runtime_env())
            }
            None => Arc::clone(&self.task),
        }
    }

    /// Starts the plan of an update.
    pub(crate) async fn run(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        is_parallel: bool,
        limits: Limits,
    ) -> Result<IdStream, QueryError> {
        let run = Run {
            plan,
            is_parallel,
            task: &self.task,
            workers: &self.workers,
            memory: &self.memory,
            limits,
            wait_max: UPDATE_WAIT_MAX,
        };
        run.start().await
    }

    pub(crate) fn limits(&self, timeout: Option<Duration>) -> Limits {
        Limits {
            timeout: timeout.or(self.options.default_timeout),
            memory_bytes: self.options.memory_bytes,
        }
    }
}

impl PreparedQuery {
    /// The form of the query, which decides the form of its answer.
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// The projected variables of a `SELECT`, without `?`; empty for other forms.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The state that the query reads.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        self.context.snapshot()
    }

    /// How many rows are expected to pass through the nodes of the plan, infinite where that is unknown.
    pub fn expected_rows(&self) -> f64 {
        work::expected_rows(&self.plan, &self.estimates)
    }

    /// How long it took to prepare the query.
    pub fn preparation(&self) -> Preparation {
        self.preparation
    }

    /// Whether parts of the query run as tasks of their own, for which a runtime with several threads is of use.
    pub fn is_parallel(&self) -> bool {
        self.is_parallel
    }

    /// The plan as text, with estimates.
    pub fn explain(&self) -> String {
        explain::tree(&self.plan, &self.estimates, false, &self.prologue)
    }

    /// Runs the query, drops its answer, and returns the plan with actual rows and times.
    ///
    /// Figures add up when the same prepared query was run before.
    pub async fn analyze(&self) -> Result<String, QueryError> {
        self.run_to_end().await?;
        Ok(explain::tree(
            &self.plan,
            &self.estimates,
            true,
            &self.prologue,
        ))
    }

    /// The plan as a tree, with estimates.
    pub fn plan(&self) -> PlanNode {
        explain::nodes(&self.plan, &self.estimates, false)
    }

    /// As [`PreparedQuery::analyze`], the plan as a tree.
    pub async fn analyzed_plan(&self) -> Result<PlanNode, QueryError> {
        self.run_to_end().await?;
        Ok(explain::nodes(&self.plan, &self.estimates, true))
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

    /// Starts the query. Streams run on the caller's tokio runtime, as they are polled;
    /// `ASK` runs here to its end.
    pub async fn execute(&self) -> Result<QueryResults, QueryError> {
        let run = Run {
            plan: &self.plan,
            is_parallel: self.is_parallel,
            task: &self.task,
            workers: self.context.workers(),
            memory: &self.memory,
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
                solutions(ids, decoder, self.columns.clone()),
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

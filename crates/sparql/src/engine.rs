//! The face of the crate: an engine [prepares](crate::prepare) queries, a [prepared](crate::prepared) query runs.
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
use orrery_operators::adjacencies::{Adjacencies, AdjacencyCounts};
use orrery_operators::workers::Workers;
use orrery_storage::Database;

use crate::error::QueryError;
use crate::execute::{Limits, Run, task_context};
use crate::memory::{HeldMemory, Memory};
use crate::options::EngineOptions;
use crate::parse::{self, ShapeCache, ShapeCounts};
use crate::plan::{OrderCache, OrderCounts};
use crate::results::IdStream;

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

//! The engine: [prepares](crate::prepare) queries, which then run as
//! [prepared queries](crate::prepared).
//!
//! Preparing parses and plans against the newest snapshot; the prepared query keeps that snapshot.
//! The memory pool, the place for spills and the settings are shared by all queries of an
//! engine. A query that could overflow an ordinary stack while it is parsed and planned is
//! prepared on a thread with a large one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::context::{ContextOptions, QueryContext};
use orrery_runtime::{AdjacencyCounts, HeldMemory, Patience, Runtime, RuntimeOptions};
use orrery_storage::table::Tables;
use orrery_storage::{Database, ReadView};

use crate::edge_weights::kept::WeightTables;
use crate::error::QueryError;
use crate::execute::{Limits, Run};
use crate::looks::Looks;
use crate::mapped::MappedGraphs;
use crate::options::{EngineOptions, QueryOptions};
use crate::parse::{self, ShapeCache, ShapeCounts};
use crate::plan::{OrderCache, OrderCounts, PlanCache, PlanCounts};
use crate::results::IdStream;

/// How long the `WHERE` of an update waits for room in memory: others wait for its turn to end.
const UPDATE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Answers SPARQL queries over one database. Cheap to share by `Arc`.
pub struct Engine {
    database: Arc<Database>,
    options: EngineOptions,
    runtime: Arc<Runtime>,
    shapes: ShapeCache,
    orders: Arc<OrderCache>,
    plans: PlanCache,
    mapped: Option<Arc<dyn MappedGraphs>>,
    weights: Arc<WeightTables>,
    looks: Looks,
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
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes: options.memory_bytes,
            is_process_bound: options.is_process_bound,
            temp_dir: options.temp_dir.clone(),
            batch_rows: options.batch_rows,
            threads: options.threads,
        })
        .map_err(|error| QueryError::from_runtime(error, options.memory_bytes))?;
        Ok(Self::over(database, Arc::new(runtime), options))
    }

    /// An engine that shares a runtime with others. What the runtime decides (memory, place for
    /// spills, batches, threads) is as it was made.
    pub fn over(database: Arc<Database>, runtime: Arc<Runtime>, options: EngineOptions) -> Self {
        let memory_bytes = runtime.memory_bytes();
        let adjacencies = Arc::downgrade(runtime.adjacencies());
        // Where too many are entered already, adjacencies are learnt anew after a compaction.
        _ = database.derive(adjacencies);
        let weights: Arc<WeightTables> = Arc::default();
        let of_weights = Arc::downgrade(&weights);
        _ = database.derive(of_weights);
        Self {
            database,
            options: EngineOptions {
                memory_bytes,
                ..options
            },
            runtime,
            shapes: ShapeCache::default(),
            orders: Arc::default(),
            plans: PlanCache::default(),
            mapped: None,
            weights,
            looks: Looks::default(),
        }
    }

    /// Sets the source of mapped graphs.
    #[must_use]
    pub fn with_mapped_graphs(mut self, mapped: Arc<dyn MappedGraphs>) -> Self {
        self.mapped = Some(mapped);
        self
    }

    /// One over the same database and runtime, for work that goes on when a query is over.
    pub(crate) fn beside(&self) -> Self {
        Self {
            database: Arc::clone(&self.database),
            options: self.options.clone(),
            runtime: Arc::clone(&self.runtime),
            shapes: ShapeCache::default(),
            orders: Arc::clone(&self.orders),
            plans: PlanCache::default(),
            mapped: self.mapped.clone(),
            weights: Arc::clone(&self.weights),
            looks: Looks::default(),
        }
    }

    /// What counts how many empty answers were looked into.
    pub(crate) fn looks(&self) -> &Looks {
        &self.looks
    }

    pub(crate) fn weights(&self) -> &Arc<WeightTables> {
        &self.weights
    }

    /// The mapped graphs of a view's state, if there are any: also those that the view hides.
    pub(crate) fn mapped_in(&self, view: &ReadView) -> Option<&Arc<dyn MappedGraphs>> {
        self.mapped_among(view.snapshot().tables())
    }

    /// The mapped graphs, if some tables have any.
    pub(crate) fn mapped_among(&self, tables: &Tables) -> Option<&Arc<dyn MappedGraphs>> {
        self.mapped.as_ref().filter(|mapped| mapped.are_in(tables))
    }

    /// Whether a text can be prepared on any thread and soon: it is short, nests little, and is no
    /// larger than queries mostly are.
    pub fn is_soon_prepared(&self, text: &str) -> bool {
        const BYTES_MAX: usize = 4096;
        let bytes_max = self.options.query_bytes_max.min(BYTES_MAX);
        parse::looks_small(text, bytes_max)
    }

    /// Memory that running queries hold of [`EngineOptions::memory_bytes`].
    pub fn memory_held_bytes(&self) -> usize {
        self.runtime.memory().reserved_bytes()
    }

    /// Memory for something beside the queries, called `what` where memory runs out; nothing at
    /// first.
    pub fn hold_memory(&self, what: &str) -> HeldMemory {
        self.runtime.hold_memory(what)
    }

    /// The shared runtime of its queries; a second engine over the same data may use it
    /// ([`Engine::over`]).
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The settings.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The hits of the parse cache.
    pub fn shape_counts(&self) -> ShapeCounts {
        self.shapes.counts()
    }

    /// The hits of the join order cache.
    pub fn order_counts(&self) -> OrderCounts {
        self.orders.counts()
    }

    /// The hits of the plan cache.
    pub fn plan_counts(&self) -> PlanCounts {
        self.plans.counts()
    }

    /// Adjacencies of predicates that are in memory.
    pub fn adjacency_counts(&self) -> AdjacencyCounts {
        self.runtime.adjacencies().counts()
    }

    pub(crate) fn orders(&self) -> &Arc<OrderCache> {
        &self.orders
    }

    pub(crate) fn plans(&self) -> &PlanCache {
        &self.plans
    }

    pub(crate) fn shapes(&self) -> &ShapeCache {
        &self.shapes
    }

    /// What a query's context takes of the engine.
    pub(crate) fn context_options(
        &self,
        patience: Arc<Patience>,
        pool: Option<&Arc<dyn MemoryPool>>,
    ) -> ContextOptions {
        let pool = pool.unwrap_or(self.memory_pool());
        ContextOptions {
            base_iri: None,
            memory_pool: Arc::clone(pool),
            on_the_way_pool: Arc::clone(self.runtime.memory().on_the_way()),
            now: None,
            workers: Arc::clone(self.runtime.workers()),
            partitions: Some(self.runtime.partitions()),
            adjacencies: Arc::clone(self.runtime.adjacencies()),
            patience,
        }
    }

    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.runtime.memory().operators()
    }

    /// What a query runs with.
    pub(crate) fn task(&self, options: &QueryOptions) -> Arc<TaskContext> {
        let task = self.runtime.task(options.tuning.vector_rows);
        match options.memory_pool() {
            Some(pool) => Runtime::task_with_pool(&task, pool),
            None => task,
        }
    }

    /// Starts the plan of an update.
    pub(crate) async fn run(
        &self,
        (plan, context): (&Arc<dyn ExecutionPlan>, &QueryContext),
        has_own_task: bool,
        options: &QueryOptions,
    ) -> Result<IdStream, QueryError> {
        let run = Run {
            plan,
            has_own_task,
            task: &self.task(options),
            expressions: context.expressions(),
            runtime: &self.runtime,
            limits: self.limits(options.timeout),
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

#[cfg(test)]
mod tests {
    use orrery_storage::build_small;

    use super::*;

    #[test]
    fn two_engines_over_one_runtime_keep_within_one_budget() {
        let directory = tempfile::tempdir().unwrap();
        let database = Arc::new(build_small(directory.path(), &[]).unwrap());
        let options = EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        };
        let first = Engine::new(Arc::clone(&database), options).unwrap();
        let runtime = Arc::clone(first.runtime());
        let second = Engine::over(database, runtime, EngineOptions::default());
        assert_eq!(second.options().memory_bytes, 64 << 20);
        let held = first.hold_memory("the body of a request");
        held.resize(1_000).unwrap();
        assert_eq!(second.memory_held_bytes(), 1_000);
    }
}

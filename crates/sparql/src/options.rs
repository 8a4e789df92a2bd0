//! The settings of the engine and of one query, with their defaults.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use datafusion_execution::memory_pool::MemoryPool;
use orrery_operators::service::ServiceOptions;
use orrery_runtime::Spending;
use orrery_storage::{Asker, Database, ReadScope, ReadView, Result, Snapshot};
use orrery_term::Prefixes;

use crate::narrow::Narrowing;

/// Settings that hold for all queries of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Memory that all queries together may hold in sorts, joins and aggregations;
    /// beyond it they spill, and beyond what can spill they fail. Default: 2 GiB.
    pub memory_bytes: u64,
    /// Whether the process as a whole is to stay within `memory_bytes`, which is for a process that
    /// does nothing else. Default: no.
    pub is_process_bound: bool,
    /// Where spilled runs go. Default: the system's temporary directory.
    pub temp_dir: PathBuf,
    /// The deadline of a query that names none. Default: none.
    pub default_timeout: Option<Duration>,
    /// Longest query text that is read. Default: 1 MiB.
    pub query_bytes_max: usize,
    /// Longest update text that is read. Default: 64 MiB.
    pub update_bytes_max: usize,
    /// Rows in one batch between operators. Default: 8,192.
    pub batch_rows: usize,
    /// How `SERVICE` asks other endpoints. Default: not at all.
    pub service: Option<ServiceOptions>,
    /// Busy-thread limit of all queries together. A query that is much work is spread over as many
    /// as the others leave. Default: the cores of the machine.
    pub threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            is_process_bound: false,
            temp_dir: std::env::temp_dir(),
            default_timeout: None,
            query_bytes_max: 1 << 20,
            update_bytes_max: 64 << 20,
            batch_rows: 8192,
            service: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Settings of one query, mostly what the SPARQL protocol can say beside the text.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Relative IRIs of the query are resolved against it.
    pub base_iri: Option<String>,
    /// Graphs that together are the default graph; with `named_graphs`, they replace
    /// the `FROM` clauses of the query as the protocol asks.
    pub default_graphs: Vec<String>,
    /// Graphs that `GRAPH` can see.
    pub named_graphs: Vec<String>,
    /// Where no dataset is given: the default graph is the union of all graphs.
    pub union_default_graph: bool,
    /// Time limit of this query, in place of the engine's default.
    pub timeout: Option<Duration>,
    /// How long it may be planned, where that is another limit than `timeout`.
    pub planning_timeout: Option<Duration>,
    /// Planning, and reading an update and its documents, ends when no strong reference to this is
    /// left; never if `None`.
    pub waiting: Option<Weak<()>>,
    /// The state to read, such as an old commit; the newest if not given.
    pub snapshot: Option<Arc<Snapshot>>,
    /// A view of the state to read, where one was made already, for the same scope; `snapshot` is
    /// not looked at then.
    pub view: Option<Arc<ReadView>>,
    /// Who asks, and which graphs they may see.
    pub scope: ReadScope,
    /// Whether each prefix of the text must be declared in it, as the standard has it; else the
    /// well-known ones and those of the database are assumed. Default: no.
    pub strict_prefixes: bool,
    /// Whether `SERVICE` is refused, also where the engine may ask other endpoints, because
    /// somebody waits for the end of the query who should not wait for others. Default: no.
    pub asks_nobody: bool,
    /// Where its memory comes from, and what counts what updates cost
    /// ([`PreparedQuery::touch_reader`](crate::PreparedQuery::touch_reader) tells it of queries).
    /// Default: nobody asks.
    pub spending: Option<Arc<Spending>>,
    /// What is needed of its solutions. Default: all.
    pub narrowing: Narrowing,
    /// How the query is planned and run.
    pub tuning: Tuning,
}

impl QueryOptions {
    /// The protocol's defaults for an asker.
    pub fn of(scope: ReadScope) -> Self {
        Self {
            base_iri: None,
            default_graphs: Vec::new(),
            named_graphs: Vec::new(),
            union_default_graph: false,
            timeout: None,
            planning_timeout: None,
            waiting: None,
            snapshot: None,
            view: None,
            scope,
            strict_prefixes: false,
            asks_nobody: false,
            spending: None,
            narrowing: Narrowing::default(),
            tuning: Tuning::default(),
        }
    }

    /// The protocol's defaults for the process itself, which sees all graphs.
    pub fn of_process() -> Self {
        Self::of(ReadScope::all_graphs(Asker::Process))
    }

    /// The prefixes that a text need not declare.
    pub(crate) fn assumed<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Arc<Prefixes>> {
        (!self.strict_prefixes).then(|| snapshot.prefixes())
    }

    /// Where its memory comes from, if not from that of all.
    pub(crate) fn memory_pool(&self) -> Option<&Arc<dyn MemoryPool>> {
        self.spending.as_ref()?.memory()
    }

    /// What the query sees: of the state that was asked for, or of the newest.
    pub(crate) fn view(&self, database: &Database) -> Result<Arc<ReadView>> {
        // Whatever was put there: nobody sees through the view of another.
        if let Some(view) = self
            .view
            .as_ref()
            .filter(|view| *view.scope() == self.scope)
        {
            return Ok(Arc::clone(view));
        }
        self.view_of(match &self.snapshot {
            Some(snapshot) => Arc::clone(snapshot),
            None => database.snapshot(),
        })
    }

    /// The asker's view of a state.
    pub fn view_of(&self, snapshot: Arc<Snapshot>) -> Result<Arc<ReadView>> {
        ReadView::new(snapshot, self.scope.clone())
    }
}

/// The tuning of planning and execution. The answer is the same for all settings: they exist so
/// that tests can compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Whether the query is rewritten and its joins are ordered. Without, the plan is the plain
    /// translation of the specification's algebra: each operator by itself, in the order of the
    /// text. Default: yes.
    pub rewrites: bool,
    /// Rows in a vector, of patterns and of batches between operators, in place of the
    /// pattern's own choice and of `batch_rows`. Default: none.
    pub vector_rows: Option<usize>,
    /// Whether patterns that bind the same variable, as the edges of a triangle do, are matched
    /// together by an intersection, which is worst-case optimal. Without, one gives the candidates
    /// and the others are looked up. Default: yes.
    pub intersects: bool,
    /// Whether aggregation goes below joins, and over complements, wherever it may, though it saves
    /// nothing. Default: only where it pays.
    pub aggregates_early: bool,
    /// Whether what is joined to rows that are there starts from their values wherever it may,
    /// though it is small, whether the keys of a hash join's build side thin out the probe side,
    /// likewise, and whether texts are looked up by trigrams, likewise. Default: only where it
    /// pays.
    pub reduces_always: bool,
    /// Whether the order of a join is kept for later queries of the same shape with similar counts,
    /// and taken from earlier ones. Default: yes.
    pub keeps_orders: bool,
    /// Whether the plan of a query is kept for later queries of the same shape with similar counts,
    /// and taken from earlier ones. Only where all other settings are as by default. Default: yes.
    pub keeps_plans: bool,
    /// Whether tests of texts (`CONTAINS`, `REGEX`) look literals up in an index of trigrams, where
    /// the state has one and few have what the test needs. Default: yes.
    pub looks_grams_up: bool,
    /// Partitions of everything that can have several, in place of the planner's choice: each gets
    /// every so manyeth pair of rows, however little that is. Default: none.
    pub partitions: Option<usize>,
    /// Named graphs that a `GRAPH ?g` with a `LIMIT` inside is taken apart into, so that each is
    /// read no further than its limit; where there are more, all are read together. Default: 64.
    pub graph_branches_max: usize,
    /// Whether filters and orders by a place that is given are looked up in the index of places.
    /// Default: yes.
    pub uses_places_index: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            rewrites: true,
            vector_rows: None,
            intersects: true,
            aggregates_early: false,
            reduces_always: false,
            keeps_orders: true,
            keeps_plans: true,
            looks_grams_up: true,
            partitions: None,
            graph_branches_max: 64,
            uses_places_index: true,
        }
    }
}

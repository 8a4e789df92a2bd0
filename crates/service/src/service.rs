//! The service: the state that all protocols share, and their common steps of a statement.
//!
//! ```text
//! sender (users) -> enter: accounts, time limit -> admission: a turn -> payment: memory, cost
//!                -> the engine, or the writer (writes)
//! StatementRecord: counted, listed, logged, traced at its end
//! ```
//!
//! HTTP (`orrery_http`), PostgreSQL's port and Flight SQL stand above it, and know nothing of
//! each other. At most as many request bodies and update texts are parsed at a time as there are
//! cores. A past state (`?at=`) is reconstructed after its query was admitted, as part of the
//! query.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use orrery_distributed::Workers;
use orrery_loader::{BackgroundCompaction, LoadCheck};
use orrery_r2rml::TableMappings;
use orrery_sparql::{
    DocumentSource, Engine, MemoryPool, ParsedUpdate, UpdateOptions, WithinShares,
};
use orrery_sparql_in_sql::{EngineGraphs, Readings};
use orrery_sql::{Session, SessionOptions, Turn, WriterSource};
use orrery_storage::{At, Error as StorageError, Snapshot, Writer};
use tokio::sync::{Semaphore, watch};

use crate::admission::{Admission, AdmissionPermit};
use crate::audit::AuditLog;
use crate::cluster::load_help::LoadHelp;
use crate::cluster::nodes::{Answers, Work};
use crate::cluster::readiness::{OneLook, Readiness};
use crate::errors::ServiceError;
use crate::metering::{Accounts, Meter, Payment};
use crate::metrics::{Listens, Metrics};
use crate::options::{ServiceOptions, compaction_within};
use crate::query_log::QueryLog;
use crate::query_threads::QueryThreads;
use crate::record::{Observers, StatementRecord};
use crate::running_queries::RunningQueries;
use crate::time_limit::TimeLimit;
use crate::traces::Tracer;
use crate::users::authentication::{Authentication, Rights};
use crate::users::graph_rules::GraphRules;
use crate::writes::Writes;
use crate::writes::feeds::Feeds;
use crate::writes::seat::{Elsewhere, Here, Seat};

/// Memory of the bodies of all changes: this fraction of the whole.
const BODIES_MEMORY_PART: u64 = 4;

/// Updates whose documents are fetched at the same time.
const FETCHES_MAX: usize = 8;

/// The state that all protocols share.
pub struct Service {
    /// True once the server stops without waiting any longer.
    pub is_over: watch::Receiver<bool>,
    /// The engine of queries.
    pub engine: Arc<Engine>,
    /// None if the database has no users.
    pub authentication: Option<Arc<Authentication>>,
    /// The server's counters.
    pub metrics: Arc<Metrics>,
    /// The accounts of senders with limits.
    pub accounts: Accounts,
    /// Admission to the query threads.
    pub admission: Admission,
    /// Limits and behaviour.
    pub options: ServiceOptions,
    /// The source of documents for `LOAD`; none if `LOAD` is not allowed.
    pub documents: Option<Arc<dyn DocumentSource>>,
    /// Clients that follow the change feed.
    pub feeds: Feeds,
    /// The session that SQL requests over HTTP are made from.
    pub sql: Session,
    /// Bodies and updates that are parsed at the same time.
    parsing: Arc<Semaphore>,
    /// Updates whose documents (`LOAD`) are fetched at the same time.
    fetching: Arc<Semaphore>,
    /// The writer role: held by this server, or another.
    pub seat: Arc<Seat>,
    /// None if there is no audit log.
    pub audit: Option<Arc<AuditLog>>,
    /// None if there is no query log.
    pub query_log: Option<Arc<QueryLog>>,
    /// None if running queries are not listed.
    pub running: Option<Arc<RunningQueries>>,
    /// None if no traces are sent.
    pub tracer: Option<Arc<Tracer>>,
    /// The threads for queries and changes.
    pub query_threads: QueryThreads,
    /// Help for loads of other cluster nodes.
    pub load_help: Arc<LoadHelp>,
    /// Readiness of the server, cached.
    pub readiness: Readiness,
    /// The check of a cluster node's state.
    pub state_look: OneLook,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// The parts that a service is made from.
pub struct ServiceParts {
    /// The engine of queries.
    pub engine: Arc<Engine>,
    /// Limits and behaviour.
    pub options: ServiceOptions,
    /// None if the database has no users.
    pub authentication: Option<Authentication>,
    /// The source of documents for `LOAD`; none if `LOAD` is not allowed.
    pub documents: Option<Arc<dyn DocumentSource>>,
    /// The writer, or the reason why there is none.
    pub writer: Result<Writer, String>,
    /// The background compaction of the writer.
    pub compaction: Option<BackgroundCompaction>,
    /// Becomes true when the server stops without waiting any longer.
    pub is_over: watch::Receiver<bool>,
}

impl fmt::Debug for ServiceParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceParts").finish_non_exhaustive()
    }
}

impl Service {
    /// Starts the query threads, the logs and other background work.
    ///
    /// # Errors
    /// When a log cannot be opened, or a thread cannot be started.
    pub fn start(parts: ServiceParts) -> io::Result<Arc<Self>> {
        let ServiceParts {
            engine,
            options,
            mut authentication,
            documents,
            writer,
            compaction,
            is_over,
        } = parts;
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        let query_log = options
            .query_log
            .as_ref()
            .map(QueryLog::start)
            .transpose()?;
        let audit = options
            .audit_log
            .as_deref()
            .map(AuditLog::open)
            .transpose()?
            .map(Arc::new);
        let metrics = Arc::new(Metrics::default());
        let query_threads = QueryThreads::start(options.queries_running_max)?;
        let tracer = options.otlp.as_ref();
        let tracer = tracer.map(|otlp| Tracer::start(otlp, query_threads.handle()));
        let tracer = tracer.transpose().map_err(io::Error::other)?;
        let tracer = tracer.map(Arc::new);
        if let Some(authentication) = &mut authentication {
            authentication.find_graphs_with(GraphRules {
                engine: Arc::clone(&engine),
                threads: query_threads.handle().clone(),
                audit: audit.clone(),
            });
        }
        let load_help = Arc::new(LoadHelp::new(&engine, query_threads.handle()));
        if let Some(cluster) = &options.cluster {
            let network = cluster.network(Work::Queries);
            let processes = Workers::new(network, options.divide_from as f64);
            engine.divide_among(&processes, query_threads.handle().clone());
            let answers: Answers = Arc::new(move |request| {
                let answer = processes.answer(request);
                answer.map_err(|error| error.to_string()).boxed()
            });
            cluster
                .answer(Work::Queries, answers)
                .map_err(io::Error::other)?;
            load_help
                .answer(cluster.as_ref())
                .map_err(io::Error::other)?;
        }
        let seat = Arc::new(Seat::empty(String::new()));
        // The session's changes are made within the transactions of `writes`.
        let sql_session = Session::new(
            engine.runtime(),
            Arc::clone(engine.database()),
            None,
            SessionOptions {
                foreign: options.foreign.clone(),
                ..SessionOptions::default()
            },
        )
        .with_writer_of(WriterSource::Changing(Arc::clone(&seat) as _))
        .with_mappings(Arc::new(TableMappings::new(
            engine.runtime(),
            &options.foreign,
        )))
        .with_graphs(Arc::new(graphs_of(&engine, &options)));
        if let Some(processes) = engine.runtime().processes() {
            sql_session.divide_among(processes, query_threads.handle().clone());
        }
        let service = Self {
            feeds: Feeds::new(options.feeds_max),
            parsing: Arc::new(Semaphore::new(cores)),
            fetching: Arc::new(Semaphore::new(FETCHES_MAX)),
            admission: Admission::new(options.queries_running_max, options.queries_waiting_max),
            readiness: Readiness::default(),
            state_look: OneLook::default(),
            accounts: Accounts::default(),
            running: options.lists_queries.then(Arc::default),
            authentication: authentication.map(Arc::new),
            query_log: query_log.map(Arc::new),
            sql: sql_session,
            is_over,
            engine,
            documents,
            load_help,
            seat,
            audit,
            tracer,
            query_threads,
            metrics,
            options,
        };
        match writer {
            Ok(writer) => service
                .seat
                .take(Here::new(service.queue(writer)?, compaction)),
            Err(reason) => service.seat.leave(Elsewhere::because(reason)),
        }
        Ok(Arc::new(service))
    }

    /// The graphs for SQL, whose SPARQL texts mean the same as over HTTP.
    pub fn graphs(&self) -> EngineGraphs {
        graphs_of(&self.engine, &self.options)
    }

    /// The observers of a listener's statements.
    pub fn observers(&self, listens: Listens) -> Observers {
        Observers {
            listens,
            metrics: Arc::clone(&self.metrics),
            query_log: self.query_log.clone(),
            running: self.running.clone(),
            tracer: self.tracer.clone(),
        }
    }

    /// Waits for a turn for a statement of a session; the transaction with the writers' turn comes
    /// first.
    ///
    /// # Errors
    /// When no turn is free within the waiting time, or the server stops.
    pub async fn turn_of(&self, session: &Session) -> Result<Turn, ServiceError> {
        let turn = match session.is_waited_for() {
            true => self.admission.turn_of_writer().await,
            false => self.admission.turn().await,
        };
        Ok(session.hold(Box::new(turn?)))
    }

    /// Starts the queue of changes of a writer.
    pub fn queue(&self, writer: Writer) -> io::Result<Writes> {
        let bodies_bytes_max = self.engine.options().memory_bytes / BODIES_MEMORY_PART;
        Writes::start(
            writer,
            self.options.updates_waiting_max,
            usize::try_from(bodies_bytes_max).unwrap_or(usize::MAX),
            (
                compaction_within(self.engine.options().memory_bytes),
                Some(self.check_of_bulk()),
            ),
            self.query_threads.handle().clone(),
            Arc::clone(&self.metrics),
        )
    }

    /// The check of a change that exceeded memory, made after it became a base.
    fn check_of_bulk(&self) -> LoadCheck {
        let engine = Arc::clone(&self.engine);
        LoadCheck::new(move |before, after| {
            let checked = engine.refuse_quads_of_mapped_graphs(before, after);
            checked.map_err(|error| StorageError::Refused {
                what: error.to_string(),
            })
        })
    }

    /// The time limit of a request that asks for this much.
    fn time_limit(&self, asked: Option<Duration>) -> Result<TimeLimit, ServiceError> {
        let maximum = self.options.timeout_max;
        match asked {
            Some(asked) if asked > maximum => Err(ServiceError::bad_request(format!(
                "timeout is {} s, and this server allows {} s at most (--timeout-max); ask for that or less",
                asked.as_secs_f64(),
                maximum.as_secs_f64()
            ))),
            _ => Ok(TimeLimit {
                limit: asked.unwrap_or(self.options.timeout_default.min(maximum)),
                maximum,
                spent: Duration::ZERO,
            }),
        }
    }

    /// Runs work that parses a body or an update, on a thread that may compute for long; as many at
    /// a time as there are cores. The work's weak reference is dead once its client has gone; the
    /// work then ends.
    pub async fn while_parsing<T: Send + 'static>(
        &self,
        work: impl FnOnce(Weak<()>) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let turn = Arc::clone(&self.parsing).acquire_owned().await;
        let turn = turn.map_err(|_closed| ServiceError::Stopping)?;
        let waiting = Arc::new(());
        let waited_for = Arc::downgrade(&waiting);
        let parsed = self.on_blocking_thread(move || {
            // Held even if the client has gone.
            let _turn = turn;
            work(waited_for)
        });
        let parsed = parsed.await;
        // Held by this future until now, and dropped with it.
        drop(waiting);
        parsed
    }

    /// Fetches the documents that an update loads. That may take a minute each, so it has a
    /// semaphore of its own.
    pub async fn fetch_documents(
        &self,
        mut update: ParsedUpdate,
        options: &UpdateOptions,
    ) -> Result<ParsedUpdate, ServiceError> {
        if !update.loads_documents() {
            return Ok(update);
        }
        let turn = Arc::clone(&self.fetching).acquire_owned().await;
        let turn = turn.map_err(|_closed| ServiceError::Stopping)?;
        let waiting = Arc::new(());
        let mut options = options.clone();
        options.query.waiting = Some(Arc::downgrade(&waiting));
        let fetched = self.on_blocking_thread(move || {
            // Held even if the client has gone.
            let _turn = turn;
            update.fetch_documents(&options)?;
            Ok(update)
        });
        let fetched = fetched.await;
        // Held by this future until now, and dropped with it.
        drop(waiting);
        fetched
    }

    /// Runs work on a blocking thread, away from the HTTP threads and those that watch timeouts.
    pub async fn on_blocking_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let metrics = Arc::clone(&self.metrics);
        let work = move || {
            // Also if the client has gone.
            let _panics = metrics.watch_panics();
            work()
        };
        let done = self.query_threads.handle().spawn_blocking(work);
        done.await.unwrap_or_else(|error| {
            Err(ServiceError::Internal {
                message: format!("the request was not worked out: {error}"),
            })
        })
    }

    /// The past state that a query asks for. It may have to be reconstructed from the log, which
    /// counts as part of the query: the query's turn is held until this is done, even if the client
    /// has gone.
    pub async fn old_snapshot(
        &self,
        at: At,
        time: &mut TimeLimit,
        turn: AdmissionPermit,
    ) -> Result<(Arc<Snapshot>, AdmissionPermit), ServiceError> {
        let database = Arc::clone(self.engine.database());
        let started = Instant::now();
        let replayed = self.on_blocking_thread(move || Ok((database.snapshot_at(at)?, turn)));
        let replayed = tokio::time::timeout(time.left(), replayed).await;
        time.spent += started.elapsed();
        replayed.unwrap_or_else(|_elapsed| Err(time.exceeded()))
    }

    /// The time limit of a request that asks for this much, and its meter; no meter if the sender
    /// has no limits.
    ///
    /// # Errors
    /// When the request asks for more than the server allows, or a limit refuses it now.
    pub fn enter(
        &self,
        rights: Option<&Rights>,
        client: Option<IpAddr>,
        asked: Option<Duration>,
    ) -> Result<(TimeLimit, Option<Arc<Meter>>), ServiceError> {
        let time = self.time_limit(asked)?;
        let meter = match rights {
            Some(rights) => self.accounts.enter(&rights.limits, client)?,
            None => None,
        };
        let maximum = meter.as_ref().and_then(|meter| meter.time_max());
        Ok((maximum.map_or(time, |maximum| time.within(maximum)), meter))
    }

    /// The payment of a request; none if its cost is neither requested nor bounded.
    pub fn payment(
        &self,
        wants_cost: bool,
        meter: Option<&Arc<Meter>>,
        record: &Arc<StatementRecord>,
    ) -> Option<Arc<Payment>> {
        let memory = self.memory_of(meter);
        let is_told = memory.is_some() || wants_cost;
        is_told.then(|| {
            let of_all = self.engine.runtime().memory().operators();
            Arc::new(Payment::new(
                memory.as_ref().unwrap_or(of_all),
                meter.cloned(),
                Some(Arc::clone(record)),
                |exceeded| exceeded.to_string(),
            ))
        })
    }

    /// The memory pool of a request whose accounts limit its memory.
    pub fn memory_of(&self, meter: Option<&Arc<Meter>>) -> Option<Arc<dyn MemoryPool>> {
        let of_all = self.engine.runtime().memory().operators();
        WithinShares::pool(meter?.shares(), of_all)
    }
}

fn graphs_of(engine: &Arc<Engine>, options: &ServiceOptions) -> EngineGraphs {
    EngineGraphs::new(Arc::clone(engine)).with_readings(Readings {
        union_default_graph: options.union_default_graph,
        strict_prefixes: options.strict_prefixes,
    })
}

//! What the handlers share, and what several of them do with it.
//!
//! At most as many request bodies and update texts are parsed at a time as there are cores. An old state (`?at=`) is
//! put together after its query was admitted, as part of it.

use crate::access_log::AccessRecord;
use crate::admission::{Admission, AdmissionPermit};
use crate::audit::AuditLog;
use crate::authentication::Authentication;
use crate::body::body_bytes;
use crate::conditions::Conditions;
use crate::description::Capabilities;
use crate::edge;
use crate::errors::ServerError;
use crate::feeds::Feeds;
use crate::guard::{HostRule, WriteRule, base_iri};
use crate::load_help::LoadHelp;
use crate::media_type;
use crate::metering::{Accounts, Meter, Payment};
use crate::metrics::Metrics;
use crate::negotiate::AcceptedFormats;
use crate::options::{HttpOptions, compaction_within};
use crate::output::TimeLimit;
use crate::parameters::parse_at;
use crate::protocol::QueryRequest;
use crate::query_log::{Peer, QueryLog};
use crate::query_threads::QueryThreads;
use crate::readiness::{OneLook, Readiness};
use crate::running_queries::RunningQueries;
use crate::seat::Seat;
use crate::stream_body::Job;
use crate::traces::Tracer;
use crate::writes::Writes;
use axum::http::{Method, request::Parts};
use orrery_loader::LoadCheck;
use orrery_sparql::{
    DocumentSource, Engine, MemoryPool, ParsedUpdate, UpdateOptions, WithinShares,
};
use orrery_sql::Session;
use orrery_storage::{Error as StorageError, Snapshot, Writer};
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Bodies of requests that change something may together take one part of so many of the memory.
const BODIES_MEMORY_PART: u64 = 4;

/// What the handlers share.
pub(crate) struct ServerState {
    /// True when the server stops and waits for nobody any more.
    pub(crate) is_over: watch::Receiver<bool>,
    pub(crate) engine: Arc<Engine>,
    /// None where the database has no users.
    pub(crate) authentication: Option<Arc<Authentication>>,
    /// What is counted for who watches the server.
    pub(crate) metrics: Arc<Metrics>,
    /// What those who ask have used of what they may.
    pub(crate) accounts: Accounts,
    pub(crate) admission: Admission,
    pub(crate) options: HttpOptions,
    pub(crate) documents: Arc<dyn DocumentSource>,
    pub(crate) feeds: Feeds,
    /// What each request of SQL has another of.
    pub(crate) sql: Session,
    /// Bodies and updates that are parsed at the same time.
    pub(crate) parsing: Arc<Semaphore>,
    /// Updates whose documents (`LOAD`) are fetched at the same time.
    pub(crate) fetching: Arc<Semaphore>,
    /// Before the query threads, on which changes under way compute.
    pub(crate) seat: Arc<Seat>,
    /// None where nobody keeps one.
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// None where nothing is logged.
    pub(crate) query_log: Option<Arc<QueryLog>>,
    /// None where there is no admin socket, which alone shows it.
    pub(crate) running: Option<Arc<RunningQueries>>,
    /// None where no traces are sent.
    pub(crate) tracer: Option<Arc<Tracer>>,
    pub(crate) query_threads: QueryThreads,
    /// What nodes of a cluster do of each other's loads.
    pub(crate) load_help: Arc<LoadHelp>,
    /// Whether it is to be asked.
    pub(crate) readiness: Readiness,
    /// At the state that a node of a cluster shows.
    pub(crate) state_look: OneLook,
    pub(crate) write_rule: WriteRule,
    pub(crate) hosts: HostRule,
}

impl ServerState {
    /// What the service description tells.
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            union_default_graph: self.options.union_default_graph,
            federation: self.engine.options().service.is_some(),
            update: self.seat.takes_changes(),
        }
    }

    /// Whether a request may change anything here.
    pub(crate) fn check_write_rule(&self, parts: &Parts) -> Result<(), ServerError> {
        self.write_rule.check(parts, &self.hosts)
    }

    /// The writer's door, for a request that may go through it.
    pub(crate) fn writes(&self, parts: &Parts) -> Result<Arc<Writes>, ServerError> {
        self.check_write_rule(parts)?;
        self.seat.writes().map_err(|elsewhere| {
            let reason = elsewhere.reason;
            match elsewhere.address {
                Some(_) => ServerError::NotHere { reason },
                None => ServerError::ReadOnly { reason },
            }
        })
    }

    /// The queue of changes of a writer.
    pub(crate) fn queue(&self, writer: Writer) -> io::Result<Writes> {
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

    /// What looks at a change that was more than memory holds, and could not be looked at before it became a base.
    fn check_of_bulk(&self) -> LoadCheck {
        let engine = Arc::clone(&self.engine);
        LoadCheck::new(move |before, after| {
            let checked = engine.refuse_quads_of_mapped_graphs(before, after);
            checked.map_err(|error| StorageError::Refused {
                what: error.to_string(),
            })
        })
    }

    /// How large the body of a request to `/sparql` may be: an update may be long, a query not.
    pub(crate) fn body_limit(&self, parts: &Parts) -> usize {
        let is_query = media_type::is_body(&parts.headers, "application/sparql-query");
        let may_update = parts.method == Method::POST && self.seat.takes_changes() && !is_query;
        if may_update {
            self.options.update_bytes_max
        } else {
            self.options.body_bytes_max
        }
    }

    /// Room for a body that is larger than that of any query.
    pub(crate) async fn update_room(
        &self,
        parts: &Parts,
    ) -> Result<Option<OwnedSemaphorePermit>, ServerError> {
        self.room(parts, self.body_limit(parts)).await
    }

    /// Room for a body of at most so many bytes.
    pub(crate) async fn room(
        &self,
        parts: &Parts,
        limit_bytes: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, ServerError> {
        let bytes = body_bytes(parts, limit_bytes);
        match self.seat.writes() {
            Ok(writes) if bytes > self.options.body_bytes_max => {
                Ok(Some(writes.body_room(bytes).await?))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// The time limit of a request that asks for this much.
    fn time_limit(&self, asked: Option<Duration>) -> Result<TimeLimit, ServerError> {
        let maximum = self.options.timeout_max;
        match asked {
            Some(asked) if asked > maximum => Err(ServerError::bad_request(format!(
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

    /// Work that reads a body or the text of an update, on a thread that may compute for long; as many at a time as there are cores.
    /// What it is given is not held any more when its client has gone, and then it is to end.
    pub(crate) async fn while_parsing<T: Send + 'static>(
        &self,
        work: impl FnOnce(Weak<()>) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, ServerError> {
        let turn = Arc::clone(&self.parsing).acquire_owned().await;
        let turn = turn.map_err(|_closed| ServerError::Stopping)?;
        let waiting = Arc::new(());
        let waited_for = Arc::downgrade(&waiting);
        let parsed = self.on_blocking_thread(move || {
            // Also if nobody waits for it any more.
            let _turn = turn;
            work(waited_for)
        });
        let parsed = parsed.await;
        // Held by this future until now, and dropped with it.
        drop(waiting);
        parsed
    }

    /// The update with the documents that it loads. These may take a minute each, so nobody who only computes waits for them.
    pub(crate) async fn fetch_documents(
        &self,
        mut update: ParsedUpdate,
        options: &UpdateOptions,
    ) -> Result<ParsedUpdate, ServerError> {
        if !update.loads_documents() {
            return Ok(update);
        }
        let turn = Arc::clone(&self.fetching).acquire_owned().await;
        let turn = turn.map_err(|_closed| ServerError::Stopping)?;
        let waiting = Arc::new(());
        let mut options = options.clone();
        options.query.waiting = Some(Arc::downgrade(&waiting));
        let fetched = self.on_blocking_thread(move || {
            // Also if nobody waits for it any more.
            let _turn = turn;
            update.fetch_documents(&options)?;
            Ok(update)
        });
        let fetched = fetched.await;
        // Held by this future until now, and dropped with it.
        drop(waiting);
        fetched
    }

    /// Work on a thread of its own, away from those that speak HTTP, and those that watch the clock for queries.
    pub(crate) async fn on_blocking_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, ServerError> {
        let metrics = Arc::clone(&self.metrics);
        let work = move || {
            // Also if nobody waits for it any more.
            let _panics = metrics.watch_panics();
            work()
        };
        let done = self.query_threads.handle().spawn_blocking(work);
        done.await.unwrap_or_else(|error| {
            Err(ServerError::Internal {
                message: format!("the request was not worked out: {error}"),
            })
        })
    }

    /// The state that a query asks for, if it is not the newest. An older one may have to be put together from the log, which takes its time
    /// and counts as part of the query: it has its turn, and keeps it until this is done, whoever waits for it.
    async fn old_snapshot(
        &self,
        at: &str,
        time: &mut TimeLimit,
        turn: AdmissionPermit,
    ) -> Result<(Arc<Snapshot>, AdmissionPermit), ServerError> {
        let at = parse_at(at)?;
        let database = Arc::clone(self.engine.database());
        let started = Instant::now();
        let replayed = self.on_blocking_thread(move || Ok((database.snapshot_at(at)?, turn)));
        let replayed = tokio::time::timeout(time.left(), replayed).await;
        time.spent += started.elapsed();
        replayed.unwrap_or_else(|_elapsed| Err(time.exceeded()))
    }

    /// The time limit of a request that asks for this much, and what counts it in the accounts of who sends it.
    ///
    /// # Errors
    /// When it asks for more than the server allows, or they may not send it now.
    pub(crate) fn enter(
        &self,
        parts: &Parts,
        asked: Option<Duration>,
    ) -> Result<(TimeLimit, Option<Arc<Meter>>), ServerError> {
        let time = self.time_limit(asked)?;
        let meter = self.meter(parts)?;
        let maximum = meter.as_ref().and_then(|meter| meter.time_max());
        Ok((maximum.map_or(time, |maximum| time.within(maximum)), meter))
    }

    /// Counts a request in the accounts of who sends it, until what is returned is dropped; nothing where nothing is limited.
    ///
    /// # Errors
    /// When they may not send it now.
    fn meter(&self, parts: &Parts) -> Result<Option<Arc<Meter>>, ServerError> {
        let Some(rights) = edge::rights(parts) else {
            return Ok(None);
        };
        let address = parts.extensions.get().map(|&Peer(address)| address);
        Ok(self.accounts.enter(&rights.limits, address)?)
    }

    /// What counts a request's work, and where its memory comes from; none where nobody wants to know and nothing is bounded.
    pub(crate) fn payment(
        &self,
        parts: &Parts,
        meter: Option<&Arc<Meter>>,
        record: &Arc<AccessRecord>,
    ) -> Option<Arc<Payment>> {
        let memory = self.memory_of(meter);
        let is_told = memory.is_some() || wants_cost(parts, record);
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

    /// The memory of a request that is held to what its accounts may have.
    pub(crate) fn memory_of(&self, meter: Option<&Arc<Meter>>) -> Option<Arc<dyn MemoryPool>> {
        let of_all = self.engine.runtime().memory().operators();
        WithinShares::pool(meter?.shares(), of_all)
    }

    /// Waits for the query's turn and packs what it needs.
    pub(crate) async fn job(
        &self,
        parts: &Parts,
        request: QueryRequest,
        record: Arc<AccessRecord>,
    ) -> Result<Job, ServerError> {
        record.set_query(&request.query);
        let conditions = Conditions::of(&parts.headers)?;
        let (mut time, meter) = self.enter(parts, request.timeout)?;
        let mut turn = record.unless_killed(self.admission.turn()).await?;
        let snapshot = match request.at.as_deref() {
            Some(at) => {
                let (snapshot, same_turn) = self.old_snapshot(at, &mut time, turn).await?;
                turn = same_turn;
                Some(snapshot)
            }
            None => edge::ruled_state(parts).cloned(),
        };
        let payment = self.payment(parts, meter.as_ref(), &record);
        Ok(Job {
            base_iri: base_iri(parts),
            snapshot,
            engine: Arc::clone(&self.engine),
            method: parts.method.clone(),
            conditions,
            scope: edge::scope(parts),
            view: None,
            accepted: AcceptedFormats::new(&parts.headers, request.format.clone()),
            waiting: Weak::new(),
            union_default_graph: self.options.union_default_graph,
            strict_prefixes: self.options.strict_prefixes,
            time,
            request,
            wants_cost: wants_cost(parts, &record),
            payment,
            second_try: None,
            meter,
            record,
            turn,
            ready: Instant::now(),
        })
    }
}

/// Whether anybody is told what a request costs: who asks, or the log.
fn wants_cost(parts: &Parts, record: &AccessRecord) -> bool {
    edge::rights(parts).is_some() || record.entry().is_some()
}

//! The paths of the server and what stands around every request.
//!
//! | path | answers |
//! | --- | --- |
//! | `/sparql`, `/sparql/` | SPARQL 1.1 protocol: queries and updates; without one, the service description |
//! | `/graphs` | SPARQL 1.1 graph store protocol |
//! | `/changes` | what was committed since, as RDF Patch |
//! | `/explain` | the plan of a query, as text |
//! | `/health` | JSON for load balancers and people |
//! | `/` | the console |
//!
//! From the outside in: access log, `edge` (host, OPTIONS, headers for browsers), gzip, the handler. Which methods a path has
//! stands in `edge::methods_of`.

use crate::access_log::{AccessRecord, log_access};
use crate::admission::{Admission, Turn};
use crate::body::{self, Coding, body_bytes};
use crate::changes::Feeds;
use crate::conditions::Conditions;
use crate::description::Capabilities;
use crate::documents::Documents;
use crate::edge::{self, Edge, methods_of};
use crate::errors::ServerError;
use crate::guard::{HostRule, WriteRule};
use crate::maintenance::{self, Maintenance};
use crate::negotiate::Wish;
use crate::options::{HttpOptions, compaction_within};
use crate::protocol::{self, Operation, QueryRequest};
use crate::query_threads::QueryThreads;
use crate::stream_body::{self, Job, TimeLimit};
use crate::writes::Writes;
use crate::{changes, console, description, graphs, health, updates};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{Method, header, request::Parts};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use orrery_sparql::{DocumentSource, Engine, ParsedUpdate, UpdateOptions};
use orrery_storage::{Snapshot, Writer};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

/// Answers smaller than this are not worth compressing.
const GZIP_BYTES_MIN: u64 = 1024;

/// Bodies of requests that change something may together take one part of so many of the memory.
const BODIES_MEMORY_PART: u64 = 4;
/// A text up to this length is read where it came in.
const TEXT_HERE_BYTES_MAX: usize = 64 << 10;
/// The text of a request, a copy without its escapes, and what is made of it.
const COPIES_OF_TEXT: usize = 3;
/// Updates whose documents are fetched at the same time.
const FETCHES_MAX: usize = 8;

/// What the handlers share.
pub(crate) struct ServerState {
    /// True when the server stops and waits for nobody any more.
    pub(crate) is_over: watch::Receiver<bool>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) admission: Admission,
    pub(crate) options: HttpOptions,
    pub(crate) documents: Arc<dyn DocumentSource>,
    pub(crate) feeds: Feeds,
    /// Bodies and updates that are parsed at the same time.
    parsing: Arc<Semaphore>,
    /// Updates whose documents (`LOAD`) are fetched at the same time.
    fetching: Arc<Semaphore>,
    /// Before the query threads, on which changes under way compute.
    writes: Result<Writes, String>,
    pub(crate) query_threads: QueryThreads,
    write_rule: WriteRule,
    hosts: HostRule,
}

/// Whether and how a server takes changes.
#[derive(Debug)]
pub struct Writing {
    /// The writer of the database, or one sentence on why there is none.
    pub writer: Result<Writer, String>,
    /// Where the server listens.
    pub listen: SocketAddr,
    /// Changes are taken wherever it listens.
    pub allow_writes: bool,
    /// Where `LOAD` finds documents.
    pub documents: Documents,
}

/// The HTTP interface of an engine, ready to be served; starts the query threads. When `is_over` becomes true,
/// queries whose answer has not begun are told that the server stops.
pub fn router(
    engine: Arc<Engine>,
    writing: Writing,
    options: HttpOptions,
    is_over: watch::Receiver<bool>,
) -> io::Result<Router> {
    let edge = Edge {
        // What pages of all origins may read, and those who may write from anywhere, need no protection by a name.
        hosts: HostRule::new(
            writing.listen,
            options.allow_any_origin || writing.allow_writes,
            &options.allow_hosts,
        ),
        allow_any_origin: options.allow_any_origin,
    };
    let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
    let bodies_bytes_max = engine.options().memory_bytes / BODIES_MEMORY_PART;
    let bulk = compaction_within(engine.options().memory_bytes);
    let query_threads = QueryThreads::start(options.queries_running_max)?;
    let state = Arc::new(ServerState {
        is_over,
        engine,
        feeds: Feeds::new(options.feeds_max),
        parsing: Arc::new(Semaphore::new(cores)),
        fetching: Arc::new(Semaphore::new(FETCHES_MAX)),
        admission: Admission::new(options.queries_running_max, options.queries_waiting_max),
        documents: Arc::new(writing.documents),
        writes: match writing.writer {
            Ok(writer) => Ok(Writes::start(
                writer,
                options.updates_waiting_max,
                usize::try_from(bodies_bytes_max).unwrap_or(usize::MAX),
                bulk,
                query_threads.handle().clone(),
            )?),
            Err(reason) => Err(reason),
        },
        query_threads,
        write_rule: WriteRule::new(writing.listen, writing.allow_writes),
        hosts: edge.hosts.clone(),
        options,
    });
    let router =
        Router::new()
            .route("/", known(get(console::page)))
            .route("/console.js", known(get(console::script)))
            .route("/console.css", known(get(console::style)))
            .route("/health", known(get(health::health)))
            .route("/sparql", any(sparql))
            .route("/sparql/", any(sparql))
            .route("/explain", any(explain))
            .route("/changes", known(get(change_feed)))
            .route("/checkpoint", known(post(checkpoint)))
            .route("/compact", known(post(compaction)))
            .route("/graphs", any(graph_store))
            .route("/graphs/", any(graph_store))
            .route("/graphs/{*graph}", any(graph_store))
            // Handlers bound the bodies that they read.
            .layer(DefaultBodyLimit::disable())
            .fallback(not_found)
            .with_state(state)
            .layer(
                CompressionLayer::new()
                    .gzip(true)
                    // Level 1: a third of the size at ten times the speed of the default level.
                    .quality(CompressionLevel::Fastest)
                    // Parquet is compressed already.
                    .compress_when(SizeAbove::new(GZIP_BYTES_MIN).and(
                        NotForContentType::const_new("application/vnd.apache.parquet"),
                    )),
            )
            .layer(middleware::from_fn(move |request, next| {
                edge::around(edge.clone(), request, next)
            }))
            .layer(middleware::from_fn(log_access));
    Ok(router)
}

/// A path that refuses other methods in our words.
fn known<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.fallback(|request: Request| async move {
        method_not_allowed(request.method(), request.uri().path())
            .into_response_for(request.headers())
    })
}

pub(crate) fn method_not_allowed(method: &Method, path: &str) -> ServerError {
    ServerError::MethodNotAllowed {
        method: method.to_string(),
        allowed: methods_of(path).unwrap_or(edge::READ),
    }
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    ServerError::NotFound { path }.into_response_for(request.headers())
}

/// `/sparql`
async fn sparql(
    State(state): State<Arc<ServerState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let _room = match state.update_room(&parts).await {
        Ok(room) => room,
        Err(error) => return error.into_response_for(&parts.headers),
    };
    let answered = match read_operation(&state, &parts, body).await {
        Ok(Operation::Query(query)) => {
            async {
                let job = state.job(&parts, query, record).await?;
                stream_body::answer(job, state.query_threads.handle(), &state.is_over).await
            }
            .await
        }
        Ok(Operation::Update(update)) => {
            async {
                record.set_query(&update.update);
                let writes = state.writes(&parts)?;
                updates::update(&state, writes, &parts, update).await
            }
            .await
        }
        Ok(Operation::Describe { format }) => {
            description::describe(&parts, format, state.capabilities())
        }
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/graphs`
async fn graph_store(
    State(state): State<Arc<ServerState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    graphs::respond(state, record, request).await
}

/// `/changes`
async fn change_feed(
    State(state): State<Arc<ServerState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let answered = changes::answer(&state, record, &parts).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/checkpoint`
async fn checkpoint(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    maintain(&state, request, Maintenance::Checkpoint).await
}

/// `/compact`
async fn compaction(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    maintain(&state, request, Maintenance::Compaction).await
}

async fn maintain(state: &ServerState, request: Request, what: Maintenance) -> Response {
    let (parts, _) = request.into_parts();
    let answered = maintenance::answer(state, &parts, what).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/explain`
async fn explain(
    State(state): State<Arc<ServerState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let explained = match read_operation(&state, &parts, body).await {
        Ok(Operation::Query(query)) => {
            async {
                let job = state.job(&parts, query, record).await?;
                stream_body::explain(job, state.query_threads.handle()).await
            }
            .await
        }
        Ok(Operation::Describe { .. } | Operation::Update(_)) => Err(ServerError::bad_request(
            "the request has no query; send it as parameter `query`",
        )),
        Err(error) => Err(error),
    };
    match explained {
        Ok(plan) => plan.into_response(),
        Err(error) => error.into_response_for(&parts.headers),
    }
}

async fn read_operation(
    state: &ServerState,
    parts: &Parts,
    body: Body,
) -> Result<Operation, ServerError> {
    if !matches!(parts.method, Method::GET | Method::HEAD | Method::POST) {
        return Err(method_not_allowed(&parts.method, parts.uri.path()));
    }
    if parts.method != Method::POST {
        return protocol::parse(&parts.method, parts.uri.query(), &parts.headers, &[]);
    }
    let limit_bytes = state.body_limit(parts);
    let body = body::read(&state.engine, parts, body, limit_bytes).await?;
    // A short text costs less than a change of threads.
    if body.coding == Coding::Identity && body.bytes.len() <= TEXT_HERE_BYTES_MAX {
        let (text, memory) = body.into_text(limit_bytes, COPIES_OF_TEXT)?;
        let operation = protocol::parse(&parts.method, parts.uri.query(), &parts.headers, &text)?;
        return Ok(operation.holding(memory));
    }
    let (method, uri, headers) = (
        parts.method.clone(),
        parts.uri.clone(),
        parts.headers.clone(),
    );
    state
        .while_parsing(move || {
            let (text, memory) = body.into_text(limit_bytes, COPIES_OF_TEXT)?;
            Ok(protocol::parse(&method, uri.query(), &headers, &text)?.holding(memory))
        })
        .await
}

impl ServerState {
    /// What the service description tells.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            union_default_graph: self.options.union_default_graph,
            federation: self.engine.options().service.is_some(),
            update: self.writes.is_ok(),
        }
    }

    /// The writer's door, for a request that may go through it.
    pub(crate) fn writes(&self, parts: &Parts) -> Result<&Writes, ServerError> {
        self.write_rule.check(parts, &self.hosts)?;
        self.writes
            .as_ref()
            .map_err(|reason| ServerError::ReadOnly {
                reason: reason.clone(),
            })
    }

    /// How large the body of a request to `/sparql` may be: an update may be long, a query not.
    fn body_limit(&self, parts: &Parts) -> usize {
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let is_query = content_type.is_some_and(|content_type| {
            content_type
                .as_bytes()
                .to_ascii_lowercase()
                .starts_with(b"application/sparql-query")
        });
        let may_update = parts.method == Method::POST && self.writes.is_ok() && !is_query;
        if may_update {
            self.options.update_bytes_max
        } else {
            self.options.body_bytes_max
        }
    }

    /// Room for a body that is larger than that of any query.
    async fn update_room(&self, parts: &Parts) -> Result<Option<SemaphorePermit<'_>>, ServerError> {
        let limit_bytes = self.body_limit(parts);
        let bytes = body_bytes(parts, limit_bytes);
        match &self.writes {
            Ok(writes) if bytes > self.options.body_bytes_max => {
                Ok(Some(writes.body_room(bytes).await?))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// The time limit of a request that asks for this much.
    pub(crate) fn time_limit(&self, asked: Option<Duration>) -> Result<TimeLimit, ServerError> {
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
    pub(crate) async fn while_parsing<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, ServerError> {
        let turn = Arc::clone(&self.parsing).acquire_owned().await;
        let turn = turn.map_err(|_closed| ServerError::Stopping)?;
        self.on_blocking_thread(move || {
            // Also if nobody waits for it any more.
            let _turn = turn;
            work()
        })
        .await
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
        let options = options.clone();
        self.on_blocking_thread(move || {
            // Also if nobody waits for it any more.
            let _turn = turn;
            update.fetch_documents(&options)?;
            Ok(update)
        })
        .await
    }

    /// Work on a thread of its own, away from those that speak HTTP, and those that watch the clock for queries.
    pub(crate) async fn on_blocking_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, ServerError> {
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
        turn: Turn,
    ) -> Result<(Arc<Snapshot>, Turn), ServerError> {
        let at = changes::parse_at(at)?;
        let database = Arc::clone(self.engine.database());
        let started = Instant::now();
        let replayed = self.on_blocking_thread(move || Ok((database.snapshot_at(at)?, turn)));
        let replayed = tokio::time::timeout(time.left(), replayed).await;
        time.spent += started.elapsed();
        replayed.unwrap_or_else(|_elapsed| Err(time.exceeded()))
    }

    /// Waits for the query's turn and packs what it needs.
    pub(crate) async fn job(
        &self,
        parts: &Parts,
        request: QueryRequest,
        record: Arc<AccessRecord>,
    ) -> Result<Job, ServerError> {
        record.set_query(&request.query);
        let mut time = self.time_limit(request.timeout)?;
        let conditions = Conditions::of(&parts.headers)?;
        let mut turn = self.admission.turn().await?;
        let snapshot = match request.at.as_deref() {
            Some(at) => {
                let (snapshot, same_turn) = self.old_snapshot(at, &mut time, turn).await?;
                turn = same_turn;
                Some(snapshot)
            }
            None => None,
        };
        Ok(Job {
            base_iri: updates::base_iri(parts),
            snapshot,
            scope: edge::scope(parts),
            engine: Arc::clone(&self.engine),
            method: parts.method.clone(),
            conditions,
            wish: Wish::new(&parts.headers, request.format.clone()),
            waiting: Weak::new(),
            union_default_graph: self.options.union_default_graph,
            time,
            request,
            record,
            turn,
            ready: Instant::now(),
        })
    }
}

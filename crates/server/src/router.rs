//! The paths of the server and what stands around every request.
//!
//! | path | answers |
//! | --- | --- |
//! | `/sparql`, `/sparql/` | SPARQL 1.1 protocol: queries and updates; without one, the service description |
//! | `/sql` | statements of SQL |
//! | `/graphs` | SPARQL 1.1 graph store protocol |
//! | `/changes` | what was committed since, as RDF Patch |
//! | `/explain` | the plan of a query, as text |
//! | `/prefixes` | the prefixes that queries need not declare |
//! | `/text` | the index of texts |
//! | `/health` | JSON for load balancers and people |
//! | `/metrics` | what the server counts, for Prometheus |
//! | `/` | the console |
//!
//! From the outside in: access log, `edge` (host, who asks, OPTIONS, headers for browsers, `doorway`), `streamed` (errors before the first bytes), gzip, the handler. Which methods a path has
//! stands in `paths::methods_of`.

use crate::access_log::{AccessRecord, Observers, log_access};
use crate::admission::Admission;
use crate::audit::AuditLog;
use crate::authentication::Authentication;
use crate::body::{self, Coding};
use crate::cluster::cluster;
use crate::documents::Documents;
use crate::doorway::Doorway;
use crate::edge::{self, Edge};
use crate::errors::ServerError;
use crate::feeds::Feeds;
use crate::graph_rules::GraphRules;
use crate::guard::{HostRule, WriteRule};
use crate::load_help::LoadHelp;
use crate::maintenance::{self, Maintenance};
use crate::media_type;
use crate::metering::Accounts;
use crate::metrics::{Listens, Metrics};
use crate::multipart_form;
use crate::nodes::{Answers, Work};
use crate::options::HttpOptions;
use crate::paths::{self, method_not_allowed, methods_of};
use crate::protocol::{self, Operation};
use crate::query_log::QueryLog;
use crate::query_threads::QueryThreads;
use crate::readiness::{OneLook, Readiness};
use crate::seat::{Elsewhere, Here, Seat};
use crate::state::ServerState;
use crate::stream_body::{self};
use crate::traces::Tracer;
use crate::{
    changes, console, description, graphs, health, metrics_page, prefixes, sql, streamed, texts,
    updates,
};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{Method, request::Parts};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, post};
use futures::{StreamExt as _, TryStreamExt as _};
use orrery_distributed::Workers;
use orrery_loader::BackgroundCompaction;
use orrery_query_log::Kind;
use orrery_r2rml::TableMappings;
use orrery_sparql::Engine;
use orrery_sparql_in_sql::{EngineGraphs, Readings};
use orrery_sql::{Session, SessionOptions, WriterSource};
use orrery_storage::Writer;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

/// Answers smaller than this are not worth compressing.
const GZIP_BYTES_MIN: u64 = 1024;

/// A text up to this length is read where it came in.
const TEXT_HERE_BYTES_MAX: usize = 64 << 10;
/// The text of a request, a copy without its escapes, and what is made of it.
const COPIES_OF_TEXT: usize = 3;
/// The parts of a multipart body, and the plain form that is made of them, whose escapes are three bytes each.
const COPIES_OF_PARTS: usize = 4;
/// Updates whose documents are fetched at the same time.
const FETCHES_MAX: usize = 8;

/// Whether and how a server takes changes.
#[derive(Debug)]
pub struct Writing {
    /// The writer of the database, or one sentence on why there is none.
    pub writer: Result<Writer, String>,
    /// What compacts in the background, where the server does that.
    pub compaction: Option<BackgroundCompaction>,
    /// Where the server listens.
    pub listen: SocketAddr,
    /// Changes are taken wherever it listens.
    pub allow_writes: bool,
    /// Where `LOAD` finds documents.
    pub documents: Documents,
}

/// The HTTP interface of an engine, ready to be served; starts the query threads. When `is_over` becomes true,
/// queries whose answer has not begun are told that the server stops.
///
/// Where the database has users, requests may do what its rules say. Else all may see all graphs, but those that come with an [`orrery_storage::ReadScope`] in their extensions: a layer around the
/// router says so who asks. Clients cannot.
pub fn router(
    engine: Arc<Engine>,
    writing: Writing,
    options: HttpOptions,
    is_over: watch::Receiver<bool>,
) -> io::Result<Router> {
    let authentication = Authentication::of(engine.database()).map_err(io::Error::other)?;
    Ok(routes(shared(
        engine,
        writing,
        options,
        authentication,
        is_over,
    )?))
}

/// What SQL reads of graphs, in texts that mean what they mean at `/sparql`.
pub(crate) fn graphs_of(engine: &Arc<Engine>, options: &HttpOptions) -> EngineGraphs {
    EngineGraphs::new(Arc::clone(engine)).with_readings(Readings {
        union_default_graph: options.union_default_graph,
        strict_prefixes: options.strict_prefixes,
    })
}

/// What the handlers share; starts the query threads.
pub(crate) fn shared(
    engine: Arc<Engine>,
    writing: Writing,
    options: HttpOptions,
    mut authentication: Option<Authentication>,
    is_over: watch::Receiver<bool>,
) -> io::Result<Arc<ServerState>> {
    let hosts = HostRule::new(
        writing.listen,
        // What pages of all origins may read, and those who may write from anywhere, need no protection by a name.
        options.allow_any_origin || writing.allow_writes,
        &options.allow_hosts,
    );
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
    // Its changes come with the transaction of `writes`.
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
    let state = ServerState {
        is_over,
        engine,
        feeds: Feeds::new(options.feeds_max),
        sql: sql_session,
        parsing: Arc::new(Semaphore::new(cores)),
        fetching: Arc::new(Semaphore::new(FETCHES_MAX)),
        admission: Admission::new(options.queries_running_max, options.queries_waiting_max),
        documents: Arc::new(writing.documents),
        load_help,
        readiness: Readiness::default(),
        state_look: OneLook::default(),
        seat,
        audit,
        query_log: query_log.map(Arc::new),
        tracer,
        running: options.lists_queries.then(Arc::default),
        query_threads,
        // Who may change what is known then.
        write_rule: WriteRule::new(
            writing.listen,
            writing.allow_writes || authentication.is_some(),
        ),
        authentication: authentication.map(Arc::new),
        metrics,
        accounts: Accounts::default(),
        hosts,
        options,
    };
    match writing.writer {
        Ok(writer) => state
            .seat
            .take(Here::new(state.queue(writer)?, writing.compaction)),
        Err(reason) => state.seat.leave(Elsewhere::because(reason)),
    }
    Ok(Arc::new(state))
}

/// The paths of the server over that.
pub(crate) fn routes(state: Arc<ServerState>) -> Router {
    let doorway = Arc::new(Doorway::new(
        &state.engine,
        &state.seat,
        (state.write_rule, state.hosts.clone()),
        state.options.authorities.clone(),
    ));
    let edge = Edge {
        doorway: Some(doorway),
        hosts: state.hosts.clone(),
        allow_any_origin: state.options.allow_any_origin,
        authentication: state.authentication.clone(),
        audit: state.audit.clone(),
        metrics_token: state.options.metrics_token.clone(),
        methods_of,
    };
    let observers = Arc::new(Observers {
        listens: Listens::Http,
        metrics: Arc::clone(&state.metrics),
        query_log: state.query_log.clone(),
        running: state.running.clone(),
        tracer: state.tracer.clone(),
    });
    Router::new()
        .route("/", known(get(console::page)))
        .route("/console.js", known(get(console::script)))
        .route("/console.css", known(get(console::style)))
        .route(paths::HEALTH, known(get(health::health)))
        .route(paths::READY, known(get(health::ready)))
        .route(paths::METRICS, known(get(metrics_page::metrics)))
        .route("/sparql", any(sparql))
        .route("/sparql/", any(sparql))
        .route("/explain", any(explain))
        .route("/sql", any(sql))
        .route("/changes", known(get(change_feed)))
        .route("/checkpoint", known(post(checkpoint)))
        .route("/compact", known(post(compaction)))
        .route(
            paths::TEXTS,
            known(get(list_texts).post(make_texts).delete(give_texts_up)),
        )
        .route(
            paths::CLUSTER,
            known(get(cluster).post(cluster).delete(cluster)),
        )
        .route("/prefixes", known(get(list_prefixes).post(change_prefixes)))
        .route("/graphs", any(graph_store))
        .route("/graphs/", any(graph_store))
        .route("/graphs/{*graph}", any(graph_store))
        // Handlers bound the bodies that they read.
        .layer(DefaultBodyLimit::disable())
        .fallback(not_found)
        .with_state(state)
        .layer(
            CompressionLayer::new()
                // Of those that a client takes alike the last: zstd is the quickest.
                .gzip(true)
                .br(true)
                .zstd(true)
                // Level 1: a third of the size at ten times the speed of the default level.
                .quality(CompressionLevel::Fastest)
                // Parquet is compressed already.
                .compress_when(
                    SizeAbove::new(GZIP_BYTES_MIN).and(NotForContentType::const_new(
                        "application/vnd.apache.parquet",
                    )),
                ),
        )
        .layer(middleware::from_fn(streamed::around))
        .layer(middleware::from_fn(move |request, next| {
            edge::around(edge.clone(), request, next)
        }))
        .layer(middleware::from_fn(move |request, next| {
            log_access(Arc::clone(&observers), request, next)
        }))
}

/// A path that refuses other methods in our words.
pub(crate) fn known<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.fallback(|request: Request| async move {
        method_not_allowed(request.method(), request.uri().path())
            .into_response_for(request.headers())
    })
}

pub(crate) async fn not_found(request: Request) -> Response {
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
    record.set_user(&parts);
    let _room = match state.update_room(&parts).await {
        Ok(room) => room,
        Err(error) => return error.into_response_for(&parts.headers),
    };
    let answered = match read_operation(&state, &parts, body).await {
        Ok(Operation::Query(query)) => {
            async {
                record.set_asked(Kind::Query, &query.query);
                let job = state.job(&parts, query, record).await?;
                stream_body::answer(job, state.query_threads.handle(), &state.is_over).await
            }
            .await
        }
        Ok(Operation::Update(update)) => {
            async {
                record.set_query(&update.update);
                record.set_asked(Kind::Update, &update.update);
                let writes = state.writes(&parts)?;
                updates::update(&state, &writes, &parts, update).await
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

/// `/sql`
async fn sql(
    State(state): State<Arc<ServerState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    sql::respond(state, record, request).await
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

/// `/prefixes`
async fn list_prefixes(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    prefixes::list(&state, &parts).unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/prefixes`
async fn change_prefixes(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let changed = prefixes::change(&state, &parts).await;
    changed.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/text`
async fn list_texts(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let listed = texts::list(&state, &parts).await;
    listed.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/text`
async fn make_texts(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let made = texts::make(&state, &parts).await;
    made.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/text`
async fn give_texts_up(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let given_up = texts::give_up(&state, &parts).await;
    given_up.unwrap_or_else(|error| error.into_response_for(&parts.headers))
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
        Ok(explained) => explained,
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
    if media_type::is_multipart(&parts.headers) {
        let (text, mut memory) = body.into_text(limit_bytes, COPIES_OF_TEXT)?;
        // The parts, and the form that is made of them.
        memory.resize(text.len().saturating_mul(COPIES_OF_TEXT + COPIES_OF_PARTS))?;
        let (headers, form) = multipart_form::as_plain_form(&parts.headers, &text)?;
        let operation = protocol::parse(&parts.method, parts.uri.query(), &headers, &form)?;
        return Ok(operation.holding(memory));
    }
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
        .while_parsing(move |_short| {
            let (text, memory) = body.into_text(limit_bytes, COPIES_OF_TEXT)?;
            Ok(protocol::parse(&method, uri.query(), &headers, &text)?.holding(memory))
        })
        .await
}

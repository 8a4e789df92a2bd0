//! The paths of the server and what stands around every request.
//!
//! | path | answers |
//! | --- | --- |
//! | `/sparql` | SPARQL 1.1 protocol: queries and updates; without one, the service description |
//! | `/graphs` | SPARQL 1.1 graph store protocol |
//! | `/changes` | what was committed since, as RDF Patch |
//! | `/explain` | the plan of a query, as text |
//! | `/health` | JSON for load balancers and people |
//! | `/` | the console |
//!
//! From the outside in: access log, headers for browsers, gzip, the handler.

use crate::access_log::{AccessRecord, log_access};
use crate::admission::Admission;
use crate::description::Capabilities;
use crate::documents::Documents;
use crate::errors::ServerError;
use crate::guard::WriteRule;
use crate::maintenance::{self, Maintenance};
use crate::negotiate::Wish;
use crate::options::HttpOptions;
use crate::protocol::{self, Operation, QueryRequest};
use crate::query_threads::QueryThreads;
use crate::stream_body::{self, Job, TimeLimit};
use crate::writes::Writes;
use crate::{changes, console, description, graphs, health, updates};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use orrery_sparql::{DocumentSource, Engine};
use orrery_storage::{Snapshot, Writer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{SemaphorePermit, watch};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

/// Answers smaller than this are not worth compressing.
const GZIP_BYTES_MIN: u64 = 1024;
/// How long a client may take to send the body of its request.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// What the handlers share.
pub(crate) struct ServerState {
    /// True when the server stops and waits for nobody any more.
    pub(crate) is_over: watch::Receiver<bool>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) admission: Admission,
    pub(crate) options: HttpOptions,
    pub(crate) query_threads: QueryThreads,
    pub(crate) documents: Arc<dyn DocumentSource>,
    writes: Result<Writes, String>,
    write_rule: WriteRule,
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
    let allow_any_origin = options.allow_any_origin;
    let state = Arc::new(ServerState {
        is_over,
        engine,
        admission: Admission::new(options.queries_running_max, options.queries_waiting_max),
        query_threads: QueryThreads::start(options.queries_running_max)?,
        documents: Arc::new(writing.documents),
        writes: match writing.writer {
            Ok(writer) => Ok(Writes::start(writer, options.updates_waiting_max)?),
            Err(reason) => Err(reason),
        },
        write_rule: WriteRule::new(writing.listen, writing.allow_writes),
        options,
    });
    let router =
        Router::new()
            .route("/", read_only(get(console::page)))
            .route("/console.js", read_only(get(console::script)))
            .route("/console.css", read_only(get(console::style)))
            .route("/health", read_only(get(health::health)))
            .route("/sparql", any(sparql))
            .route("/explain", any(explain))
            .route("/changes", read_only(get(change_feed)))
            .route("/checkpoint", post_only(post(checkpoint)))
            .route("/compact", post_only(post(compaction)))
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
                browser_headers(allow_any_origin, request, next)
            }))
            .layer(middleware::from_fn(log_access));
    Ok(router)
}

fn read_only<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.fallback(|method: Method, headers: HeaderMap| async move {
        method_not_allowed(&method, "GET, HEAD").into_response_for(&headers)
    })
}

fn post_only<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.fallback(|method: Method, headers: HeaderMap| async move {
        method_not_allowed(&method, "POST").into_response_for(&headers)
    })
}

fn method_not_allowed(method: &Method, allowed: &'static str) -> ServerError {
    ServerError::MethodNotAllowed {
        method: method.to_string(),
        allowed,
    }
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    ServerError::NotFound { path }.into_response_for(request.headers())
}

/// Headers that keep a browser from making more of an answer than it is, and CORS if wanted.
async fn browser_headers(allow_any_origin: bool, request: Request, next: Next) -> Response {
    let is_preflight = allow_any_origin
        && request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        let allow = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "Accept, Content-Type"),
            (header::ACCESS_CONTROL_MAX_AGE, "86400"),
        ];
        headers.extend(allow.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    // The console brings its own policy; data is never a page.
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; sandbox"));
    if allow_any_origin {
        let any = HeaderValue::from_static("*");
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    }
    response
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
                let writes = state.writes(&parts.headers)?;
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
        return Err(method_not_allowed(&parts.method, "GET, HEAD, POST"));
    }
    let body = read_body(state.body_limit(parts), body).await?;
    protocol::parse(&parts.method, parts.uri.query(), &parts.headers, &body)
}

/// How much room a body will need: what its head says, else as much as it may have.
pub(crate) fn body_bytes(parts: &Parts, limit_bytes: usize) -> usize {
    let has_none = matches!(parts.method, Method::GET | Method::HEAD);
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    length
        .unwrap_or(if has_none { 0 } else { limit_bytes })
        .min(limit_bytes)
}

/// Reads a body to its end, which must come soon enough.
pub(crate) async fn read_body(limit_bytes: usize, body: Body) -> Result<Bytes, ServerError> {
    // What says that it is too long need not be sent at all.
    if body.size_hint().lower() > limit_bytes as u64 {
        return Err(ServerError::PayloadTooLarge { limit_bytes });
    }
    let collected = tokio::time::timeout(BODY_TIME_MAX, Limited::new(body, limit_bytes).collect());
    match collected.await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(ServerError::PayloadTooLarge { limit_bytes })
        }
        Ok(Err(error)) => Err(ServerError::bad_request(format!(
            "the request body could not be read: {error}"
        ))),
        Err(_elapsed) => Err(ServerError::BodyTooSlow {
            limit: BODY_TIME_MAX,
        }),
    }
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
    pub(crate) fn writes(&self, headers: &HeaderMap) -> Result<&Writes, ServerError> {
        self.write_rule.check(headers)?;
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

    /// The state that a request asks for: a commit, a time, or the newest.
    pub(crate) async fn snapshot_at(&self, at: Option<&str>) -> Result<Arc<Snapshot>, ServerError> {
        let Some(at) = at else {
            return Ok(self.engine.database().snapshot());
        };
        let at = changes::parse_at(at)?;
        let database = Arc::clone(self.engine.database());
        // An older state may have to be put together from the log.
        self.on_query_thread(move || Ok(database.snapshot_at(at)?))
            .await
    }

    /// The time limit of a request that asks for this much.
    pub(crate) fn time_limit(&self, asked: Option<Duration>) -> TimeLimit {
        let maximum = self.options.timeout_max;
        let limit = asked.unwrap_or(self.options.timeout_default);
        TimeLimit {
            limit: limit.min(maximum),
            maximum,
        }
    }

    /// Work that computes rather than waits, away from the HTTP threads.
    pub(crate) async fn on_query_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, ServerError> {
        let done = self.query_threads.handle().spawn(async move { work() });
        done.await.unwrap_or_else(|error| {
            Err(ServerError::Internal {
                message: format!("the request was not worked out: {error}"),
            })
        })
    }

    /// Waits for the query's turn and packs what it needs.
    pub(crate) async fn job(
        &self,
        parts: &Parts,
        request: QueryRequest,
        record: Arc<AccessRecord>,
    ) -> Result<Job, ServerError> {
        record.set_query(&request.query);
        let snapshot = match request.at.as_deref() {
            Some(at) => Some(self.snapshot_at(Some(at)).await?),
            None => None,
        };
        Ok(Job {
            base_iri: updates::base_iri(parts),
            snapshot,
            engine: Arc::clone(&self.engine),
            wish: Wish::new(&parts.headers, request.format.clone()),
            union_default_graph: self.options.union_default_graph,
            time: self.time_limit(request.timeout),
            request,
            record,
            turn: self.admission.turn().await?,
            ready: Instant::now(),
        })
    }
}

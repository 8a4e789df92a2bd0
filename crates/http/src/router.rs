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

use crate::answer::error_response::ErrorResponse as _;
use crate::answer::stream_body::{self};
use crate::answer::streamed;
use crate::edge::access_log::{AccessRecord, log_access};
use crate::edge::around::{self, Edge};
use crate::edge::doorway::Doorway;
use crate::paths::{self, method_not_allowed, methods_of};
use crate::request::body::{self, Coding};
use crate::request::media_type;
use crate::request::multipart_form;
use crate::request::protocol::{self, Operation};
use crate::routes::changes;
use crate::routes::cluster::cluster;
use crate::routes::console;
use crate::routes::description;
use crate::routes::graphs;
use crate::routes::health;
use crate::routes::maintenance::{self, Maintenance};
use crate::routes::metrics_page;
use crate::routes::prefixes;
use crate::routes::sql;
use crate::routes::texts;
use crate::routes::updates;
use crate::state::HttpState;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{Method, request::Parts};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, post};
use orrery_query_log::Kind;
use orrery_service::errors::ServiceError;
use orrery_service::metrics::Listens;
use std::sync::Arc;
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

/// The HTTP interface, ready to be served.
///
/// Where the database has users, requests may do what its rules say. Else all may see all graphs, but those that come with an
/// [`orrery_storage::ReadScope`] in their extensions: a layer around the router says so who asks. Clients cannot.
pub fn router(state: Arc<HttpState>) -> Router {
    let doorway = Arc::new(Doorway::new(
        &state.engine,
        &state.seat,
        (state.write_rule, state.hosts.clone()),
        state.http.authorities.clone(),
    ));
    let edge = Edge {
        doorway: Some(doorway),
        hosts: state.hosts.clone(),
        allow_any_origin: state.http.allow_any_origin,
        authentication: state.authentication.clone(),
        audit: state.audit.clone(),
        metrics_token: state.http.metrics_token.clone(),
        methods_of,
    };
    let observers = Arc::new(state.observers(Listens::Http));
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
            around::around(edge.clone(), request, next)
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
    ServiceError::NotFound { path }.into_response_for(request.headers())
}

/// `/sparql`
async fn sparql(
    State(state): State<Arc<HttpState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    record.set_asker(&parts);
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
    State(state): State<Arc<HttpState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    sql::respond(state, record, request).await
}

/// `/graphs`
async fn graph_store(
    State(state): State<Arc<HttpState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    graphs::respond(state, record, request).await
}

/// `/changes`
async fn change_feed(
    State(state): State<Arc<HttpState>>,
    Extension(record): Extension<Arc<AccessRecord>>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let answered = changes::answer(&state, record, &parts).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/checkpoint`
async fn checkpoint(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    maintain(&state, request, Maintenance::Checkpoint).await
}

/// `/compact`
async fn compaction(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    maintain(&state, request, Maintenance::Compaction).await
}

async fn maintain(state: &HttpState, request: Request, what: Maintenance) -> Response {
    let (parts, _) = request.into_parts();
    let answered = maintenance::answer(state, &parts, what).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/prefixes`
async fn list_prefixes(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    prefixes::list(&state, &parts).unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/prefixes`
async fn change_prefixes(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let changed = prefixes::change(&state, &parts).await;
    changed.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/text`
async fn list_texts(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let listed = texts::list(&state, &parts).await;
    listed.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/text`
async fn make_texts(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let made = texts::make(&state, &parts).await;
    made.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/text`
async fn give_texts_up(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let given_up = texts::give_up(&state, &parts).await;
    given_up.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// `/explain`
async fn explain(
    State(state): State<Arc<HttpState>>,
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
        Ok(Operation::Describe { .. } | Operation::Update(_)) => Err(ServiceError::bad_request(
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
    state: &HttpState,
    parts: &Parts,
    body: Body,
) -> Result<Operation, ServiceError> {
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

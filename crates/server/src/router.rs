//! The paths of the server and what stands around every request.
//!
//! | path | answers |
//! | --- | --- |
//! | `/sparql` | SPARQL 1.1 protocol: queries; without one, the service description |
//! | `/explain` | the plan of a query, as text |
//! | `/health` | JSON for load balancers and people |
//! | `/` | the console |
//!
//! From the outside in: access log, headers for browsers, gzip, the handler.

use crate::access_log::{AccessRecord, log_access};
use crate::admission::Admission;
use crate::errors::ServerError;
use crate::negotiate::Wish;
use crate::options::HttpOptions;
use crate::protocol::{self, Operation, QueryRequest};
use crate::query_threads::QueryThreads;
use crate::stream_body::{self, Job, TimeLimit};
use crate::{console, description, health};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use orrery_sparql::Engine;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

/// Answers smaller than this are not worth compressing.
const GZIP_BYTES_MIN: u64 = 1024;
/// How long a client may take to send the body of its request.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// What the handlers share.
pub(crate) struct ServerState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) admission: Admission,
    options: HttpOptions,
    query_threads: QueryThreads,
}

/// The HTTP interface of an engine, ready to be served; starts the query threads.
pub fn router(engine: Arc<Engine>, options: HttpOptions) -> io::Result<Router> {
    let allow_any_origin = options.allow_any_origin;
    let state = Arc::new(ServerState {
        engine,
        admission: Admission::new(options.queries_running_max, options.queries_waiting_max),
        query_threads: QueryThreads::start(options.queries_running_max)?,
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
    let answered = match read_operation(&state, &parts, body).await {
        Ok(Operation::Query(query)) => {
            async {
                let job = state.job(&parts, query, record).await?;
                stream_body::answer(job, state.query_threads.handle()).await
            }
            .await
        }
        Ok(Operation::Describe { format }) => description::describe(&parts, format),
        Err(error) => Err(error),
    };
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
        Ok(Operation::Describe { .. }) => Err(ServerError::bad_request(
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
    let body = read_body(state.options.body_bytes_max, body).await?;
    protocol::parse(&parts.method, parts.uri.query(), &parts.headers, &body)
}

async fn read_body(limit_bytes: usize, body: Body) -> Result<Bytes, ServerError> {
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
    /// Waits for the query's turn and packs what it needs.
    async fn job(
        &self,
        parts: &Parts,
        request: QueryRequest,
        record: Arc<AccessRecord>,
    ) -> Result<Job, ServerError> {
        record.set_query(&request.query);
        let maximum = self.options.timeout_max;
        let limit = request.timeout.unwrap_or(self.options.timeout_default);
        Ok(Job {
            engine: Arc::clone(&self.engine),
            wish: Wish::new(&parts.headers, request.format.clone()),
            union_default_graph: self.options.union_default_graph,
            time: TimeLimit {
                limit: limit.min(maximum),
                maximum,
            },
            request,
            record,
            _turn: self.admission.turn().await?,
        })
    }
}

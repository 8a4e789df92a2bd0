//! The SPARQL 1.1 Graph Store Protocol, at `/graphs`.
//!
//! <https://www.w3.org/TR/sparql11-http-rdf-update/>
//!
//! | address | names |
//! | --- | --- |
//! | `/graphs?graph=IRI` | that graph |
//! | `/graphs?default` | the default graph |
//! | `/graphs/some/path` | the graph with this very address, `http://HOST/graphs/some/path` |
//! | `/graphs` | for POST: triples become a new graph, quads go where they say |
//!
//! | method | does | answers |
//! | --- | --- | --- |
//! | GET, HEAD | reads | 200; 404 if there is no such graph |
//! | PUT | replaces | 201 if the graph is new, else 200 |
//! | POST | adds; also several files as multipart/form-data | 201 if the graph is new, else 200 |
//! | DELETE | removes | 200; 404 if there is no such graph |
//! | PATCH | updates by application/sparql-update, which sees the graph as its default graph | 200 |
//!
//! A large body of POST is a load (see `bulk`). Each other change is one transaction with `ETag` and `If-Match` as in `updates`. A graph without quads does
//! not exist: after PUT of an empty document GET answers 404. The default graph always exists.

use crate::access_log::AccessRecord;
use crate::documents::{self, format_of_body, format_of_type, has_graphs};
use crate::errors::ServerError;
use crate::guard::host_of;
use crate::protocol::{QueryRequest, parse_durability, url_parameters};
use crate::router::{ServerState, body_bytes, read_body};
use crate::stream_body;
use crate::updates::{self, CommitWish};
use crate::writes::{Committed, Writes};
use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{HeaderValue, Method, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use orrery_loader::{DocumentError, Format, read_document};
use orrery_sparql::{ParsedUpdate, Statements, UpdateOptions, graph_exists};
use orrery_storage::Transaction;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

/// Where the protocol is spoken.
pub(crate) const PATH: &str = "/graphs";

/// Memory that the statements of one request may take, as a multiple of its largest body.
/// What errors in the data of a request call their place.
const BODY_NAME: &str = "the request's body";
const MEMORY_PER_BODY_BYTE: usize = 16;

mod bulk;

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The default graph, or a graph with a name.
    Graph(Option<String>),
    /// No graph was named.
    Store,
}

/// What the address says beside the graph.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    target: Target,
    is_relaxed: bool,
    format: Option<String>,
    at: Option<String>,
}

impl Address {
    fn parse(parts: &Parts) -> Result<Self, ServerError> {
        let mut address = Self {
            target: Target::Store,
            is_relaxed: false,
            format: None,
            at: None,
        };
        let mut named = 0;
        for (name, value) in url_parameters(parts.uri.query())? {
            match name.as_str() {
                "default" => {
                    named += 1;
                    address.target = Target::Graph(None);
                }
                "graph" => {
                    named += 1;
                    address.target = Target::Graph(Some(checked_iri(&value)?));
                }
                "durability" => address.is_relaxed = parse_durability(&value)?,
                "format" | "output" => address.format = Some(value),
                "at" => address.at = Some(value),
                _ => {}
            }
        }
        let path = parts.uri.path();
        let rest = path.strip_prefix(PATH).unwrap_or_default();
        if !rest.trim_start_matches('/').is_empty() {
            named += 1;
            let host = host_of(&parts.headers)?;
            address.target = Target::Graph(Some(checked_iri(&format!("http://{host}{path}"))?));
        }
        if named > 1 {
            return Err(ServerError::bad_request(
                "the request names more than one graph; name it once, by ?graph=, ?default or the path",
            ));
        }
        Ok(address)
    }

    /// The graph, where the method needs one.
    fn graph(&self) -> Result<Option<&str>, ServerError> {
        match &self.target {
            Target::Graph(name) => Ok(name.as_deref()),
            Target::Store => Err(ServerError::bad_request(
                "the request names no graph; add ?graph=IRI or ?default",
            )),
        }
    }
}

fn checked_iri(iri: &str) -> Result<String, ServerError> {
    oxrdf::NamedNode::new(iri)
        .map(oxrdf::NamedNode::into_string)
        .map_err(|error| ServerError::bad_request(format!("`{iri}` is no graph's IRI: {error}")))
}

const METHODS: &str = "GET, HEAD, PUT, POST, DELETE, PATCH";

/// Answers a request to `/graphs`.
pub(crate) async fn answer(
    state: &Arc<ServerState>,
    record: Arc<AccessRecord>,
    parts: &Parts,
    body: Body,
) -> Result<Response, ServerError> {
    let address = Address::parse(parts)?;
    match parts.method {
        Method::GET | Method::HEAD => return read(state, record, parts, &address).await,
        Method::PUT | Method::POST | Method::DELETE | Method::PATCH => {}
        _ => {
            return Err(ServerError::MethodNotAllowed {
                method: parts.method.to_string(),
                allowed: METHODS,
            });
        }
    }
    let writes = state.writes(&parts.headers)?;
    if address.at.is_some() {
        return Err(ServerError::bad_request(
            "`at` is for reading; the past cannot be changed",
        ));
    }
    match parts.method {
        Method::PUT => {
            address.graph()?;
            store(state, writes, parts, body, &address, true).await
        }
        Method::POST => store(state, writes, parts, body, &address, false).await,
        Method::PATCH => patch(state, writes, parts, body, &address).await,
        _ => delete(state, writes, parts, &address).await,
    }
}

async fn read(
    state: &ServerState,
    record: Arc<AccessRecord>,
    parts: &Parts,
    address: &Address,
) -> Result<Response, ServerError> {
    let graph = address.graph()?;
    let snapshot = state.snapshot_at(address.at.as_deref()).await?;
    if let Some(name) = graph
        && !graph_exists(&snapshot, graph)?
    {
        return Err(no_such_graph(name));
    }
    // The name was checked: it cannot end the query's IRI.
    let query = match graph {
        Some(name) => format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{name}> {{ ?s ?p ?o }} }}"),
        None => "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }".to_owned(),
    };
    let request = QueryRequest {
        query,
        format: address.format.clone(),
        ..QueryRequest::default()
    };
    let mut job = state.job(parts, request, record).await?;
    job.snapshot = Some(snapshot);
    job.union_default_graph = false;
    stream_body::answer(job, state.query_threads.handle(), &state.is_over).await
}

fn no_such_graph(name: &str) -> ServerError {
    ServerError::Missing {
        message: format!("there is no graph <{name}>"),
    }
}

/// PUT and POST.
async fn store(
    state: &Arc<ServerState>,
    writes: &Writes,
    parts: &Parts,
    body: Body,
    address: &Address,
    is_replacing: bool,
) -> Result<Response, ServerError> {
    let wish = CommitWish::new(&parts.headers, address.is_relaxed)?;
    let limit_bytes = state.options.update_bytes_max;
    if !is_replacing && bulk::is_large(parts, limit_bytes) {
        return bulk::load(state, writes, parts, body, address, &wish).await;
    }
    let _room = writes.body_room(body_bytes(parts, limit_bytes)).await?;
    let files = read_files(state, parts, body).await?;
    let target = match &address.target {
        Target::Graph(name) => Target::Graph(name.clone()),
        Target::Store if files.iter().all(|file| has_graphs(file.format)) => Target::Store,
        Target::Store => Target::Graph(Some(new_graph(parts)?)),
    };
    let base = match &target {
        Target::Graph(Some(name)) => Some(name.clone()),
        Target::Graph(None) | Target::Store => updates::base_iri(parts),
    };
    let of_thread = target.clone();
    let memory_bytes = limit_bytes.saturating_mul(MEMORY_PER_BODY_BYTE);
    let (statements, warnings) = state
        .on_query_thread(move || {
            let (mut statements, warnings) = read_all(files, base.as_deref(), memory_bytes)?;
            confine(&mut statements, &of_thread)?;
            Ok((statements, warnings))
        })
        .await?;
    let graph = match &target {
        Target::Graph(name) => name.clone(),
        Target::Store => None,
    };
    let update = match is_replacing {
        true => ParsedUpdate::replace(graph.as_deref(), statements),
        false => ParsedUpdate::insert(statements),
    };
    let (committed, existed) = make(state, writes, parts, update, graph.clone(), wish).await?;
    let is_new = matches!(&target, Target::Graph(Some(_))) && !existed;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = updates::answer_with(status, committed, &warnings);
    if let (Target::Store, Some(name)) = (&address.target, &graph) {
        let location = HeaderValue::try_from(name).map_err(|_| ServerError::Internal {
            message: "the new graph's IRI is no header".to_owned(),
        })?;
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Applies an update; also tells whether the graph had quads before.
async fn make(
    state: &Arc<ServerState>,
    writes: &Writes,
    parts: &Parts,
    update: ParsedUpdate,
    graph: Option<String>,
    wish: CommitWish,
) -> Result<(Committed, bool), ServerError> {
    let (sender, existed) = tokio::sync::oneshot::channel();
    let options = UpdateOptions::default();
    let who = updates::who(&parts.headers);
    let engine = Arc::clone(&state.engine);
    let change = updates::change(engine, update, options, wish, who);
    let watched = move |transaction: &mut Transaction, runtime: &Runtime| {
        let existed = graph_exists(&*transaction.snapshot()?, graph.as_deref())?;
        let options = change(transaction, runtime)?;
        // Nobody is left to hear it if this fails.
        let _ = sender.send(existed);
        Ok(options)
    };
    let committed = writes.make(Box::new(watched)).await?;
    Ok((committed, existed.await.unwrap_or(true)))
}

async fn delete(
    state: &Arc<ServerState>,
    writes: &Writes,
    parts: &Parts,
    address: &Address,
) -> Result<Response, ServerError> {
    let graph = address.graph()?.map(str::to_owned);
    let wish = CommitWish::new(&parts.headers, address.is_relaxed)?;
    let update = ParsedUpdate::clear(graph.as_deref());
    let (committed, existed) = make(state, writes, parts, update, graph.clone(), wish).await?;
    match graph {
        Some(name) if !existed => Err(no_such_graph(&name)),
        _ => Ok(updates::answer(StatusCode::OK, committed)),
    }
}

async fn patch(
    state: &Arc<ServerState>,
    writes: &Writes,
    parts: &Parts,
    body: Body,
    address: &Address,
) -> Result<Response, ServerError> {
    let graph = address.graph()?.map(str::to_owned);
    let wish = CommitWish::new(&parts.headers, address.is_relaxed)?;
    let content_type = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|value| value.trim().to_ascii_lowercase());
    if content_type.as_deref() != Some("application/sparql-update") {
        return Err(ServerError::unsupported_media_type(
            "a patch must be application/sparql-update".to_owned(),
        ));
    }
    let limit_bytes = state.options.update_bytes_max;
    let _room = writes.body_room(body_bytes(parts, limit_bytes)).await?;
    let body = read_body(limit_bytes, body).await?;
    let text = String::from_utf8(body.into())
        .map_err(|_| ServerError::bad_request("the update is not UTF-8"))?;
    let mut options = UpdateOptions::default();
    options.query.timeout = Some(state.time_limit(None).limit);
    options.query.base_iri = graph.clone().or_else(|| updates::base_iri(parts));
    let engine = Arc::clone(&state.engine);
    let (of_parse, of_graph) = (options.clone(), graph.clone());
    let update = state
        .on_query_thread(move || {
            let mut update = engine.prepare_update(&text, &of_parse)?;
            update
                .confine(of_graph.as_deref())
                .map_err(|message| ServerError::Unprocessable { message })?;
            Ok(update)
        })
        .await?;
    let who = updates::who(&parts.headers);
    let change = updates::change(Arc::clone(&state.engine), update, options, wish, who);
    let committed = writes.make(change).await?;
    Ok(updates::answer(StatusCode::OK, committed))
}

/// An IRI that no graph has yet.
fn new_graph(parts: &Parts) -> Result<String, ServerError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let host = host_of(&parts.headers)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros());
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    checked_iri(&format!(
        "http://{host}{PATH}/{now:x}-{process:x}-{number:x}"
    ))
}

/// A document of a request.
struct UploadedFile {
    bytes: Bytes,
    format: Format,
    name: String,
}

async fn read_files(
    state: &ServerState,
    parts: &Parts,
    body: Body,
) -> Result<Vec<UploadedFile>, ServerError> {
    let limit_bytes = state.options.update_bytes_max;
    let is_multipart = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value
                .to_ascii_lowercase()
                .starts_with("multipart/form-data")
        });
    if !is_multipart {
        let format = format_of_body(&parts.headers)?;
        let bytes = read_body(limit_bytes, body).await?;
        let name = BODY_NAME.to_owned();
        return Ok(vec![UploadedFile {
            bytes,
            format,
            name,
        }]);
    }
    let bytes = read_body(limit_bytes, body).await?;
    let mut request = Request::new(Body::from(bytes));
    *request.headers_mut() = parts.headers.clone();
    // Says that the extractor has no limit of its own.
    *request.extensions_mut() = parts.extensions.clone();
    let bad = |error: &dyn std::fmt::Display| {
        ServerError::bad_request(format!("the multipart body is broken: {error}"))
    };
    let mut multipart = Multipart::from_request(request, &())
        .await
        .map_err(|error| bad(&error))?;
    let mut files = Vec::new();
    while let Some(field) = multipart.next_field().await.map_err(|error| bad(&error))? {
        let name = field.file_name().or(field.name()).unwrap_or("a part");
        let name = name.to_owned();
        let by_type = field.content_type().and_then(format_of_type);
        let format = by_type
            .or_else(|| Format::from_path(Path::new(&name)))
            .ok_or_else(|| {
                ServerError::unsupported_media_type(format!(
                    "neither the Content-Type nor the name of `{name}` tells its format"
                ))
            })?;
        let bytes = field.bytes().await.map_err(|error| bad(&error))?;
        files.push(UploadedFile {
            bytes,
            format,
            name,
        });
    }
    Ok(files)
}

/// The statements of all files, and what the client should know of them.
fn read_all(
    files: Vec<UploadedFile>,
    base_iri: Option<&str>,
    memory_bytes: usize,
) -> Result<(Statements, Vec<String>), ServerError> {
    let (mut statements, mut warnings) = (Statements::new(), Vec::new());
    for (number, file) in files.into_iter().enumerate() {
        let input = Cursor::new(file.bytes);
        let document = read_document(input, &file.name, file.format, base_iri, memory_bytes)
            .map_err(|error| match error {
                DocumentError::TooLarge { .. } => ServerError::OutOfMemory {
                    message: error.to_string(),
                },
                other => ServerError::bad_request(other.to_string()),
            })?;
        warnings.extend(document.warning().map(str::to_owned));
        documents::add(&document, &format!("{number}:"), &mut statements)
            .map_err(|error| ServerError::bad_request(error.to_string()))?;
    }
    Ok((statements, warnings))
}

/// Puts the statements into the graph of the request; refuses those that name others.
fn confine(statements: &mut Statements, target: &Target) -> Result<(), ServerError> {
    let is_whole = match target {
        Target::Store => true,
        Target::Graph(None) => !statements.has_named_graphs(),
        Target::Graph(Some(name)) => statements
            .move_to_graph(&orrery_term::Term::iri(name.as_str()))
            .map_err(|error| ServerError::bad_request(error.to_string()))?,
    };
    if is_whole {
        return Ok(());
    }
    Err(ServerError::bad_request(
        "the document has named graphs of its own; send N-Quads or TriG to /graphs without a graph",
    ))
}

/// The handler's answer for a client.
pub(crate) async fn respond(
    state: Arc<ServerState>,
    record: Arc<AccessRecord>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let answered = answer(&state, record, &parts, body).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(uri: &str) -> Result<Target, StatusCode> {
        let request = axum::http::Request::builder()
            .uri(uri)
            .header("host", "localhost:7878");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Address::parse(&parts)
            .map(|address| address.target)
            .map_err(|error| error.status())
    }

    #[test]
    fn a_graph_is_named_once() {
        let named = |iri: &str| Ok(Target::Graph(Some(iri.to_owned())));
        assert_eq!(address("/graphs"), Ok(Target::Store));
        assert_eq!(address("/graphs/"), Ok(Target::Store));
        assert_eq!(address("/graphs?default"), Ok(Target::Graph(None)));
        assert_eq!(address("/graphs?default="), Ok(Target::Graph(None)));
        assert_eq!(address("/graphs?graph=http://e/g"), named("http://e/g"));
        assert_eq!(
            address("/graphs?graph=http%3A%2F%2Fe%2Fg"),
            named("http://e/g")
        );
        assert_eq!(
            address("/graphs?graph=http://e/%2531"),
            named("http://e/%31")
        );
        assert_eq!(
            address("/graphs/a/1.ttl"),
            named("http://localhost:7878/graphs/a/1.ttl")
        );
        for bad in [
            "/graphs?graph=relative",
            "/graphs?graph=",
            "/graphs?graph=http://e/%3E%20x",
            "/graphs?graph=http://e/g&default",
            "/graphs?graph=http://e/g&graph=http://e/g",
            "/graphs/a?graph=http://e/g",
        ] {
            assert_eq!(address(bad), Err(StatusCode::BAD_REQUEST), "{bad}");
        }
    }
}

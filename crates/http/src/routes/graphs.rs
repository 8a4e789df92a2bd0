//! The SPARQL 1.1 Graph Store Protocol, at `/graphs`.
//!
//! <https://www.w3.org/TR/sparql11-http-rdf-update/>
//!
//! | address | names |
//! | --- | --- |
//! | `/graphs?graph=IRI` | that graph |
//! | `/graphs?default` | the default graph |
//! | `/graphs/some/path` | the graph with this address as its name, `http://HOST/graphs/some/path` |
//! | `/graphs` | for GET: all quads; for POST: triples become a new graph, quads go to the graphs that they name |
//!
//! | method | does | answers |
//! | --- | --- | --- |
//! | GET, HEAD | reads | 200; 404 if there is no such graph |
//! | PUT | replaces | 201 if the graph is new, else 200 |
//! | POST | adds; also several files as multipart/form-data, in one commit (see `uploads`) | 201 if the graph is new, else 200 |
//! | DELETE | removes | 200; 404 if there is no such graph |
//! | PATCH | updates by application/sparql-update, which sees the graph as its default graph | 200 |
//!
//! A large body of POST, or one that does not fit into memory, is a load (see `bulk`). Each other
//! change is one transaction with `ETag` and conditions as in `updates`; with `If-None-Match: *` it
//! only creates, and leaves alone what exists. A graph without quads does not exist: after PUT of
//! an empty document GET answers 404. The default graph always exists.

use crate::answer::stream_body;
use crate::edge::access_log::AccessRecord;
use crate::edge::around;
use crate::edge::guard::base_iri;
use crate::edge::guard::host_of;
use crate::request::body::{self, BodyMemory, body_bytes};
use crate::request::documents::document_memory_bytes;
use crate::request::media_type;
use crate::request::protocol::QueryRequest;
use crate::route_table::HttpRequest;
use crate::routes::graphs::address::{Address, GRAPHS, Target, graph_of_path};
use crate::routes::graphs::bulk::Load;
use crate::routes::graphs::spool::{Announced, Spool, SpooledDocument};
use crate::routes::graphs::uploads::{Content, ReadBounds, UploadedFile};
use crate::routes::updates::{self, CommitRequest, HeldUpdate};
use crate::state::HttpState;
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header, request::Parts};
use axum::response::Response;
use bytes::Bytes;
use orrery_query_log::Kind;
use orrery_service::errors::ServiceError;
use orrery_service::metering::{Meter, Payment};
use orrery_service::writes::{Change, Committed, Writes};
use orrery_sparql::{ParsedUpdate, UpdateOptions, graph_exists};
use orrery_storage::{ReadView, Transaction};
use orrery_term::Term;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

/// Most memory of a patch, as a multiple of its text: the text, and what is made of it.
const COPIES_OF_PATCH: usize = 3;

mod address;
mod bulk;
mod form_documents;
mod spool;
mod uploads;

/// GET: a graph, or all quads.
pub(crate) async fn read(request: HttpRequest) -> Result<Response, ServiceError> {
    let HttpRequest {
        state,
        record,
        parts,
    } = request;
    let address = Address::parse(&parts)?;
    read_graph(&state, record, &parts, &address).await
}

/// PUT, POST, DELETE and PATCH.
pub(crate) async fn change(request: HttpRequest, body: Body) -> Result<Response, ServiceError> {
    let HttpRequest {
        state,
        record,
        parts,
    } = request;
    let (state, parts) = (&state, &*parts);
    let address = Address::parse(parts)?;
    let writes = state.writes(parts)?;
    let mut options = around::update_options(parts)?;
    if let Target::Graph(graph) = &address.target {
        let name = graph.as_ref().map(|iri| Term::iri(iri.clone()));
        options.writes.require(name.as_ref())?;
    }
    if address.at.is_some() {
        return Err(ServiceError::bad_request(
            "`at` is for reading; the past cannot be changed",
        ));
    }
    let (time, meter) = state.enter_of(parts, None)?;
    let payment = state.payment_of(parts, meter.as_ref(), &record);
    // Changes are charged as they are made.
    options.query.spending = payment.as_ref().map(|it| Arc::clone(it.spending()));
    let made = match parts.method {
        Method::PUT | Method::POST => {
            if parts.method == Method::PUT {
                address.graph()?;
            }
            let paid = (meter.as_ref(), payment.as_ref());
            store(state, &writes, paid, parts, options, body, &address).await
        }
        Method::PATCH => {
            options.query.timeout = Some(time.limit);
            let asked = (record, payment.clone());
            patch(state, &writes, asked, parts, options, body, &address).await
        }
        _ => {
            let payment = payment.clone();
            delete(state, &writes, payment, parts, options, &address).await
        }
    };
    let exceeded = payment.as_ref().and_then(|payment| payment.exceeded());
    let mut response = match (made, exceeded) {
        (Err(_), Some(exceeded)) => return Err(exceeded.into()),
        (made, _) => made?,
    };
    updates::charge(payment.as_deref(), &mut response);
    Ok(response)
}

async fn read_graph(
    state: &HttpState,
    record: Arc<AccessRecord>,
    parts: &Parts,
    address: &Address,
) -> Result<Response, ServiceError> {
    if address.is_relaxed.is_some() {
        return Err(ServiceError::bad_request(
            "parameter `durability` is for changes",
        ));
    }
    // The name was checked: it cannot end the query's IRI.
    let graph = match &address.target {
        Target::Graph(name) => name.as_deref(),
        Target::Store => None,
    };
    let query = match graph {
        None if address.target == Target::Store => ALL_QUADS.to_owned(),
        Some(name) => format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{name}> {{ ?s ?p ?o }} }}"),
        None => "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }".to_owned(),
    };
    record.take_place(Kind::Construct, &query);
    let request = QueryRequest {
        query,
        format: address.format.clone(),
        at: address.at.clone(),
        ..QueryRequest::default()
    };
    let mut job = state.job(parts, request, record).await?;
    if let Some(name) = graph {
        let snapshot = job.snapshot.clone();
        let snapshot = snapshot.unwrap_or_else(|| state.engine.database().snapshot());
        let view = ReadView::new(snapshot, job.scope.clone())?;
        if !graph_exists(&view, graph)? {
            return Err(no_such_graph(name));
        }
        job.view = Some(view);
    }
    job.union_default_graph = false;
    stream_body::answer(job, state.query_threads.handle(), &state.is_over).await
}

/// The query for all quads of `/graphs`.
///
/// Its two halves have variables of their own, so that each solution makes one quad.
const ALL_QUADS: &str = "CONSTRUCT { ?s ?p ?o . GRAPH ?g { ?a ?b ?c } } WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?a ?b ?c } } }";

fn no_such_graph(name: &str) -> ServiceError {
    ServiceError::Missing {
        message: format!("there is no graph <{name}>"),
    }
}

/// PUT and POST.
async fn store(
    state: &Arc<HttpState>,
    writes: &Writes,
    (meter, payment): (Option<&Arc<Meter>>, Option<&Arc<Payment>>),
    parts: &Parts,
    options: UpdateOptions,
    body: Body,
    address: &Address,
) -> Result<Response, ServiceError> {
    let is_replacing = parts.method == Method::PUT;
    let commit_request = address.commit_request(parts)?;
    let limit_bytes = state.http.update_bytes_max;
    let load = Load {
        options: &options,
        target: &address.target,
        commit_request: &commit_request,
        forgets_history: address.forgets_history,
        meter,
        payment,
    };
    let taken = take(state, writes, parts, body, &load).await?;
    let Taken {
        files,
        memory,
        room,
        whole,
    } = taken;
    if is_replacing && files.iter().any(|file| file.head.target.is_some()) {
        return Err(ServiceError::bad_request(
            "PUT replaces the one graph that its address names; leave the fields `graph` and `default` out of the form, or POST it",
        ));
    }
    let goes_as_written = |file: &UploadedFile| {
        file.head.target.is_some() || uploads::is_of_quads(&file.head, &address.target)
    };
    let target = match &address.target {
        Target::Graph(name) => Target::Graph(name.clone()),
        Target::Store if files.iter().all(goes_as_written) => Target::Store,
        Target::Store => Target::Graph(Some(new_graph(parts)?)),
    };
    let statements_bytes = match &whole {
        Some(Whole::Disk(spool)) if spool.bytes() > limit_bytes as u64 => limit_bytes,
        _ => usize::MAX,
    };
    let placed = files.into_iter().map(|file| {
        let target = match uploads::is_of_quads(&file.head, &address.target) {
            true => Target::Store,
            false => file.head.target(&target).clone(),
        };
        let base = match &target {
            Target::Graph(Some(name)) => Some(name.clone()),
            Target::Graph(None) | Target::Store => base_iri(parts),
        };
        (file, target, base)
    });
    let placed: Vec<_> = placed.collect();
    let bounds = ReadBounds {
        document_bytes: document_memory_bytes(&state.engine),
        statements_bytes,
    };
    let read = state
        .while_parsing(move |waiting| uploads::read_all(placed, &bounds, memory, &waiting))
        .await;
    let (statements, warnings, memory) = match (read, whole) {
        (Err(ServiceError::OutOfMemory { .. }), Some(whole)) => {
            drop(room);
            // Without a target, a document that is not large creates its graph.
            let target = match &whole {
                Whole::Memory(_) => &target,
                Whole::Disk(_) => &address.target,
            };
            let load = Load { target, ..load };
            let spool = whole.into_spool(state, parts).await?;
            return bulk::load(state, writes, parts, load, spool).await;
        }
        (read, _) => read?,
    };
    let _room = room;
    let graph = match &target {
        Target::Graph(name) => name.clone(),
        Target::Store => None,
    };
    let update = match is_replacing {
        true => ParsedUpdate::replace(graph.as_deref(), statements),
        false => ParsedUpdate::insert(statements),
    };
    let changed = HeldUpdate {
        update,
        options,
        ruled: around::ruled(parts).cloned(),
        record: AccessRecord::of(parts),
        payment: payment.cloned(),
        memory,
    };
    let (committed, existed) =
        make(state, writes, parts, changed, graph.clone(), commit_request).await?;
    let is_new = matches!(&target, Target::Graph(Some(_))) && !existed;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = updates::answer_with(status, committed, &warnings);
    if let (Target::Store, Some(name)) = (&address.target, &graph) {
        let location = HeaderValue::try_from(name).map_err(|_| ServiceError::Internal {
            message: "the new graph's IRI is no header".to_owned(),
        })?;
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Reads a body into memory, or to the disk if it is large or may be.
async fn take(
    state: &Arc<HttpState>,
    writes: &Writes,
    parts: &Parts,
    body: Body,
    load: &Load<'_>,
) -> Result<Taken, ServiceError> {
    let limit_bytes = state.http.update_bytes_max;
    let is_replacing = parts.method == Method::PUT;
    let announced = match is_replacing {
        true => Announced::Fits,
        false => Announced::of(parts, limit_bytes),
    };
    if announced == Announced::Fits {
        let room = writes.body_room(body_bytes(parts, limit_bytes)).await?;
        let body = body::read(&state.engine, parts, body, limit_bytes).await?;
        // A load works in bounded memory, but cannot check conditions.
        let may_load = !is_replacing && load.commit_request.conditions.is_empty();
        let whole = may_load.then(|| Whole::Memory(body.bytes.clone()));
        let (files, memory) = uploads::in_memory(parts, body, load.options)?;
        return Ok(Taken {
            files,
            memory,
            room,
            whole,
        });
    }
    let (mut is_checked, mut required, mut checked) = (false, 0, 0);
    let look = |bytes: u64, documents: &[SpooledDocument]| {
        for document in documents.iter().skip(required) {
            document.head.require(load.options)?;
        }
        required = documents.len();
        if announced != Announced::Large && bytes <= limit_bytes as u64 {
            return Ok(());
        }
        // Also for a body that had no length: nobody fills the disk with what is refused later.
        for document in documents.iter().skip(checked) {
            load.check_document(state, &document.head)?;
        }
        checked = documents.len();
        if !is_checked {
            is_checked = true;
            load.check(state, writes, parts)?;
        }
        Ok(())
    };
    let spool = Arc::new(Spool::take(state, parts, body, look).await?);
    let room = writes.body_room(limit_bytes).await?;
    let documents = spool.documents().iter().enumerate();
    let files = documents.map(|(number, document)| UploadedFile {
        head: document.head.clone(),
        content: Content::Disk(Arc::clone(&spool), number),
        coding: spool.coding(),
    });
    Ok(Taken {
        files: files.collect(),
        memory: BodyMemory::new(&state.engine),
        room,
        whole: Some(Whole::Disk(spool)),
    })
}

/// Applies an update; also returns whether the graph had quads before.
async fn make(
    state: &Arc<HttpState>,
    writes: &Writes,
    parts: &Parts,
    held: HeldUpdate<BodyMemory>,
    graph: Option<String>,
    commit_request: CommitRequest,
) -> Result<(Committed, bool), ServiceError> {
    let who = updates::who(parts);
    let engine = Arc::clone(&state.engine);
    let existed = Arc::new(AtomicBool::new(true));
    let watched = |held: Arc<HeldUpdate<BodyMemory>>| -> Change {
        let (engine, existed) = (Arc::clone(&engine), Arc::clone(&existed));
        let (graph, commit_request, who) = (graph.clone(), commit_request.clone(), who.clone());
        Box::new(
            move |transaction: &mut Transaction, query_threads: &Handle| {
                let options = query_threads.block_on(held.options_in(transaction))?;
                let view = options.query.view_of(transaction.snapshot()?)?;
                let exists = graph_exists(&view, graph.as_deref())?;
                commit_request.check(transaction, exists)?;
                query_threads.block_on(held.apply(&engine, &options, transaction))?;
                existed.store(exists, Ordering::Relaxed);
                Ok(commit_request.options(&who))
            },
        )
    };
    let committed = updates::make(state, writes, held, watched).await?;
    Ok((committed, existed.load(Ordering::Relaxed)))
}

async fn delete(
    state: &Arc<HttpState>,
    writes: &Writes,
    payment: Option<Arc<Payment>>,
    parts: &Parts,
    options: UpdateOptions,
    address: &Address,
) -> Result<Response, ServiceError> {
    let graph = address.graph()?.map(str::to_owned);
    let commit_request = address.commit_request(parts)?;
    let update = ParsedUpdate::clear(graph.as_deref());
    let changed = HeldUpdate {
        update,
        options,
        ruled: around::ruled(parts).cloned(),
        record: AccessRecord::of(parts),
        payment,
        memory: BodyMemory::new(&state.engine),
    };
    let (committed, existed) =
        make(state, writes, parts, changed, graph.clone(), commit_request).await?;
    match graph {
        Some(name) if !existed => Err(no_such_graph(&name)),
        _ => Ok(updates::answer(StatusCode::OK, committed)),
    }
}

async fn patch(
    state: &Arc<HttpState>,
    writes: &Writes,
    (record, payment): (Arc<AccessRecord>, Option<Arc<Payment>>),
    parts: &Parts,
    options: UpdateOptions,
    body: Body,
    address: &Address,
) -> Result<Response, ServiceError> {
    let graph = address.graph()?.map(str::to_owned);
    let commit_request = address.commit_request(parts)?;
    if !media_type::is_body(&parts.headers, "application/sparql-update") {
        return Err(ServiceError::unsupported_media_type(
            "a patch must be application/sparql-update".to_owned(),
        ));
    }
    let limit_bytes = state.http.update_bytes_max;
    let _room = writes.body_room(body_bytes(parts, limit_bytes)).await?;
    let body = body::read(&state.engine, parts, body, limit_bytes).await?;
    record.set_asker(parts);
    let mut options = options;
    options.query.base_iri = graph.clone().or_else(|| base_iri(parts));
    let engine = Arc::clone(&state.engine);
    let mut of_parse = options.clone();
    let (update, memory) = state
        .while_parsing(move |waiting| {
            of_parse.query.waiting = Some(waiting);
            let (text, memory) = body.into_text(limit_bytes, COPIES_OF_PATCH)?;
            let text = String::from_utf8(text.into())
                .map_err(|_| ServiceError::bad_request("the update is not UTF-8"))?;
            record.set_asked(Kind::Update, &text);
            Ok((engine.parse_update(&text, &of_parse)?, memory))
        })
        .await?;
    let mut update = state.fetch_documents(update, &options).await?;
    update
        .confine(graph.as_deref())
        .map_err(|message| ServiceError::Unprocessable { message })?;
    let changed = HeldUpdate {
        update,
        options,
        ruled: around::ruled(parts).cloned(),
        record: AccessRecord::of(parts),
        payment,
        memory,
    };
    let (committed, _) = make(state, writes, parts, changed, graph, commit_request).await?;
    Ok(updates::answer(StatusCode::OK, committed))
}

/// The IRI of a new graph.
fn new_graph(parts: &Parts) -> Result<String, ServiceError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let host = host_of(parts)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros());
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    graph_of_path(format!(
        "http://{host}{GRAPHS}/{now:x}-{process:x}-{number:x}"
    ))
}

/// The documents of a request, and the memory reserved for them.
struct Taken {
    files: Vec<UploadedFile>,
    memory: BodyMemory,
    room: OwnedSemaphorePermit,
    /// The body, if a load may take it.
    whole: Option<Whole>,
}

/// A body that can be read again.
enum Whole {
    Memory(Bytes),
    Disk(Arc<Spool>),
}

impl Whole {
    /// Moves the body to the disk.
    async fn into_spool(
        self,
        state: &HttpState,
        parts: &Parts,
    ) -> Result<Arc<Spool>, ServiceError> {
        match self {
            Self::Disk(spool) => Ok(spool),
            Self::Memory(bytes) => {
                let spool = Spool::take(state, parts, bytes.into(), |_, _| Ok(()));
                Ok(Arc::new(spool.await?))
            }
        }
    }
}

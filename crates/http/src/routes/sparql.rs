//! `/sparql` and `/explain`: the SPARQL 1.1 protocol, and the plan of a query.
//!
//! ```text
//! request -> room for its body -> body -> protocol: query, update, or neither
//!   query   a turn -> Job -> `answer::stream_body`
//!   update  the writer's door -> `routes::updates`
//!   neither the service description
//! ```

use axum::body::Body;
use axum::http::{Method, request::Parts};
use axum::response::Response;
use orrery_query_log::Kind;
use orrery_service::errors::ServiceError;

use crate::answer::stream_body;
use crate::edge::around;
use crate::request::body::{self, Coding};
use crate::request::media_type;
use crate::request::multipart_form;
use crate::request::protocol::{self, Operation};
use crate::route_table::HttpRequest;
use crate::routes::{description, updates};
use crate::state::HttpState;

/// A text up to this length is read where it came in.
const TEXT_HERE_BYTES_MAX: usize = 64 << 10;
/// The text of a request, a copy without its escapes, and what is made of it.
const COPIES_OF_TEXT: usize = 3;
/// The parts of a multipart body, and the plain form that is made of them, whose escapes are three
/// bytes each.
const COPIES_OF_PARTS: usize = 4;

/// Answers a query, makes an update, or describes the service.
pub(crate) async fn ask(request: HttpRequest, body: Body) -> Result<Response, ServiceError> {
    let HttpRequest {
        state,
        record,
        parts,
    } = request;
    if media_type::is_body(&parts.headers, "application/sparql-update") {
        // Before anything of the body is read.
        state.check_write_rule(&parts)?;
        around::require_changes(&parts)?;
    }
    let _room = state.update_room(&parts).await?;
    match read_operation(&state, &parts, body).await? {
        Operation::Query(query) => {
            record.set_asked(Kind::Query, &query.query);
            let job = state.job(&parts, query, record).await?;
            stream_body::answer(job, state.query_threads.handle(), &state.is_over).await
        }
        Operation::Update(update) => {
            record.set_query(&update.update);
            record.set_asked(Kind::Update, &update.update);
            let writes = state.writes(&parts)?;
            updates::update(&state, &writes, &parts, update).await
        }
        Operation::Describe { format } => {
            description::describe(&parts, format, state.capabilities())
        }
    }
}

/// The plan of a query, as text.
pub(crate) async fn explain(request: HttpRequest, body: Body) -> Result<Response, ServiceError> {
    let HttpRequest {
        state,
        record,
        parts,
    } = request;
    match read_operation(&state, &parts, body).await? {
        Operation::Query(query) => {
            let job = state.job(&parts, query, record).await?;
            stream_body::explain(job, state.query_threads.handle()).await
        }
        Operation::Describe { .. } | Operation::Update(_) => Err(ServiceError::bad_request(
            "the request has no query; send it as parameter `query`",
        )),
    }
}

async fn read_operation(
    state: &HttpState,
    parts: &Parts,
    body: Body,
) -> Result<Operation, ServiceError> {
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

//! `POST /sql`: statements of SQL, those of one request as one transaction.
//!
//! ```text
//!   rights -> room for the body -> body -> request -> statements (query threads)
//!     reads    a turn -> run_unit over one snapshot -> rows as they come
//!     changes  guard -> the queue of `writes` -> run_unit in its transaction -> commit -> rows, or {"commit":17,"tag":"INSERT 0 5"}
//! ```
//!
//! The answer is that of the last statement; of those before it only what fails is told. A request that changes something is made as updates are: by those
//! whom `guard` lets, one after the other, under the conditions of its headers. Who may not read and change everything works with what they may (`rights`).

mod asked;
mod change;
mod read;
mod request;
mod rights;

use crate::answer::error_response::ErrorResponse as _;
use crate::edge::access_log::AccessRecord;
use crate::edge::around;
use crate::paths::method_not_allowed;
use crate::request::body;
use crate::request::negotiate::AcceptedFormats;
use crate::request::protocol::Held;
use crate::state::HttpState;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, request::Parts};
use axum::response::Response;
use orrery_query_log::Kind;
use orrery_service::errors::ServiceError;
use orrery_sql::{SQL_BYTES_MAX, StatementKind};
use std::sync::Arc;

use self::asked::Asked;
use self::request::SqlRequest;

pub(crate) use self::rights::scope_of;

/// The text of a request, and a copy without its escapes; what is made of it is far larger.
const COPIES_OF_TEXT: usize = 20;
/// A form has up to three bytes for one of its text.
const FORM_BYTES_PER_BYTE: usize = 3;

/// Answers a request.
pub(crate) async fn respond(
    state: Arc<HttpState>,
    record: Arc<AccessRecord>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let answered = answer(&state, record, &parts, body).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

async fn answer(
    state: &HttpState,
    record: Arc<AccessRecord>,
    parts: &Parts,
    body: Body,
) -> Result<Response, ServiceError> {
    if parts.method != Method::POST {
        return Err(method_not_allowed(&parts.method, parts.uri.path()));
    }
    let scope = scope_of(&around::scope(parts), around::rights(parts))?;
    let limit_bytes = body_limit(state);
    let _room = state.room(parts, limit_bytes).await?;
    let body = body::read(&state.engine, parts, body, limit_bytes).await?;
    let (headers, uri) = (parts.headers.clone(), parts.uri.clone());
    let mut session = state.sql.another();
    session.set_scope(scope.clone());
    session.set_ruled(around::ruled(parts).map(|ruled| Arc::new(ruled.clone().of_sql())));
    record.set_asker(parts);
    let of_parse = Arc::clone(&record);
    let (request, statements, mut session, memory) = state
        .while_parsing(move |_short| {
            let (text, memory) = body.into_text(limit_bytes, COPIES_OF_TEXT)?;
            let request = request::parse(uri.query(), &headers, &text)?;
            drop(text);
            of_parse.set_asked(Kind::Sql, &request.text);
            let statements = session.statements(&request.text);
            let statements =
                statements.map_err(|error| ServiceError::of_sql(error, &request.text))?;
            Ok((request, statements, session, Held::of(memory)))
        })
        .await?;
    record.set_query(&request.text);
    let SqlRequest {
        text,
        timeout,
        format,
        is_relaxed,
        partial,
    } = request;
    let (time, meter) = state.enter_of(parts, timeout)?;
    let payment = state.payment_of(parts, meter.as_ref(), &record);
    session.set_spending(payment.as_ref().map(|it| Arc::clone(it.spending())));
    let does_change = statements
        .iter()
        .any(|statement| statement.kind() == StatementKind::Change);
    let asked = Asked {
        session,
        scope,
        statements,
        text: text.into(),
        accepted: AcceptedFormats::new(&parts.headers, format),
        time,
        meter,
        payment,
        takes_part: partial,
        record,
        memory,
    };
    match does_change {
        true if asked.takes_part => Err(ServiceError::bad_request(
            "`partial` is for queries; a change is made as a whole",
        )),
        true => change::make(state, parts, asked, is_relaxed).await,
        false => read::answer(state, parts, asked).await,
    }
}

/// Texts are taken as long as SQL takes them, where the server takes bodies of that length.
fn body_limit(state: &HttpState) -> usize {
    let options = &state.http;
    let bytes_max = match state.seat.takes_changes() {
        true => options.update_bytes_max,
        false => options.body_bytes_max,
    };
    bytes_max.min(SQL_BYTES_MAX * FORM_BYTES_PER_BYTE)
}

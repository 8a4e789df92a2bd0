//! `POST /sql`: runs SQL statements, those of one request as one transaction.
//!
//! ```text
//!   rights -> room for the body -> body -> request -> statements (query threads)
//!     reads    admission -> run_unit over one snapshot -> rows as they come
//!     changes  guard -> the queue of `writes` -> run_unit in its transaction -> commit
//!                -> rows, or {"commit":17,"tag":"INSERT 0 5"}
//! ```
//!
//! The answer is that of the last statement; earlier ones only report errors. A request that
//! changes something runs like an update: if `guard` allows it, one after the other, under the
//! conditions of its headers. A user who may not read and change everything works within their
//! rights (`rights`).

mod asked;
mod change;
mod read;
mod request;
mod rights;

use crate::edge::around;
use crate::request::body;
use crate::request::negotiate::AcceptedFormats;
use crate::request::protocol::Held;
use crate::route_table::HttpRequest;
use crate::state::HttpState;
use axum::body::Body;
use axum::response::Response;
use orrery_query_log::Kind;
use orrery_service::errors::ServiceError;
use orrery_sql::{SQL_BYTES_MAX, StatementKind};
use std::sync::Arc;

use self::asked::Asked;
use self::request::SqlRequest;

use self::rights::scope_of;

/// Memory of a request, as a multiple of its text: a copy without escapes, and what is made of it,
/// which is far larger.
const COPIES_OF_TEXT: usize = 20;
/// A form has up to three bytes for one of its text.
const FORM_BYTES_PER_BYTE: usize = 3;

/// Answers a request.
pub(crate) async fn answer(request: HttpRequest, body: Body) -> Result<Response, ServiceError> {
    let HttpRequest {
        state,
        record,
        parts,
    } = request;
    let (state, parts) = (&*state, &*parts);
    let scope = scope_of(&around::scope(parts), around::rights(parts))?;
    let limit_bytes = body_limit(state);
    let _room = state.room(parts, limit_bytes).await?;
    let body = body::read(&state.engine, parts, body, limit_bytes).await?;
    let (headers, uri) = (parts.headers.clone(), parts.uri.clone());
    let mut session = state.sql.another();
    session.set_scope(scope.clone());
    session.set_ruled(around::ruled(parts).map(|ruled| Arc::new(ruled.clone().of_sql())));
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

/// Most bytes of a body: the limit of SQL, as a form, or that of the server if it is lower.
fn body_limit(state: &HttpState) -> usize {
    let options = &state.http;
    let bytes_max = match state.seat.takes_changes() {
        true => options.update_bytes_max,
        false => options.body_bytes_max,
    };
    bytes_max.min(SQL_BYTES_MAX * FORM_BYTES_PER_BYTE)
}

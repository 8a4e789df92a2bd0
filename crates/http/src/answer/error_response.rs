//! Error responses of HTTP: the status of a [`ServiceError`], and its line as `text/plain` or as
//! JSON.
//!
//! JSON is RFC 9457 problem details, for clients that ask for it, with the place of an error in a
//! query and its fix (`docs/messages.md`).
//!
//! | status | when |
//! | --- | --- |
//! | 400 | not a request of the SPARQL protocol, or not a query (with line and column) |
//! | 401 | the asker is unknown, and has to authenticate |
//! | 403 | a change that this server takes only from elsewhere, see `guard`, or only from users who see all graphs |
//! | 404 | no such path; no such graph; a commit that is not retained any more |
//! | 409 | a statement of SQL breaks a constraint, or lost against another transaction |
//! | 412 | `If-Match`, `If-None-Match`, `If-Unmodified-Since`: the commit is another, see `conditions` |
//! | 422 | a patch of a graph that would change others; a bulk load that would give up old snapshots unasked |
//! | 406, 415 | no common format; the query came in an unknown format |
//! | 408, 413 | the body came too slowly, or is larger than the limit |
//! | 429 | the asker has used up their budget, or guessed at a password (`Retry-After`, where waiting helps) |
//! | 501 | a feature that is not implemented |
//! | 502, 504 | another endpoint that the query asks (`SERVICE`) failed, or was too slow; the writer gave no answer |
//! | 414, 431 | the address, or the head of a request, is too long, see `refusals` |
//! | 503 | over its time (names the limit); ended by an administrator; too many queries at once, or others hold the memory; a requested commit is not here yet (`Retry-After`) |
//! | 507 | over its memory limit, or over the asker's memory limit (names the limit) |
//! | 500 | the database is damaged, or a bug |

use crate::request::negotiate::{NoFormat, prefers_json_errors};
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use orrery_formats::FormatError;
use orrery_service::errors::{CODINGS, ServiceError};
use orrery_sparql::{Suggestion, SyntaxError};
use orrery_sql::SqlState;

/// Marks a response in its extensions: this server does not write, and has done nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotHere;

/// Seconds after which a refused client may try again.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// The ways to authenticate (RFC 9110, 11.6.1).
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"orrery\", charset=\"UTF-8\", Bearer realm=\"orrery\"");

/// Converts an error into a response of HTTP.
pub(crate) trait ErrorResponse: Sized {
    /// The status, by which the client's program decides what to do.
    fn status(&self) -> StatusCode;

    /// The response, as text or JSON as the client accepts it.
    fn into_response_for(self, request_headers: &HeaderMap) -> Response;
}

impl ErrorResponse for ServiceError {
    fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest { .. } | Self::Syntax { .. } => StatusCode::BAD_REQUEST,
            Self::Sql(failure) => sql_status(failure.state()),
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::UnknownAsker { .. } => StatusCode::UNAUTHORIZED,
            Self::TooManyGuesses { .. } | Self::Exceeded(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Missing { .. } => StatusCode::NOT_FOUND,
            Self::Precondition { .. } => StatusCode::PRECONDITION_FAILED,
            Self::Unprocessable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::ReadOnly { .. }
            | Self::NotHere { .. }
            | Self::WritesBusy { .. }
            | Self::NotWritable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::UnsupportedMediaType { .. } | Self::UnsupportedCoding { .. } => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::Format(FormatError::Spill { .. }) => StatusCode::INSUFFICIENT_STORAGE,
            Self::NotAcceptable { .. } | Self::Format(_) => StatusCode::NOT_ACCEPTABLE,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::PayloadTooLarge { .. } | Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow { .. } | Self::UploadTooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
            Self::Timeout { .. }
            | Self::Busy { .. }
            | Self::Behind { .. }
            | Self::FeedsBusy { .. }
            | Self::MemoryBusy { .. }
            | Self::Stopping
            | Self::Killed => StatusCode::SERVICE_UNAVAILABLE,
            Self::Endpoint {
                is_timeout: true, ..
            } => StatusCode::GATEWAY_TIMEOUT,
            Self::Endpoint { .. } | Self::WriterAway { .. } => StatusCode::BAD_GATEWAY,
            Self::OutOfMemory { .. }
            | Self::MemoryOfAccount { .. }
            | Self::TransactionMemory { .. } => StatusCode::INSUFFICIENT_STORAGE,
            Self::AskFirst | Self::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn into_response_for(self, request_headers: &HeaderMap) -> Response {
        let status = self.status();
        if let Self::Format(error @ FormatError::Spill { .. }) = &self {
            tracing::error!("{error}");
        }
        if status.is_server_error() && !matches!(self, Self::Unsupported { .. }) {
            tracing::warn!(status = status.as_u16(), "{}", self.line());
        }
        let mut response = if prefers_json_errors(request_headers) {
            let mut response = Json(problem(&self, status)).into_response();
            set(
                &mut response,
                header::CONTENT_TYPE,
                "application/problem+json",
            );
            response
        } else {
            (format!("{}\n", self.line())).into_response()
        };
        *response.status_mut() = status;
        // For the metrics and the query log.
        response.extensions_mut().insert(self.failure());
        if matches!(self, Self::NotHere { .. }) {
            response.extensions_mut().insert(NotHere);
        }
        let headers = response.headers_mut();
        match self {
            Self::Busy { .. }
            | Self::Behind { .. }
            | Self::FeedsBusy { .. }
            | Self::MemoryBusy { .. }
            | Self::WritesBusy { .. }
            | Self::Stopping => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER_S);
            }
            Self::UnknownAsker { .. } => {
                headers.insert(header::WWW_AUTHENTICATE, CHALLENGE);
            }
            Self::TooManyGuesses { wait } => {
                headers.insert(header::RETRY_AFTER, (wait.as_secs() + 1).into());
            }
            Self::Exceeded(exceeded) => {
                if let Some(seconds) = exceeded.retry_after_s() {
                    headers.insert(header::RETRY_AFTER, seconds.into());
                }
            }
            Self::MethodNotAllowed { allowed, .. } => {
                headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
            }
            Self::UnsupportedCoding { .. } => {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(CODINGS));
            }
            _ => {}
        }
        response
    }
}

/// Builds RFC 9457 problem details.
fn problem(error: &ServiceError, status: StatusCode) -> serde_json::Value {
    let mut problem = serde_json::json!({
        "type": "about:blank",
        "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(),
        "detail": error.line(),
    });
    if let ServiceError::Syntax {
        message,
        line,
        column,
        detail,
    } = error
    {
        problem["message"] = message.as_str().into();
        problem["line"] = (*line).into();
        problem["column"] = (*column).into();
        if let Some(detail) = detail {
            add_syntax(&mut problem, detail);
        }
    }
    if let ServiceError::Sql(failure) = error {
        failure.add_to(&mut problem);
    }
    problem
}

/// Adds the details of a syntax error: where it is, what may stand there, and the fix.
///
/// Offsets and lengths are bytes of the text in UTF-8, without a byte-order mark.
fn add_syntax(problem: &mut serde_json::Value, error: &SyntaxError) {
    problem["offset"] = error.span.start.into();
    problem["length"] = error.span.len().into();
    problem["found"] = error.found.as_str().into();
    let expected = error.expected.iter().map(|it| it.to_string());
    problem["expected"] = expected.collect::<Vec<_>>().into();
    if let Some(mend) = error.mend() {
        problem["hint"] = mend.into();
    }
    if let Some(Suggestion { span, text }) = error.suggestion() {
        problem["suggestion"] = serde_json::json!({
            "offset": span.start,
            "length": span.len(),
            "text": text,
        });
    }
}

/// The status of a statement of SQL that failed, by the class of its code.
fn sql_status(state: SqlState) -> StatusCode {
    match state {
        SqlState::FeatureNotSupported => StatusCode::NOT_IMPLEMENTED,
        SqlState::QueryCanceled | SqlState::TransactionResolutionUnknown => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        SqlState::ForeignDataError | SqlState::ForeignConnectionError => StatusCode::BAD_GATEWAY,
        SqlState::ReadOnlySqlTransaction | SqlState::InsufficientPrivilege => StatusCode::FORBIDDEN,
        state if matches!(&state.code()[..2], "23" | "40") => StatusCode::CONFLICT,
        _ => StatusCode::BAD_REQUEST,
    }
}

impl From<NoFormat> for ServiceError {
    fn from(reason: NoFormat) -> Self {
        match reason {
            NoFormat::UnknownName { name, known } => Self::BadRequest {
                message: format!("format `{name}` does not fit this query; known are {known}"),
            },
            NoFormat::NotAcceptable { offered } => Self::NotAcceptable { offered },
        }
    }
}

fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

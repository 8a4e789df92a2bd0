//! `/queries`: what runs now, and its end.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/queries` | | `{"queries":[{"id":17,"kind":"query","user":"ann","client":"203.0.113.9","since":"...","ms":5103,"touches":80212,"text":"SELECT ..."}]}` |
//! | DELETE `/queries/17` | ends it, if it still runs | `{"killed":17}` |

use crate::answer::error_response::ErrorResponse as _;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::edge::around;
use crate::state::HttpState;
use orrery_service::audit::Act;
use orrery_service::errors::ServiceError;
use orrery_service::query_log::Peer;

/// What others ask is kept nowhere on the way.
const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// Answers GET `/queries`.
pub(crate) async fn list(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let listed = || {
        around::require_administrator(&parts, "read what others ask")?;
        let queries = state.running.as_ref().map(|running| running.list());
        let queries = queries.unwrap_or_default();
        Ok((NO_STORE, Json(json!({ "queries": queries }))).into_response())
    };
    listed().unwrap_or_else(|error: ServiceError| error.into_response_for(&parts.headers))
}

/// Answers DELETE `/queries/{id}`.
pub(crate) async fn kill(
    State(state): State<Arc<HttpState>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let killed = end(&state, &parts, &id);
    killed.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

fn end(state: &HttpState, parts: &Parts, id: &str) -> Result<Response, ServiceError> {
    match around::rights(parts) {
        Some(_) => around::require_administrator(parts, "end what others ask")?,
        // Nobody is asked who they are: as for changes, it has to be a program of this machine.
        None => state.write_rule.check(parts, &state.hosts)?,
    }
    let number = id.parse::<u64>().map_err(|_no_number| {
        ServiceError::bad_request(format!(
            "`{id}` is no number of a query; GET /queries lists them"
        ))
    })?;
    let running = state.running.as_ref();
    let is_killed = running.is_some_and(|running| running.kill(number));
    if let Some(audit) = &state.audit {
        let user = around::rights(parts).and_then(|rights| rights.user.as_ref());
        audit.act(&Act {
            user: user.map(orrery_access::Name::as_str),
            client: parts.extensions.get().map(|&Peer(address)| address),
            act: &format!("end query {number}"),
            outcome: if is_killed { "done" } else { "it does not run" },
            commit: None,
        });
    }
    match is_killed {
        true => Ok((NO_STORE, Json(json!({ "killed": number }))).into_response()),
        false => Err(ServiceError::Missing {
            message: format!("no query {number} runs now; GET /queries lists those that do"),
        }),
    }
}

//! `/queries`: lists the statements that run now, and ends one of them.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/queries` | | `{"queries":[{"id":17,"kind":"query","user":"ann","client":"203.0.113.9","since":"...","ms":5103,"touches":80212,"text":"SELECT ..."}]}` |
//! | DELETE `/queries/17` | ends it, if it is still running | `{"killed":17}` |

use axum::Json;
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::edge::around;
use crate::route_table::HttpRequest;
use orrery_service::audit::Act;
use orrery_service::errors::ServiceError;
use orrery_service::query_log::Peer;

/// Forbids caches to store the list: it shows other users' statements.
const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// Answers GET `/queries`.
pub(crate) async fn list(request: HttpRequest) -> Result<Response, ServiceError> {
    let running = request.state.running.as_ref();
    let queries = running.map(|running| running.list()).unwrap_or_default();
    Ok((NO_STORE, Json(json!({ "queries": queries }))).into_response())
}

/// Answers DELETE `/queries/{id}`.
pub(crate) async fn kill(request: HttpRequest) -> Result<Response, ServiceError> {
    let (state, parts) = (&*request.state, &*request.parts);
    let id = parts.uri.path().rsplit('/').next().unwrap_or_default();
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

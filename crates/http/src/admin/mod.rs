//! The admin socket, `--admin`: users, groups, keys and rules, apart from where the public asks.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/admin/access` | | all users, groups, keys and rules, without secrets |
//! | GET `/admin/usage?from=2026-11-01&to=2026-11-30` | | what each user used on each day, from the query log: JSON, or CSV with `format=csv` |
//! | GET `/metrics` | | what the server counts, for Prometheus: see `metrics_page` |
//! | GET `/queries`, DELETE `/queries/17` | ends a query that runs | what runs now, see `admin_queries` |
//! | POST `/admin/access` | one command, as JSON ([`Command`]) | `{"commit":17}`, and what is seen once: `password`, `key` |
//!
//! Administrators may all of it; who administers graphs or tables grants rights to them, and everybody makes keys of their own. A command is one transaction: it is checked
//! against the users of that transaction, and holds for the next request.

pub(crate) mod admin_queries;
pub(crate) mod admin_usage;

use crate::answer::error_response::ErrorResponse as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use axum::{Json, Router, middleware};
use orrery_access::{Command, Done, Error, Listing, UserId};

use crate::edge::access_log::log_access;
use crate::edge::around::{self, Edge};
use crate::edge::guard::HostRule;
use crate::paths;
use crate::request::media_type;
use crate::router::{known, not_found};
use crate::routes::metrics_page;
use crate::state::HttpState;
use orrery_service::audit::{Act, AuditLog};
use orrery_service::errors::{ServiceError, told_to_the_log};
use orrery_service::metrics::Listens;
use orrery_service::query_log::Peer;
use orrery_service::record::Observers;

/// The longest command: names, an IRI and a note.
const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// What the admin socket at an address answers.
pub fn routes(state: Arc<HttpState>, listen: SocketAddr) -> Router {
    let edge = Edge {
        hosts: HostRule::new(listen, false, &state.http.allow_hosts),
        // No page of another origin has anything to do here.
        allow_any_origin: false,
        authentication: state.authentication.clone(),
        audit: state.audit.clone(),
        metrics_token: state.http.metrics_token.clone(),
        methods_of: paths::admin_methods_of,
        // Nothing that comes here is for another server.
        doorway: None,
    };
    let observers = Arc::new(Observers {
        listens: Listens::Admin,
        metrics: Arc::clone(&state.metrics),
        // Nothing is asked here that the query log is about.
        query_log: None,
        running: None,
        tracer: state.tracer.clone(),
    });
    Router::new()
        .route(paths::ACCESS, known(get(list).post(change)))
        .route(paths::USAGE, known(get(usage)))
        .route(paths::METRICS, known(get(metrics_page::metrics)))
        .route(paths::QUERIES, known(get(admin_queries::list)))
        .route(paths::QUERY, known(delete(admin_queries::kill)))
        .layer(DefaultBodyLimit::disable())
        .fallback(not_found)
        .with_state(state)
        .layer(middleware::from_fn(move |request, next| {
            around::around(edge.clone(), request, next)
        }))
        .layer(middleware::from_fn(move |request, next| {
            log_access(Arc::clone(&observers), request, next)
        }))
}

async fn list(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    listing(&state, &parts).unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

fn listing(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
    around::require_administrator(parts, "read who may do what")?;
    let snapshot = state.engine.database().snapshot();
    let catalog = orrery_access::read(snapshot.tables()).map_err(refusal)?;
    Ok((no_store(), Json(Listing::of(&catalog))).into_response())
}

async fn usage(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let bill = admin_usage::answer(&state, &parts).await;
    bill.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

async fn change(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let changed = async {
        let writer = state.writes(&parts)?.writer().clone();
        let (Some(authentication), Some(rights)) = (&state.authentication, around::rights(&parts))
        else {
            return Err(ServiceError::forbidden(
                "the database has no users; start the server with --auth",
            ));
        };
        let Some(user) = rights.id else {
            return Err(rights.refusal("change who may do what"));
        };
        if !media_type::is_body(&parts.headers, "application/json") {
            return Err(ServiceError::unsupported_media_type(
                "a command is `application/json`".to_owned(),
            ));
        }
        let body = axum::body::to_bytes(body, COMMAND_BYTES_MAX).await;
        let body = body.map_err(|error| ServiceError::bad_request(error.to_string()))?;
        let command = serde_json::from_slice::<Command>(&body)
            .map_err(|error| ServiceError::bad_request(format!("not a command: {error}")))?;
        // What is made of a password takes a core for its time.
        let by = By {
            user,
            name: rights.user.as_ref().map(ToString::to_string),
            client: parts.extensions.get().map(|&Peer(address)| address),
            audit: state.audit.clone(),
        };
        let done = tokio::task::spawn_blocking(move || apply(&writer, &command, &by));
        let done = done.await.map_err(|error| ServiceError::Internal {
            message: format!("a command was not done: {error}"),
        })?;
        let done = done.map_err(refusal)?;
        authentication.read_again();
        Ok((no_store(), Json(done)).into_response())
    };
    changed
        .await
        .unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

/// Who sends a command, and where that is written down.
struct By {
    user: UserId,
    name: Option<String>,
    client: Option<IpAddr>,
    audit: Option<Arc<AuditLog>>,
}

/// A command of a user, in a transaction; done or not, it is in the audit log then.
fn apply(
    writer: &orrery_storage::Writer,
    command: &Command,
    by: &By,
) -> orrery_access::Result<Done> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let (user, act) = (by.user, command.summary());
    let who = match &by.name {
        Some(name) => format!("{name}: {act}"),
        None => format!("user {}: {act}", user.0),
    };
    let changed = orrery_access::change(writer, &who, |catalog| {
        if !command.is_allowed(catalog, user) {
            let name = catalog.user(user).map(|user| user.name.clone());
            let what = command.summary();
            return Err(Error::NotAllowed { name, what });
        }
        command.apply(catalog, now)
    });
    let refused = changed.as_ref().err().map(ToString::to_string);
    let commit = changed.as_ref().ok().map(|(_, commit)| *commit);
    tracing::info!(target: "audit", user = user.0, commit, "{act}");
    if let Some(audit) = &by.audit {
        audit.act(&Act {
            user: by.name.as_deref(),
            client: by.client,
            act: &act,
            outcome: refused.as_deref().unwrap_or("done"),
            commit,
        });
    }
    let (given, commit) = changed?;
    Ok(Done { commit, given })
}

/// What is answered here is kept nowhere on the way.
fn no_store() -> HeaderMap {
    let value = HeaderValue::from_static("no-store");
    HeaderMap::from_iter([(header::CACHE_CONTROL, value)])
}

fn refusal(error: Error) -> ServiceError {
    match error {
        Error::NotAllowed { .. } => ServiceError::forbidden(error.to_string()),
        Error::Kept { .. } => ServiceError::Internal {
            message: told_to_the_log("the users could not be read or written", &error),
        },
        Error::Taken(_)
        | Error::IdentityTaken(_)
        | Error::LastAdministrator(_)
        | Error::NoAdministrator
        | Error::TooMany { .. }
        | Error::UnknownUser(_)
        | Error::UnknownGroup(_)
        | Error::UnknownKey(_)
        | Error::UnknownRule(_)
        | Error::UnknownLimits => ServiceError::Unprocessable {
            message: error.to_string(),
        },
        Error::Name(_)
        | Error::Identity(_)
        | Error::Password { .. }
        | Error::Key { .. }
        | Error::Rule { .. } => ServiceError::bad_request(error.to_string()),
    }
}

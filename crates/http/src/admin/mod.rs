//! The admin socket, `--admin`: requests about users, groups, keys and rules, at an address of its
//! own.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/admin/access` | | all users, groups, keys and rules, without secrets |
//! | GET `/admin/usage?from=2026-11-01&to=2026-11-30` | | what each user used on each day, from the query log: JSON, or CSV with `format=csv` |
//! | GET `/metrics` | | the metrics, for Prometheus: see `metrics_page` |
//! | GET `/queries`, DELETE `/queries/17` | ends a running query | the running queries, see `admin_queries` |
//! | POST `/admin/access` | one command, as JSON ([`Command`]) | `{"commit":17}`, and secrets that are shown once: `password`, `key` |
//!
//! Administrators may do all of it. Whoever administers graphs or tables grants rights to them, and
//! every user makes keys of their own. A command is one transaction: it is checked against the
//! users of that transaction, and holds from the next request on.

pub(crate) mod admin_queries;
pub(crate) mod admin_usage;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, middleware};
use orrery_access::{Command, Done, Error, Listing, UserId};

use crate::edge::access_log::log_access;
use crate::edge::around::{self, Edge};
use crate::edge::guard::HostRule;
use crate::request::{body, media_type};
use crate::route::Forwarding::Here;
use crate::route::Metering::Free;
use crate::route::Right;
use crate::route_table::{Act as RouteAct, HttpRequest, Route, RouteTable};
use crate::routes::metrics_page;
use crate::state::HttpState;
use orrery_service::audit::{Act, AuditLog};
use orrery_service::errors::{ServiceError, told_to_the_log};
use orrery_service::metrics::Listens;
use orrery_service::query_log::Peer;
use orrery_service::record::Observers;

/// Most bytes of a command: names, an IRI and a note.
const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// The routes of the admin socket.
pub(crate) static ADMIN: LazyLock<RouteTable> = LazyLock::new(|| {
    let reads_rules = Right::administrator("read who may do what");
    let reads_usage = Right::administrator("read what others used");
    let reads_queries = Right::administrator("read what others ask");
    let ends_queries = Right::administrator("end what others ask").for_change();
    // A command itself names the right that its author needs.
    let commands = Right::user("change who may do what").for_change();
    RouteTable::new(vec![
        Route::new(
            &["/admin/access"],
            [
                RouteAct::get(reads_rules, Free, list),
                RouteAct::with_body(Method::POST, commands, Free, Here, change),
            ],
        ),
        Route::new(
            &["/admin/usage"],
            [RouteAct::get(reads_usage, Free, admin_usage::answer)],
        ),
        Route::new(
            &["/metrics"],
            [RouteAct::get(Right::SCRAPER, Free, metrics_page::metrics)],
        ),
        Route::new(
            &["/queries"],
            [RouteAct::get(reads_queries, Free, admin_queries::list)],
        ),
        Route::new(
            &["/queries/{id}"],
            [RouteAct::of(
                Method::DELETE,
                ends_queries,
                Free,
                Here,
                admin_queries::kill,
            )],
        ),
    ])
});

/// Builds the router of the admin socket at an address.
pub fn routes(state: Arc<HttpState>, listen: SocketAddr) -> Router {
    let edge = Edge {
        hosts: HostRule::new(listen, false, &state.http.allow_hosts),
        // No page of another origin needs the admin socket.
        allow_any_origin: false,
        authentication: state.authentication.clone(),
        audit: state.audit.clone(),
        metrics_token: state.http.metrics_token.clone(),
        resources: ADMIN.resources(),
        // The admin socket forwards no request to another server.
        doorway: None,
    };
    let observers = Arc::new(Observers {
        listens: Listens::Admin,
        metrics: Arc::clone(&state.metrics),
        // The query log records no admin request.
        query_log: None,
        running: None,
        tracer: state.tracer.clone(),
    });
    ADMIN
        .router()
        .with_state(state)
        .layer(middleware::from_fn(move |request, next| {
            around::around(edge.clone(), request, next)
        }))
        .layer(middleware::from_fn(move |request, next| {
            log_access(Arc::clone(&observers), ADMIN.resources(), request, next)
        }))
}

async fn list(request: HttpRequest) -> Result<Response, ServiceError> {
    let snapshot = request.state.engine.database().snapshot();
    let catalog = orrery_access::read(snapshot.tables()).map_err(refusal)?;
    Ok((no_store(), Json(Listing::of(&catalog))).into_response())
}

async fn change(request: HttpRequest, body: Body) -> Result<Response, ServiceError> {
    let (state, parts) = (request.state, request.parts);
    let writer = state.writes(&parts)?.writer().clone();
    let user = around::require_user(&parts, "change who may do what")?;
    if !media_type::is_body(&parts.headers, "application/json") {
        return Err(ServiceError::unsupported_media_type(
            "a command is `application/json`".to_owned(),
        ));
    }
    let body = body::read(&state.engine, &parts, body, COMMAND_BYTES_MAX).await?;
    let (body, _memory) = body.into_text(COMMAND_BYTES_MAX, 1)?;
    let command = serde_json::from_slice::<Command>(&body)
        .map_err(|error| ServiceError::bad_request(format!("not a command: {error}")))?;
    let rights = around::rights(&parts);
    // Hashing a password keeps a core busy for a while.
    let by = By {
        user,
        name: rights
            .and_then(|rights| rights.user.as_ref())
            .map(ToString::to_string),
        client: parts.extensions.get().map(|&Peer(address)| address),
        audit: state.audit.clone(),
    };
    let done = tokio::task::spawn_blocking(move || apply(&writer, &command, &by));
    let done = done.await.map_err(|error| ServiceError::Internal {
        message: format!("a command was not done: {error}"),
    })?;
    let done = done.map_err(refusal)?;
    if let Some(authentication) = &state.authentication {
        authentication.read_again();
    }
    Ok((no_store(), Json(done)).into_response())
}

/// The sender of a command, and the audit log that records it.
struct By {
    user: UserId,
    name: Option<String>,
    client: Option<IpAddr>,
    audit: Option<Arc<AuditLog>>,
}

/// Applies a user's command in a transaction, and records it in the audit log, done or not.
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

/// Headers that forbid caches to store an answer of the admin socket.
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

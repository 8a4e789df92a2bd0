//! The router of the public listener, and what stands around every request.
//!
//! From the outside in: access log, `edge` (host, who asks, OPTIONS, headers for browsers,
//! `doorway`), `streamed` (errors before the first bytes), compression, and the table of routes
//! (`routes`), which asks for the right and calls the handler.

use std::sync::Arc;

use axum::{Router, middleware};
use orrery_service::metrics::Listens;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

use crate::admin::ADMIN;
use crate::answer::streamed;
use crate::edge::access_log::log_access;
use crate::edge::around::{self, Edge};
use crate::edge::doorway::Doorway;
use crate::route::RouteRow;
use crate::routes::PUBLIC;
use crate::state::HttpState;

/// Answers smaller than this are not worth compressing.
const GZIP_BYTES_MIN: u64 = 1024;

/// The rows of the public listener, and those of the admin socket.
pub fn route_rows() -> [Vec<RouteRow>; 2] {
    [PUBLIC.rows(), ADMIN.rows()]
}

/// The HTTP interface, ready to be served.
///
/// Where the database has users, requests may do what its rules say. Else all may see all graphs,
/// but those that come with an [`orrery_storage::ReadScope`] in their extensions: a layer around the
/// router says so who asks. Clients cannot.
pub fn router(state: Arc<HttpState>) -> Router {
    let doorway = Arc::new(Doorway::new(
        &state.engine,
        &state.seat,
        (state.write_rule, state.hosts.clone()),
        state.http.authorities.clone(),
        PUBLIC.resources(),
    ));
    let edge = Edge {
        doorway: Some(doorway),
        hosts: state.hosts.clone(),
        allow_any_origin: state.http.allow_any_origin,
        authentication: state.authentication.clone(),
        audit: state.audit.clone(),
        metrics_token: state.http.metrics_token.clone(),
        resources: PUBLIC.resources(),
    };
    let observers = Arc::new(state.observers(Listens::Http));
    PUBLIC
        .router()
        .with_state(state)
        .layer(
            CompressionLayer::new()
                // Of those that a client takes alike the last: zstd is the quickest.
                .gzip(true)
                .br(true)
                .zstd(true)
                // Level 1: a third of the size at ten times the speed of the default level.
                .quality(CompressionLevel::Fastest)
                // Parquet is compressed already.
                .compress_when(
                    SizeAbove::new(GZIP_BYTES_MIN).and(NotForContentType::const_new(
                        "application/vnd.apache.parquet",
                    )),
                ),
        )
        .layer(middleware::from_fn(streamed::around))
        .layer(middleware::from_fn(move |request, next| {
            around::around(edge.clone(), request, next)
        }))
        .layer(middleware::from_fn(move |request, next| {
            log_access(Arc::clone(&observers), PUBLIC.resources(), request, next)
        }))
}

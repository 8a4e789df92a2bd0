//! Health checks: GET `/health` reports whether the server is up and what it serves, GET
//! `/health/ready` whether it is current.
//!
//! Neither needs credentials: where the database has users, `/health` only says that the server is
//! up.
//!
//! Answered on the HTTP threads from what is in memory, so it answers while every query thread is
//! busy.

use crate::route_table::HttpRequest;
use crate::state::HttpState;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use orrery_service::cluster::nodes::Cluster;
use orrery_service::errors::ServiceError;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

const OK: &str = "ok";
/// How long the ready check of a node may wait for its newest snapshot.
const STATE_TIME_MAX: Duration = Duration::from_secs(2);

/// The answer of `/health`.
#[derive(Debug, Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    /// Number of the manifest that is served.
    generation: u64,
    quads: u64,
    queries_running: usize,
    /// Memory that queries hold of their limit.
    query_memory_bytes: usize,
    /// Queries whose shape was cached, so that they were not parsed; then those that were parsed.
    query_shape_hits: u64,
    query_shape_misses: u64,
    /// Of the former, queries that took a cached plan; then those that were planned.
    query_plan_hits: u64,
    query_plan_misses: u64,
    /// Cached plans, and their memory.
    query_plans: u64,
    query_plan_bytes: u64,
    /// Predicates whose values are cached in memory, and their memory.
    adjacencies: usize,
    adjacency_bytes: u64,
}

/// The answer of `/health` where the database has users.
#[derive(Debug, Serialize)]
struct Up {
    status: &'static str,
}

/// The answer of a server that is not ready; with the reason where the database has no users.
#[derive(Debug, Serialize)]
struct NotReady {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) async fn health(request: HttpRequest) -> Result<Response, ServiceError> {
    Ok(match request.state.authentication {
        Some(_) => Json(Up { status: OK }).into_response(),
        None => Json(figures(&request.state)).into_response(),
    })
}

/// Answers 503 while this node of a cluster lags behind the others; a single server is ready when
/// up.
pub(crate) async fn ready(request: HttpRequest) -> Result<Response, ServiceError> {
    let state = request.state;
    let look = async {
        match &state.options.cluster {
            Some(cluster) => is_current(&state, &**cluster).await,
            None => Ok(()),
        }
    };
    Ok(match state.readiness.of(look).await {
        Ok(()) => Json(Up { status: OK }).into_response(),
        Err(reason) => {
            let answer = NotReady {
                status: "not ready",
                reason: state.authentication.is_none().then_some(reason),
            };
            (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
        }
    })
}

/// Fails unless a node has the log and the files of the others, and shows the newest snapshot.
async fn is_current(state: &HttpState, cluster: &dyn Cluster) -> Result<(), String> {
    cluster.current().await?;
    let reason = match state.seat.writes() {
        // A writer shows its own commits.
        Ok(_) => return Ok(()),
        Err(elsewhere) => elsewhere.reason,
    };
    if cluster.leads() {
        return Err(format!("it leads the others, and does not write: {reason}"));
    }
    let database = Arc::clone(state.engine.database());
    let look = move || {
        // A writer role that has ended but was not released would keep the node from following.
        match database.is_written_here() {
            true => Err("its turn to write is over, and has not ended yet".to_owned()),
            false => database
                .refresh()
                .map(drop)
                .map_err(|error| error.to_string()),
        }
    };
    let looked = state.state_look.within(STATE_TIME_MAX, look).await;
    looked.map_err(|why| format!("it cannot follow the others: {why}"))
}

fn figures(state: &HttpState) -> Health {
    let view = state.engine.database().view_of_process();
    let adjacencies = state.engine.adjacency_counts();
    let shapes = state.engine.shape_counts();
    let plans = state.engine.plan_counts();
    Health {
        status: OK,
        version: env!("CARGO_PKG_VERSION"),
        generation: view.snapshot().manifest().generation,
        quads: view.quad_count(),
        queries_running: state.admission.running(),
        query_memory_bytes: state.engine.memory_held_bytes(),
        query_shape_hits: shapes.hits,
        query_shape_misses: shapes.misses,
        query_plan_hits: plans.hits,
        query_plan_misses: plans.misses,
        query_plans: plans.kept,
        query_plan_bytes: plans.bytes,
        adjacencies: adjacencies.adjacencies,
        adjacency_bytes: adjacencies.bytes,
    }
}

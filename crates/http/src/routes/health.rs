//! GET `/health`: is the server up, and what does it serve? GET `/health/ready`: is it to be asked, and may others count on it?
//!
//! Who asks is not known there: where the database has users, only that it is up is told.
//!
//! Answered on the HTTP threads from what is in memory, so it answers while every
//! query thread is busy.

use crate::state::HttpState;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use orrery_service::cluster::nodes::Cluster;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

const OK: &str = "ok";
/// How long a node that is asked whether it is ready may look at its state.
const STATE_TIME_MAX: Duration = Duration::from_secs(2);

/// What `/health` says.
#[derive(Debug, Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    /// Number of the manifest that is served.
    generation: u64,
    quads: u64,
    queries_running: usize,
    /// Memory that queries hold of what they may.
    query_memory_bytes: usize,
    /// Queries whose shape was known, so that they were not parsed, and those that were.
    query_shape_hits: u64,
    query_shape_misses: u64,
    /// Of those whose shape was known, queries for which the plan of an earlier one was taken, and those that were planned.
    query_plan_hits: u64,
    query_plan_misses: u64,
    /// Plans that are kept, and what they take.
    query_plans: u64,
    query_plan_bytes: u64,
    /// Predicates whose values are kept in memory, and what they take.
    adjacencies: usize,
    adjacency_bytes: u64,
}

/// What it says to nobody known.
#[derive(Debug, Serialize)]
struct Up {
    status: &'static str,
}

/// What `/health/ready` says of a server that is not; the reason where the database has no users.
#[derive(Debug, Serialize)]
struct NotReady {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) async fn health(State(state): State<Arc<HttpState>>) -> Response {
    match state.authentication {
        Some(_) => Json(Up { status: OK }).into_response(),
        None => Json(figures(&state)).into_response(),
    }
}

/// 503 while this node of a cluster does not have all that the others have, or does not show it; a server of its own is ready when it is up.
pub(crate) async fn ready(State(state): State<Arc<HttpState>>) -> Response {
    let look = async {
        match &state.options.cluster {
            Some(cluster) => is_current(&state, &**cluster).await,
            None => Ok(()),
        }
    };
    match state.readiness.of(look).await {
        Ok(()) => Json(Up { status: OK }).into_response(),
        Err(reason) => {
            let answer = NotReady {
                status: "not ready",
                reason: state.authentication.is_none().then_some(reason),
            };
            (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
        }
    }
}

/// Whether a node has the log and the files of the others, and shows the state that they make.
async fn is_current(state: &HttpState, cluster: &dyn Cluster) -> Result<(), String> {
    cluster.current().await?;
    let reason = match state.seat.writes() {
        // What it shows is what it has written.
        Ok(_) => return Ok(()),
        Err(elsewhere) => elsewhere.reason,
    };
    if cluster.leads() {
        return Err(format!("it leads the others, and does not write: {reason}"));
    }
    let database = Arc::clone(state.engine.database());
    let look = move || {
        // A turn that is over would keep it from following.
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

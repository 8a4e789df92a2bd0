//! `POST /checkpoint` and `POST /compact`: run at once what otherwise happens in the background.
//!
//! | path | does | answers |
//! | --- | --- | --- |
//! | `/checkpoint` | writes the changes in memory to files and begins a new log | `{"written":true}` |
//! | `/compact` | makes the changes part of the base, and those of tables part of their files | `{"changes":17,"quads":1000,"seconds":0.2,"tables":1}` |
//!
//! For users who may write, under the conditions (`If-Match`) of changes. Both answer when they are
//! done; readers and writers go on meanwhile. If a checkpoint, compaction or load is running
//! already, the request waits for its end.

use crate::request::conditions::{Conditions, State};
use crate::request::parameters;
use crate::route_table::HttpRequest;
use axum::Json;
use axum::response::{IntoResponse, Response};
use orrery_loader::{LoadError, SilentProgress, changes_of, compact, compact_tables};
use orrery_service::errors::{ServiceError, told_to_the_log};
use orrery_service::options::compaction_within;

/// The maintenance that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maintenance {
    Checkpoint,
    Compaction,
}

/// Answers POST `/checkpoint`.
pub(crate) async fn checkpoint(request: HttpRequest) -> Result<Response, ServiceError> {
    maintain(request, Maintenance::Checkpoint).await
}

/// Answers POST `/compact`.
pub(crate) async fn compaction(request: HttpRequest) -> Result<Response, ServiceError> {
    maintain(request, Maintenance::Compaction).await
}

/// Runs it on a thread that may block.
async fn maintain(request: HttpRequest, what: Maintenance) -> Result<Response, ServiceError> {
    let (state, parts) = (&*request.state, &*request.parts);
    let writer = state.writes(parts)?.writer().clone();
    parameters::none(parts.uri.query())?;
    let snapshot = writer.database().snapshot();
    Conditions::of(&parts.headers)?.check_change(State {
        commit: snapshot.commit(),
        time_us: snapshot.commit_time_us(),
        exists: true,
    })?;
    drop(snapshot);
    let memory_bytes = state.engine.options().memory_bytes;
    let done = state
        .query_threads
        .handle()
        .spawn_blocking(move || match what {
            Maintenance::Checkpoint => {
                let is_written = writer.checkpoint()?;
                Ok(serde_json::json!({ "written": is_written }))
            }
            Maintenance::Compaction => {
                let tables = compact_tables(&writer, &SilentProgress)?;
                let changes = changes_of(&writer.database().view_of_process());
                let options = compaction_within(memory_bytes);
                let report = compact(&writer, &options, &SilentProgress)?;
                Ok(serde_json::json!({
                    "changes": changes,
                    "quads": report.quads,
                    "seconds": report.seconds,
                    "tables": tables,
                }))
            }
        });
    let answer = done.await.map_err(|error| ServiceError::Internal {
        message: format!("the checkpoint or compaction ended: {error}"),
    })?;
    match answer {
        Ok(answer) => Ok(Json(answer).into_response()),
        Err(LoadError::Storage(error)) => Err(ServiceError::from(error)),
        Err(error) => Err(ServiceError::Internal {
            message: told_to_the_log("the compaction failed", &error),
        }),
    }
}

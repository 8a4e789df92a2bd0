//! `POST /checkpoint` and `POST /compact`: what else happens in the background, at once.
//!
//! | path | does | answers |
//! | --- | --- | --- |
//! | `/checkpoint` | writes the changes in memory to files and begins a new log | `{"written":true}` |
//! | `/compact` | makes the changes part of the base, and those of tables part of their files | `{"changes":17,"quads":1000,"seconds":0.2,"tables":1}` |
//!
//! For those who may write, and on conditions (`If-Match`) as changes are. Both answer when it is done; readers and writers go on meanwhile. Where a checkpoint,
//! compaction or load is under way already, the request waits for its end.

use crate::edge::around;
use crate::request::conditions::{Conditions, State};
use crate::request::parameters;
use crate::state::HttpState;
use axum::Json;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use orrery_loader::{LoadError, SilentProgress, changes_of, compact, compact_tables};
use orrery_service::errors::{ServiceError, told_to_the_log};
use orrery_service::options::compaction_within;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maintenance {
    Checkpoint,
    Compaction,
}

/// Does it, on a thread that may block.
pub(crate) async fn answer(
    state: &HttpState,
    parts: &Parts,
    what: Maintenance,
) -> Result<Response, ServiceError> {
    let writer = state.writes(parts)?.writer().clone();
    around::require_all_graphs(parts)?;
    around::require_administrator(parts, "write the database anew")?;
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

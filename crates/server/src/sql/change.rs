//! Statements that change something: made by the writing thread in their turn, committed, then answered.

use super::asked::Asked;
use super::read;
use crate::conditions::etag_of_commit;
use crate::edge;
use crate::errors::ServerError;
use crate::output::{Output, Stop, TAG, begun};
use crate::state::ServerState;
use crate::updates::{CommitRequest, who};
use crate::writes::Committed;
use axum::http::{HeaderValue, header, request::Parts};
use axum::response::{IntoResponse, Response};
use orrery_sql::{Outcome, Rows, Tag};
use orrery_storage::{PendingCommit, Transaction};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Makes the changes, all or none.
pub(super) async fn make(
    state: &ServerState,
    parts: &Parts,
    asked: Asked,
    is_relaxed: bool,
) -> Result<Response, ServerError> {
    edge::writing_scope(parts)?;
    let writes = state.writes(parts)?;
    let commit_request = CommitRequest::new(&parts.headers, is_relaxed)?;
    // Before anything is changed: who cannot read the answer would not know that it was.
    asked.accepted.tables()?;
    let who = who(&parts.headers);
    let (sender, made) = oneshot::channel();
    let change = move |mut transaction: Transaction, threads: &Handle| {
        commit_request.check(&mut transaction, true)?;
        let (outcome, transaction) = threads.block_on(run(&asked, transaction))?;
        // The request may be gone; what it asked for is made all the same.
        let _ = sender.send((outcome, asked));
        Ok::<PendingCommit, ServerError>(transaction.commit(commit_request.options(&who))?)
    };
    let committed = writes.make_whole(Box::new(change)).await?;
    let (outcome, asked) = made.await.map_err(|_dropped| lost())?;
    match outcome {
        Outcome::Done(tag) => Ok(done(tag, committed)),
        // Refused before they begin.
        Outcome::CopyIn(_) | Outcome::CopyOut(_) => Err(lost()),
        Outcome::Returned(rows, tag) => returned(state, asked, rows, tag, committed).await,
        Outcome::Query(rows) => {
            // Those behind changes come as `Returned`.
            returned(state, asked, rows, Tag::Words("SELECT"), committed).await
        }
    }
}

async fn run(
    asked: &Asked,
    transaction: Transaction,
) -> Result<(Outcome, Transaction), ServerError> {
    let unit = asked.session.run_unit(&asked.statements, Some(transaction));
    let unit = tokio::time::timeout(asked.time.left(), unit).await;
    let unit = unit.map_err(|_elapsed| asked.time.exceeded())?;
    let unit = unit.map_err(|error| ServerError::of_sql(error, &asked.text))?;
    let transaction = unit.transaction.ok_or_else(lost)?;
    Ok((unit.outcome, transaction))
}

fn lost() -> ServerError {
    ServerError::Internal {
        message: "the statements have lost their transaction".to_owned(),
    }
}

/// The answer where there are no rows.
fn done(tag: Tag, committed: Committed) -> Response {
    let headers = [
        (header::ETAG, etag_of_commit(committed.number)),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
    ];
    let mut response = (headers, read::done_text(tag, committed.number)).into_response();
    if let Some(tag) = read::tag_header(tag) {
        response.headers_mut().insert(TAG, tag);
    }
    response
}

/// The rows that the changes gave back.
async fn returned(
    state: &ServerState,
    asked: Asked,
    rows: Rows,
    tag: Tag,
    committed: Committed,
) -> Result<Response, ServerError> {
    let (head_sender, head) = oneshot::channel();
    // It is done: now the client alone can be too slow.
    let time = asked.time;
    let ready = Instant::now();
    state.query_threads.handle().spawn(async move {
        let mut output = Output::new(head_sender, ready, time);
        output.etag = Some(etag_of_commit(committed.number));
        output.tag = read::tag_header(tag);
        match read::write(&asked, rows, &mut output).await {
            Ok(()) => {}
            Err(Stop::ClientGone) => tracing::debug!("the client left before its rows"),
            Err(Stop::Failed(error)) => output.fail(error),
        }
    });
    begun(head, time, &state.is_over).await
}

//! Runs SQL statements that change something: in the writing thread, committed, then answered.
//!
//! ```text
//!   queue -> run_unit -> the answer's bytes -> commit -> answer
//! ```
//!
//! An error means that nothing was changed: the answer is written before the commit, and a failed
//! commit undoes the changes. A client that leaves before the commit ends the statements.

use super::asked::Asked;
use super::read::{self, ROWS_AT_A_TIME};
use crate::answer::output::{COST, TAG};
use crate::edge::around;
use crate::request::conditions::etag_of_commit;
use crate::routes::updates::{CommitRequest, who};
use crate::state::HttpState;
use axum::body::Body;
use axum::http::{HeaderValue, header, request::Parts};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::TryStreamExt;
use orrery_formats::TableSerializer;
use orrery_service::errors::ServiceError;
use orrery_service::query_log::AtCommit;
use orrery_service::writes::Committed;
use orrery_sparql::HeldMemory;
use orrery_sql::{Error, GraphLimits, Outcome, Rows, Tag};
use orrery_storage::{PendingCommit, Transaction};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Makes the changes, all or none.
pub(super) async fn make(
    state: &HttpState,
    parts: &Parts,
    asked: Asked,
    is_relaxed: bool,
) -> Result<Response, ServiceError> {
    // A sender who can change nothing does not wait for the writing thread.
    if let (Some(rights), Some(scope)) = (around::rights(parts), &asked.scope)
        && scope.changes_nothing()
    {
        return Err(rights.refusal("change any table"));
    }
    let writes = state.writes(parts)?;
    let commit_request = CommitRequest::new(&parts.headers, is_relaxed)?;
    // Before any change: a client that cannot read the answer would not know of the change.
    asked.accepted.tables()?;
    let who = who(parts);
    let memory = state.engine.hold_memory("an answer of SQL");
    // Held until there is an answer, so that planning ends when the client has left.
    let waiting = Arc::new(());
    let left = asked.time.left();
    let asked = asked.waiting(GraphLimits {
        planning_timeout: Some(left),
        timeout: Some(left),
        waiting: Some(Arc::downgrade(&waiting)),
    });
    let payment = asked.payment.clone();
    let (mut sender, made) = oneshot::channel();
    let change = move |mut transaction: Transaction, threads: &Handle| {
        commit_request.check(&mut transaction, true)?;
        let mut asked = asked;
        // Graphs are read with the rights in the snapshot that is changed.
        threads.block_on(asked.session.go_by(transaction.start()));
        let run = asked
            .record
            .unless_killed(paid(&asked, transaction, memory));
        let (answer, transaction) = threads.block_on(async {
            tokio::select! {
                biased;
                done = run => done,
                // Other changes wait for this one, and no client does.
                () = sender.closed() => Err(gone()),
            }
        })?;
        // The client may have left by now: the changes are made all the same.
        let _ = sender.send(answer);
        Ok::<PendingCommit, ServiceError>(transaction.commit(commit_request.options(&who))?)
    };
    let committed = writes.make_whole(Box::new(change)).await?;
    let answer = made.await.map_err(|_dropped| lost())?;
    drop(waiting);
    let mut response = answer.response(committed);
    if let Some(payment) = payment {
        response
            .headers_mut()
            .insert(COST, payment.touches().into());
    }
    Ok(response)
}

/// The answer to committed changes. It is made before the commit, so that nothing can fail after
/// it.
enum Made {
    Done(Tag),
    Rows(Box<WrittenRows>),
}

struct WrittenRows {
    bytes: Vec<u8>,
    content_type: HeaderValue,
    tag: Tag,
    memory: HeldMemory,
}

/// Runs the statements, unless they exceed the budget: then the transaction must not be committed.
async fn paid(
    asked: &Asked,
    transaction: Transaction,
    memory: HeldMemory,
) -> Result<(Made, Transaction), ServiceError> {
    let run = run(asked, transaction, memory);
    match &asked.payment {
        Some(payment) => payment.while_paid(run).await,
        None => run.await,
    }
}

async fn run(
    asked: &Asked,
    transaction: Transaction,
    memory: HeldMemory,
) -> Result<(Made, Transaction), ServiceError> {
    let work = async {
        let unit = asked.session.run_unit(&asked.statements, Some(transaction));
        let unit = unit
            .await
            .map_err(|error| ServiceError::of_sql(error, &asked.text))?;
        let made = match unit.outcome {
            Outcome::Done(tag) => Made::Done(tag),
            // Refused before they begin.
            Outcome::CopyIn(_) | Outcome::CopyOut(_) => return Err(lost()),
            Outcome::Returned(rows, tag) => written(asked, rows, tag, memory).await?,
            // Queries behind changes come as `Returned`.
            Outcome::Query(rows) => written(asked, rows, Tag::Words("SELECT"), memory).await?,
        };
        Ok((made, unit.transaction.ok_or_else(lost)?))
    };
    let done = tokio::time::timeout(asked.time.left(), work).await;
    done.unwrap_or_else(|_elapsed| Err(asked.time.exceeded()))
}

/// Writes the rows that the changes return, in the client's format.
async fn written(
    asked: &Asked,
    rows: Rows,
    tag: Tag,
    memory: HeldMemory,
) -> Result<Made, ServiceError> {
    let chosen = asked.accepted.tables()?;
    let schema = rows.schema();
    let mut rows = rows.map_err(|error| ServiceError::of_sql(Error::of_run(&error), &asked.text));
    let mut bytes = Vec::new();
    let hold = |bytes: &Vec<u8>| {
        let held = memory.resize(bytes.capacity());
        held.map_err(|error| ServiceError::of_sql(error.into(), &asked.text))
    };
    let mut serializer = TableSerializer::start(chosen.format, &schema, &mut bytes)?;
    while let Some(batch) = rows.try_next().await? {
        for from in (0..batch.num_rows()).step_by(ROWS_AT_A_TIME) {
            let count = ROWS_AT_A_TIME.min(batch.num_rows() - from);
            serializer.rows(&batch.slice(from, count), &mut bytes)?;
            hold(&bytes)?;
        }
        asked.record.add_rows(batch.num_rows() as u64);
    }
    serializer.finish(&mut bytes)?;
    hold(&bytes)?;
    Ok(Made::Rows(Box::new(WrittenRows {
        bytes,
        content_type: chosen.content_type(),
        tag,
        memory,
    })))
}

/// Bytes whose memory is counted until they are sent.
struct CountedBytes {
    bytes: Vec<u8>,
    _memory: HeldMemory,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Made {
    fn response(self, committed: Committed) -> Response {
        let (content_type, body, tag) = match self {
            Self::Done(tag) => (
                HeaderValue::from_static("application/json"),
                read::done_text(tag, committed.number).into(),
                tag,
            ),
            Self::Rows(rows) => {
                let bytes = Bytes::from_owner(CountedBytes {
                    bytes: rows.bytes,
                    _memory: rows.memory,
                });
                (rows.content_type, Body::from(bytes), rows.tag)
            }
        };
        let headers = [
            (header::ETAG, etag_of_commit(committed.number)),
            (header::CONTENT_TYPE, content_type),
            (header::VARY, HeaderValue::from_static("Accept")),
        ];
        let mut response = (headers, body).into_response();
        response.extensions_mut().insert(AtCommit(committed.number));
        if let Some(tag) = read::tag_header(tag) {
            response.headers_mut().insert(TAG, tag);
        }
        response
    }
}

fn gone() -> ServiceError {
    ServiceError::Internal {
        message: "the client has left before its changes were committed; they are not made"
            .to_owned(),
    }
}

fn lost() -> ServiceError {
    ServiceError::Internal {
        message: "the statements have lost their transaction".to_owned(),
    }
}

//! Runs SQL statements that change nothing, on the query threads; rows are sent as they come.

use super::asked::Asked;
use super::rights::tag_of;
use crate::answer::output::{HeadSender, Output, Stop, begun};
use crate::answer::partial::note_in_table;
use crate::answer::second_try::{Tried, produce_within_memory};
use crate::answer::streamed::streamed;
use crate::request::conditions::{Conditions, State, etag_of_read};
use crate::state::HttpState;
use arrow::array::RecordBatch;
use axum::body::HttpBody;
use axum::http::{HeaderValue, Method, request::Parts};
use axum::response::Response;
use futures::{Stream, StreamExt, TryStreamExt};
use orrery_formats::TableSerializer;
use orrery_service::admission::AdmissionPermit;
use orrery_service::errors::ServiceError;
use orrery_service::metering::Exceeded;
use orrery_sparql::{Engine, MemoryPool, OwnShare, Preparation, Spending};
use orrery_sql::{Error, GraphLimits, Outcome, Rows, Tag, Unit};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Rows that are written between two checks whether they fill a chunk.
pub(super) const ROWS_AT_A_TIME: usize = 512;

struct Job {
    asked: Asked,
    engine: Arc<Engine>,
    method: Method,
    conditions: Conditions,
    ready: Instant,
    /// Held until the job ends.
    turn: AdmissionPermit,
}

/// Waits for admission, runs the statements, and returns when the head of the answer is known.
pub(super) async fn answer(
    state: &HttpState,
    parts: &Parts,
    asked: Asked,
) -> Result<Response, ServiceError> {
    let conditions = Conditions::of(&parts.headers)?;
    let turn = asked.record.unless_killed(state.admission.turn()).await?;
    let time = asked.time;
    let waiting = Arc::new(());
    let asked = asked.waiting(GraphLimits {
        planning_timeout: Some(time.limit),
        // No time limit here: where the answer is sent, waiting for the client is not counted.
        timeout: None,
        waiting: Some(Arc::downgrade(&waiting)),
    });
    let job = Job {
        asked,
        engine: Arc::clone(&state.engine),
        method: parts.method.clone(),
        conditions,
        ready: Instant::now(),
        turn,
    };
    let (head_sender, head) = oneshot::channel();
    state.query_threads.handle().spawn(run(job, head_sender));
    let response = begun(head, time, &state.is_over).await?;
    Ok(holding(response, waiting))
}

/// A response that holds `waiting` until its body was sent: late planning goes on as long as that.
fn holding(response: Response, waiting: Arc<()>) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let pieces = body.into_data_stream();
        streamed(pieces.inspect(move |_| {
            let _ = &waiting;
        }))
    })
}

async fn run(mut job: Job, head: HeadSender) {
    let record = Arc::clone(&job.asked.record);
    let _panics = record.watch_panics();
    let mut output = Output::new(head, job.ready, job.asked.time);
    let produced = produce_within_memory(&mut job, &mut output);
    let produced = record.unless_killed(produced).await;
    record.set_stages(output.times.stages());
    match produced {
        Ok(()) => {}
        Err(Stop::ClientGone) => tracing::debug!("the client left; its statements were stopped"),
        Err(Stop::Failed(error)) => {
            record.set_failure(error.failure());
            output.fail(error);
        }
    }
}

impl Tried for Job {
    fn turn(&self) -> &AdmissionPermit {
        &self.turn
    }

    fn memory(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(self.engine.runtime().memory().operators())
    }

    fn begin_again(&mut self) -> Arc<OwnShare> {
        self.asked.record.reset_rows();
        if let Some(payment) = &self.asked.payment {
            return Arc::clone(payment.own_share());
        }
        let own = OwnShare::of(&self.memory());
        let spending = Spending::new(Some(Arc::clone(&own) as _));
        self.asked.session.set_spending(Some(spending));
        own
    }

    async fn produce(&self, output: &mut Output) -> Result<(), Stop> {
        produce(self, output).await
    }
}

async fn produce(job: &Job, output: &mut Output) -> Result<(), Stop> {
    let asked = &job.asked;
    // First: a client that cannot read the answer should not wait for it.
    let chosen = asked.accepted.tables()?;
    // The first try's cost was charged when its watch ended.
    output.cost = asked.payment.as_ref().map(|payment| payment.watch());
    let started = Instant::now();
    let unit = output.wait(asked.session.run_unit(&asked.statements, None));
    let unit = unit.await?;
    let Unit {
        outcome,
        commit,
        commit_time_us,
        transaction: _,
    } = unit.map_err(|error| asked.failure(error))?;
    output.times.prepared(Preparation {
        plan: started.elapsed(),
        ..Preparation::default()
    });
    if let Some(entry) = asked.record.entry() {
        entry.set_commit(commit);
    }
    let state = State {
        commit,
        time_us: commit_time_us,
        exists: true,
    };
    job.conditions.check_read(&job.method, state, None)?;
    let seen = tag_of(asked.scope.as_deref());
    let format = format!("sql-{}-{commit_time_us:x}{seen}", chosen.format.name());
    output.etag = Some(etag_of_read(commit, &format));
    match outcome {
        Outcome::Query(rows) | Outcome::Returned(rows, _) => write(asked, rows, output).await,
        // Refused before they begin.
        Outcome::CopyIn(_) | Outcome::CopyOut(_) => output.finish().await,
        // Such as a SAVEPOINT alone.
        Outcome::Done(tag) => {
            output.tag = tag_header(tag);
            output.content_type = Some(HeaderValue::from_static("application/json"));
            output.buffer = done_text(tag, commit).into_bytes();
            output.finish().await
        }
    }
}

/// The body of an answer without rows.
pub(super) fn done_text(tag: Tag, commit: u64) -> String {
    serde_json::json!({ "commit": commit, "tag": tag.to_string() }).to_string()
}

pub(super) fn tag_header(tag: Tag) -> Option<HeaderValue> {
    HeaderValue::try_from(tag.to_string()).ok()
}

/// Writes rows in the client's format.
async fn write(asked: &Asked, rows: Rows, output: &mut Output) -> Result<(), Stop> {
    let chosen = asked.accepted.tables()?;
    output.content_type = Some(chosen.content_type());
    let schema = rows.schema();
    let mut rows = rows.map_err(|error| match asked.exceeded() {
        Some(exceeded) => exceeded.into(),
        None => ServiceError::of_sql(Error::of_run(&error), ""),
    });
    let mut serializer = TableSerializer::start(chosen.format, &schema, &mut output.buffer)?;
    let written = write_rows(asked, &mut rows, &mut serializer, output).await;
    match written {
        // A limit has ended the rows, and the client accepts a partial answer.
        Err(Stop::Failed(error)) if asked.takes_part && error.leaves_a_part() => {
            asked.record.set_failure(error.failure());
            output.partial = Some(error.line());
            output.etag = None;
        }
        written => written?,
    }
    // Dropped before the head reports the cost: its own counts are added then.
    drop(rows);
    serializer.finish(&mut output.buffer)?;
    output.end_partial(|reason, out| note_in_table(chosen.format, reason, out))?;
    output.finish().await
}

/// Writes the rows themselves.
async fn write_rows(
    asked: &Asked,
    rows: &mut (impl Stream<Item = Result<RecordBatch, ServiceError>> + Unpin),
    serializer: &mut TableSerializer,
    output: &mut Output,
) -> Result<(), Stop> {
    let rows_max = asked.meter.as_ref().and_then(|meter| meter.rows_max());
    let mut left = rows_max.unwrap_or(u64::MAX);
    while let Some(mut batch) = output.next(rows).await? {
        output.times.ran();
        let is_over = batch.num_rows() as u64 > left;
        if is_over {
            batch = batch.slice(0, usize::try_from(left).unwrap_or(usize::MAX));
        }
        left -= batch.num_rows() as u64;
        let mut from = 0;
        while from < batch.num_rows() {
            let count = ROWS_AT_A_TIME.min(batch.num_rows() - from);
            let before = output.buffer.len();
            serializer.rows(&batch.slice(from, count), &mut output.buffer)?;
            // Some formats hold their rows back.
            output.has_rows |= output.buffer.len() > before;
            output.flush_if_full().await?;
            from += count;
        }
        asked.record.add_rows(batch.num_rows() as u64);
        output.times.serialized();
        if is_over {
            let max = rows_max.unwrap_or(u64::MAX);
            return Err(Exceeded::Rows { max }.into());
        }
    }
    output.times.ran();
    Ok(())
}

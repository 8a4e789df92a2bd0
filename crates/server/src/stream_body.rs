//! Runs a query on the query threads and turns its answer into a response.
//!
//! ```text
//!  HTTP threads                                query threads
//!  handler: prepare, execute, if that is little
//!     |    --- spawn ------------------------> job: prepare, execute
//!     ^                                          | batches -> bytes
//!     '--- head (once): error | whole | stream --'
//!  body <----- bounded channel of chunks --------'
//! ```
//!
//! - **Small queries** run where their request was read: to wake up a thread and to be woken up by it takes longer than
//!   a point query (`docs/decisions/0007-query-threads.md`). A short text is prepared there; if the planner
//!   expects no more than [`ROWS_HERE_MAX`] rows on the way, it is begun there, too. At the first moment at which it has to
//!   wait, or gives way (our operators do after a millisecond), it moves to the query threads as it is.
//! - **Small answers** (up to [`CHUNK_BYTES`]) are sent whole, with `Content-Length`.
//!   So an error anywhere in a small answer still gets its own status.
//! - **Large answers** are streamed in chunks through a channel of [`CHUNKS_WAITING_MAX`]: a
//!   client that reads slowly stops the query from running ahead. Rows that wait for
//!   [`FLUSH_DELAY`] are sent even if the chunk is not full.
//! - **An error in the middle** of a stream breaks the connection off, so that the client
//!   sees a truncated transfer and not a short answer. The channel ends with an explicit
//!   mark for the same reason: a job that just vanishes is an error too.
//! - **A client that leaves** drops the body (or the handler), which closes the channel; the job
//!   sees that at its next wait and drops the engine's stream, which stops the query.
//! - **Time** counts while the query works, not while it waits for the client. A client
//!   that takes nothing for [`CLIENT_STALL_MAX`] is given up.

use crate::access_log::AccessRecord;
use crate::admission::AdmissionPermit;
use crate::conditions::{Conditions, State, etag_of_read, tag_of_prefixes, tag_of_scope};
use crate::errors::ServerError;
use crate::format::{GraphSerializer, SolutionSerializer};
use crate::negotiate::AcceptedFormats;
use crate::protocol::QueryRequest;
use crate::request_times::{RequestTimes, SERVER_TIMING};
use crate::warnings::{WARNING, warnings_of};
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use orrery_sparql::{
    Engine, PreparedQuery, QueryError, QueryKind, QueryOptions, QueryResults, SolutionStream,
    TripleStream, WrittenStream,
};
use orrery_storage::{ReadScope, ReadView, Snapshot};
use std::future;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Size of a chunk, and of the largest answer that is sent whole.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks between the job and the client's connection.
const CHUNKS_WAITING_MAX: usize = 4;
/// How long finished rows may wait for more to fill their chunk.
const FLUSH_DELAY: Duration = Duration::from_millis(200);
/// How long a client may take no data at all.
const CLIENT_STALL_MAX: Duration = Duration::from_secs(60);
/// Rows that may pass through a plan that runs on the HTTP threads: about a millisecond's work.
const ROWS_HERE_MAX: f64 = 5_000.0;
/// How long the handler waits beyond the limit for the job's own word. An operator that
/// is deep in a computation may be late in seeing the time.
const LATE_ANSWER_MAX: Duration = Duration::from_millis(250);

/// How long a query may work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) limit: Duration,
    /// What the client could ask for at most.
    pub(crate) maximum: Duration,
    /// What was needed of it before the query itself began.
    pub(crate) spent: Duration,
}

impl TimeLimit {
    /// What is left of it.
    pub(crate) fn left(self) -> Duration {
        self.limit.saturating_sub(self.spent)
    }

    pub(crate) fn exceeded(self) -> ServerError {
        ServerError::Timeout {
            limit: self.limit,
            maximum: self.maximum,
        }
    }
}

/// A query on its way to the query threads.
pub(crate) struct Job {
    pub(crate) engine: Arc<Engine>,
    pub(crate) request: QueryRequest,
    pub(crate) union_default_graph: bool,
    pub(crate) strict_prefixes: bool,
    /// What relative IRIs are resolved against.
    pub(crate) base_iri: Option<String>,
    /// The state to read; the newest without one.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// Who asks, and what they may see.
    pub(crate) scope: ReadScope,
    /// What they see of that state, where it was looked at already.
    pub(crate) view: Option<Arc<ReadView>>,
    pub(crate) method: Method,
    pub(crate) conditions: Conditions,
    pub(crate) accepted: AcceptedFormats,
    pub(crate) time: TimeLimit,
    pub(crate) record: Arc<AccessRecord>,
    /// Gone when nobody waits for the answer to begin.
    pub(crate) waiting: Weak<()>,
    /// When the request was read and had its turn.
    pub(crate) ready: std::time::Instant,
    /// Held until the job ends.
    pub(crate) turn: AdmissionPermit,
}

/// Runs a query; returns as soon as it is known how the answer begins, or that the server waits for it no more.
pub(crate) async fn answer(
    mut job: Job,
    query_threads: &Handle,
    is_over: &watch::Receiver<bool>,
) -> Result<Response, ServerError> {
    let time = job.time;
    let waiting = Arc::new(());
    job.waiting = Arc::downgrade(&waiting);
    let (head_sender, head) = oneshot::channel();
    if job.engine.is_soon_prepared(&job.request.query) {
        begin_here(run(job, RunsOn::HttpThread, head_sender), query_threads).await;
    } else {
        query_threads.spawn(run(job, RunsOn::QueryThread, head_sender));
    }
    let head = tokio::time::timeout(time.left() + LATE_ANSWER_MAX, head);
    let over = async {
        // An error means that the server is gone, which is its end as well.
        let _ = is_over.clone().wait_for(|&is_over| is_over).await;
    };
    let head = tokio::select! {
        biased;
        head = head => head,
        () = over => return Err(ServerError::Stopping),
    };
    match head {
        Ok(Ok(head)) => head.map(Head::into_response),
        Ok(Err(_dropped)) => Err(ServerError::Internal {
            message: "the query ended without an answer".to_owned(),
        }),
        Err(_elapsed) => Err(time.exceeded()),
    }
}

/// Polls a job once, and leaves what remains to the query threads.
async fn begin_here(job: impl Future<Output = ()> + Send + 'static, threads: &Handle) {
    let mut job = Box::pin(job);
    let polled = future::poll_fn(|context| {
        // Timers and tasks that it makes belong to the query threads.
        let _entered = threads.enter();
        // A task that panics ends alone; here it would take the connection along.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| job.as_mut().poll(context)));
        Poll::Ready(polled.unwrap_or(Poll::Ready(())))
    });
    if polled.await.is_pending() {
        threads.spawn(job);
    }
}

/// The plan of a query, as text.
pub(crate) async fn explain(mut job: Job, query_threads: &Handle) -> Result<String, ServerError> {
    let time = job.time;
    let waiting = Arc::new(());
    job.waiting = Arc::downgrade(&waiting);
    let (sender, plan) = oneshot::channel();
    query_threads.spawn(async move {
        let text = prepare(&job).map(|prepared| prepared.explain());
        // Nobody is left to hear it if this fails.
        let _ = sender.send(text);
    });
    match tokio::time::timeout(time.left(), plan).await {
        Ok(Ok(text)) => text,
        Ok(Err(_dropped)) => Err(ServerError::Internal {
            message: "planning ended without a plan".to_owned(),
        }),
        Err(_elapsed) => Err(time.exceeded()),
    }
}

/// How an answer begins.
struct Head {
    content_type: HeaderValue,
    /// Of what was read.
    etag: Option<HeaderValue>,
    times: RequestTimes,
    /// What is surely not meant in the query.
    warnings: Vec<HeaderValue>,
    content: Content,
}

enum Content {
    /// The client has it already.
    NotModified,
    Whole(Bytes),
    Stream(mpsc::Receiver<Chunk>),
}

enum Chunk {
    Bytes(Bytes),
    End,
}

impl Head {
    fn into_response(self) -> Response {
        let (status, body) = match self.content {
            Content::NotModified => (StatusCode::NOT_MODIFIED, Body::empty()),
            Content::Whole(bytes) => (StatusCode::OK, Body::from(bytes)),
            Content::Stream(chunks) => (StatusCode::OK, Body::from_stream(body_of(chunks))),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if status == StatusCode::OK {
            headers.insert(header::CONTENT_TYPE, self.content_type);
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        if let Some(etag) = self.etag {
            headers.insert(header::ETAG, etag);
        }
        if let Some(times) = self.times.header() {
            headers.insert(SERVER_TIMING, times);
        }
        for warning in self.warnings {
            headers.append(WARNING, warning);
        }
        response
    }
}

/// The answer did not come to its end; the reason is in the server's log.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
struct BrokenOff;

/// The chunks as a body; fused, for the compressor asks again after the end.
fn body_of(chunks: mpsc::Receiver<Chunk>) -> impl Stream<Item = Result<Bytes, BrokenOff>> {
    futures::stream::unfold(Some(chunks), |state| async move {
        let mut chunks = state?;
        match chunks.recv().await {
            Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(chunks))),
            Some(Chunk::End) => None,
            None => Some((Err(BrokenOff), None)),
        }
    })
    .fuse()
}

/// Why a job ends before its answer does.
enum Stop {
    ClientGone,
    Failed(ServerError),
}

impl<E: Into<ServerError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Where a job begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsOn {
    /// On the HTTP thread that has read the request.
    HttpThread,
    QueryThread,
}

/// The job. The turn ends with it.
async fn run(job: Job, runs_on: RunsOn, head: oneshot::Sender<Result<Head, ServerError>>) {
    let mut output = Output::new(head, &job);
    match produce_within_memory(&job, runs_on, &mut output).await {
        Ok(()) => {}
        Err(Stop::ClientGone) => tracing::debug!("the client left; its query was stopped"),
        Err(Stop::Failed(error)) => output.fail(error),
    }
}

/// Runs the query; once more, apart from others of its kind, if it ran out of memory before anything was sent.
async fn produce_within_memory(
    job: &Job,
    runs_on: RunsOn,
    output: &mut Output,
) -> Result<(), Stop> {
    let first = produce(job, runs_on, output).await;
    if !is_out_of_memory(&first) || !output.can_restart() {
        return first;
    }
    tracing::debug!("out of memory; once more in the narrow lane");
    output.restart();
    job.record.reset_rows();
    let busy = || {
        Stop::Failed(ServerError::MemoryBusy {
            message: "other queries hold the memory that this one needs; try again in a moment"
                .to_owned(),
        })
    };
    let _lane = match output.wait(job.turn.narrow_lane()).await {
        Ok(lane) => lane?,
        Err(Stop::Failed(ServerError::Timeout { .. })) => return Err(busy()),
        Err(stop) => return Err(stop),
    };
    let second = produce(job, runs_on, output).await;
    // What others hold now they may have held then.
    match is_out_of_memory(&second) && job.engine.is_memory_scarce() {
        true => Err(busy()),
        false => second,
    }
}

fn is_out_of_memory(ended: &Result<(), Stop>) -> bool {
    matches!(ended, Err(Stop::Failed(ServerError::OutOfMemory { .. })))
}

fn prepare(job: &Job) -> Result<PreparedQuery, ServerError> {
    let options = QueryOptions {
        default_graphs: job.request.default_graphs.clone(),
        named_graphs: job.request.named_graphs.clone(),
        union_default_graph: job.union_default_graph,
        strict_prefixes: job.strict_prefixes,
        base_iri: job.base_iri.clone(),
        snapshot: job.snapshot.clone(),
        view: job.view.clone(),
        // The time of the run counts elsewhere: only while the query works.
        planning_timeout: Some(job.time.limit),
        waiting: Some(job.waiting.clone()),
        ..QueryOptions::of(job.scope.clone())
    };
    Ok(job.engine.prepare(&job.request.query, &options)?)
}

async fn produce(job: &Job, runs_on: RunsOn, output: &mut Output) -> Result<(), Stop> {
    let prepared = prepare(job)?;
    output.times.prepared(prepared.preparation());
    output.warnings = warnings_of(&job.request.query);
    if runs_on == RunsOn::HttpThread && prepared.expected_rows() > ROWS_HERE_MAX {
        // Giving way is what takes it to the query threads.
        tokio::task::yield_now().await;
    }
    // The format first: a client that cannot read the answer, or has it already, should not wait for it.
    match prepared.kind() {
        QueryKind::Select | QueryKind::Ask => {
            let chosen = job.accepted.solutions()?;
            output.content_type = Some(chosen.content_type());
            if is_known(job, &prepared, chosen.format.name(), output)? {
                return output.send_head(Content::NotModified);
            }
            match output.wait(prepared.execute()).await?? {
                QueryResults::Solutions(stream) => {
                    let (mut serializer, variables) = {
                        let variables = stream.variables();
                        let out = &mut output.buffer;
                        let serializer = SolutionSerializer::start(chosen.format, variables, out)
                            .spill_to(&job.engine.options().temp_dir)
                            .with_prefixes(prepared.snapshot().prefixes());
                        (serializer, variables.len())
                    };
                    write_solutions(job, output, stream, &mut serializer, variables).await?;
                    while !serializer.finish(&mut output.buffer)? {
                        output.flush_if_full().await?;
                        output.check_time()?;
                    }
                }
                QueryResults::Boolean(value) => {
                    output.times.ran();
                    SolutionSerializer::boolean(chosen.format, value, &mut output.buffer)?;
                    job.record.add_rows(1);
                }
                QueryResults::Triples(_) => return Err(mismatch()),
            }
        }
        QueryKind::Construct | QueryKind::Describe => {
            let chosen = job.accepted.graph()?;
            output.content_type = Some(chosen.content_type());
            if is_known(job, &prepared, chosen.format.name(), output)? {
                return output.send_head(Content::NotModified);
            }
            let QueryResults::Triples(stream) = output.wait(prepared.execute()).await?? else {
                return Err(mismatch());
            };
            let prefixes = prepared.snapshot().prefixes().shortener();
            let mut serializer = GraphSerializer::with_prefixes(chosen.format, prefixes);
            write_triples(job, output, stream, &mut serializer).await?;
            serializer.finish(&mut output.buffer)?;
        }
    }
    output.finish().await
}

/// Notes the tag of the answer in this format; true if the client has the very same.
fn is_known(
    job: &Job,
    prepared: &PreparedQuery,
    format: &str,
    output: &mut Output,
) -> Result<bool, ServerError> {
    let snapshot = prepared.snapshot();
    let commit = snapshot.commit();
    // Numbers of commits come again, in a database that is loaded anew or restored at the same address; their times do not.
    let union = if job.union_default_graph { "u" } else { "" };
    let seen = tag_of_scope(&job.scope);
    let prefixes = match &job.request.at {
        Some(_) => tag_of_prefixes(snapshot.prefixes()),
        // A change of them is a commit.
        None => String::new(),
    };
    let time_us = snapshot.commit_time_us();
    let format = format!("{format}-{time_us:x}{union}{seen}{prefixes}");
    let format = format.as_str();
    output.etag = Some(etag_of_read(commit, format));
    if job.conditions.is_empty() {
        return Ok(false);
    }
    let state = State {
        commit,
        time_us: snapshot.commit_time_us(),
        exists: true,
    };
    let format = (!may_change(&job.request.query)).then_some(format);
    let known = job.conditions.check_read(&job.method, state, format)?;
    let is_known = known.is_some();
    output.etag = known.or(output.etag.take());
    Ok(is_known)
}

/// Whether the answer may be another one though the database is the same.
fn may_change(query: &str) -> bool {
    // A word in a name or a string costs an answer that might have been spared, no more.
    let query = query.to_ascii_uppercase();
    ["NOW", "RAND", "UUID", "BNODE", "SERVICE"]
        .iter()
        .any(|word| query.contains(word))
}

fn mismatch() -> Stop {
    Stop::Failed(ServerError::Internal {
        message: "the engine's answer does not fit the form of the query".to_owned(),
    })
}

async fn write_solutions(
    job: &Job,
    output: &mut Output,
    mut stream: SolutionStream,
    serializer: &mut SolutionSerializer,
    variables: usize,
) -> Result<(), Stop> {
    if let Some(writer) = serializer.row_writer() {
        return write_rows(job, output, stream.written(writer)).await;
    }
    while let Some(batch) = output.next(&mut stream).await? {
        output.times.ran();
        for row in 0..batch.rows() {
            let terms = (0..variables).map(|column| batch.term(row, column));
            serializer.row(terms, &mut output.buffer)?;
            output.flush_if_full().await?;
        }
        job.record.add_rows(batch.rows() as u64);
        // Some formats keep their rows back.
        output.has_rows |= batch.rows() > 0 && !output.buffer.is_empty();
        output.times.serialized();
    }
    output.times.ran();
    Ok(())
}

/// Sends solutions that come written.
async fn write_rows(job: &Job, output: &mut Output, mut stream: WrittenStream) -> Result<(), Stop> {
    while let Some(mut rows) = output.next(&mut stream).await? {
        output.times.ran();
        job.record.add_rows(rows.rows() as u64);
        output.has_rows |= rows.rows() > 0;
        while let Some(piece) = rows.next_piece() {
            output.add(piece).await?;
        }
        output.times.serialized();
    }
    output.times.ran();
    Ok(())
}

async fn write_triples(
    job: &Job,
    output: &mut Output,
    mut stream: TripleStream,
    serializer: &mut GraphSerializer,
) -> Result<(), Stop> {
    while let Some(batch) = output.next(&mut stream).await? {
        output.times.ran();
        for (subject, predicate, object) in batch.iter() {
            serializer.triple(subject, predicate, object, &mut output.buffer)?;
            output.flush_if_full().await?;
        }
        job.record.add_rows(batch.len() as u64);
        output.has_rows |= !batch.is_empty();
        output.times.serialized();
    }
    output.times.ran();
    Ok(())
}

/// The job's side of the answer.
struct Output {
    buffer: Vec<u8>,
    /// True if the buffer may hold rows (and not just the head of a document).
    has_rows: bool,
    content_type: Option<HeaderValue>,
    etag: Option<HeaderValue>,
    times: RequestTimes,
    warnings: Vec<HeaderValue>,
    sink: Sink,
    time: TimeLimit,
    deadline: Instant,
}

enum Sink {
    /// Nothing was sent yet.
    Head(oneshot::Sender<Result<Head, ServerError>>),
    /// The head was sent, chunks follow.
    Chunks(mpsc::Sender<Chunk>),
    /// Everything was said.
    Closed,
}

impl Output {
    fn new(head: oneshot::Sender<Result<Head, ServerError>>, job: &Job) -> Self {
        Self {
            buffer: Vec::new(),
            has_rows: false,
            content_type: None,
            etag: None,
            times: RequestTimes::begin(job.ready),
            warnings: Vec::new(),
            sink: Sink::Head(head),
            time: job.time,
            deadline: Instant::now() + job.time.left(),
        }
    }

    /// Whether nothing was sent yet.
    fn can_restart(&self) -> bool {
        matches!(self.sink, Sink::Head(_))
    }

    /// Forgets what was written and not sent.
    fn restart(&mut self) {
        self.buffer.clear();
        self.has_rows = false;
    }

    /// What the query computes before its first batch, unless time is up or the client has left.
    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            result = work => Ok(result),
            () = self.sink.closed() => Err(Stop::ClientGone),
            () = tokio::time::sleep_until(self.deadline) => Err(self.time.exceeded().into()),
        }
    }

    /// The next batch of the query, unless time is up or the client has left.
    async fn next<B>(
        &mut self,
        stream: &mut (impl Stream<Item = Result<B, QueryError>> + Unpin),
    ) -> Result<Option<B>, Stop> {
        // A stream that always has a batch ready would never let the timer below speak.
        if Instant::now() >= self.deadline {
            return Err(self.time.exceeded().into());
        }
        loop {
            let has_waiting_rows = self.has_rows && !self.buffer.is_empty();
            tokio::select! {
                biased;
                batch = stream.next() => return Ok(batch.transpose()?),
                () = self.sink.closed() => return Err(Stop::ClientGone),
                () = tokio::time::sleep_until(self.deadline) => {
                    return Err(self.time.exceeded().into());
                }
                () = tokio::time::sleep(FLUSH_DELAY), if has_waiting_rows => {}
            }
            // Only a delay comes here.
            self.flush().await?;
        }
    }

    /// Fails if time is up.
    fn check_time(&self) -> Result<(), Stop> {
        if Instant::now() > self.deadline {
            return Err(self.time.exceeded().into());
        }
        Ok(())
    }

    async fn flush_if_full(&mut self) -> Result<(), Stop> {
        if self.buffer.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Puts bytes behind those in the buffer. If they are too many for it, it is sent, and they are the buffer.
    async fn add(&mut self, bytes: Vec<u8>) -> Result<(), Stop> {
        if self.buffer.len() + bytes.len() < CHUNK_BYTES {
            self.buffer.extend_from_slice(&bytes);
            return Ok(());
        }
        self.begin_stream()?;
        let before = std::mem::replace(&mut self.buffer, bytes);
        if !before.is_empty() {
            self.send(Chunk::Bytes(before.into())).await?;
        }
        self.flush_if_full().await
    }

    /// Sends what is in the buffer as a chunk of a stream.
    async fn flush(&mut self) -> Result<(), Stop> {
        self.begin_stream()?;
        let capacity = CHUNK_BYTES + CHUNK_BYTES / 8;
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(capacity));
        self.send(Chunk::Bytes(bytes.into())).await
    }

    /// Sends the head, if it was not: chunks follow.
    fn begin_stream(&mut self) -> Result<(), Stop> {
        if let Sink::Head(_) = self.sink {
            let (sender, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
            self.send_head(Content::Stream(receiver))?;
            self.sink = Sink::Chunks(sender);
        }
        Ok(())
    }

    /// Sends the rest of the answer: all of it, if nothing was sent yet.
    async fn finish(&mut self) -> Result<(), Stop> {
        if let Sink::Head(_) = self.sink {
            let bytes = std::mem::take(&mut self.buffer);
            self.times.serialized();
            return self.send_head(Content::Whole(bytes.into()));
        }
        if !self.buffer.is_empty() {
            self.flush().await?;
        }
        self.send(Chunk::End).await
    }

    /// Answers with an error; after the first chunk, by breaking off.
    fn fail(&mut self, error: ServerError) {
        match std::mem::replace(&mut self.sink, Sink::Closed) {
            // The client may have left meanwhile.
            Sink::Head(head) => drop(head.send(Err(error))),
            Sink::Chunks(_) => tracing::warn!("answer broken off: {}", error.line()),
            Sink::Closed => {}
        }
    }

    fn send_head(&mut self, content: Content) -> Result<(), Stop> {
        let Sink::Head(head) = std::mem::replace(&mut self.sink, Sink::Closed) else {
            return Ok(());
        };
        let content_type = self
            .content_type
            .take()
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        head.send(Ok(Head {
            content_type,
            etag: self.etag.take(),
            times: self.times,
            warnings: std::mem::take(&mut self.warnings),
            content,
        }))
        .map_err(|_| Stop::ClientGone)
    }

    async fn send(&mut self, chunk: Chunk) -> Result<(), Stop> {
        let Sink::Chunks(chunks) = &self.sink else {
            return Err(Stop::ClientGone);
        };
        let chunk = match chunks.try_send(chunk) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Stop::ClientGone),
            Err(mpsc::error::TrySendError::Full(chunk)) => chunk,
        };
        let started = Instant::now();
        match chunks.send_timeout(chunk, CLIENT_STALL_MAX).await {
            Ok(()) => {
                // Waiting for the client is not the query's time.
                self.deadline += started.elapsed();
                Ok(())
            }
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(Stop::ClientGone),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                tracing::warn!("a client took no data for {CLIENT_STALL_MAX:?}; given up");
                Err(Stop::ClientGone)
            }
        }
    }
}

impl Sink {
    /// Waits until the client's side is gone.
    async fn closed(&mut self) {
        match self {
            Self::Head(head) => head.closed().await,
            Self::Chunks(chunks) => chunks.closed().await,
            Self::Closed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_threads::QueryThreads;

    fn thread_name() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_job_that_waits_goes_on_on_the_query_threads() {
        let threads = QueryThreads::start(1).unwrap();
        let (sender, names) = oneshot::channel();
        let job = async move {
            let first = thread_name();
            tokio::task::yield_now().await;
            let _ = sender.send((first, thread_name()));
        };
        begin_here(job, threads.handle()).await;
        let (first, second) = names.await.unwrap();
        assert_eq!(first, thread_name());
        assert_eq!(second, "orrery-query");
    }

    #[tokio::test]
    async fn a_job_that_panics_ends_alone() {
        let threads = QueryThreads::start(1).unwrap();
        let (sender, answer) = oneshot::channel::<()>();
        let job = async move {
            let _sender = sender;
            panic!("meant to");
        };
        begin_here(job, threads.handle()).await;
        assert!(answer.await.is_err());
    }

    #[tokio::test]
    async fn tasks_of_a_job_belong_to_the_query_threads() {
        let threads = QueryThreads::start(1).unwrap();
        let (sender, name) = oneshot::channel();
        let job = async move {
            tokio::spawn(async move { sender.send(thread_name()) });
        };
        begin_here(job, threads.handle()).await;
        assert_eq!(name.await.unwrap(), "orrery-query");
    }
}

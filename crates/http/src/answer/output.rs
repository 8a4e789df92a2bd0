//! The answer of a job, from the thread that computes it to the client's connection.
//!
//! Bytes are gathered until they fill a chunk, or rows have waited for [`FLUSH_DELAY`]; a small answer is sent whole. A time limit that counts
//! while the job works, and a client that leaves, end the job at its next wait. `stream_body` says what is sent when.

use crate::answer::request_times::{RequestTimes, SERVER_TIMING};
use crate::answer::streamed::{BrokenOff, Failed, streamed};
use crate::answer::warnings::WARNING;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use orrery_service::errors::ServiceError;
use orrery_service::metering::{CostWatch, Exceeded};
use orrery_service::time_limit::TimeLimit;
use std::time::Duration;
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
/// How long the handler waits beyond the limit for the job's own word. An operator that
/// is deep in a computation may be late in seeing the time.
const LATE_ANSWER_MAX: Duration = Duration::from_millis(250);

/// What a statement of SQL has done, as PostgreSQL's clients are told: `INSERT 0 5`.
pub(crate) const TAG: HeaderName = HeaderName::from_static("orrery-tag");

/// What a query cost, in touches.
pub(crate) const COST: HeaderName = HeaderName::from_static("orrery-cost");
/// Why an answer is not the whole one.
pub(crate) const PARTIAL: HeaderName = HeaderName::from_static("orrery-partial");

/// The response, as soon as it is known how it begins, or that the server waits for it no more.
pub(crate) async fn begun(
    head: oneshot::Receiver<Result<Head, ServiceError>>,
    time: TimeLimit,
    is_over: &watch::Receiver<bool>,
) -> Result<Response, ServiceError> {
    let head = tokio::time::timeout(time.left() + LATE_ANSWER_MAX, head);
    let over = async {
        // An error means that the server is gone, which is its end as well.
        let _ = is_over.clone().wait_for(|&is_over| is_over).await;
    };
    let head = tokio::select! {
        biased;
        head = head => head,
        () = over => return Err(ServiceError::Stopping),
    };
    match head {
        Ok(Ok(head)) => head.map(Head::into_response),
        Ok(Err(_dropped)) => Err(ServiceError::Internal {
            message: "the query ended without an answer".to_owned(),
        }),
        Err(_elapsed) => Err(time.exceeded()),
    }
}

/// Where a job says how its answer begins.
pub(crate) type HeadSender = oneshot::Sender<Result<Head, ServiceError>>;

/// How an answer begins.
pub(crate) struct Head {
    content_type: HeaderValue,
    /// Of what was read.
    etag: Option<HeaderValue>,
    times: RequestTimes,
    /// What is surely not meant in the query.
    warnings: Vec<HeaderValue>,
    /// What a statement of SQL has done.
    tag: Option<HeaderValue>,
    /// What the query cost.
    touches: Option<u64>,
    /// Why it is not the whole answer.
    partial: Option<String>,
    content: Content,
}

pub(crate) enum Content {
    /// The client has it already.
    NotModified,
    Whole(Bytes),
    /// What comes, and where it will be said why no more does.
    Stream(mpsc::Receiver<Chunk>, Failed),
}

pub(crate) enum Chunk {
    Bytes(Bytes),
    End,
}

impl Head {
    fn into_response(self) -> Response {
        let (status, body, failed) = match self.content {
            Content::NotModified => (StatusCode::NOT_MODIFIED, Body::empty(), None),
            Content::Whole(bytes) => (StatusCode::OK, Body::from(bytes), None),
            Content::Stream(chunks, failed) => {
                (StatusCode::OK, streamed(pieces_of(chunks)), Some(failed))
            }
        };
        let mut response = Response::new(body);
        if let Some(failed) = failed {
            response.extensions_mut().insert(failed);
        }
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
        if let Some(tag) = self.tag {
            headers.insert(TAG, tag);
        }
        if let Some(touches) = self.touches {
            headers.insert(COST, touches.into());
        }
        if let Some(reason) = self.partial.and_then(|reason| reason.try_into().ok()) {
            headers.insert(PARTIAL, reason);
        }
        response
    }
}

/// The chunks as pieces of a body.
fn pieces_of(chunks: mpsc::Receiver<Chunk>) -> impl Stream<Item = Result<Bytes, BrokenOff>> {
    futures::stream::unfold(Some(chunks), |state| async move {
        let mut chunks = state?;
        match chunks.recv().await {
            Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(chunks))),
            Some(Chunk::End) => None,
            None => Some((Err(BrokenOff), None)),
        }
    })
}

/// Why a job ends before its answer does.
pub(crate) enum Stop {
    ClientGone,
    Failed(ServiceError),
}

impl<E: Into<ServiceError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Ends when the query costs more than whoever asks has left.
async fn exceeded(cost: &mut Option<CostWatch>) -> Exceeded {
    match cost {
        Some(cost) => cost.exceeded().await,
        None => std::future::pending().await,
    }
}

/// The job's side of the answer.
pub(crate) struct Output {
    pub(crate) buffer: Vec<u8>,
    /// True if the buffer may hold rows (and not just the head of a document).
    pub(crate) has_rows: bool,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) etag: Option<HeaderValue>,
    pub(crate) times: RequestTimes,
    pub(crate) warnings: Vec<HeaderValue>,
    pub(crate) tag: Option<HeaderValue>,
    /// What the query costs, where somebody wants to know.
    pub(crate) cost: Option<CostWatch>,
    /// Why the answer ends before its end, if it does.
    pub(crate) partial: Option<String>,
    sink: Sink,
    time: TimeLimit,
    deadline: Instant,
    /// Bytes that were sent.
    sent: u64,
}

enum Sink {
    /// Nothing was sent yet.
    Head(HeadSender),
    /// The head was sent, chunks follow.
    Chunks(mpsc::Sender<Chunk>, Failed),
    /// Everything was said.
    Closed,
}

impl Output {
    pub(crate) fn new(head: HeadSender, ready: std::time::Instant, time: TimeLimit) -> Self {
        Self {
            buffer: Vec::new(),
            has_rows: false,
            content_type: None,
            etag: None,
            times: RequestTimes::begin(ready),
            warnings: Vec::new(),
            tag: None,
            cost: None,
            partial: None,
            sink: Sink::Head(head),
            time,
            deadline: Instant::now() + time.left(),
            sent: 0,
        }
    }

    /// Whether nothing was sent yet.
    pub(crate) fn can_restart(&self) -> bool {
        matches!(self.sink, Sink::Head(_))
    }

    /// Forgets what was written and not sent.
    pub(crate) fn restart(&mut self) {
        self.buffer.clear();
        self.has_rows = false;
    }

    /// What the query computes before its first batch, unless time is up or the client has left.
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            result = work => Ok(result),
            () = self.sink.closed() => Err(Stop::ClientGone),
            () = tokio::time::sleep_until(self.deadline) => Err(self.time.exceeded().into()),
            exceeded = exceeded(&mut self.cost) => Err(exceeded.into()),
        }
    }

    /// The next batch of the query, unless time is up or the client has left.
    pub(crate) async fn next<B, E: Into<ServiceError>>(
        &mut self,
        stream: &mut (impl Stream<Item = Result<B, E>> + Unpin),
    ) -> Result<Option<B>, Stop> {
        // A stream that always has a batch ready would never let the timer below speak.
        if Instant::now() >= self.deadline {
            return Err(self.time.exceeded().into());
        }
        if let Some(cost) = &mut self.cost {
            cost.look()?;
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
                exceeded = exceeded(&mut self.cost) => return Err(exceeded.into()),
                () = tokio::time::sleep(FLUSH_DELAY), if has_waiting_rows => {}
            }
            // Only a delay comes here.
            self.flush().await?;
        }
    }

    /// Fails if time is up; an answer that a limit has ended already is written to its end.
    pub(crate) fn check_time(&self) -> Result<(), Stop> {
        if self.partial.is_none() && Instant::now() > self.deadline {
            return Err(self.time.exceeded().into());
        }
        Ok(())
    }

    pub(crate) async fn flush_if_full(&mut self) -> Result<(), Stop> {
        if self.buffer.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Puts bytes behind those in the buffer. If they are too many for it, it is sent, and they are the buffer.
    pub(crate) async fn add(&mut self, bytes: Vec<u8>) -> Result<(), Stop> {
        if self.buffer.len() + bytes.len() < CHUNK_BYTES {
            self.buffer.extend_from_slice(&bytes);
            return Ok(());
        }
        self.count(self.buffer.len())?;
        self.begin_stream()?;
        let before = std::mem::replace(&mut self.buffer, bytes);
        if !before.is_empty() {
            self.send(Chunk::Bytes(before.into())).await?;
        }
        self.flush_if_full().await
    }

    /// Sends what is in the buffer as a chunk of a stream.
    pub(crate) async fn flush(&mut self) -> Result<(), Stop> {
        self.count(self.buffer.len())?;
        self.begin_stream()?;
        let capacity = CHUNK_BYTES + CHUNK_BYTES / 8;
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(capacity));
        self.send(Chunk::Bytes(bytes.into())).await
    }

    /// Sends the head, if it was not: chunks follow.
    fn begin_stream(&mut self) -> Result<(), Stop> {
        if let Sink::Head(_) = self.sink {
            let (sender, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
            let failed = Failed::default();
            self.send_head(Content::Stream(receiver, failed.clone()))?;
            self.sink = Sink::Chunks(sender, failed);
        }
        Ok(())
    }

    /// Sends the rest of the answer: all of it, if nothing was sent yet.
    pub(crate) async fn finish(&mut self) -> Result<(), Stop> {
        if let Sink::Head(_) = self.sink {
            self.count(self.buffer.len())?;
            let bytes = std::mem::take(&mut self.buffer);
            self.times.serialized();
            return self.send_head(Content::Whole(bytes.into()));
        }
        if !self.buffer.is_empty() {
            self.flush().await?;
        }
        self.send(Chunk::End).await
    }

    /// Where the answer ends before its end: says why, in its format (`note`) or in its head.
    ///
    /// # Errors
    /// When its head was sent and the format has no place for it: then nobody would know.
    pub(crate) fn end_partial(
        &mut self,
        note: impl FnOnce(&str, &mut Vec<u8>) -> bool,
    ) -> Result<(), Stop> {
        let Some(reason) = &self.partial else {
            return Ok(());
        };
        let is_said = note(reason, &mut self.buffer);
        match is_said || matches!(self.sink, Sink::Head(_)) {
            true => Ok(()),
            false => Err(ServiceError::Unsupported {
                what: format!("a part of an answer in this format ({reason})"),
            }
            .into()),
        }
    }

    /// Counts bytes that are sent next; fails for an answer that is longer than it may be.
    fn count(&mut self, bytes: usize) -> Result<(), Stop> {
        self.sent += bytes as u64;
        match &self.cost {
            // What is said of a limit is not held to it.
            Some(cost) if self.partial.is_none() => Ok(cost.require_bytes(self.sent)?),
            _ => Ok(()),
        }
    }

    /// Answers with an error; after the first chunk, by breaking off, unless nothing of it has left the server.
    pub(crate) fn fail(&mut self, error: ServiceError) {
        match std::mem::replace(&mut self.sink, Sink::Closed) {
            // The client may have left meanwhile.
            Sink::Head(head) => drop(head.send(Err(error))),
            Sink::Chunks(chunks, failed) => {
                tracing::warn!("an answer that had begun failed: {}", error.line());
                failed.set(error);
                // Only now: the body fails when this is gone.
                drop(chunks);
            }
            Sink::Closed => {}
        }
    }

    pub(crate) fn send_head(&mut self, content: Content) -> Result<(), Stop> {
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
            tag: self.tag.take(),
            // What follows costs more.
            touches: match &content {
                Content::Whole(_) => self.cost.as_mut().map(CostWatch::settle),
                Content::NotModified | Content::Stream(..) => None,
            },
            partial: self.partial.clone(),
            content,
        }))
        .map_err(|_| Stop::ClientGone)
    }

    async fn send(&mut self, chunk: Chunk) -> Result<(), Stop> {
        let Sink::Chunks(chunks, _) = &self.sink else {
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
            Self::Chunks(chunks, _) => chunks.closed().await,
            Self::Closed => {}
        }
    }
}

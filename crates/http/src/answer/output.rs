//! Carries the answer of a job from the thread that computes it to the client's connection.
//!
//! A job writes bytes; they are sent when they fill a chunk, or when rows have waited for
//! [`FLUSH_DELAY`]. A small answer is sent whole. The time limit, which counts while the job works,
//! and a client that leaves end the job at its next wait. `stream_body` says what is sent when.

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
use orrery_service::second_try::SecondTry;
use orrery_service::time_limit::TimeLimit;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Bytes of a chunk, and of the largest answer that is sent whole.
const CHUNK_BYTES: usize = 64 * 1024;
/// Most chunks that wait between the job and the client's connection.
const CHUNKS_WAITING_MAX: usize = 4;
/// How long finished rows may wait for more to fill their chunk.
const FLUSH_DELAY: Duration = Duration::from_millis(200);
/// How long a client may read nothing.
const CLIENT_STALL_MAX: Duration = Duration::from_secs(60);
/// How long the handler waits beyond the time limit for the job's own error. An operator deep in a
/// computation may check the time late.
const LATE_ANSWER_MAX: Duration = Duration::from_millis(250);

/// Header with the command tag of a SQL statement, as PostgreSQL writes it: `INSERT 0 5`.
pub(crate) const TAG: HeaderName = HeaderName::from_static("orrery-tag");

/// Header with the cost of a query, in touches.
pub(crate) const COST: HeaderName = HeaderName::from_static("orrery-cost");
/// Header with the reason why an answer is partial.
pub(crate) const PARTIAL: HeaderName = HeaderName::from_static("orrery-partial");

/// Waits for the head of an answer and builds the response; fails at the time limit, or when the
/// server stops.
pub(crate) async fn begun(
    head: oneshot::Receiver<Result<Head, ServiceError>>,
    time: TimeLimit,
    is_over: &watch::Receiver<bool>,
) -> Result<Response, ServiceError> {
    let head = tokio::time::timeout(time.left() + LATE_ANSWER_MAX, head);
    let over = async {
        // An error means that the server is gone, which also ends the wait.
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

/// Sends the head of an answer, or its error, to the handler.
pub(crate) type HeadSender = oneshot::Sender<Result<Head, ServiceError>>;

/// The head of an answer.
pub(crate) struct Head {
    content_type: HeaderValue,
    /// The tag of the commit and format that were read.
    etag: Option<HeaderValue>,
    times: RequestTimes,
    /// Warnings about the query's text.
    warnings: Vec<HeaderValue>,
    /// The command tag of a SQL statement.
    tag: Option<HeaderValue>,
    /// The cost of the query.
    touches: Option<u64>,
    /// Why the answer is partial.
    partial: Option<String>,
    content: Content,
}

pub(crate) enum Content {
    /// The client has this very answer cached.
    NotModified,
    Whole(Bytes),
    /// The chunks to come, and the place for the error that ends them early.
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

/// Turns the chunks into pieces of a body.
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

/// Completes when the query costs more than the asker's budget has left.
async fn exceeded(cost: &mut Option<CostWatch>) -> Exceeded {
    match cost {
        Some(cost) => cost.exceeded().await,
        None => std::future::pending().await,
    }
}

/// The job's side of an answer: a buffer, and where it is sent.
pub(crate) struct Output {
    pub(crate) buffer: Vec<u8>,
    /// True if the buffer may hold rows, and not just the head of a document.
    pub(crate) has_rows: bool,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) etag: Option<HeaderValue>,
    pub(crate) times: RequestTimes,
    pub(crate) warnings: Vec<HeaderValue>,
    pub(crate) tag: Option<HeaderValue>,
    /// Counts the query's cost, where it is reported or limited.
    pub(crate) cost: Option<CostWatch>,
    /// Why the answer is partial, if it is.
    pub(crate) partial: Option<String>,
    sink: Sink,
    time: TimeLimit,
    deadline: Instant,
    /// Bytes sent so far.
    sent: u64,
    /// The right to a second try, until something is sent: others have theirs while the client
    /// reads.
    second_try: Option<SecondTry>,
}

enum Sink {
    /// Nothing was sent yet.
    Head(HeadSender),
    /// The head was sent, chunks follow.
    Chunks(mpsc::Sender<Chunk>, Failed),
    /// The answer or its error was sent.
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
            second_try: None,
        }
    }

    /// Whether nothing was sent yet, so that the job may run anew.
    pub(crate) fn can_restart(&self) -> bool {
        matches!(self.sink, Sink::Head(_))
    }

    /// Holds the right to a second try until the first bytes are sent.
    pub(crate) fn hold_until_sent(&mut self, second_try: SecondTry) {
        self.second_try = Some(second_try);
    }

    /// Discards the buffer, for a second try.
    pub(crate) fn restart(&mut self) {
        self.buffer.clear();
        self.has_rows = false;
    }

    /// Waits for the work before the query's first batch, unless time is up or the client has left.
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            result = work => Ok(result),
            () = self.sink.closed() => Err(Stop::ClientGone),
            () = tokio::time::sleep_until(self.deadline) => Err(self.time.exceeded().into()),
            exceeded = exceeded(&mut self.cost) => Err(exceeded.into()),
        }
    }

    /// Waits for the next batch of the query, unless time is up or the client has left.
    pub(crate) async fn next<B, E: Into<ServiceError>>(
        &mut self,
        stream: &mut (impl Stream<Item = Result<B, E>> + Unpin),
    ) -> Result<Option<B>, Stop> {
        // Checked here: a stream that always has a batch ready would never let the timer below
        // fire.
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
            // A flush delay only.
            self.flush().await?;
        }
    }

    /// Fails if time is up; an answer that a limit has made partial is still written to its end.
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

    /// Appends bytes to the buffer. If they do not fit, the buffer is sent first, and they replace
    /// it.
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

    /// Sends the buffer as a chunk of a stream.
    pub(crate) async fn flush(&mut self) -> Result<(), Stop> {
        self.count(self.buffer.len())?;
        self.begin_stream()?;
        let capacity = CHUNK_BYTES + CHUNK_BYTES / 8;
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(capacity));
        self.send(Chunk::Bytes(bytes.into())).await
    }

    /// Sends the head, if it was not sent; chunks follow.
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

    /// Ends the answer as a partial one: the reason goes into its format (`note`) or its head.
    ///
    /// # Errors
    /// When the head was sent and the format has no place for the reason: the client would not
    /// know.
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

    /// Counts bytes about to be sent; fails when the answer exceeds its size limit.
    fn count(&mut self, bytes: usize) -> Result<(), Stop> {
        self.sent += bytes as u64;
        match &self.cost {
            // The note about a limit is not held to the limit.
            Some(cost) if self.partial.is_none() => Ok(cost.require_bytes(self.sent)?),
            _ => Ok(()),
        }
    }

    /// Answers with an error; after the first chunk has left the server, breaks the answer off.
    pub(crate) fn fail(&mut self, error: ServiceError) {
        match std::mem::replace(&mut self.sink, Sink::Closed) {
            // The client may have left meanwhile.
            Sink::Head(head) => drop(head.send(Err(error))),
            Sink::Chunks(chunks, failed) => {
                tracing::warn!("an answer that had begun failed: {}", error.line());
                failed.set(error);
                // Only now: the body fails when the channel closes.
                drop(chunks);
            }
            Sink::Closed => {}
        }
    }

    pub(crate) fn send_head(&mut self, content: Content) -> Result<(), Stop> {
        let Sink::Head(head) = std::mem::replace(&mut self.sink, Sink::Closed) else {
            return Ok(());
        };
        self.second_try = None;
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
            // The rest of a stream costs more.
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
                // Waiting for the client does not count as the query's time.
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
    /// Waits until the client's side of the channel is gone.
    async fn closed(&mut self) {
        match self {
            Self::Head(head) => head.closed().await,
            Self::Chunks(chunks, _) => chunks.closed().await,
            Self::Closed => {}
        }
    }
}

//! One line per request, when its last byte is sent or given up: method, path,
//! status, milliseconds, rows, and the beginning of the query. What was asked is counted at the same moment ([`Metrics`]), and gets its entry where there is a query log.

use crate::edge;
use crate::errors::{Failure, ServerError};
use crate::metrics::{EndedQuery, Listens, Metrics, PanicWatch, SpentLimit};
use crate::query_log::{AtCommit, Peer, QueryLog, QueryRecord};
use crate::running_queries::{Place, RunningQueries};
use crate::stages::Stages;
use crate::tls::Secure;
use crate::traces::{EndedRequest, TraceRecord, Tracer};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, request::Parts};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use orrery_query_log::{Kind, Outcome};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How much of a query the log shows.
const QUERY_CHARACTERS_MAX: usize = 200;

/// Who wants to know of the requests of a listener.
#[derive(Debug)]
pub(crate) struct Observers {
    pub(crate) listens: Listens,
    pub(crate) metrics: Arc<Metrics>,
    /// None where nothing is logged.
    pub(crate) query_log: Option<Arc<QueryLog>>,
    /// None where nobody lists what runs.
    pub(crate) running: Option<Arc<RunningQueries>>,
    /// None where no traces are sent.
    pub(crate) tracer: Option<Arc<Tracer>>,
}

/// What is known about a request so far; logged when the last holder lets go.
#[derive(Debug)]
pub(crate) struct AccessRecord {
    observers: Arc<Observers>,
    method: Method,
    path: String,
    started: Instant,
    /// 0 until there is a response.
    status: AtomicU16,
    rows: AtomicU64,
    is_complete: AtomicBool,
    query: OnceLock<String>,
    /// None in requests that ask nothing.
    kind: OnceLock<Kind>,
    /// Of a query, as soon as it is known.
    form: OnceLock<Kind>,
    outcome: OnceLock<Outcome>,
    limit: OnceLock<SpentLimit>,
    stages: OnceLock<Stages>,
    touches: AtomicU64,
    /// Of the answer's body, as they went out.
    bytes: AtomicU64,
    /// Microseconds after the start; 0 until then.
    first_byte_us: AtomicU64,
    ended_us: AtomicU64,
    /// None without a query log.
    entry: Option<Box<QueryRecord>>,
    /// None where nobody lists what runs.
    place: Option<Box<Place>>,
    /// None where it is not sampled.
    trace: Option<Box<TraceRecord>>,
}

impl AccessRecord {
    fn new(observers: Arc<Observers>, request: &Request) -> Self {
        let client = || request.extensions().get().map(|&Peer(address)| address);
        let started = Instant::now();
        let log = observers.query_log.as_ref();
        let running = observers.running.as_ref();
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            started,
            status: AtomicU16::new(0),
            rows: AtomicU64::new(0),
            is_complete: AtomicBool::new(false),
            query: OnceLock::new(),
            kind: OnceLock::new(),
            form: OnceLock::new(),
            outcome: OnceLock::new(),
            limit: OnceLock::new(),
            stages: OnceLock::new(),
            touches: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_byte_us: AtomicU64::new(0),
            ended_us: AtomicU64::new(0),
            entry: log.map(|log| Box::new(QueryRecord::of(log, request, started))),
            place: running.map(|running| Box::new(running.place(client()))),
            trace: observers.tracer.as_ref().and_then(|tracer| {
                let is_secure = request.extensions().get::<Secure>().is_some();
                tracer
                    .begin(request, started, client(), is_secure)
                    .map(Box::new)
            }),
            observers,
        }
    }

    /// That of a request.
    pub(crate) fn of(parts: &Parts) -> Option<Arc<Self>> {
        parts.extensions.get().cloned()
    }

    /// Notes the text of the query, clipped to one line.
    pub(crate) fn set_query(&self, query: &str) {
        // A second query in the same request cannot happen; the first would stay.
        let _ = self.query.set(clip(query));
    }

    /// What the query log will have of the request, if there is one and the request was a query, an update or SQL.
    pub(crate) fn entry(&self) -> Option<&QueryRecord> {
        self.entry.as_deref()
    }

    /// Notes for the query log, and the list of what runs, who asks.
    pub(crate) fn set_user(&self, parts: &Parts) {
        let user = || edge::rights(parts)?.user.as_ref();
        if let (Some(entry), Some(user)) = (self.entry(), user()) {
            entry.set_user(user.to_string());
        }
        if let (Some(place), Some(user)) = (&self.place, user()) {
            place.set_user(user.to_string());
        }
        if let (Some(trace), Some(user)) = (&self.trace, user()) {
            trace.set_user(user.to_string());
        }
    }

    /// Notes what is asked, also for the query log, and the list of what runs.
    pub(crate) fn set_asked(&self, kind: Kind, text: &str) {
        // A request asks once; the first would stay.
        let _ = self.kind.set(kind);
        if let Some(entry) = self.entry() {
            entry.set_asked(text);
        }
        self.take_place(kind, text);
    }

    /// Has the list of what runs show what is asked.
    pub(crate) fn take_place(&self, kind: Kind, text: &str) {
        if let Some(place) = &self.place {
            place.take(kind, text);
        }
    }

    /// Notes the form of the query that is asked, and the commit of the snapshot that it reads.
    pub(crate) fn set_prepared(&self, form: Kind, commit: u64) {
        // A second try has the same.
        let _ = self.form.set(form);
        if let Some(entry) = self.entry() {
            entry.set_commit(commit);
        }
    }

    /// Notes why there is no answer, or none to its end; the first reason counts.
    pub(crate) fn set_failure(&self, failure: Failure) {
        let _ = self.outcome.set(failure.outcome);
        if let Some(limit) = failure.limit {
            let _ = self.limit.set(limit);
        }
    }

    /// Notes what the time was spent on.
    pub(crate) fn set_stages(&self, stages: Stages) {
        let _ = self.stages.set(stages);
    }

    /// Counts a panic that drops what holds this.
    pub(crate) fn watch_panics(&self) -> PanicWatch<'_> {
        self.observers.metrics.watch_panics()
    }

    /// Notes what the answer says about itself.
    fn set_answer(&self, response: &Response) {
        let Observers {
            metrics, listens, ..
        } = &*self.observers;
        metrics.answered(*listens, Some(response.status()));
        if let Some(&failure) = response.extensions().get::<Failure>() {
            self.set_failure(failure);
            if let Some(refusal) = failure.refusal {
                metrics.refused(refusal);
            }
        }
        if let (Some(entry), Some(&AtCommit(commit))) = (self.entry(), response.extensions().get())
        {
            entry.set_commit(commit);
        }
    }

    /// Bytes of the answer went out.
    fn sent(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0 && bytes > 0 {
            let us = self.elapsed_us();
            self.first_byte_us.store(us, Ordering::Relaxed);
        }
    }

    /// No more of the answer goes out.
    fn end(&self) {
        self.ended_us.store(self.elapsed_us(), Ordering::Relaxed);
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// What was asked, at its end; none where nothing was.
    fn ended(&mut self, took_us: u64) -> Option<EndedQuery> {
        let kind = *self.kind.get()?;
        let is_complete = self.is_complete();
        let first_byte_us = *self.first_byte_us.get_mut();
        let by_status = match *self.status.get_mut() {
            100..400 if is_complete => Outcome::Ok,
            400.. => Outcome::Error,
            _ => Outcome::Cancelled,
        };
        Some(EndedQuery {
            kind: *self.form.get().unwrap_or(&kind),
            outcome: *self.outcome.get().unwrap_or(&by_status),
            took: Duration::from_micros(took_us),
            first_byte: (first_byte_us != 0).then(|| Duration::from_micros(first_byte_us)),
            rows: *self.rows.get_mut(),
            bytes: *self.bytes.get_mut(),
            touches: *self.touches.get_mut(),
            stages: self.stages.get().copied(),
        })
    }

    /// Whether the answer went out to its end. What is not sent for HEAD is not missing.
    fn is_complete(&mut self) -> bool {
        *self.is_complete.get_mut() || self.method == Method::HEAD
    }

    /// The answer begins anew.
    pub(crate) fn reset_rows(&self) {
        self.rows.store(0, Ordering::Relaxed);
    }

    /// Notes what the query costs.
    pub(crate) fn add_touches(&self, touches: u64) {
        self.touches.fetch_add(touches, Ordering::Relaxed);
        if let Some(place) = &self.place {
            place.add_touches(touches);
        }
    }

    /// What work comes to, unless somebody ends it from outside first.
    pub(crate) async fn unless_killed<T, E: From<ServerError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(place) = &self.place else {
            return work.await;
        };
        tokio::select! {
            biased;
            () = place.killed() => Err(ServerError::Killed.into()),
            done = work => done,
        }
    }

    /// Rows of the answer so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Counts rows that were written into the answer.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        let took_us = match *self.ended_us.get_mut() {
            0 => self.elapsed_us(),
            us => us,
        };
        let observers = Arc::clone(&self.observers);
        let metrics = &observers.metrics;
        let status = *self.status.get_mut();
        if status == 0 {
            metrics.answered(observers.listens, None);
        }
        if let Some(&limit) = self.limit.get() {
            metrics.spent(limit);
        }
        let ended = self.ended(took_us);
        if let Some(ended) = &ended {
            metrics.ended(ended);
            if let Some(mut entry) = self.entry.take() {
                entry.finish(status, ended);
            }
        }
        if let (Some(trace), Some(tracer)) = (self.trace.take(), &observers.tracer) {
            let request = EndedRequest {
                status,
                took: Duration::from_micros(took_us),
                query: ended.as_ref(),
            };
            tracer.ended(&trace, request);
        }
        let outcome = match (*self.status.get_mut(), *self.is_complete.get_mut()) {
            (0, _) => "client left before the answer",
            (_, true) => "complete",
            (_, false) => "aborted",
        };
        tracing::info!(
            target: "orrery::access",
            method = %self.method,
            path = %self.path,
            status = *self.status.get_mut(),
            ms = took_us as f64 / 1000.0,
            rows = *self.rows.get_mut(),
            query = self.query.get().map_or("", String::as_str),
            outcome,
        );
    }
}

/// One line of at most [`QUERY_CHARACTERS_MAX`] characters.
fn clip(query: &str) -> String {
    let mut line = String::with_capacity(query.len().min(QUERY_CHARACTERS_MAX + 3));
    let mut characters = 0;
    let mut is_between_words = false;
    let mut rest = query;
    while let Some(character) = rest.chars().next() {
        // Most of a query are such runs; character by character they were a twentieth of a point query.
        let shown_at_most = rest.bytes().take(QUERY_CHARACTERS_MAX + 1);
        let plain = shown_at_most.take_while(u8::is_ascii_graphic).count();
        if plain > 0 {
            if is_between_words {
                line.push(' ');
                characters += 1;
                is_between_words = false;
            }
            let shown = plain.min(QUERY_CHARACTERS_MAX.saturating_sub(characters));
            let (run, behind) = rest.split_at(plain);
            line.push_str(&run[..shown]);
            characters += shown;
            if shown < plain {
                line.push('…');
                break;
            }
            rest = behind;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        if character.is_whitespace() {
            is_between_words = !line.is_empty();
            continue;
        }
        if character.is_control() {
            continue;
        }
        if is_between_words {
            line.push(' ');
            characters += 1;
            is_between_words = false;
        }
        if characters >= QUERY_CHARACTERS_MAX {
            line.push('…');
            break;
        }
        line.push(character);
        characters += 1;
    }
    line
}

/// Middleware: follows a request and its answer's body to their end.
pub(crate) async fn log_access(
    observers: Arc<Observers>,
    mut request: Request,
    next: Next,
) -> Response {
    let record = Arc::new(AccessRecord::new(observers, &request));
    request.extensions_mut().insert(Arc::clone(&record));
    let response = next.run(request).await;
    record
        .status
        .store(response.status().as_u16(), Ordering::Relaxed);
    record.set_answer(&response);
    // A body that is already at its end may never be polled.
    if response.body().is_end_stream() || response.status() == StatusCode::NO_CONTENT {
        record.is_complete.store(true, Ordering::Relaxed);
    }
    response.map(|body| Body::new(FollowedBody { body, record }))
}

/// A body that notes when it was read to its end.
struct FollowedBody {
    body: Body,
    record: Arc<AccessRecord>,
}

impl Drop for FollowedBody {
    fn drop(&mut self) {
        self.record.end();
    }
}

impl HttpBody for FollowedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let is_end = match &polled {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.record.sent(frame.data_ref().map_or(0, Bytes::len));
        }
        if is_end {
            self.record.is_complete.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_clipped_to_one_line() {
        assert_eq!(
            clip("SELECT *\n\tWHERE  {\u{1b}[31m }\r\n"),
            "SELECT * WHERE {[31m }"
        );
        for letter in ["ä", "a"] {
            let long = clip(&letter.repeat(1000));
            assert_eq!(long.chars().count(), QUERY_CHARACTERS_MAX + 1);
            assert!(long.ends_with('…'));
            let whole = letter.repeat(QUERY_CHARACTERS_MAX);
            assert_eq!(clip(&whole), whole);
            assert_eq!(clip(&format!(" {whole}\n")), whole);
            assert_eq!(clip(&format!("{whole} b")), format!("{whole} …"));
        }
        assert_eq!(clip("é a  äb\u{1}c"), "é a äbc");
    }
}

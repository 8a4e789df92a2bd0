//! One line per request, when its last byte is sent or given up: method, path,
//! status, milliseconds, rows, and the beginning of the query. Where there is a query log, what was asked gets its entry there at the same moment.

use crate::edge;
use crate::errors::ServerError;
use crate::query_log::{AtCommit, Ended, Peer, QueryLog, QueryRecord};
use crate::running_queries::{Place, RunningQueries};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, request::Parts};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use orrery_usage::{Kind, Outcome};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

/// How much of a query the log shows.
const QUERY_CHARACTERS_MAX: usize = 200;

/// What is known about a request so far; logged when the last holder lets go.
#[derive(Debug)]
pub(crate) struct AccessRecord {
    method: Method,
    path: String,
    started: Instant,
    /// 0 until there is a response.
    status: AtomicU16,
    rows: AtomicU64,
    is_complete: AtomicBool,
    query: OnceLock<String>,
    /// None without a query log.
    entry: Option<Box<QueryRecord>>,
    /// None where nobody lists what runs.
    place: Option<Box<Place>>,
}

impl AccessRecord {
    fn new(
        request: &Request,
        log: Option<&Arc<QueryLog>>,
        running: Option<&Arc<RunningQueries>>,
    ) -> Self {
        let client = || request.extensions().get().map(|&Peer(address)| address);
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            started: Instant::now(),
            status: AtomicU16::new(0),
            rows: AtomicU64::new(0),
            is_complete: AtomicBool::new(false),
            query: OnceLock::new(),
            entry: log.map(|log| Box::new(QueryRecord::of(log, request))),
            place: running.map(|running| Box::new(running.place(client()))),
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
    }

    /// Notes for the query log, and the list of what runs, what is asked.
    pub(crate) fn set_asked(&self, kind: Kind, text: &str) {
        if let Some(entry) = self.entry() {
            entry.set_asked(kind, text);
        }
        self.take_place(kind, text);
    }

    /// Has the list of what runs show what is asked.
    pub(crate) fn take_place(&self, kind: Kind, text: &str) {
        if let Some(place) = &self.place {
            place.take(kind, text);
        }
    }

    /// Notes for the query log why the answer broke off.
    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        if let Some(entry) = self.entry() {
            entry.set_outcome(outcome);
        }
    }

    /// Notes for the query log what the answer says about itself.
    fn set_answer(&self, response: &Response) {
        let Some(entry) = self.entry() else {
            return;
        };
        if let Some(&outcome) = response.extensions().get() {
            entry.set_outcome(outcome);
        }
        if let Some(&AtCommit(commit)) = response.extensions().get() {
            entry.set_commit(commit);
        }
    }

    /// The answer begins anew.
    pub(crate) fn reset_rows(&self) {
        self.rows.store(0, Ordering::Relaxed);
    }

    /// Notes for the query log what the query costs.
    pub(crate) fn add_touches(&self, touches: u64) {
        if let Some(entry) = self.entry() {
            entry.add_touches(touches);
        }
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

    /// Counts rows that were written into the answer.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.finish(Ended {
                status: *self.status.get_mut(),
                rows: *self.rows.get_mut(),
                // What is not sent for HEAD is not missing.
                is_complete: *self.is_complete.get_mut() || self.method == Method::HEAD,
            });
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
            ms = self.started.elapsed().as_micros() as f64 / 1000.0,
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
    log: Option<Arc<QueryLog>>,
    running: Option<Arc<RunningQueries>>,
    mut request: Request,
    next: Next,
) -> Response {
    let record = Arc::new(AccessRecord::new(&request, log.as_ref(), running.as_ref()));
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
        if let Some(entry) = self.record.entry() {
            entry.end();
        }
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
        if let (Poll::Ready(Some(Ok(frame))), Some(entry)) = (&polled, self.record.entry()) {
            entry.sent(frame.data_ref().map_or(0, Bytes::len));
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

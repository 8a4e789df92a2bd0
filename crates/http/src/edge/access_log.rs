//! The access log: one line per request, when its last byte is sent or given up.
//!
//! A line has method, path, status, milliseconds, rows, and the beginning of the query. The record
//! that all protocols share ([`StatementRecord`]) counts, logs and lists the statement; this module
//! adds what only HTTP has.

use crate::edge::around;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header, request::Parts};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use orrery_query_log::Outcome;
use orrery_service::errors::Failure;
use orrery_service::query_log::{AtCommit, Peer};
use orrery_service::record::{Observers, Sender, StatementRecord};
use orrery_service::traces::TraceHead;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use crate::connection::tls::Secure;
use crate::route::Resources;

/// Most characters of a query in the log.
const QUERY_CHARACTERS_MAX: usize = 200;

/// The record of one HTTP request; written when its last holder drops it.
#[derive(Debug)]
pub(crate) struct AccessRecord {
    statement: Arc<StatementRecord>,
    method: Method,
    path: String,
    is_complete: AtomicBool,
    query: OnceLock<String>,
}

impl Deref for AccessRecord {
    type Target = StatementRecord;

    fn deref(&self) -> &StatementRecord {
        &self.statement
    }
}

impl AccessRecord {
    fn new(observers: Arc<Observers>, resources: &Resources, request: &Request) -> Self {
        // Every request passes here: what only a log or a trace reads is looked up for them alone.
        let is_traced = observers.tracer.is_some();
        let agent = (is_traced || observers.query_log.is_some())
            .then(|| request.headers().get(header::USER_AGENT))
            .flatten();
        let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let sender = Sender {
            client: request.extensions().get().map(|&Peer(address)| address),
            agent: agent.as_deref(),
            head: is_traced.then(|| trace_head(resources, request)),
        };
        Self {
            statement: Arc::new(StatementRecord::new(observers, sender)),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            is_complete: AtomicBool::new(false),
            query: OnceLock::new(),
        }
    }

    /// The record of the request with this head.
    pub(crate) fn of(parts: &Parts) -> Option<Arc<Self>> {
        parts.extensions.get().cloned()
    }

    /// The record that all protocols share.
    pub(crate) fn statement(&self) -> &Arc<StatementRecord> {
        &self.statement
    }

    /// Notes the text of the query, clipped to one line.
    pub(crate) fn set_query(&self, query: &str) {
        // A request has one query; a second would be ignored.
        let _ = self.query.set(clip(query));
    }

    /// Notes the asker, for the query log and the list of running statements.
    pub(crate) fn set_asker(&self, parts: &Parts) {
        if let Some(user) = around::rights(parts).and_then(|rights| rights.user.as_ref()) {
            self.set_user(user.as_str());
        }
    }

    /// Notes the status, and what the answer's headers report.
    fn set_answer(&self, response: &Response) {
        let status = response.status().as_u16();
        self.set_status(status);
        self.metrics().answered(self.listens(), Some(status));
        if let Some(&failure) = response.extensions().get::<Failure>() {
            self.set_failure(failure);
            if let Some(refusal) = failure.refusal {
                self.metrics().refused(refusal);
            }
        }
        if let (Some(entry), Some(&AtCommit(commit))) = (self.entry(), response.extensions().get())
        {
            entry.set_commit(commit);
        }
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        let is_sent = *self.is_complete.get_mut();
        let status = self.status();
        if status == 0 {
            self.metrics().answered(self.listens(), None);
        }
        self.end_with(match status {
            // HEAD has no body that could be missing.
            100..400 if is_sent || self.method == Method::HEAD => Outcome::Ok,
            400.. => Outcome::Error,
            _ => Outcome::Cancelled,
        });
        let outcome = match (status, is_sent) {
            (0, _) => "client left before the answer",
            (_, true) => "complete",
            (_, false) => "aborted",
        };
        tracing::info!(
            target: "orrery::access",
            method = %self.method,
            path = %self.path,
            status,
            ms = self.took_us() as f64 / 1000.0,
            rows = self.rows(),
            query = self.query.get().map_or("", String::as_str),
            outcome,
        );
    }
}

/// Reads the parts of a request's head that a trace records.
fn trace_head<'a>(resources: &Resources, request: &'a Request) -> TraceHead<'a> {
    let path = request.uri().path();
    // None where there are several, or one that is no text: then a trace of its own begins (W3C
    // Trace Context, 4.3).
    let mut parents = request.headers().get_all("traceparent").iter();
    let parent = parents.next().filter(|_| parents.next().is_none());
    TraceHead {
        method: request.method().as_str(),
        path,
        route: resources.find(path).map(|(_, pattern)| pattern),
        parent: parent.and_then(|parent| parent.to_str().ok()),
        is_secure: request.extensions().get::<Secure>().is_some(),
    }
}

/// One line of at most [`QUERY_CHARACTERS_MAX`] characters.
fn clip(query: &str) -> String {
    let mut line = String::with_capacity(query.len().min(QUERY_CHARACTERS_MAX + 3));
    let mut characters = 0;
    let mut is_between_words = false;
    let mut rest = query;
    while let Some(character) = rest.chars().next() {
        // Most of a query are such runs; one character at a time took a twentieth of a point query.
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
    resources: &'static Resources,
    mut request: Request,
    next: Next,
) -> Response {
    let record = Arc::new(AccessRecord::new(observers, resources, &request));
    request.extensions_mut().insert(Arc::clone(&record));
    let response = next.run(request).await;
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
            self.record.sent(
                frame
                    .data_ref()
                    .map_or(0, |bytes: &Bytes| bytes.len() as u64),
            );
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

//! One line per request, when its last byte is sent or given up: method, path,
//! status, milliseconds, rows, and the beginning of the query.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
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
}

impl AccessRecord {
    fn new(request: &Request) -> Self {
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            started: Instant::now(),
            status: AtomicU16::new(0),
            rows: AtomicU64::new(0),
            is_complete: AtomicBool::new(false),
            query: OnceLock::new(),
        }
    }

    /// Notes the text of the query, clipped to one line.
    pub(crate) fn set_query(&self, query: &str) {
        // A second query in the same request cannot happen; the first would stay.
        let _ = self.query.set(clip(query));
    }

    /// The answer begins anew.
    pub(crate) fn reset_rows(&self) {
        self.rows.store(0, Ordering::Relaxed);
    }

    /// Counts rows that were written into the answer.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
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
pub(crate) async fn log_access(mut request: Request, next: Next) -> Response {
    let record = Arc::new(AccessRecord::new(&request));
    request.extensions_mut().insert(Arc::clone(&record));
    let response = next.run(request).await;
    record
        .status
        .store(response.status().as_u16(), Ordering::Relaxed);
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

//! GET `/changes?since=N`: what was committed after commit N, as RDF Patch, so that a copy can follow.
//!
//! <https://afs.github.io/rdf-delta/rdf-patch.html>
//!
//! ```text
//! H id <urn:x-orrery:commit:18> .      one patch a commit, in order
//! H prev <urn:x-orrery:commit:17> .
//! TX .
//! D <http://e/s> <http://e/p> "old" .
//! A <http://e/s> <http://e/p> "new" <http://e/graph> .
//! TC .
//! ```
//!
//! Blank nodes are `_:b17`, the same name in all patches of one database. With `follow=true` the answer goes
//! on: further commits are sent as they come, until the client leaves or the server stops.
//!
//! 404 says that a commit after N is not kept any more, or was a bulk load, whose changes are not
//! recorded. Then a copy begins anew: it notes the `ETag` of a dump, and follows from there.

use crate::access_log::AccessRecord;
use crate::errors::ServerError;
use crate::format::{GraphFormat, GraphSerializer};
use crate::protocol::url_parameters;
use crate::router::ServerState;
use axum::body::Body;
use axum::http::{HeaderValue, header, request::Parts};
use axum::response::Response;
use bytes::Bytes;
use orrery_storage::{At, AtError, CommitChanges, Database, Error as StorageError, QuadRef};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Size of a chunk of the answer.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks between the log's reader and the client.
const CHUNKS_WAITING_MAX: usize = 4;
/// How often a follower looks for new commits.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);

const RDF_PATCH: HeaderValue = HeaderValue::from_static("application/rdf-patch");

/// `at=17` is a commit, `at=2026-11-21T10:00:00Z` a time.
pub(crate) fn parse_at(text: &str) -> Result<At, ServerError> {
    text.parse()
        .map_err(|error: AtError| ServerError::bad_request(error.to_string()))
}

/// What a client wants.
struct Wish {
    since: u64,
    follows: bool,
}

fn wish(parts: &Parts) -> Result<Wish, ServerError> {
    let (mut since, mut follows) = (None, false);
    for (name, value) in url_parameters(parts.uri.query())? {
        match name.as_str() {
            "since" => {
                since = Some(value.parse().map_err(|_| {
                    ServerError::bad_request(format!("since=`{value}` is no number of a commit"))
                })?);
            }
            "follow" => {
                follows = value.parse().map_err(|_| {
                    ServerError::bad_request("follow can be `true` or `false`".to_owned())
                })?;
            }
            _ => {}
        }
    }
    let since = since.ok_or_else(|| {
        ServerError::bad_request("the request has no `since`, the last commit that is known")
    })?;
    Ok(Wish { since, follows })
}

/// Streams the changes.
pub(crate) async fn answer(
    state: &ServerState,
    record: Arc<AccessRecord>,
    parts: &Parts,
) -> Result<Response, ServerError> {
    let Wish { since, follows } = wish(parts)?;
    let (chunks, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
    let (head, begins) = oneshot::channel();
    let feed = Feed {
        database: Arc::clone(state.engine.database()),
        next_after: since,
        patch: Vec::new(),
        chunks,
        head: Some(head),
        record,
    };
    // A thread that may block; it is not one of those that queries run on.
    state
        .query_threads
        .handle()
        .spawn_blocking(move || feed.run(follows));
    begins.await.unwrap_or(Err(ServerError::Stopping))?;
    let body = futures::stream::unfold(receiver, |mut receiver| async move {
        let chunk: Option<Result<Bytes, StorageError>> = receiver.recv().await;
        chunk.map(|chunk| (chunk, receiver))
    });
    let mut response = Response::new(Body::from_stream(body));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, RDF_PATCH);
    Ok(response)
}

/// The writing side of an answer.
struct Feed {
    database: Arc<Database>,
    /// The last commit that was sent.
    next_after: u64,
    patch: Vec<u8>,
    chunks: mpsc::Sender<Result<Bytes, StorageError>>,
    /// Until the first commit was read without error.
    head: Option<oneshot::Sender<Result<(), ServerError>>>,
    record: Arc<AccessRecord>,
}

impl Feed {
    fn run(mut self, follows: bool) {
        loop {
            let database = Arc::clone(&self.database);
            let since = self.next_after;
            let result = database.changes(since, |changes| self.commit(changes));
            match (result, self.head.take()) {
                (Ok(()), Some(head)) => drop(head.send(Ok(()))),
                (Ok(()), None) => {}
                (Err(error), Some(head)) => return drop(head.send(Err(error.into()))),
                (Err(error), None) => return drop(self.chunks.blocking_send(Err(error))),
            }
            if !self.send() || !follows {
                return;
            }
            while self.database.snapshot().commit() <= self.next_after {
                if self.chunks.is_closed() {
                    return;
                }
                std::thread::sleep(FOLLOW_PERIOD);
            }
        }
    }

    fn commit(&mut self, changes: &CommitChanges<'_>) -> Result<(), StorageError> {
        if let Some(head) = self.head.take() {
            // The client may have left.
            let _ = head.send(Ok(()));
        }
        let number = changes.entry.number;
        let head = format!(
            "H id <urn:x-orrery:commit:{number}> .\nH prev <urn:x-orrery:commit:{}> .\nTX .\n",
            number.saturating_sub(1)
        );
        self.patch.extend_from_slice(head.as_bytes());
        changes.removed(|quad| self.line(b"D ", quad))?;
        changes.added(|quad| self.line(b"A ", quad))?;
        self.patch.extend_from_slice(b"TC .\n");
        self.next_after = number;
        Ok(())
    }

    fn line(&mut self, mark: &[u8], quad: QuadRef<'_>) -> Result<(), StorageError> {
        self.patch.extend_from_slice(mark);
        let mut line = GraphSerializer::start(GraphFormat::NQuads);
        let QuadRef {
            subject,
            predicate,
            object,
            graph,
        } = quad;
        // N-Quads can express every quad that there is.
        let _ = line.quad(subject, predicate, &object, graph, &mut self.patch);
        self.record.add_rows(1);
        if self.patch.len() >= CHUNK_BYTES {
            // A client that has left is noticed where the commit ends.
            self.send();
        }
        Ok(())
    }

    /// Sends what is there; false if nobody is left to take it.
    fn send(&mut self) -> bool {
        if self.patch.is_empty() {
            return !self.chunks.is_closed();
        }
        let bytes = Bytes::from(std::mem::take(&mut self.patch));
        self.chunks.blocking_send(Ok(bytes)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_named_by_its_commit_or_by_a_time() {
        assert_eq!(parse_at("17").unwrap(), At::Commit(17));
        assert_eq!(
            parse_at("1970-01-01T00:00:01.5Z").unwrap(),
            At::Time(1_500_000)
        );
        assert_eq!(parse_at("1970-01-01T01:00:00+01:00").unwrap(), At::Time(0));
        let end_of_day = At::Time(24 * 60 * 60 * 1_000_000 - 1);
        assert_eq!(parse_at("1970-01-01").unwrap(), end_of_day);
        for bad in ["", "-1", "yesterday", "1970-02-30"] {
            assert!(parse_at(bad).is_err(), "{bad}");
        }
    }
}

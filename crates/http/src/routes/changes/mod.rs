//! The change feed, GET `/changes?since=N`: commits after N, as RDF Patch or as lines of JSON
//! ([`lines`]).
//!
//! A copy of the database follows it. Lines of JSON have the changes of tables, too.
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
//! Blank nodes are `_:b17`, the same name in all patches of one database. With `follow=true` the
//! answer goes on: later commits are sent as they come, until the client leaves or the server
//! stops.
//!
//! A follower costs a task that looks at the newest commit now and then. It needs a thread only to
//! read the log, and [`READING_MAX`] feeds read at a time; a client that takes nothing for
//! [`CLIENT_STALL_MAX`] is given up, so that none keeps others from their turn.
//!
//! Commits are sent when they are on the disk, in a cluster on those of a majority: before that, a
//! commit of `durability=relaxed` may be lost, and another commit gets its number.
//!
//! With users, a feed is one request of its reader from beginning to end. It counts in their
//! accounts (requests at a time, time, rows, bytes; a touch for each commit and for each change
//! that they see), and one reader has a share of all feeds. Before anything is sent, the reader's
//! credentials and scope are checked again: if they have changed, the feed ends. Only
//! administrators see who made a commit, for the log names the users and the acts of
//! administrators.
//!
//! A bulk load's changes are not recorded. Lines of JSON report the load and go on; RDF Patch
//! cannot. 404 means that a commit after N is not retained any more, or, for patches, that it was a
//! bulk load. Then a copy begins anew: it notes the commit in the `ETag` of a dump (`"17-nquads"`),
//! and follows from there.

mod lines;

use crate::answer::streamed::{BrokenOff, Failed, streamed};
use crate::edge::access_log::AccessRecord;
use crate::edge::around;
use crate::request::parameters::{unknown, url_parameters};
use crate::route_table::HttpRequest;
use axum::http::{HeaderValue, header, request::Parts};
use axum::response::Response;
use bytes::Bytes;
use orrery_formats::{GraphFormat, GraphSerializer};
use orrery_service::errors::ServiceError;
use orrery_service::metering::{Exceeded, Meter, network};
use orrery_service::query_log::Peer;
use orrery_service::users::standing::Standing;
use orrery_service::writes::feeds::FeedHolder;
use orrery_storage::{CommitChanges, Database, Error as StorageError, QuadRef, ReadScope};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

/// Bytes of a chunk of the answer.
const CHUNK_BYTES: usize = 64 * 1024;
/// Most chunks that wait between the log's reader and the client.
const CHUNKS_WAITING_MAX: usize = 4;
/// How often a follower looks for new commits.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);
/// How long a client may read nothing.
const CLIENT_STALL_MAX: Duration = Duration::from_secs(30);

/// Most touches that a feed counts before it charges them to the budgets.
const UNPAID_MAX: u64 = 1024;

const RDF_PATCH: HeaderValue = HeaderValue::from_static("application/rdf-patch");
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// The parameters of a feed.
struct FeedRequest {
    since: u64,
    follows: bool,
    form: Form,
}

/// The format of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// RDF Patch: changes of quads only.
    Patch,
    /// Lines of JSON: changes of quads and of tables.
    Lines,
}

fn feed_request(parts: &Parts) -> Result<FeedRequest, ServiceError> {
    let accepted = parts.headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    let wants_lines = accepted.is_some_and(|accepted| {
        let mut types = accepted.split([',', ';']);
        types.any(|it| it.trim().eq_ignore_ascii_case("application/x-ndjson"))
    });
    let mut form = match wants_lines {
        true => Form::Lines,
        false => Form::Patch,
    };
    let (mut since, mut follows) = (None, false);
    for (name, value) in url_parameters(parts.uri.query())? {
        match name.as_str() {
            "since" => {
                since = Some(value.parse().map_err(|_| {
                    ServiceError::bad_request(format!("since=`{value}` is no number of a commit"))
                })?);
            }
            "follow" => {
                follows = value.parse().map_err(|_| {
                    ServiceError::bad_request("follow can be `true` or `false`".to_owned())
                })?;
            }
            "format" => {
                form = match value.as_str() {
                    "patch" => Form::Patch,
                    "json" => Form::Lines,
                    _ => {
                        return Err(ServiceError::bad_request(
                            "format can be `patch` (RDF Patch) or `json` (a line of JSON for each change, those of tables too)".to_owned(),
                        ));
                    }
                };
            }
            name => return Err(unknown(name, "since, follow, format")),
        }
    }
    let since = since.ok_or_else(|| {
        ServiceError::bad_request("the request has no `since`, the last commit that is known")
    })?;
    Ok(FeedRequest {
        since,
        follows,
        form,
    })
}

/// Streams the changes.
pub(crate) async fn answer(request: HttpRequest) -> Result<Response, ServiceError> {
    let HttpRequest {
        state,
        record,
        parts,
    } = request;
    let (state, parts) = (&*state, &*parts);
    let FeedRequest {
        since,
        follows,
        form,
    } = feed_request(parts)?;
    if let (Form::Lines, Some(rights)) = (form, around::rights(parts))
        && !rights.sees_tables
    {
        return Err(rights.refusal(
            "read all tables, whose changes stand there; format=patch has those of graphs",
        ));
    }
    if follows && around::ruled_state(parts).is_some() {
        return Err(ServiceError::forbidden(
            "what you may see depends on data, and may change with any commit; leave `follow` out, and ask again with the last commit as `since`",
        ));
    }
    let rights = around::rights(parts);
    let holder = rights.map(|rights| match rights.id {
        Some(user) => FeedHolder::User(user),
        None => FeedHolder::Address(parts.extensions.get().map(|&Peer(it)| network(it))),
    });
    let place = state.feeds.enter(holder)?;
    let reading = &state.feeds.reading;
    let (_, meter) = state.enter_of(parts, None)?;
    let time_max = meter.as_ref().and_then(|meter| meter.time_max());
    let deadline = time_max.map(|time_max| (Instant::now() + time_max, time_max));
    let (chunks, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
    let (head, begins) = oneshot::channel();
    let failed = Failed::default();
    let feed = Feed {
        database: Arc::clone(state.engine.database()),
        scope: around::scope(parts),
        standing: around::standing(state.authentication.as_ref(), parts),
        shows_who: rights.is_none_or(|rights| rights.administers),
        meter,
        rows: 0,
        bytes: 0,
        whole_bytes: 0,
        unpaid: 0,
        deadline,
        refused: None,
        form,
        next_after: since,
        patch: Vec::new(),
        chunks,
        failed: failed.clone(),
        is_given_up: false,
        head: Some(head),
        record,
    };
    let threads = state.query_threads.handle().clone();
    let run = run(feed, follows, Arc::clone(reading), threads);
    let mut is_over = state.is_over.clone();
    tokio::spawn(async move {
        let _place = place;
        tokio::select! {
            () = run => {}
            // The reader's time for a request is over: to read on, they ask again.
            () = at(deadline.map(|(deadline, _)| deadline)) => {}
            // An error means that the server is gone.
            _ = is_over.wait_for(|&is_over| is_over) => {}
        }
    });
    begins.await.unwrap_or(Err(ServiceError::Stopping))?;
    let body = futures::stream::unfold(receiver, |mut receiver| async move {
        let chunk: Option<Result<Bytes, BrokenOff>> = receiver.recv().await;
        chunk.map(|chunk| (chunk, receiver))
    });
    let mut response = Response::new(streamed(body));
    if !follows {
        // A follower gets the head now, though no commit may come for long.
        response.extensions_mut().insert(failed);
    }
    let media_type = match form {
        Form::Patch => RDF_PATCH,
        Form::Lines => LINES,
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    Ok(response)
}

/// Waits until a time; for ever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Sends the commits that there are, and, if the client follows, those that come.
async fn run(mut feed: Feed, follows: bool, reading: Arc<Semaphore>, threads: Handle) {
    loop {
        let chunks = feed.chunks.clone();
        let turn = tokio::select! {
            turn = Arc::clone(&reading).acquire_owned() => turn,
            () = chunks.closed() => return,
        };
        let Ok(turn) = turn else { return };
        let read = threads.spawn_blocking(move || {
            let goes_on = feed.read();
            drop(turn);
            goes_on.then_some(feed)
        });
        let Ok(Some(same_feed)) = read.await else {
            return;
        };
        feed = same_feed;
        if !follows {
            return;
        }
        while feed.database.lasting_commit() <= feed.next_after {
            tokio::select! {
                () = tokio::time::sleep(FOLLOW_PERIOD) => {}
                () = chunks.closed() => return,
            }
        }
    }
}

/// The writing side of a feed.
struct Feed {
    database: Arc<Database>,
    scope: ReadScope,
    /// None where the database has no users.
    standing: Option<Standing>,
    /// Whether the feed shows who made a commit: names of users, and acts of administrators.
    shows_who: bool,
    /// None where nothing is limited.
    meter: Option<Arc<Meter>>,
    /// Rows of the answer so far; `bytes` is its length.
    rows: u64,
    bytes: u64,
    /// Bytes of `patch` up to the end of its last whole commit.
    whole_bytes: usize,
    /// Touches that are not charged to the budgets yet.
    unpaid: u64,
    /// When the reader's time for a request ends, and how long it was.
    deadline: Option<(Instant, Duration)>,
    /// The error that ends the feed.
    refused: Option<ServiceError>,
    form: Form,
    /// The last commit that was sent.
    next_after: u64,
    patch: Vec<u8>,
    chunks: mpsc::Sender<Result<Bytes, BrokenOff>>,
    failed: Failed,
    /// The client has left, or takes nothing.
    is_given_up: bool,
    /// The sender of the answer's head, until the first bytes are sent or there is nothing to send.
    head: Option<oneshot::Sender<Result<(), ServiceError>>>,
    record: Arc<AccessRecord>,
}

impl Feed {
    /// Sends all commits that there are, on a thread that may block; false if the feed has ended.
    fn read(&mut self) -> bool {
        let database = Arc::clone(&self.database);
        let (scope, since) = (self.scope.clone(), self.next_after);
        let result = match self.form {
            Form::Patch => database.changes(&scope, since, |changes| self.commit(changes)),
            Form::Lines => {
                database.changes_with_tables(&scope, since, |changes| self.commit_lines(changes))
            }
        };
        if self.is_given_up {
            return false;
        }
        // Checked before the rest is sent.
        let result = match self.refused.take() {
            Some(refused) => Err(refused),
            None => result.map_err(ServiceError::from).and_then(|()| {
                self.require_standing()?;
                self.pay(0)
            }),
        };
        if let Err(ServiceError::Exceeded(_) | ServiceError::Timeout { .. }) = &result
            && self.whole_bytes > 0
        {
            // A reader who asks again continues behind these commits.
            self.patch.truncate(self.whole_bytes);
            self.send();
        }
        match (result, self.head.take()) {
            (Ok(()), Some(head)) => drop(head.send(Ok(()))),
            (Ok(()), None) => {}
            (Err(error), Some(head)) => {
                // The client may have left.
                let _ = head.send(Err(error));
                return false;
            }
            (Err(error), None) => {
                tracing::warn!("a feed of changes is broken off: {error}");
                self.record.set_failure(error.failure());
                self.failed.set(error);
                let sent = self.chunks.send_timeout(Err(BrokenOff), CLIENT_STALL_MAX);
                // A client that takes nothing will not read the error either.
                let _ = Handle::current().block_on(sent);
                return false;
            }
        }
        self.send();
        !self.is_given_up
    }

    /// Fails when the reader would be refused now, or may see something else than at the start.
    ///
    /// They ask again, and get what they may see then.
    fn require_standing(&self) -> Result<(), ServiceError> {
        let Some(standing) = &self.standing else {
            return Ok(());
        };
        let asked = Handle::current().block_on(standing.asked())?;
        let is_same = asked.scope.graphs() == self.scope.graphs()
            && asked.rights.administers >= self.shows_who
            && (self.form == Form::Patch || asked.rights.sees_tables);
        match is_same {
            true => Ok(()),
            false => Err(ServiceError::forbidden(
                "what you may see has changed; ask again with the last whole commit as `since`",
            )),
        }
    }

    /// Charges the reader's budgets for what was read so far, and `touches` more.
    fn pay(&mut self, touches: u64) -> Result<(), ServiceError> {
        self.unpaid += touches;
        if touches > 0 && self.unpaid < UNPAID_MAX {
            return Ok(());
        }
        let unpaid = std::mem::take(&mut self.unpaid);
        self.record.add_touches(unpaid);
        if let Some((deadline, limit)) = self.deadline
            && Instant::now() >= deadline
        {
            return Err(ServiceError::Timeout {
                limit,
                maximum: limit,
            });
        }
        let Some(meter) = &self.meter else {
            return Ok(());
        };
        meter.take(unpaid)?;
        match meter.rows_max() {
            Some(max) if self.rows > max => Err(Exceeded::Rows { max }.into()),
            _ => Ok(meter.require_bytes(self.bytes + self.patch.len() as u64)?),
        }
    }

    /// Stops the reading of the log if a check has failed, and notes the error.
    fn checked(&mut self, checked: Result<(), ServiceError>) -> Result<(), StorageError> {
        checked.map_err(|error| {
            let what = error.line();
            self.refused = Some(error);
            StorageError::Refused { what }
        })
    }

    /// Counts rows that were written.
    fn add_rows(&mut self, rows: u64) -> Result<(), StorageError> {
        self.rows += rows;
        self.record.add_rows(rows);
        let paid = self.pay(rows);
        self.checked(paid)?;
        self.send_if_much()
    }

    fn commit(&mut self, changes: &CommitChanges<'_>) -> Result<(), StorageError> {
        if !self.goes_on()? {
            return Ok(());
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
        self.end_commit(number)
    }

    /// Ends a commit, if the reader may have all of it.
    fn end_commit(&mut self, number: u64) -> Result<(), StorageError> {
        let paid = self.pay(0);
        self.checked(paid)?;
        self.next_after = number;
        self.whole_bytes = self.patch.len();
        Ok(())
    }

    /// Whether to read on: a client is left who may see the commit and can pay for it.
    fn goes_on(&mut self) -> Result<bool, StorageError> {
        if self.is_given_up {
            return Ok(false);
        }
        let standing = self.require_standing().and_then(|()| self.pay(1));
        self.checked(standing)?;
        Ok(true)
    }

    fn commit_lines(&mut self, changes: &CommitChanges<'_>) -> Result<(), StorageError> {
        if !self.goes_on()? {
            return Ok(());
        }
        let number = changes.entry.number;
        lines::write_begin(&changes.entry, self.shows_who, &mut self.patch);
        if changes.is_bulk_load() {
            lines::write_bulk_load(number, &mut self.patch);
            self.add_rows(1)?;
        }
        changes.removed(|quad| self.quad_line(number, "delete", quad))?;
        changes.added(|quad| self.quad_line(number, "insert", quad))?;
        changes.tables(|event| {
            let written = lines::write_event(number, &event, &mut self.patch);
            let rows = written.map_err(|error| StorageError::Rows {
                what: error.to_string(),
            })?;
            self.add_rows(rows)
        })?;
        lines::write_end(number, &mut self.patch);
        self.end_commit(number)
    }

    fn quad_line(
        &mut self,
        number: u64,
        what: &str,
        quad: QuadRef<'_>,
    ) -> Result<(), StorageError> {
        let mut text = Vec::new();
        write_quad(quad, &mut text);
        let text = String::from_utf8_lossy(&text);
        lines::write_quad(number, what, text.trim_end(), &mut self.patch);
        self.add_rows(1)
    }

    fn send_if_much(&mut self) -> Result<(), StorageError> {
        if self.patch.len() >= CHUNK_BYTES {
            let standing = self.require_standing().and_then(|()| self.pay(0));
            self.checked(standing)?;
            // Sending at the end of a commit notices that the client has left.
            self.send();
        }
        Ok(())
    }

    fn line(&mut self, mark: &[u8], quad: QuadRef<'_>) -> Result<(), StorageError> {
        self.patch.extend_from_slice(mark);
        write_quad(quad, &mut self.patch);
        self.add_rows(1)
    }

    /// Sends the buffer, unless the client is gone.
    fn send(&mut self) {
        let bytes = Bytes::from(std::mem::take(&mut self.patch));
        if self.is_given_up || bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len() as u64;
        self.whole_bytes = 0;
        if let Some(head) = self.head.take() {
            // The client may have left.
            let _ = head.send(Ok(()));
        }
        let sent = self.chunks.send_timeout(Ok(bytes), CLIENT_STALL_MAX);
        if let Err(error) = Handle::current().block_on(sent) {
            if matches!(error, SendTimeoutError::Timeout(_)) {
                tracing::warn!(
                    "a client that follows the changes took no data for {CLIENT_STALL_MAX:?}; given up"
                );
            }
            self.is_given_up = true;
        }
    }
}

/// Writes a line of N-Quads.
fn write_quad(quad: QuadRef<'_>, out: &mut Vec<u8>) {
    let mut line = GraphSerializer::start(GraphFormat::NQuads);
    let QuadRef {
        subject,
        predicate,
        object,
        graph,
    } = quad;
    // N-Quads can express every quad.
    let _ = line.quad(subject, predicate, &object, graph, out);
}

//! The record of a statement: the data about a query, update or SQL statement while it runs,
//! whatever its protocol.
//!
//! ```text
//! request of HTTP, statement at a port -> StatementRecord -- its end --> Metrics, query log, trace
//!                                              |
//!                                              '-> running statements (RunningQueries), to end
//! ```
//!
//! Every protocol fills the same record, so that metrics, logs and the list do not depend on the
//! protocol. The record is counted and logged when its last holder drops it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use orrery_query_log::{Kind, Outcome};

use crate::errors::{Failure, ServiceError};
use crate::metrics::{EndedQuery, Listens, Metrics, PanicWatch, SpentLimit};
use crate::query_log::{QueryLog, QueryRecord};
use crate::running_queries::{Place, RunningQueries};
use crate::stages::Stages;
use crate::traces::{EndedRequest, TraceHead, TraceRecord, Tracer};

/// The observers of one listener's statements: metrics, logs and lists.
#[derive(Debug)]
pub struct Observers {
    /// The listener.
    pub listens: Listens,
    /// The server's counters.
    pub metrics: Arc<Metrics>,
    /// None if there is no query log.
    pub query_log: Option<Arc<QueryLog>>,
    /// None if running queries are not listed.
    pub running: Option<Arc<RunningQueries>>,
    /// None if no traces are sent.
    pub tracer: Option<Arc<Tracer>>,
}

/// The sender of a statement, and the head of its request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender<'a> {
    /// The client's address, where it is needed.
    pub client: Option<IpAddr>,
    /// The client's program, as the client names it.
    pub agent: Option<&'a str>,
    /// The head of the request, for a trace; none if the protocol has none.
    pub head: Option<TraceHead<'a>>,
}

/// The record of one statement. It is counted, logged and traced when this is dropped.
#[derive(Debug)]
pub struct StatementRecord {
    observers: Arc<Observers>,
    started: Instant,
    /// 0 if there is no answer, or the protocol has no status.
    status: AtomicU16,
    rows: AtomicU64,
    /// Unset in requests without a statement.
    kind: OnceLock<Kind>,
    /// The form of a query, once it is known.
    form: OnceLock<Kind>,
    outcome: OnceLock<Outcome>,
    limit: OnceLock<SpentLimit>,
    stages: OnceLock<Stages>,
    touches: AtomicU64,
    /// Bytes of the answer that were sent.
    bytes: AtomicU64,
    /// Microseconds from the start to the first byte; 0 until then.
    first_byte_us: AtomicU64,
    ended_us: AtomicU64,
    /// None without a query log.
    entry: Option<Box<QueryRecord>>,
    /// None if running queries are not listed.
    place: Option<Box<Place>>,
    /// None if the request is not sampled.
    trace: Option<Box<TraceRecord>>,
}

/// The end of a statement, in terms of SQL's protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// The statement was completed.
    Done,
    /// The time limit was reached.
    TimedOut,
    /// The statement failed, with this SQLSTATE.
    Failed(&'a str),
}

impl StatementRecord {
    /// Creates the record of a statement that begins now.
    pub fn new(observers: Arc<Observers>, sender: Sender<'_>) -> Self {
        let started = Instant::now();
        let log = observers.query_log.as_ref();
        let running = observers.running.as_ref();
        let client = sender.client;
        Self {
            started,
            status: AtomicU16::new(0),
            rows: AtomicU64::new(0),
            kind: OnceLock::new(),
            form: OnceLock::new(),
            outcome: OnceLock::new(),
            limit: OnceLock::new(),
            stages: OnceLock::new(),
            touches: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_byte_us: AtomicU64::new(0),
            ended_us: AtomicU64::new(0),
            entry: log.map(|log| Box::new(QueryRecord::new(log, client, sender.agent, started))),
            place: running.map(|running| Box::new(running.place(client))),
            trace: observers
                .tracer
                .as_ref()
                .zip(sender.head)
                .and_then(|(tracer, head)| {
                    let trace = tracer.begin(head, started, client, sender.agent);
                    trace.map(Box::new)
                }),
            observers,
        }
    }

    /// The listener that received the statement.
    pub fn listens(&self) -> Listens {
        self.observers.listens
    }

    /// The server's counters.
    pub fn metrics(&self) -> &Metrics {
        &self.observers.metrics
    }

    /// The query log's record, if there is a query log.
    pub fn entry(&self) -> Option<&QueryRecord> {
        self.entry.as_deref()
    }

    /// Sets the user.
    pub fn set_user(&self, user: &str) {
        if let Some(entry) = self.entry() {
            entry.set_user(user.to_owned());
        }
        if let Some(place) = &self.place {
            place.set_user(user.to_owned());
        }
        if let Some(trace) = &self.trace {
            trace.set_user(user.to_owned());
        }
    }

    /// Sets the kind and text; the first call counts.
    pub fn set_asked(&self, kind: Kind, text: &str) {
        let _ = self.kind.set(kind);
        if let Some(entry) = self.entry() {
            entry.set_asked(text);
        }
        self.take_place(kind, text);
    }

    /// Enters the statement into the list of running queries.
    pub fn take_place(&self, kind: Kind, text: &str) {
        if let Some(place) = &self.place {
            place.take(kind, text);
        }
    }

    /// Sets the form of the query, and the commit of the snapshot that it reads.
    pub fn set_prepared(&self, form: Kind, commit: u64) {
        // A second try has the same form.
        let _ = self.form.set(form);
        if let Some(entry) = self.entry() {
            entry.set_commit(commit);
        }
    }

    /// Sets the status of an HTTP answer.
    pub fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// The status; 0 if none was set.
    pub fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed)
    }

    /// Sets the reason why the answer is missing or incomplete; the first call counts.
    pub fn set_failure(&self, failure: Failure) {
        let _ = self.outcome.set(failure.outcome);
        if let Some(limit) = failure.limit {
            let _ = self.limit.set(limit);
        }
    }

    /// Sets the outcome and the time of the end; the first call counts.
    pub fn end_with(&self, outcome: Outcome) {
        let _ = self.outcome.set(outcome);
        self.end();
    }

    /// Sets the outcome and the time of the end, in terms of SQL's protocols.
    pub fn ended(&self, ending: Ending<'_>) {
        self.end_with(outcome_of(ending));
    }

    /// Sets the time spent per stage.
    pub fn set_stages(&self, stages: Stages) {
        let _ = self.stages.set(stages);
    }

    /// A guard that counts a panic if it is dropped while unwinding.
    pub fn watch_panics(&self) -> PanicWatch<'_> {
        self.observers.metrics.watch_panics()
    }

    /// Counts bytes of the answer that were sent.
    pub fn sent(&self, bytes: u64) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) == 0 && bytes > 0 {
            self.note_first_byte();
        }
    }

    /// Counts rows and bytes of the answer that were sent.
    pub fn add(&self, rows: u64, bytes: u64) {
        self.note_first_byte();
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn note_first_byte(&self) {
        let first = &self.first_byte_us;
        let now = self.elapsed_us().max(1);
        let _ = first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Sets the time of the end.
    pub fn end(&self) {
        let ended = &self.ended_us;
        let now = self.elapsed_us().max(1);
        let _ = ended.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Microseconds from the start to the end, or until now.
    pub fn took_us(&self) -> u64 {
        match self.ended_us.load(Ordering::Relaxed) {
            0 => self.elapsed_us(),
            us => us,
        }
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Resets the rows, as the answer begins anew.
    pub fn reset_rows(&self) {
        self.rows.store(0, Ordering::Relaxed);
    }

    /// Rows of the answer so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Counts rows that were written into the answer.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Adds to the cost in touches.
    pub fn add_touches(&self, touches: u64) {
        self.touches.fetch_add(touches, Ordering::Relaxed);
        if let Some(place) = &self.place {
            place.add_touches(touches);
        }
    }

    /// Completes when the statement is ended from outside; never otherwise.
    pub async fn killed(&self) {
        match &self.place {
            Some(place) => place.killed().await,
            None => std::future::pending().await,
        }
    }

    /// Runs work until it is done or the statement is ended from outside.
    ///
    /// # Errors
    /// Those of the work, and [`ServiceError::Killed`].
    pub async fn unless_killed<T, E: From<ServiceError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if self.place.is_none() {
            return work.await;
        }
        tokio::select! {
            biased;
            () = self.killed() => Err(ServiceError::Killed.into()),
            done = work => done,
        }
    }
}

impl Drop for StatementRecord {
    fn drop(&mut self) {
        let observers = Arc::clone(&self.observers);
        let metrics = &observers.metrics;
        if let Some(&limit) = self.limit.get() {
            metrics.spent(limit);
        }
        let took = Duration::from_micros(self.took_us());
        let first_byte_us = *self.first_byte_us.get_mut();
        let ended = self.kind.get().map(|kind| {
            // A statement without an outcome was left by its client, or ends by a panic, which is
            // counted here.
            let outcome = self.outcome.get().copied();
            let outcome = outcome.unwrap_or_else(|| match std::thread::panicking() {
                true => {
                    metrics.note_panic();
                    Outcome::Error
                }
                false => Outcome::Cancelled,
            });
            EndedQuery {
                kind: *self.form.get().unwrap_or(kind),
                outcome,
                took,
                first_byte: (first_byte_us != 0).then(|| Duration::from_micros(first_byte_us)),
                rows: *self.rows.get_mut(),
                bytes: *self.bytes.get_mut(),
                touches: *self.touches.get_mut(),
                stages: self.stages.get().copied(),
            }
        });
        let status = *self.status.get_mut();
        if let Some(ended) = &ended {
            metrics.ended(ended);
            if let Some(mut entry) = self.entry.take() {
                entry.finish(status, ended);
            }
        }
        if let (Some(trace), Some(tracer)) = (self.trace.take(), &observers.tracer) {
            let request = EndedRequest {
                status,
                took,
                query: ended.as_ref(),
            };
            tracer.ended(&trace, request);
        }
    }
}

/// The outcome in the query log.
fn outcome_of(ending: Ending<'_>) -> Outcome {
    match ending {
        Ending::Done => Outcome::Ok,
        Ending::TimedOut => Outcome::Timeout,
        Ending::Failed(code) => outcome_of_code(code),
    }
}

/// The outcome of an SQLSTATE in the query log.
fn outcome_of_code(code: &str) -> Outcome {
    match code {
        "53200" => Outcome::Memory,
        "53300" | "53400" => Outcome::Exceeded,
        "42501" | "25006" | "53000" => Outcome::Refused,
        "57014" | "57P01" => Outcome::Cancelled,
        code if code.starts_with("0A") || code.starts_with("28") => Outcome::Refused,
        // Syntax errors, and unknown names.
        code if code.starts_with("42") => Outcome::Syntax,
        _ => Outcome::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(metrics: &Arc<Metrics>) -> StatementRecord {
        let observers = Observers {
            listens: Listens::Postgres,
            metrics: Arc::clone(metrics),
            query_log: None,
            running: None,
            tracer: None,
        };
        let record = StatementRecord::new(Arc::new(observers), Sender::default());
        record.set_asked(Kind::Sql, "SELECT 1");
        record
    }

    #[test]
    fn a_statement_that_a_panic_ends_is_an_error_and_not_its_clients_doing() {
        let metrics = Arc::new(Metrics::default());
        let outcomes = || {
            let of_sql = metrics.of_kind(Kind::Sql);
            [Outcome::Cancelled, Outcome::Error, Outcome::Ok].map(|outcome| of_sql.outcome(outcome))
        };
        drop(statement(&metrics));
        assert_eq!((outcomes(), metrics.panics()), ([1, 0, 0], 0));
        let panicking = |ending: Option<Ending<'static>>| {
            let statement = statement(&metrics);
            if let Some(ending) = ending {
                statement.ended(ending);
            }
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _statement = statement;
                panic!("meant to");
            }))
        };
        assert!(panicking(None).is_err());
        assert_eq!((outcomes(), metrics.panics()), ([1, 1, 0], 1));
        // A panic after the end of a statement does not change its outcome.
        assert!(panicking(Some(Ending::Done)).is_err());
        assert_eq!((outcomes(), metrics.panics()), ([1, 1, 1], 1));
    }

    #[test]
    fn codes_have_the_outcome_that_http_has_for_them() {
        for (code, expected) in [
            ("42601", Outcome::Syntax),
            ("42P01", Outcome::Syntax),
            ("42501", Outcome::Refused),
            ("23505", Outcome::Error),
            ("57014", Outcome::Cancelled),
            ("0A000", Outcome::Refused),
            ("53400", Outcome::Exceeded),
            ("XX000", Outcome::Error),
        ] {
            assert_eq!(outcome_of(Ending::Failed(code)), expected, "{code}");
        }
        assert_eq!(outcome_of(Ending::Done), Outcome::Ok);
        assert_eq!(outcome_of(Ending::TimedOut), Outcome::Timeout);
    }
}

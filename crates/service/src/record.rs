//! The record of a statement: what is known of a query, an update or a statement of SQL while it runs, whichever protocol it came by.
//!
//! ```text
//! request of HTTP, statement at a port -> StatementRecord -- its end --> Metrics, query log, trace
//!                                              |
//!                                              '-> list of what runs (RunningQueries), which may end it
//! ```
//!
//! Every protocol fills the same record, so that what is counted, logged and listed of a statement does not depend on the door it came
//! by. The record tells of itself when its last holder lets go.

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

/// Who is told of the statements that come by one listener.
#[derive(Debug)]
pub struct Observers {
    /// The listener.
    pub listens: Listens,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// None where nothing is logged.
    pub query_log: Option<Arc<QueryLog>>,
    /// None where nobody lists what runs.
    pub running: Option<Arc<RunningQueries>>,
    /// None where no traces are sent.
    pub tracer: Option<Arc<Tracer>>,
}

/// Who sends a statement, and how it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender<'a> {
    /// The client's address, where somebody wants to know it.
    pub client: Option<IpAddr>,
    /// The client's program, as it calls itself.
    pub agent: Option<&'a str>,
    /// The head of the request, for a trace; none where the protocol has none.
    pub head: Option<TraceHead<'a>>,
}

/// What is known of one statement. It is counted, logged and traced when this is dropped.
#[derive(Debug)]
pub struct StatementRecord {
    observers: Arc<Observers>,
    started: Instant,
    /// 0 where there is no answer, or the protocol has no such numbers.
    status: AtomicU16,
    rows: AtomicU64,
    /// None in requests that ask nothing.
    kind: OnceLock<Kind>,
    /// Of a query, as soon as it is known.
    form: OnceLock<Kind>,
    outcome: OnceLock<Outcome>,
    limit: OnceLock<SpentLimit>,
    stages: OnceLock<Stages>,
    touches: AtomicU64,
    /// Of the answer, as they went out.
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

/// How a statement ended, as SQL's protocols know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// It was done to its end.
    Done,
    /// It took longer than its limit.
    TimedOut,
    /// It failed, with PostgreSQL's code.
    Failed(&'a str),
}

impl StatementRecord {
    /// Of a statement that begins now.
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

    /// The listener by which it came.
    pub fn listens(&self) -> Listens {
        self.observers.listens
    }

    /// What the server counts.
    pub fn metrics(&self) -> &Metrics {
        &self.observers.metrics
    }

    /// What the query log will have of it, if there is one.
    pub fn entry(&self) -> Option<&QueryRecord> {
        self.entry.as_deref()
    }

    /// Notes who asks.
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

    /// Notes what is asked; the first that is said counts.
    pub fn set_asked(&self, kind: Kind, text: &str) {
        let _ = self.kind.set(kind);
        if let Some(entry) = self.entry() {
            entry.set_asked(text);
        }
        self.take_place(kind, text);
    }

    /// Has the list of what runs show what is asked.
    pub fn take_place(&self, kind: Kind, text: &str) {
        if let Some(place) = &self.place {
            place.take(kind, text);
        }
    }

    /// Notes the form of the query that is asked, and the commit of the snapshot that it reads.
    pub fn set_prepared(&self, form: Kind, commit: u64) {
        // A second try has the same.
        let _ = self.form.set(form);
        if let Some(entry) = self.entry() {
            entry.set_commit(commit);
        }
    }

    /// Notes the status of the answer, which HTTP has.
    pub fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// The status that was noted; 0 if none.
    pub fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed)
    }

    /// Notes why there is no answer, or none to its end; the first reason counts.
    pub fn set_failure(&self, failure: Failure) {
        let _ = self.outcome.set(failure.outcome);
        if let Some(limit) = failure.limit {
            let _ = self.limit.set(limit);
        }
    }

    /// Notes how it ended; the first that is said counts, and the time is that of the first.
    pub fn end_with(&self, outcome: Outcome) {
        let _ = self.outcome.set(outcome);
        self.end();
    }

    /// The same, as SQL's protocols know it.
    pub fn ended(&self, ending: Ending<'_>) {
        self.end_with(outcome_of(ending));
    }

    /// Notes what the time was spent on.
    pub fn set_stages(&self, stages: Stages) {
        let _ = self.stages.set(stages);
    }

    /// Counts a panic that drops what holds this.
    pub fn watch_panics(&self) -> PanicWatch<'_> {
        self.observers.metrics.watch_panics()
    }

    /// Bytes of the answer went out.
    pub fn sent(&self, bytes: u64) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) == 0 && bytes > 0 {
            self.note_first_byte();
        }
    }

    /// Rows and bytes more of an answer went out.
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

    /// No more of the answer goes out.
    pub fn end(&self) {
        let ended = &self.ended_us;
        let now = self.elapsed_us().max(1);
        let _ = ended.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Microseconds from its start to its end, or until now.
    pub fn took_us(&self) -> u64 {
        match self.ended_us.load(Ordering::Relaxed) {
            0 => self.elapsed_us(),
            us => us,
        }
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The answer begins anew.
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

    /// Notes touches more that it has cost.
    pub fn add_touches(&self, touches: u64) {
        self.touches.fetch_add(touches, Ordering::Relaxed);
        if let Some(place) = &self.place {
            place.add_touches(touches);
        }
    }

    /// Completes when somebody ends it from outside; never otherwise.
    pub async fn killed(&self) {
        match &self.place {
            Some(place) => place.killed().await,
            None => std::future::pending().await,
        }
    }

    /// What work comes to, unless somebody ends it from outside first.
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
            // One that nobody has ended was left by its client, or ends by a panic, which nobody else counts.
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

/// What the query log calls it.
fn outcome_of(ending: Ending<'_>) -> Outcome {
    match ending {
        Ending::Done => Outcome::Ok,
        Ending::TimedOut => Outcome::Timeout,
        Ending::Failed(code) => outcome_of_code(code),
    }
}

/// What the query log calls a failure with a code of PostgreSQL's.
fn outcome_of_code(code: &str) -> Outcome {
    match code {
        "53200" => Outcome::Memory,
        "53300" | "53400" => Outcome::Exceeded,
        "42501" | "25006" | "53000" => Outcome::Refused,
        "57014" | "57P01" => Outcome::Cancelled,
        code if code.starts_with("0A") || code.starts_with("28") => Outcome::Refused,
        // Syntax, and names that are not there.
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
        // What comes behind the end of a statement is none of it.
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

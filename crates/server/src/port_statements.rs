//! Statements at the ports of PostgreSQL and Flight SQL, for the list of what runs, the query log and the counts of the server.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use orrery_query_log::{Kind, Outcome};
use orrery_sql::{Ending, Watch, Watchable, Watched};

use crate::metrics::{EndedQuery, Metrics};
use crate::query_log::{QueryLog, QueryRecord};
use crate::running_queries::{Place, RunningQueries};
use crate::state::ServerState;

/// Where statements are counted, listed and written down.
pub(crate) struct PortStatements {
    metrics: Arc<Metrics>,
    log: Option<Arc<QueryLog>>,
    running: Option<Arc<RunningQueries>>,
}

impl PortStatements {
    pub(crate) fn of(state: &ServerState) -> Arc<dyn Watch> {
        Arc::new(Self {
            metrics: Arc::clone(&state.metrics),
            log: state.query_log.clone(),
            running: state.running.clone(),
        })
    }
}

impl Watch for PortStatements {
    fn begin(&self, statement: &Watchable<'_>) -> Arc<dyn Watched> {
        let started = Instant::now();
        let client: IpAddr = statement.client.to_canonical();
        let entry = self.log.as_ref().map(|log| {
            let entry = QueryRecord::new(log, Some(client), statement.agent, started);
            entry.set_asked(statement.text);
            Box::new(entry)
        });
        let place = self
            .running
            .as_ref()
            .map(|running| running.place(Some(client)));
        if let Some(user) = statement.user {
            if let Some(entry) = &entry {
                entry.set_user(user.to_owned());
            }
            if let Some(place) = &place {
                place.set_user(user.to_owned());
            }
        }
        if let Some(place) = &place {
            place.take(Kind::Sql, statement.text);
        }
        Arc::new(PortStatement {
            metrics: Arc::clone(&self.metrics),
            entry,
            place,
            started,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            touches: AtomicU64::new(0),
            first_byte: OnceLock::new(),
            ended: OnceLock::new(),
        })
    }
}

/// One that runs.
struct PortStatement {
    metrics: Arc<Metrics>,
    entry: Option<Box<QueryRecord>>,
    place: Option<Place>,
    started: Instant,
    rows: AtomicU64,
    bytes: AtomicU64,
    touches: AtomicU64,
    /// After which time something of the answer went out.
    first_byte: OnceLock<Duration>,
    /// How it ended, and after which time.
    ended: OnceLock<(Outcome, Duration)>,
}

impl Watched for PortStatement {
    fn killed(&self) -> BoxFuture<'_, ()> {
        match &self.place {
            Some(place) => Box::pin(place.killed()),
            None => Box::pin(std::future::pending()),
        }
    }

    fn add(&self, rows: u64, bytes: u64) {
        self.first_byte.get_or_init(|| self.started.elapsed());
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn add_touches(&self, touches: u64) {
        self.touches.fetch_add(touches, Ordering::Relaxed);
    }

    fn end(&self, ending: Ending<'_>) {
        // What is told first counts.
        let _ = self.ended.set((outcome_of(ending), self.started.elapsed()));
    }
}

impl Drop for PortStatement {
    fn drop(&mut self) {
        // One that nobody has ended was left by its client, or ends by a panic, which nobody else counts.
        let unended = match std::thread::panicking() {
            true => Outcome::Error,
            false => Outcome::Cancelled,
        };
        let ended = self.ended.take();
        if ended.is_none() && unended == Outcome::Error {
            self.metrics.note_panic();
        }
        let (outcome, took) = ended.unwrap_or((unended, self.started.elapsed()));
        let ended = EndedQuery {
            kind: Kind::Sql,
            outcome,
            took,
            first_byte: self.first_byte.take(),
            rows: *self.rows.get_mut(),
            bytes: *self.bytes.get_mut(),
            touches: *self.touches.get_mut(),
            stages: None,
        };
        self.metrics.ended(&ended);
        if let Some(entry) = &mut self.entry {
            entry.finish(0, &ended);
        }
    }
}

/// What the log calls it.
fn outcome_of(ending: Ending<'_>) -> Outcome {
    let code = match ending {
        Ending::Done => return Outcome::Ok,
        Ending::TimedOut => return Outcome::Timeout,
        Ending::Failed(code) => code,
    };
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

    fn statement(metrics: &Arc<Metrics>) -> PortStatement {
        PortStatement {
            metrics: Arc::clone(metrics),
            entry: None,
            place: None,
            started: Instant::now(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            touches: AtomicU64::new(0),
            first_byte: OnceLock::new(),
            ended: OnceLock::new(),
        }
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
                statement.end(ending);
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

//! Statements at the ports of PostgreSQL and Flight SQL, for the list of what runs and the query log.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use orrery_sql::{Ending, Watch, Watchable, Watched};
use orrery_usage::{Kind, Outcome};

use crate::query_log::{Ended, QueryLog, QueryRecord};
use crate::running_queries::{Place, RunningQueries};
use crate::state::ServerState;

/// Where statements are listed and written down.
pub(crate) struct PortStatements {
    log: Option<Arc<QueryLog>>,
    running: Option<Arc<RunningQueries>>,
}

impl PortStatements {
    /// None where nobody lists what runs, or writes it down.
    pub(crate) fn of(state: &ServerState) -> Option<Arc<dyn Watch>> {
        let (log, running) = (state.query_log.clone(), state.running.clone());
        let is_wanted = log.is_some() || running.is_some();
        is_wanted.then(|| -> Arc<dyn Watch> { Arc::new(Self { log, running }) })
    }
}

impl Watch for PortStatements {
    fn begin(&self, statement: &Watchable<'_>) -> Arc<dyn Watched> {
        let client: IpAddr = statement.client.to_canonical();
        let entry = self.log.as_ref().map(|log| {
            let entry = QueryRecord::new(log, Some(client), statement.agent);
            entry.set_asked(Kind::Sql, statement.text);
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
            entry,
            place,
            rows: AtomicU64::new(0),
        })
    }
}

/// One that runs.
struct PortStatement {
    entry: Option<Box<QueryRecord>>,
    place: Option<Place>,
    rows: AtomicU64,
}

impl Watched for PortStatement {
    fn killed(&self) -> BoxFuture<'_, ()> {
        match &self.place {
            Some(place) => Box::pin(place.killed()),
            None => Box::pin(std::future::pending()),
        }
    }

    fn add(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        if let Some(entry) = &self.entry {
            entry.sent(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }

    fn end(&self, ending: Ending<'_>) {
        if let Some(entry) = &self.entry {
            entry.set_outcome(outcome_of(ending));
            entry.end();
        }
    }
}

impl Drop for PortStatement {
    fn drop(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.finish(Ended {
                status: 0,
                rows: *self.rows.get_mut(),
                is_complete: false,
            });
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

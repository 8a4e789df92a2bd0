//! Records of a connection's statements, for the query log and the list of running statements.

use std::net::IpAddr;
use std::sync::Arc;

use orrery_service::ports::host::Host;
use orrery_service::record::{Ending, StatementRecord};

use crate::guard::{Guard, TIMED_OUT};
use crate::refusal::Stop;
use crate::wire::Wire;

/// Begins, pauses and ends the records of one connection's statements.
pub(crate) struct Watching {
    host: Host,
    user: Option<String>,
    client: IpAddr,
    /// Bytes written for the client before the statement.
    bytes_before: u64,
}

impl Watching {
    pub(crate) fn new(host: Host, user: Option<String>, client: IpAddr) -> Self {
        Self {
            host,
            user,
            client,
            bytes_before: 0,
        }
    }

    /// Begins the record of a statement.
    pub(crate) fn begin(
        &mut self,
        text: &str,
        agent: Option<&str>,
        guard: &mut Guard,
        wire: &Wire,
    ) {
        let user = self.user.as_deref();
        let watched = self.host.record(text, user, self.client, agent);
        self.go_on(Some(watched), guard, wire);
    }

    /// Resumes the record of a statement that has sent some rows.
    pub(crate) fn go_on(
        &mut self,
        watched: Option<Arc<StatementRecord>>,
        guard: &mut Guard,
        wire: &Wire,
    ) {
        self.bytes_before = wire.made_bytes();
        guard.watched = watched;
    }

    /// Pauses the record until more rows are asked for.
    pub(crate) fn pause(&self, guard: &mut Guard, wire: &Wire) -> Option<Arc<StatementRecord>> {
        let watched = guard.watched.take()?;
        watched.add(0, wire.made_bytes().saturating_sub(self.bytes_before));
        Some(watched)
    }

    /// Ends the record of the statement, if one ran.
    pub(crate) fn end<T>(&self, done: &Result<T, Stop>, guard: &mut Guard, wire: &Wire) {
        let Some(watched) = self.pause(guard, wire) else {
            return;
        };
        match done {
            Ok(_) => watched.ended(Ending::Done),
            Err(Stop::Refused(refusal)) if refusal.message == TIMED_OUT => {
                watched.ended(Ending::TimedOut);
            }
            Err(Stop::Refused(refusal)) => watched.ended(Ending::Failed(refusal.code)),
            // The client has left.
            Err(Stop::Gone(_)) => {}
        }
    }
}

//! What a connection tells of its statements to whoever lists them and writes them down.

use std::net::IpAddr;
use std::sync::Arc;

use orrery_sql::{Ending, Watch, Watchable, Watched};

use crate::guard::{Guard, TIMED_OUT};
use crate::refusal::Stop;
use crate::wire::Wire;

/// See the module.
pub(crate) struct Watching {
    /// None where nobody is told.
    watch: Option<Arc<dyn Watch>>,
    user: Option<String>,
    client: IpAddr,
    /// Bytes that were made for the client before the statement.
    bytes_before: u64,
}

impl Watching {
    pub(crate) fn new(watch: Option<Arc<dyn Watch>>, user: Option<String>, client: IpAddr) -> Self {
        Self {
            watch,
            user,
            client,
            bytes_before: 0,
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.watch.is_some()
    }

    /// A statement begins.
    pub(crate) fn begin(
        &mut self,
        text: &str,
        agent: Option<&str>,
        guard: &mut Guard,
        wire: &Wire,
    ) {
        let Some(watch) = &self.watch else {
            return;
        };
        let watched = watch.begin(&Watchable {
            text,
            user: self.user.as_deref(),
            client: self.client,
            agent,
        });
        self.go_on(Some(watched), guard, wire);
    }

    /// One goes on, of which some rows were sent.
    pub(crate) fn go_on(
        &mut self,
        watched: Option<Arc<dyn Watched>>,
        guard: &mut Guard,
        wire: &Wire,
    ) {
        self.bytes_before = wire.made_bytes();
        guard.watched = watched;
    }

    /// It waits until more rows are asked for.
    pub(crate) fn pause(&self, guard: &mut Guard, wire: &Wire) -> Option<Arc<dyn Watched>> {
        let watched = guard.watched.take()?;
        watched.add(0, wire.made_bytes().saturating_sub(self.bytes_before));
        Some(watched)
    }

    /// It has ended, if one ran.
    pub(crate) fn end<T>(&self, done: &Result<T, Stop>, guard: &mut Guard, wire: &Wire) {
        let Some(watched) = self.pause(guard, wire) else {
            return;
        };
        match done {
            Ok(_) => watched.end(Ending::Done),
            Err(Stop::Refused(refusal)) if refusal.message == TIMED_OUT => {
                watched.end(Ending::TimedOut);
            }
            Err(Stop::Refused(refusal)) => watched.end(Ending::Failed(refusal.code)),
            // Its client has gone.
            Err(Stop::Gone(_)) => {}
        }
    }
}

//! The list of running queries, updates and SQL statements, for `/queries` of the admin socket,
//! which lists and ends them.
//!
//! ```text
//! request --set_asked--> in the list --record dropped--> gone
//!                            ^ kill: a flag, which the running statement waits for beside its work
//! ```
//!
//! Without an admin socket there is no list. A query that is ended fails at its next yield, as at
//! the end of its time. A change over HTTP that is ended is not made; it notices when its turn
//! comes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use orrery_query_log::{Kind, TEXT_BYTES_MAX, Time, cut};
use serde::Serialize;
use tokio::sync::watch;

/// The running statements, by numbers that are unique since the server's start.
#[derive(Debug, Default)]
pub struct RunningQueries {
    last: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<RunningQuery>>>,
}

/// A running statement.
#[derive(Debug)]
struct RunningQuery {
    kind: Kind,
    text: String,
    user: Option<String>,
    client: Option<IpAddr>,
    since: Time,
    started: Instant,
    touches: AtomicU64,
    is_killed: watch::Sender<bool>,
}

/// The entry of a request in the list: made when its text is known, removed when this is dropped.
#[derive(Debug)]
pub struct Place {
    queries: Arc<RunningQueries>,
    client: Option<IpAddr>,
    user: OnceLock<String>,
    taken: OnceLock<(u64, Arc<RunningQuery>)>,
}

/// A running statement, as it is listed.
#[derive(Debug, Serialize)]
pub struct ListedQuery {
    id: u64,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    since: Time,
    /// Since the statement was read, including waiting times.
    ms: u64,
    /// The cost so far; 0 where touches are not counted.
    touches: u64,
    /// Cut if the text is long.
    text: String,
}

impl RunningQueries {
    /// All running statements, the oldest first.
    pub fn list(&self) -> Vec<ListedQuery> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = running.iter().map(|(id, query)| ListedQuery {
            id: *id,
            kind: query.kind,
            user: query.user.clone(),
            client: query.client,
            since: query.since,
            ms: u64::try_from(query.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            touches: query.touches.load(Ordering::Relaxed),
            text: query.text.clone(),
        });
        listed.collect()
    }

    /// Ends a statement; false if the number is unknown.
    pub fn kill(&self, id: u64) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let query = running.get(&id);
        query.is_some_and(|query| {
            query.is_killed.send_replace(true);
            true
        })
    }

    /// Creates the entry of a request from a client.
    pub fn place(self: &Arc<Self>, client: Option<IpAddr>) -> Place {
        Place {
            queries: Arc::clone(self),
            client,
            user: OnceLock::new(),
            taken: OnceLock::new(),
        }
    }
}

impl Place {
    /// Sets the user, before the text is known.
    pub fn set_user(&self, user: String) {
        let _ = self.user.set(user);
    }

    /// Enters the statement into the list; the first call counts.
    pub fn take(&self, kind: Kind, text: &str) {
        self.taken.get_or_init(|| {
            let id = self.queries.last.fetch_add(1, Ordering::Relaxed) + 1;
            let query = Arc::new(RunningQuery {
                kind,
                text: cut(text, TEXT_BYTES_MAX).to_owned(),
                user: self.user.get().cloned(),
                client: self.client,
                since: Time::now(),
                started: Instant::now(),
                touches: AtomicU64::new(0),
                is_killed: watch::Sender::new(false),
            });
            let mut running = self.running();
            running.insert(id, Arc::clone(&query));
            (id, query)
        });
    }

    /// Adds to the cost in touches.
    pub fn add_touches(&self, touches: u64) {
        if let Some((_, query)) = self.taken.get() {
            query.touches.fetch_add(touches, Ordering::Relaxed);
        }
    }

    /// Returns when the statement was ended from outside; never without a statement.
    pub async fn killed(&self) {
        if let Some((_, query)) = self.taken.get() {
            let mut is_killed = query.is_killed.subscribe();
            if is_killed.wait_for(|&is_killed| is_killed).await.is_ok() {
                return;
            }
        }
        std::future::pending().await
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<RunningQuery>>> {
        let running = &self.queries.running;
        running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((id, _)) = self.taken.get() {
            self.running().remove(id);
        }
    }
}

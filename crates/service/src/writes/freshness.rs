//! Freshness of a follower's state: waits until a commit that a client requires has arrived.
//!
//! A server that follows another is a moment behind it. A client that writes at one and reads at
//! the other names the commit that the answer must include, and waits for it, five seconds at most.
//! Only known users may wait; their rights are checked again in the state that arrived, for rights
//! are part of it, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_storage::{Database, Snapshot};
use tokio::sync::Mutex;

use crate::errors::ServiceError;

/// A follower looks for new commits twice a second by itself.
const WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits for commits.
#[derive(Debug)]
pub struct Freshness {
    database: Arc<Database>,
    /// Held by the one caller that looks, while others wait.
    looking: Mutex<()>,
}

impl Freshness {
    /// Waits for commits of a database.
    pub fn new(database: &Arc<Database>) -> Self {
        Self {
            database: Arc::clone(database),
            looking: Mutex::new(()),
        }
    }

    /// The newest state available here.
    pub fn newest(&self) -> Arc<Snapshot> {
        self.database.snapshot()
    }

    /// Whether the newest state includes a commit.
    pub fn is_here(&self, commit: u64) -> bool {
        self.database.snapshot().commit() >= commit
    }

    /// Looks once for a newer state, unless the commit is here or another caller is looking.
    pub async fn look_for(&self, commit: u64) {
        if self.is_here(commit) {
            return;
        }
        if let Ok(_looking) = self.looking.try_lock() {
            let database = Arc::clone(&self.database);
            // The background follower reports read errors; here the commit is just not available
            // yet.
            let _ignored = tokio::task::spawn_blocking(move || database.refresh()).await;
        }
    }

    /// Waits until the newest state includes a commit.
    pub async fn wait_for(&self, commit: u64) -> Result<(), ServiceError> {
        let begun = Instant::now();
        loop {
            let newest = self.database.snapshot().commit();
            if newest >= commit {
                return Ok(());
            }
            if begun.elapsed() >= WAIT_MAX {
                return Err(ServiceError::Behind { commit, newest });
            }
            self.look_for(commit).await;
            if self.database.snapshot().commit() < commit {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

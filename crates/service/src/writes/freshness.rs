//! How old a state a client takes. A server that follows another is a moment behind it; who has written at one and reads at the other
//! says which commit the answer has to know of, and waits until that is here, for at most five seconds.
//!
//! Only who is known may wait; who they are and what they may do is asked again in the state that came, for rights are part of it, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_storage::{Database, Snapshot};
use tokio::sync::Mutex;

use crate::errors::ServiceError;

/// A server that follows looks for news twice a second by itself.
const WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits for states.
#[derive(Debug)]
pub struct Freshness {
    database: Arc<Database>,
    /// One looks for all who wait.
    looking: Mutex<()>,
}

impl Freshness {
    /// Over a database.
    pub fn new(database: &Arc<Database>) -> Self {
        Self {
            database: Arc::clone(database),
            looking: Mutex::new(()),
        }
    }

    /// The newest state that is here.
    pub fn newest(&self) -> Arc<Snapshot> {
        self.database.snapshot()
    }

    /// Whether a commit is part of the newest state.
    pub fn is_here(&self, commit: u64) -> bool {
        self.database.snapshot().commit() >= commit
    }

    /// Looks once for a newer state, unless the commit is here, or somebody looks already.
    pub async fn look_for(&self, commit: u64) {
        if self.is_here(commit) {
            return;
        }
        if let Ok(_looking) = self.looking.try_lock() {
            let database = Arc::clone(&self.database);
            // What cannot be read now is told by who follows in the background; here it is only not there yet.
            let _ignored = tokio::task::spawn_blocking(move || database.refresh()).await;
        }
    }

    /// Waits until a commit is part of the newest state.
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

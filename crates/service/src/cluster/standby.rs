//! Standby: a server that follows takes the writer role when the role is free.
//!
//! Every server stands by unless it was told not to write: a second server on a directory takes
//! over when the first has ended, and a server whose store was away writes again when the store is
//! back.
//!
//! ```text
//! every second: do we have the role?
//!     yes: can the writer still write?  no: leave the role
//!     no:  try the lock  ── ours ──> queue of changes, compaction
//!                        ── another's ──> its address, for changes that come here
//! ```
//!
//! The lock decides who writes, see `orrery_object_store`: a server that takes the lock after its
//! holder was presumed dead finds all acknowledged commits, and no later commit of that holder is
//! acknowledged.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use orrery_loader::{BackgroundCompaction, BackgroundOptions};
use orrery_object_store::ObjectFileSystem;
use parking_lot::Mutex;

use orrery_storage::{Database, Error, Writer, WriterOptions};

use crate::cluster::nodes::Cluster;
use crate::service::Service;
use crate::writes::seat::{Elsewhere, Here};

/// How often the role is checked; in an object store each check takes three requests.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_IN_STORE_EVERY: Duration = Duration::from_secs(3);
/// Most checks only look whether this node leads, which costs nothing.
const LOOK_IN_CLUSTER_EVERY: Duration = Duration::from_millis(200);

/// Everything a server needs to take the writer role.
#[derive(Debug)]
pub struct StandBy {
    /// The database.
    pub database: Arc<Database>,
    /// Options of the writer.
    pub writer: WriterOptions,
    /// Options of background compaction.
    pub compaction: BackgroundOptions,
    /// The object store, which knows the writer's address; none on a local disk.
    pub objects: Option<Arc<ObjectFileSystem>>,
    /// The cluster whose leader writes; none if the server is not a node.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// The address at which others reach this server.
    pub own_address: Option<String>,
    /// Whether a failed writer is given up and opened anew. After a failure of a local disk a
    /// person looks first: which of the last commits are on the disk is known only after it was
    /// read again from the disk, not from memory.
    pub leaves_when_failed: bool,
    /// The last reason why the role could not be taken; each reason is logged once.
    pub trouble: Mutex<String>,
}

impl StandBy {
    /// Checks again and again, as long as the server lives.
    pub async fn run(self, state: Weak<Service>) {
        let this = Arc::new(self);
        let mut period = tokio::time::interval(match (&this.cluster, &this.objects) {
            (Some(_), _) => LOOK_IN_CLUSTER_EVERY,
            (None, Some(_)) => LOOK_IN_STORE_EVERY,
            (None, None) => LOOK_EVERY,
        });
        period.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            let Some(state) = state.upgrade() else { return };
            let this = Arc::clone(&this);
            if let Err(error) = tokio::task::spawn_blocking(move || this.look(&state)).await {
                tracing::error!("looking whether the writer's place is free failed: {error}");
            }
        }
    }

    fn look(&self, state: &Arc<Service>) {
        if let Some(cluster) = &self.cluster
            && !cluster.leads()
        {
            self.follow_leader(state);
            return;
        }
        if let Some(writer) = state.seat.writer() {
            let Err(error) = writer.check() else { return };
            if !self.leaves_when_failed && self.cluster.is_none() {
                return;
            }
            // Before anything is dropped: dropping the writer's last clone ends the writing.
            drop(writer);
            tracing::warn!("this server writes no more, and follows: {error}");
            state.seat.leave(self.elsewhere(error.to_string()));
            return;
        }
        match self.database.open_writer(self.writer.clone()) {
            Ok(writer) => match self.begin(writer, state) {
                Ok(here) => {
                    self.trouble.lock().clear();
                    state.seat.take(here);
                    tracing::info!("this server writes from now on");
                }
                Err(error) => {
                    tracing::error!("this server could write, and cannot: {error}");
                    state.seat.leave(self.elsewhere(error.to_string()));
                }
            },
            Err(error) => {
                let is_held = matches!(error, Error::Locked { .. });
                let reason = error.to_string();
                let elsewhere = self.elsewhere(reason.clone());
                let mut told = self.trouble.lock();
                if !is_held && *told != reason {
                    tracing::warn!("the writer's place cannot be taken: {error}");
                }
                *told = reason;
                drop(told);
                state.seat.leave(elsewhere);
            }
        }
    }

    /// Leaves the role to the leader, and learns its address.
    fn follow_leader(&self, state: &Arc<Service>) {
        const REASON: &str = "another node leads";
        if state.seat.writes().is_ok() {
            tracing::warn!("this node leads the others no more, and follows");
            // Before any request goes out: until the role is left, the state stands still.
            state.seat.leave(self.elsewhere(REASON.to_owned()));
        }
        if let Some(objects) = &self.objects
            && let Err(error) = objects.look_for_writer()
        {
            tracing::debug!("who writes is not known: {error}");
        }
        state.seat.leave(self.elsewhere(REASON.to_owned()));
    }

    fn begin(&self, writer: Writer, state: &Arc<Service>) -> io::Result<Here> {
        let compaction = BackgroundCompaction::start(writer.clone(), self.compaction.clone());
        let compaction = compaction.map_err(io::Error::other)?;
        Ok(Here::new(state.queue(writer)?, Some(compaction)))
    }

    fn elsewhere(&self, reason: String) -> Elsewhere {
        let objects = self.objects.as_ref();
        Elsewhere {
            address: objects
                .and_then(|objects| objects.writer_address())
                .filter(|address| Some(address) != self.own_address.as_ref()),
            reason: format!("it stands by: {reason}"),
        }
    }
}

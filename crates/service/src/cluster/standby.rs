//! Standing by: a server that follows takes the writer's place when that is free. Every server does that but one that was told not to write: a second one at a
//! directory takes over when the first has ended, and one whose store was away writes again when that is back.
//!
//! ```text
//! every second:    is the place ours?  yes: can the writer still write?  no: leave it
//!                                      no:  try the lock  ── ours ──> queue of changes, compaction
//!                                                         ── another's ──> where that one is, for changes that come here
//! ```
//!
//! The lock decides who writes, see `orrery_object_store`: whoever takes it after its holder was taken for dead finds all that was acknowledged, and nothing of the
//! other is acknowledged after that.

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

/// How often it is looked whether the place is free, and in an object store, where each look is three requests.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_IN_STORE_EVERY: Duration = Duration::from_secs(3);
/// Mostly it is only looked whether this node leads, which it knows.
const LOOK_IN_CLUSTER_EVERY: Duration = Duration::from_millis(200);

/// What a server needs to take the writer's place.
#[derive(Debug)]
pub struct StandBy {
    /// The database.
    pub database: Arc<Database>,
    /// How the writer works.
    pub writer: WriterOptions,
    /// How it compacts in the background.
    pub compaction: BackgroundOptions,
    /// What knows where the writer is, if anything does.
    pub objects: Option<Arc<ObjectFileSystem>>,
    /// Whose leader writes, if the server is a node of one.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Where others reach this server.
    pub own_address: Option<String>,
    /// Whether a writer that failed is given up, and taken anew. A local disk that failed is looked at by a person first: what it has of the last commits is known
    /// after it was read anew, from the disk and not from memory.
    pub leaves_when_failed: bool,
    /// Why the place could not be taken, the last time: it is told once.
    pub trouble: Mutex<String>,
}

impl StandBy {
    /// Looks again and again, for as long as the server lives.
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
            // Before anything is dropped: the last clone of it ends the writing.
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

    /// Leaves the place to the node that leads, and learns where that is.
    fn follow_leader(&self, state: &Arc<Service>) {
        const REASON: &str = "another node leads";
        if state.seat.writes().is_ok() {
            tracing::warn!("this node leads the others no more, and follows");
            // Before anybody is asked for anything: until then the state stands still.
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

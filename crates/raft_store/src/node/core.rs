//! The shared state of a running node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::{Config, SnapshotPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::blocking::Blocking;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::log::{FILE_BYTES_MAX, LogStore};
use crate::network::Network;
use crate::state::machine::SharedState;
use crate::transport::Transport;
use crate::types::{NodeId, Raft};
use crate::wire;

/// How long a node waits before it looks for the leader again.
const LEADER_PAUSE: Duration = Duration::from_millis(25);
/// A request of a node that is about to stop waits no longer than this: the others may have stopped
/// for good, too.
const LAST_REQUEST: Duration = Duration::from_secs(5);
/// Entries that a snapshot has are kept for followers that are a little behind.
const ENTRIES_KEPT: u64 = 128;
/// A snapshot is sent in parts of this many bytes.
const SNAPSHOT_PART_BYTES: u64 = 1 << 20;

/// The times of a cluster. All nodes should have the same.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A leader says this often that it is there; a request between nodes that takes longer is sent
    /// anew.
    pub heartbeat: Duration,
    /// A follower that hears nothing from the leader for `election_max`, and a time between
    /// `election_min` ...
    pub election_min: Duration,
    /// ... and `election_max` more, asks to be elected. Nobody votes for another one before
    /// `election_max` is over.
    pub election_max: Duration,
    /// A request to the leader that takes longer is sent again.
    pub attempt: Duration,
    /// A read or a write that takes longer is an error.
    pub request: Duration,
    /// A node that works on an answer to a call says this often that it does.
    pub keep_alive: Duration,
    /// A snapshot is made after this many entries of the log.
    pub snapshot_entries: u64,
    /// A snapshot is made after this many bytes of the log.
    pub snapshot_bytes: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(150),
            election_min: Duration::from_millis(300),
            election_max: Duration::from_millis(400),
            attempt: Duration::from_secs(2),
            request: Duration::from_secs(30),
            keep_alive: Duration::from_secs(1),
            snapshot_entries: 5_000,
            snapshot_bytes: 64 << 20,
        }
    }
}

impl Pace {
    fn raft(&self) -> Result<Config> {
        let millis = |time: Duration| time.as_millis() as u64;
        let config = Config {
            cluster_name: "orrery".to_owned(),
            heartbeat_interval: millis(self.heartbeat),
            election_timeout_min: millis(self.election_min),
            election_timeout_max: millis(self.election_max),
            install_snapshot_timeout: millis(self.request),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_entries),
            replication_lag_threshold: self.snapshot_entries.saturating_mul(2),
            max_in_snapshot_log_to_keep: ENTRIES_KEPT.min(self.snapshot_entries),
            snapshot_max_chunk_size: SNAPSHOT_PART_BYTES,
            ..Config::default()
        };
        config.validate().map_err(|error| {
            Error::Configuration(format!("times of the cluster do not fit: {error}"))
        })
    }
}

/// What a node stands on.
#[derive(Clone)]
pub(crate) struct Ground {
    pub disk: Arc<dyn Disk>,
    pub blocking: Blocking,
    pub transport: Arc<dyn Transport>,
    /// Microseconds since 1970.
    pub now_us: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Numbers that nobody has had before.
    pub unique: Arc<dyn Fn() -> Result<u128> + Send + Sync>,
}

/// A running node's parts.
pub(crate) struct Core {
    pub id: NodeId,
    pub raft: Raft,
    pub log: LogStore,
    pub shared: Arc<SharedState>,
    pub files: Files,
    pub ground: Ground,
    pub pace: Pace,
    /// Whether the node is about to stop.
    hurries: AtomicBool,
}

impl Core {
    /// Reads what a directory has, and starts openraft over it.
    pub(crate) async fn start(id: NodeId, ground: Ground, pace: Pace) -> Result<Arc<Self>> {
        let shared = SharedState::open(ground.disk.clone(), ground.blocking)?;
        let log = LogStore::open(id, ground.disk.clone(), ground.blocking, FILE_BYTES_MAX)?;
        let network = Network(ground.transport.clone());
        let raft = Raft::new(
            id,
            Arc::new(pace.raft()?),
            network,
            log.clone(),
            shared.machine(),
        )
        .await;
        let raft = raft.map_err(|error| Error::Stopped(error.to_string()))?;
        let files = Files::new(ground.disk.clone(), ground.blocking);
        Ok(Arc::new(Self {
            id,
            raft,
            log,
            shared,
            files,
            ground,
            pace,
            hurries: AtomicBool::new(false),
        }))
    }

    /// From now on requests do not wait long for a majority.
    pub(crate) fn hurry(&self) {
        self.hurries.store(true, Ordering::Relaxed);
    }

    /// How long a request that begins now may take.
    pub(crate) fn request_time(&self) -> Duration {
        match self.hurries.load(Ordering::Relaxed) {
            true => self.pace.request.min(LAST_REQUEST),
            false => self.pace.request,
        }
    }

    /// Whom this node takes for the leader.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.raft.metrics().borrow().current_leader
    }

    /// The addresses of all members.
    pub(crate) fn addresses(&self) -> BTreeMap<NodeId, String> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        metrics
            .membership_config
            .nodes()
            .map(|(&id, node)| (id, node.addr.clone()))
            .collect()
    }

    /// The members that vote.
    pub(crate) fn voters(&self) -> BTreeSet<NodeId> {
        self.raft
            .metrics()
            .borrow()
            .membership_config
            .voter_ids()
            .collect()
    }

    /// Asks another member.
    pub(crate) async fn ask<A: DeserializeOwned>(
        &self,
        node: NodeId,
        path: &'static str,
        request: &impl Serialize,
        timeout: Duration,
    ) -> Result<A> {
        let address = self.addresses().remove(&node);
        let address = address.ok_or_else(|| {
            Error::Members(format!(
                "node {node} is no member that node {} knows",
                self.id
            ))
        })?;
        self.ask_at(node, &address, path, request, timeout).await
    }

    /// Asks a node at an address.
    pub(crate) async fn ask_at<A: DeserializeOwned>(
        &self,
        node: NodeId,
        address: &str,
        path: &'static str,
        request: &impl Serialize,
        timeout: Duration,
    ) -> Result<A> {
        let body: Bytes = wire::pack(request)?;
        wire::unpack(
            &self
                .ground
                .transport
                .call(node, address, path, body, timeout)
                .await?,
        )
    }

    /// Waits until there is a leader, or the time is over.
    pub(crate) async fn await_leader(&self, deadline: Instant) -> Option<NodeId> {
        loop {
            if let Some(leader) = self.leader() {
                return Some(leader);
            }
            if Instant::now() >= deadline {
                return None;
            }
            self.pause().await;
        }
    }

    /// Waits a little, before a request is sent again.
    pub(crate) async fn pause(&self) {
        sleep(LEADER_PAUSE).await;
    }

    /// Why openraft stopped, if it did.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.raft
            .metrics()
            .borrow()
            .running_state
            .as_ref()
            .err()
            .map(ToString::to_string)
    }
}

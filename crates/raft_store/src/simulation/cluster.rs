//! The nodes of a simulation: started, crashed, and restarted from their disks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::blocking::Blocking;
use crate::node::core::{Ground, Pace};
use crate::node::running::Running;
use crate::simulation::disk::MemoryDisk;
use crate::simulation::network::{Network, Sender};
use crate::simulation::random::Random;
use crate::types::NodeId;

/// One node's place: its disk, and what runs on it.
struct Place {
    disk: Arc<MemoryDisk>,
    running: Option<Arc<Running>>,
    /// How far its clock is off, in microseconds.
    clock: Arc<AtomicU64>,
}

/// The nodes.
pub(crate) struct Cluster {
    pub network: Arc<Network>,
    pub random: Random,
    places: BTreeMap<NodeId, Place>,
    unique: Arc<AtomicU64>,
    began: Instant,
    snapshot_entries: u64,
    /// The first members; those of higher numbers wait to be added.
    founders: u64,
}

impl Cluster {
    pub(crate) async fn start(founders: u64, spares: u64, mut random: Random) -> Self {
        let network = Network::new(Random::new(random.next()));
        let snapshot_entries = 5 + random.below(60);
        let place = || Place {
            disk: Arc::default(),
            running: None,
            clock: Arc::default(),
        };
        let places = (1..=founders + spares).map(|id| (id, place())).collect();
        let mut cluster = Self {
            network,
            random,
            places,
            unique: Arc::default(),
            began: Instant::now(),
            snapshot_entries,
            founders,
        };
        for id in 1..=founders + spares {
            cluster.launch(id).await.unwrap();
        }
        cluster
    }

    pub(crate) fn ids(&self) -> Vec<NodeId> {
        self.places.keys().copied().collect()
    }

    pub(crate) fn running(&self, id: NodeId) -> Option<Arc<Running>> {
        self.places[&id].running.clone()
    }

    /// The nodes that vote, as the leader says.
    pub(crate) fn voters(&self) -> Vec<NodeId> {
        let cores = self
            .places
            .values()
            .filter_map(|place| Some(place.running.as_ref()?.core.clone()));
        let newest = cores.max_by_key(|core| {
            let metrics = core.raft.metrics();
            let metrics = metrics.borrow();
            (metrics.state.is_leader(), metrics.current_term)
        });
        newest.map_or(Vec::new(), |core| core.voters().into_iter().collect())
    }

    /// Starts a node that does not run.
    pub(crate) async fn launch(&mut self, id: NodeId) -> Result<(), String> {
        let start = self.network.start(id);
        let place = &self.places[&id];
        // No two numbers alike, whoever elects: openraft draws from between these two.
        let election = 300 + self.random.below(300);
        let pace = Pace {
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(election),
            election_max: Duration::from_millis(election + 1),
            attempt: Duration::from_millis(800),
            request: Duration::from_secs(4),
            keep_alive: Duration::from_secs(1),
            snapshot_entries: self.snapshot_entries,
            snapshot_bytes: 256 << 10,
        };
        let (began, clock, unique) = (self.began, place.clock.clone(), self.unique.clone());
        let ground = Ground {
            disk: place.disk.clone(),
            blocking: Blocking::Here,
            transport: Arc::new(Sender {
                network: self.network.clone(),
                from: id,
                start,
            }),
            now_us: Arc::new(move || {
                began.elapsed().as_micros() as u64 + clock.load(Ordering::Relaxed)
            }),
            unique: Arc::new(move || Ok(u128::from(unique.fetch_add(1, Ordering::Relaxed)))),
        };
        let members = match id <= self.founders {
            true => (1..=self.founders).map(|id| (id, id.to_string())).collect(),
            false => BTreeMap::new(),
        };
        let running = Arc::new(
            Running::start(id, ground, pace, members)
                .await
                .map_err(|error| format!("node {id} does not start: {error}"))?,
        );
        self.network.connect(id, running.service.clone());
        if let Some(place) = self.places.get_mut(&id) {
            place.running = Some(running);
        }
        Ok(())
    }

    /// Stops a node's machine: what was not synced may be lost. Says why the node had stopped by
    /// itself, which it must not.
    pub(crate) fn crash(&mut self, id: NodeId) -> Result<(), String> {
        let Some(place) = self.places.get_mut(&id) else {
            return Ok(());
        };
        let Some(running) = place.running.take() else {
            return Ok(());
        };
        let stopped = running.core.stopped();
        self.network.stop(id);
        place.disk = place.disk.crash(&mut self.random);
        tokio::spawn(async move { running.stop().await });
        stopped.map_or(Ok(()), |reason| {
            Err(format!("node {id} stopped by itself: {reason}"))
        })
    }

    /// Moves a node's clock.
    pub(crate) fn move_clock(&mut self, id: NodeId) {
        self.places[&id]
            .clock
            .store(self.random.below(100_000_000), Ordering::Relaxed);
    }
}

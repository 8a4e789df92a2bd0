//! Test helpers: clusters over sockets in one process.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use orrery_raft_store::{Node, NodeConfig, Pace, QuorumStore};
use tempfile::TempDir;

pub(crate) const SECRET: &[u8] = b"the secret of these tests";

/// Nodes that run, by number; a directory for each.
pub(crate) struct Cluster {
    pub(crate) nodes: BTreeMap<u64, Arc<Node>>,
    pub(crate) directories: TempDir,
    pub(crate) addresses: BTreeMap<u64, String>,
    pub(crate) pace: Pace,
}

pub(crate) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}

impl Cluster {
    pub(crate) async fn start(number: u64, pace: Pace) -> Self {
        let addresses: BTreeMap<u64, String> =
            (1..=number).map(|id| (id, free_address())).collect();
        let mut cluster = Self {
            nodes: BTreeMap::new(),
            directories: TempDir::new().unwrap(),
            addresses: addresses.clone(),
            pace,
        };
        for id in 1..=number {
            cluster.launch(id, addresses.clone()).await;
        }
        cluster
    }

    pub(crate) fn config(&self, id: u64, members: BTreeMap<u64, String>) -> NodeConfig {
        NodeConfig {
            id,
            address: Some(self.addresses[&id].clone()),
            listen: None,
            directory: self.directories.path().join(id.to_string()),
            secret: SECRET.to_vec(),
            members,
            pace: self.pace,
        }
    }

    pub(crate) async fn launch(&mut self, id: u64, members: BTreeMap<u64, String>) {
        let node = Node::start(self.config(id, members)).await.unwrap();
        self.nodes.insert(id, Arc::new(node));
    }

    pub(crate) async fn join(&mut self, id: u64) {
        self.addresses.insert(id, free_address());
        self.launch(id, BTreeMap::new()).await;
    }

    pub(crate) async fn stop(&mut self, id: u64) {
        self.nodes.remove(&id).unwrap().stop().await;
    }

    pub(crate) async fn stop_all(&mut self) {
        for (_, node) in std::mem::take(&mut self.nodes) {
            node.stop().await;
        }
    }

    pub(crate) fn store(&self, id: u64) -> QuorumStore {
        self.nodes[&id].store()
    }

    /// Waits until some node says who leads.
    pub(crate) async fn leader(&self) -> u64 {
        let started = Instant::now();
        loop {
            for node in self.nodes.values() {
                let status = node.status().await.unwrap();
                if let Some(leader) = status
                    .leader
                    .filter(|leader| self.nodes.contains_key(leader))
                {
                    return leader;
                }
            }
            assert!(started.elapsed() < Duration::from_secs(20), "no leader");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

pub(crate) async fn put(store: &QuorumStore, path: &str, bytes: impl Into<PutPayload>) -> String {
    store
        .put(&Path::from(path), bytes.into())
        .await
        .unwrap()
        .e_tag
        .unwrap()
}

pub(crate) async fn get(store: &QuorumStore, path: &str) -> Vec<u8> {
    store
        .get(&Path::from(path))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap()
        .to_vec()
}

pub(crate) fn create() -> PutOptions {
    PutMode::Create.into()
}

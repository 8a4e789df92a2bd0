//! A cluster node within `orrery serve`; the nodes' replicated store takes the place of an object
//! store.
//!
//! ```text
//! --db DIR    DIR/node    the node's log, snapshot and files (orrery_raft_store)
//!             DIR/cache   cached pieces of the database's files, as for any object store
//! ```
//!
//! The database lies in the nodes' store as it does in a bucket. The leader writes it; the other
//! nodes follow, and forward changes to the leader.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use orrery_distributed::{Answer, Network, NetworkError};
use orrery_object_store::{CacheOptions, ObjectFileSystem, ObjectOptions, Timing};
use orrery_raft_store::{CALL_SILENCE, CallError, CallHandler, Node, NodeConfig, NodeStatus, Pace};
use orrery_server::{Answers, Cluster, Work};
use orrery_storage::Database;
use orrery_storage::io::FileSystem as _;
use tokio::runtime::{Builder, Runtime};

use crate::arguments::ClusterArguments;
use crate::failure::Failure;

/// The database's directory, as the storage sees it, and its prefix in the nodes' store.
const ROOT: &str = "cluster://database";
const PREFIX: &str = "database";
/// The file that shows that a database exists.
const MANIFEST: &str = "MANIFEST";
/// How long a starting node waits for the others.
const START_TIME_MAX: Duration = Duration::from_secs(300);
const START_PAUSE: Duration = Duration::from_millis(200);
/// How long a node that is asked whether it is current waits for the leader's answer: less than the
/// asking node waits.
const CURRENT_TIME: Duration = Duration::from_secs(2);
/// Threads for requests between nodes.
const THREADS: usize = 2;

/// A running node, with its threads.
#[derive(Debug)]
pub(crate) struct ClusterNode {
    node: Arc<Node>,
    files: Arc<ObjectFileSystem>,
    runtime: Runtime,
}

impl ClusterNode {
    /// Starts the node of a directory, and waits until there is a database.
    pub(crate) fn start(
        directory: &Path,
        cache_bytes: u64,
        arguments: &ClusterArguments,
    ) -> Result<Self, Failure> {
        let other = |error: &dyn std::error::Error| Failure::Other(format!("the cluster: {error}"));
        let config = config(directory, arguments)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("orrery-node")
            .enable_all()
            .build()
            .map_err(|error| other(&error))?;
        let node = runtime.block_on(Node::start(config));
        let node = Arc::new(node.map_err(|error| other(&error))?);
        let options = ObjectOptions {
            cache: CacheOptions {
                directory: directory.join("cache"),
                bytes: cache_bytes,
            },
        };
        let store = Arc::new(node.store());
        let files = ObjectFileSystem::over_with(store, PREFIX.into(), ROOT, &options, timing())?;
        // The nodes elect the leader.
        files.set_takes_over(true);
        let this = Self {
            node,
            files: Arc::new(files),
            runtime,
        };
        this.wait_for_database()?;
        Ok(this)
    }

    /// The database's file system, and its directory there.
    pub(crate) fn place(&self) -> (Arc<ObjectFileSystem>, &'static Path) {
        (Arc::clone(&self.files), Path::new(ROOT))
    }

    /// The server's interface to the cluster.
    pub(crate) fn cluster(&self) -> Arc<dyn Cluster> {
        Arc::new(Nodes(Arc::clone(&self.node)))
    }

    /// Announces to the node that the process is about to end.
    pub(crate) fn hurry(&self) {
        self.node.hurry();
    }

    /// Stops the node, once the database is no longer used.
    pub(crate) fn stop(self) {
        let Self {
            node,
            files,
            runtime,
        } = self;
        drop(files);
        runtime.block_on(node.stop());
    }

    /// Waits until a majority of nodes runs and there is a database, which the leader creates.
    fn wait_for_database(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut is_told = false;
        loop {
            // Only whether it exists: if it is damaged, the server reports that.
            let reason = match self.has_database() {
                Ok(true) => return Ok(()),
                Ok(false) => "there is no database yet".to_owned(),
                Err(error) => error.to_string(),
            };
            if begun.elapsed() >= START_TIME_MAX {
                return Err(Failure::Other(format!("the cluster: {reason}")));
            }
            if !is_told && begun.elapsed() >= Duration::from_secs(5) {
                tracing::warn!("waiting for the other nodes of the cluster: {reason}");
                is_told = true;
            }
            thread::sleep(START_PAUSE);
        }
    }

    /// Whether there is a database; the leader creates one.
    fn has_database(&self) -> orrery_storage::Result<bool> {
        let (files, root) = self.place();
        if files.metadata(&root.join(MANIFEST))?.is_some() {
            return Ok(true);
        }
        match self.node.leads() {
            true => Database::create_or_open_with(files, root).map(|_| true),
            false => Ok(false),
        }
    }
}

/// The server's interface to the cluster.
#[derive(Debug)]
struct Nodes(Arc<Node>);

impl Nodes {
    async fn asked(&self) -> Result<serde_json::Value, orrery_raft_store::Error> {
        let own = self.0.status().await?;
        let mut nodes: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        for &id in own.voters.iter().chain(&own.learners) {
            let status = match self.0.status_of(id).await {
                Ok(status) => told(&status),
                Err(error) => serde_json::json!({ "error": error.to_string() }),
            };
            nodes.insert(id.to_string(), status);
        }
        Ok(serde_json::json!({
            "node": own.id,
            "leader": own.leader,
            "nodes": nodes,
        }))
    }
}

fn told(status: &NodeStatus) -> serde_json::Value {
    serde_json::json!({
        "role": status.role,
        "term": status.term,
        "applied": status.applied,
        "missing_files": status.missing_files,
        "objects": status.objects,
        "stopped": status.stopped,
    })
}

/// Name of a kind of work in calls between nodes.
fn name_of(work: Work) -> &'static str {
    match work {
        Work::Queries => "work",
        Work::Loads => "load",
        Work::Statements => "statements",
    }
}

/// The network between nodes for one kind of work; a node is called by its number.
#[derive(Debug)]
struct WorkNetwork {
    node: Arc<Node>,
    work: Work,
}

impl Network for WorkNetwork {
    fn members(&self) -> Vec<String> {
        let peers = self.node.peers().into_iter();
        peers.map(|(id, _)| id.to_string()).collect()
    }

    fn here(&self) -> String {
        self.node.id().to_string()
    }

    fn call(
        &self,
        member: &str,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Answer, NetworkError>> {
        let (node, member) = (Arc::clone(&self.node), member.to_owned());
        let kind = name_of(self.work);
        async move {
            let lost = |reason: String| NetworkError::Lost {
                member: member.clone(),
                reason,
            };
            let failed = |error: CallError| match error {
                CallError::Handler { message, .. } => NetworkError::Said(message),
                other => lost(other.to_string()),
            };
            let to = member
                .parse()
                .map_err(|_| lost("it has no number".to_owned()))?;
            let answer = node.call(to, kind, request, CALL_SILENCE).await;
            let answer = answer.map_err(failed)?;
            let lost = move |error: CallError| match error {
                CallError::Handler { message, .. } => NetworkError::Said(message),
                other => NetworkError::Lost {
                    member: member.clone(),
                    reason: other.to_string(),
                },
            };
            Ok(answer.map_err(lost).boxed())
        }
        .boxed()
    }
}

/// Answers other nodes' requests for work.
struct WorkHandler(Answers);

impl CallHandler for WorkHandler {
    fn answer(&self, _: &str, request: Bytes) -> BoxStream<'static, Result<Bytes, String>> {
        (self.0)(request)
    }
}

impl Cluster for Nodes {
    fn network(&self, work: Work) -> Arc<dyn Network> {
        let node = Arc::clone(&self.0);
        Arc::new(WorkNetwork { node, work })
    }

    fn answer(&self, work: Work, answers: Answers) -> Result<(), String> {
        let handler = Arc::new(WorkHandler(answers));
        let answered = self.0.answer_calls(name_of(work), handler);
        answered.map_err(|error| error.to_string())
    }

    fn leads(&self) -> bool {
        self.0.leads()
    }

    fn leader(&self) -> Option<String> {
        self.0.leader().map(|node| node.to_string())
    }

    fn current(&self) -> BoxFuture<'_, Result<(), String>> {
        async {
            let current = self.0.current(CURRENT_TIME).await;
            current.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<serde_json::Value, String>> {
        async { self.asked().await.map_err(|error| error.to_string()) }.boxed()
    }

    fn add<'a>(&'a self, node: u64, address: &'a str) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let added = self.0.add(node, address).await;
            added.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn remove(&self, node: u64) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let removed = self.0.remove(node).await;
            removed.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// Timing of requests to the store; the nodes retry by themselves until there is a majority.
fn timing() -> Timing {
    Timing {
        request: Duration::from_secs(40),
        attempts_max: 2,
        ..Timing::default()
    }
}

fn config(directory: &Path, arguments: &ClusterArguments) -> Result<NodeConfig, Failure> {
    let wrong = |what: String| Failure::Other(format!("the cluster: {what}"));
    let Some(id) = arguments.node else {
        return Err(wrong("--node is missing".to_owned()));
    };
    let members: BTreeMap<u64, String> = arguments.peers.iter().cloned().collect();
    if members.len() != arguments.peers.len() {
        return Err(wrong("a number stands twice in --peers".to_owned()));
    }
    let listed = members.get(&id).cloned();
    if listed.is_none() && !members.is_empty() && arguments.cluster_address.is_none() {
        return Err(wrong(format!(
            "node {id} is not in --peers; give --cluster-address for a node that is to be added"
        )));
    }
    // A node that is to be added starts no cluster.
    let members = match listed {
        Some(_) => members,
        None => BTreeMap::new(),
    };
    let address = arguments.cluster_address.clone().or(listed);
    if address.is_none() {
        return Err(wrong(
            "where the others reach this node is not known; give --peers or --cluster-address"
                .to_owned(),
        ));
    }
    Ok(NodeConfig {
        id,
        address,
        listen: arguments.cluster_listen.clone(),
        directory: directory.join("node"),
        secret: secret(arguments)?,
        members,
        pace: Pace::default(),
    })
}

fn secret(arguments: &ClusterArguments) -> Result<Vec<u8>, Failure> {
    let Some(path) = &arguments.cluster_secret_file else {
        return Err(Failure::Other(
            "the cluster: --cluster-secret-file is missing".to_owned(),
        ));
    };
    let text = std::fs::read_to_string(path).map_err(|error: io::Error| {
        Failure::Other(format!(
            "the cluster's secret in {}: {error}",
            path.display()
        ))
    })?;
    let line = text.lines().next().unwrap_or_default().trim();
    Ok(line.as_bytes().to_vec())
}

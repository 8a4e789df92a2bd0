//! The nodes that hold a database together, as a server has to know them.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use orrery_workers::{Network, Workers};

/// The nodes of a cluster, as one of them knows them.
pub trait Cluster: Debug + Send + Sync {
    /// Whether this node leads the others. Who leads writes the database.
    fn leads(&self) -> bool;

    /// How this node reaches the others for work that is divided.
    fn network(&self) -> Arc<dyn Network>;

    /// Answers the others' requests for such work; called once.
    fn work_for(&self, workers: Arc<Workers>) -> Result<(), String>;

    /// How all nodes are.
    fn status(&self) -> BoxFuture<'_, Result<serde_json::Value, String>>;

    /// Adds a node that runs, at `host:port`; returns when it has everything.
    fn add<'a>(&'a self, node: u64, address: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Removes a node.
    fn remove(&self, node: u64) -> BoxFuture<'_, Result<(), String>>;
}

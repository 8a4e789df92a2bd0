//! The nodes that hold a database together, as a server has to know them.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use orrery_distributed::Network;

/// Kinds of work that nodes do for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Parts of queries (`orrery_distributed`).
    Queries,
    /// Shares of loads (`orrery_loader`).
    Loads,
    /// Statements that change something (`orrery_sql`).
    Statements,
}

/// Answers what another node asks: messages, of which an error is the last one. It may not block.
pub type Answers = Arc<dyn Fn(Bytes) -> BoxStream<'static, Result<Bytes, String>> + Send + Sync>;

/// The nodes of a cluster, as one of them knows them.
pub trait Cluster: Debug + Send + Sync {
    /// Whether this node leads the others. Who leads writes the database.
    fn leads(&self) -> bool;

    /// The node that leads, by its name among [`Network::members`], as far as this one knows.
    fn leader(&self) -> Option<String>;

    /// How this node reaches the others for work that is divided.
    fn network(&self, work: Work) -> Arc<dyn Network>;

    /// Answers the others' requests for such work, and its own; called once for each kind.
    fn answer(&self, work: Work, answers: Answers) -> Result<(), String>;

    /// Whether this node has all that the others have acknowledged, so that one of them may be stopped; what is missing, if it has not.
    fn current(&self) -> BoxFuture<'_, Result<(), String>>;

    /// How all nodes are.
    fn status(&self) -> BoxFuture<'_, Result<serde_json::Value, String>>;

    /// Adds a node that runs, at `host:port`; returns when it has everything.
    fn add<'a>(&'a self, node: u64, address: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Removes a node.
    fn remove(&self, node: u64) -> BoxFuture<'_, Result<(), String>>;
}

//! The interface to a cluster's nodes, as a server uses it.

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

/// Answers requests of other nodes with a stream of messages, of which an error is the last. It
/// must not block.
pub type Answers = Arc<dyn Fn(Bytes) -> BoxStream<'static, Result<Bytes, String>> + Send + Sync>;

/// The nodes of a cluster, seen from one of them.
pub trait Cluster: Debug + Send + Sync {
    /// Whether this node is the leader. The leader writes the database.
    fn leads(&self) -> bool;

    /// The leader's name among [`Network::members`], as far as this node knows.
    fn leader(&self) -> Option<String>;

    /// The network by which this node reaches the others for this kind of work.
    fn network(&self, work: Work) -> Arc<dyn Network>;

    /// Registers the handler for this kind of work, for requests of other nodes and this one;
    /// called once per kind.
    fn answer(&self, work: Work, answers: Answers) -> Result<(), String>;

    /// Checks that this node has all acknowledged commits, so that another node may be stopped;
    /// else says what is missing.
    fn current(&self) -> BoxFuture<'_, Result<(), String>>;

    /// The status of all nodes.
    fn status(&self) -> BoxFuture<'_, Result<serde_json::Value, String>>;

    /// Adds a running node, at `host:port`; returns when the node has all commits.
    fn add<'a>(&'a self, node: u64, address: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Removes a node.
    fn remove(&self, node: u64) -> BoxFuture<'_, Result<(), String>>;
}

//! The transport interface between nodes: sockets in a cluster, memory in a simulation. Over
//! sockets in a cluster, over memory in a simulation.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Result;
use crate::types::NodeId;

/// Sends requests to nodes.
#[async_trait]
pub(crate) trait Transport: Send + Sync + 'static {
    /// Asks a node. `Unreachable` may mean that it did what was asked; `Refused` that it answered
    /// an error.
    async fn call(
        &self,
        node: NodeId,
        address: &str,
        path: &'static str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes>;
}

/// What nodes ask each other.
pub(crate) mod paths {
    /// openraft's entries and heartbeats.
    pub(crate) const APPEND: &str = "/raft/append";
    /// openraft's votes.
    pub(crate) const VOTE: &str = "/raft/vote";
    /// A part of a snapshot.
    pub(crate) const SNAPSHOT: &str = "/raft/snapshot";
    /// Commands for the leader.
    pub(crate) const PROPOSE: &str = "/propose";
    /// Up to where a reader must have applied.
    pub(crate) const READ_INDEX: &str = "/read-index";
    /// A piece of a file.
    pub(crate) const FILE_WRITE: &str = "/file/write";
    /// A file is complete.
    pub(crate) const FILE_FINISH: &str = "/file/finish";
    /// A range of a file is asked for.
    pub(crate) const FILE_READ: &str = "/file/read";
    /// How a node is.
    pub(crate) const STATUS: &str = "/status";
    /// A node is to be added.
    pub(crate) const ADD: &str = "/members/add";
    /// A node is to be removed.
    pub(crate) const REMOVE: &str = "/members/remove";
    /// Before the kind of a call, whose answer is a stream.
    pub(crate) const CALL: &str = "/call/";
    /// All whose answer is a message.
    pub(crate) const ALL: [&str; 11] = [
        APPEND,
        VOTE,
        SNAPSHOT,
        PROPOSE,
        READ_INDEX,
        FILE_WRITE,
        FILE_FINISH,
        FILE_READ,
        STATUS,
        ADD,
        REMOVE,
    ];
}

//! The messages between nodes, beside openraft's.

use std::collections::BTreeSet;

use bytes::Bytes;
use openraft::{BasicNode, SnapshotMeta};
use serde::{Deserialize, Serialize};

use crate::types::{Answer, NodeId, Request, Vote};

/// A part of a snapshot.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SnapshotPart {
    pub vote: Vote,
    pub meta: SnapshotMeta<NodeId, BasicNode>,
    pub offset: u64,
    #[serde(with = "crate::types::blob")]
    pub data: Bytes,
    pub done: bool,
}

/// Commands for the leader.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Propose {
    pub requests: Vec<Request>,
}

/// An answer of a node that would have to be the leader.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Led<T> {
    /// It is.
    Done(T),
    /// It is not, or cannot tell; this one may be.
    NotLeader(Option<NodeId>),
    /// It is, and cannot.
    Failed(String),
}

/// What became of commands.
pub(crate) type Proposed = Led<Vec<Answer>>;

/// A piece of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FilePiece {
    pub id: String,
    pub offset: u64,
    #[serde(with = "crate::types::blob")]
    pub data: Bytes,
}

/// A file is complete.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileFinish {
    pub id: String,
    pub bytes: u64,
    pub crc: u32,
}

/// A range of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileRange {
    pub id: String,
    pub start: u64,
    pub end: u64,
}

/// Bytes of a file, if it is there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileBytes {
    pub found: bool,
    #[serde(with = "crate::types::blob")]
    pub data: Bytes,
}

/// A node to add or remove.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub id: NodeId,
    pub address: String,
}

/// The status of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its number.
    pub id: u64,
    /// Whom it takes for the leader.
    pub leader: Option<u64>,
    /// The term of its last vote.
    pub term: u64,
    /// Leader, follower, learner, candidate, or shut down.
    pub role: String,
    /// The index of its last entry of the log.
    pub last_entry: Option<u64>,
    /// The index of the last entry that it applied.
    pub applied: Option<u64>,
    /// Nodes that vote.
    pub voters: BTreeSet<u64>,
    /// Nodes that follow without a vote.
    pub learners: BTreeSet<u64>,
    /// Files of large objects that it does not have yet.
    pub missing_files: u64,
    /// Objects in its state.
    pub objects: u64,
    /// Why it stopped, if it did.
    pub stopped: Option<String>,
}

//! The errors of the Raft store, by what the caller can do about them.

use std::io;

/// What the store is called in errors of `object_store`.
pub(crate) const STORE: &str = "quorum";

/// Result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a node or of its store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of this node could not be read or written.
    #[error("cannot {action} `{path}` of this node: {source}")]
    Disk {
        /// What was tried: "write", "sync", ...
        action: &'static str,
        /// The file, below the node's directory.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes on disk are not those that were written.
    #[error(
        "`{path}` of this node is damaged: {detail}; remove the node from the cluster, empty its directory and add it again"
    )]
    Damaged {
        /// The file, below the node's directory.
        path: String,
        /// What is wrong with it, and where.
        detail: String,
    },
    /// A setting that cannot work.
    #[error("{0}")]
    Configuration(String),
    /// The other side could not be reached, or did not answer in time.
    #[error(
        "cannot reach node {node} at {address}: {detail}; look whether it runs, and at the network"
    )]
    Unreachable {
        /// Its number.
        node: u64,
        /// Its address.
        address: String,
        /// What happened.
        detail: String,
    },
    /// The other side answered, and refused.
    #[error("node {node} refused the request: {detail}")]
    Refused {
        /// Its number.
        node: u64,
        /// What it said.
        detail: String,
    },
    /// A message that is none of ours.
    #[error(
        "a message of another node cannot be read: {0}; check that all nodes run the same version"
    )]
    Message(String),
    /// No leader answered within the time for a request. Nothing was written.
    #[error(
        "no leader within {waited_ms} ms: a majority of nodes must be up and reach each other ({detail})"
    )]
    NoLeader {
        /// How long was waited.
        waited_ms: u64,
        /// What the last try met.
        detail: String,
    },
    /// A write was sent and no answer came: it may have happened, or may still happen.
    #[error(
        "the outcome of a write is unknown after {waited_ms} ms: {detail}; read the object before you write it again"
    )]
    Unknown {
        /// How long was waited.
        waited_ms: u64,
        /// What the last try met.
        detail: String,
    },
    /// A large object could not be copied to a majority of the nodes.
    #[error(
        "a large object is on {copies} of {nodes} nodes, which is no majority: {detail}; start the missing nodes and try again"
    )]
    TooFewCopies {
        /// Nodes that have it.
        copies: usize,
        /// Nodes that vote.
        nodes: usize,
        /// What the last failure was.
        detail: String,
    },
    /// This node does not have all that the others have.
    #[error(
        "this node lacks writes that others have: {0}; wait, or look at `orrery cluster status`"
    )]
    Behind(String),
    /// The bytes of a large object are on no node that can be reached.
    #[error("no reachable node has the bytes of `{0}`; start the missing nodes")]
    NoCopy(String),
    /// A change of members that cannot be done now.
    #[error("the members cannot be changed: {0}")]
    Members(String),
    /// The node stopped, by itself after an error of its disk, or because it was asked to.
    #[error("this node has stopped: {0}")]
    Stopped(String),
}

impl Error {
    /// An error of the disk.
    pub(crate) fn disk(action: &'static str, path: &str, source: io::Error) -> Self {
        Self::Disk {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

impl From<Error> for object_store::Error {
    fn from(error: Error) -> Self {
        Self::Generic {
            store: STORE,
            source: Box::new(error),
        }
    }
}

impl From<orrery_wire_fields::FieldError> for Error {
    fn from(error: orrery_wire_fields::FieldError) -> Self {
        Self::Message(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Message(error.to_string())
    }
}

//! An object store replicated by Raft: acknowledged writes are on a majority's disks, and reads are
//! linearizable.
//!
//! [`QuorumStore`] is an `object_store::ObjectStore`, so a database that lies in an object store
//! lies in a cluster of nodes without a change: its catalog is replaced by a conditional put, its
//! log is objects that are put where none is, its files never change. A [`Node`] runs in the same
//! process.
//!
//! ```text
//! put    QuorumStore -> node::write (groups, numbers) -> leader: node::propose (entries)
//!                                                     -> openraft -> log: one write and sync on each node
//!                                                     -> a majority has it -> state: applied -> the answer
//! large  QuorumStore -> node::upload: pieces to the disks of all nodes -> a majority has it -> a put that names the file
//! get    QuorumStore -> node::read: the leader's read index -> this node has applied it -> state, or node::fetch for bytes of files
//! call   Node::call -> another node's CallHandler -> a stream of messages back (calls): work of the process above, beside all this
//! ```
//!
//! Consensus is openraft's. Ours are its log on disk (`log`), what it applies to (`state`), its
//! network (`http`), and that a write which is sent twice is done once. docs/cluster.md says what
//! is promised.

mod blocking;
mod calls;
mod disk;
mod error;
mod files;
mod http;
mod log;
mod messages;
mod network;
mod node;
mod state;
mod store;
mod transport;
mod types;
mod wire;

#[cfg(test)]
mod simulation;

pub use calls::{
    CALL_MESSAGE_BYTES_MAX, CALL_REQUEST_BYTES_MAX, CALL_SILENCE, CallAnswer, CallError,
    CallHandler,
};
pub use error::{Error, Result};
pub use messages::NodeStatus;
pub use node::core::Pace;
pub use node::{Node, NodeConfig};
pub use store::QuorumStore;

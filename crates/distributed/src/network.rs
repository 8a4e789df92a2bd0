//! The network interface, and the kinds of its failures.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Bytes of an answer as they come; each item is what was sent as one.
pub type Answer = BoxStream<'static, Result<Bytes, NetworkError>>;

/// The processes that work together, as one of them reaches them.
pub trait Network: fmt::Debug + Send + Sync {
    /// The names of all members that are there now, this one among them, in any order. A name stays
    /// a member's own.
    fn members(&self) -> Vec<String>;

    /// The name of this process.
    fn here(&self) -> String;

    /// Sends a request to a member, which may be this process. Dropping the answer tells the other
    /// side to end.
    fn call(
        &self,
        member: &str,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Answer, NetworkError>>;
}

/// The reason why there is no answer, or no more of it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NetworkError {
    /// The other side could not be reached, broke off, or said nothing for too long: another one
    /// may do it.
    #[error("the worker {member} is lost: {reason}")]
    Lost {
        /// Who.
        member: String,
        /// How that was noticed.
        reason: String,
    },
    /// The other side says why it cannot.
    #[error("{0}")]
    Said(String),
}

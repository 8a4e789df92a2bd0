//! Calls between nodes beside Raft's messages: a request of bytes, a stream of messages back. What
//! they mean is known to those who make and answer them.
//!
//! ```text
//! Node::call -> own number:     the handler, without network
//!            -> another node:   http::calls::client: one signed POST
//!                               -> http::calls::server: the handler's stream, in frames (http::calls::frame)
//! ```
//!
//! An answer is whole or ends with an error. Nothing is sent twice: whether a call that failed may
//! be made again, there or elsewhere, is for the caller to say ([`CallError`]).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::{Error, Result};

/// The largest request of a call.
pub const CALL_REQUEST_BYTES_MAX: usize = 64 << 20;
/// The largest message of an answer.
pub const CALL_MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The time a caller should wait for a silent node.
pub const CALL_SILENCE: Duration = Duration::from_secs(10);
/// The longest name of a kind of calls.
const KIND_BYTES_MAX: usize = 64;

/// Answers calls of other nodes, and of this one.
pub trait CallHandler: Send + Sync + 'static {
    /// The messages of an answer, each of at most [`CALL_MESSAGE_BYTES_MAX`]; an error is told to
    /// the caller and ends it.
    ///
    /// This and the stream are run on the threads that the node's own messages need: neither may
    /// block, or work for long without a pause. The stream is asked for a message when the last one
    /// was sent, and dropped when the caller has gone.
    fn answer(&self, kind: &str, request: Bytes) -> BoxStream<'static, Result<Bytes, String>>;
}

/// The answer to a call: messages as the handler gave them. It is whole if it ends without an
/// error; an error is the last item. Dropping it ends the call on the other side.
pub type CallAnswer = BoxStream<'static, Result<Bytes, CallError>>;

/// The reason why a call has no answer, or only part of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The node was not reached: it has seen nothing of the call.
    #[error("cannot reach node {node}: {detail}")]
    Unreachable {
        /// Its number.
        node: u64,
        /// What happened.
        detail: String,
    },
    /// The node did not take the call: no handler has seen it.
    #[error("node {node} refused the call: {detail}")]
    Refused {
        /// Its number.
        node: u64,
        /// What it said.
        detail: String,
    },
    /// The connection was lost, or what came over it was changed on its way. The handler may have
    /// seen the call.
    #[error("the answer of node {node} broke off: {detail}")]
    BrokenOff {
        /// Its number.
        node: u64,
        /// What happened.
        detail: String,
    },
    /// Nothing came for too long, although a node that works on an answer says so all the time. The
    /// handler may have seen the call.
    #[error("node {node} was silent for {} s", waited.as_secs_f64())]
    Silent {
        /// Its number.
        node: u64,
        /// How long was waited.
        waited: Duration,
    },
    /// The handler's own error: another node would most likely say the same.
    #[error("node {node} says: {message}")]
    Handler {
        /// Its number.
        node: u64,
        /// What it said.
        message: String,
    },
}

impl CallError {
    /// Whether the handler itself said so, rather than the way to it.
    pub fn is_of_handler(&self) -> bool {
        match self {
            Self::Handler { .. } => true,
            Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::BrokenOff { .. }
            | Self::Silent { .. } => false,
        }
    }
}

/// Who answers which kind of calls on a node.
pub(crate) struct Handlers {
    by_kind: Mutex<HashMap<&'static str, Arc<dyn CallHandler>>>,
    stopped: watch::Sender<bool>,
}

impl Handlers {
    /// Nobody answers anything.
    pub(crate) fn new() -> Self {
        Self {
            by_kind: Mutex::default(),
            stopped: watch::Sender::new(false),
        }
    }

    /// From now on this one answers.
    pub(crate) fn add(&self, kind: &'static str, handler: Arc<dyn CallHandler>) -> Result<()> {
        if !is_kind(kind) {
            return Err(Error::Configuration(format!(
                "`{kind}` is no name for calls: small letters, digits and hyphens, {KIND_BYTES_MAX} at most"
            )));
        }
        match self.by_kind.lock().entry(kind) {
            Entry::Occupied(_) => Err(Error::Configuration(format!(
                "calls of kind `{kind}` are answered already"
            ))),
            Entry::Vacant(place) => {
                place.insert(handler);
                Ok(())
            }
        }
    }

    /// Who answers. `Err` is what the caller is told.
    pub(crate) fn find(&self, kind: &str) -> Result<Arc<dyn CallHandler>, String> {
        if *self.stopped.borrow() {
            return Err("it stops".to_owned());
        }
        let found = self.by_kind.lock().get(kind).cloned();
        found.ok_or_else(|| format!("it does not answer calls of kind `{kind}`"))
    }

    /// Answers to other nodes break off, and no call is taken any more.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
        self.by_kind.lock().clear();
    }

    /// Tells when the node stops.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopped.subscribe()
    }
}

/// Whether it can stand in a path as it is.
pub(crate) fn is_kind(kind: &str) -> bool {
    (1..=KIND_BYTES_MAX).contains(&kind.len())
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The messages of a handler up to its first error, which one that is too large is.
pub(crate) fn messages(
    handler: &dyn CallHandler,
    kind: &str,
    request: Bytes,
) -> BoxStream<'static, Result<Bytes, String>> {
    let given = handler.answer(kind, request);
    stream::unfold(Some(given), |given| async {
        let mut given = given?;
        let message = match given.next().await? {
            Ok(message) if message.len() > CALL_MESSAGE_BYTES_MAX => Err(format!(
                "a message of the answer has {} bytes; {CALL_MESSAGE_BYTES_MAX} at most",
                message.len()
            )),
            message => message,
        };
        let given = message.is_ok().then_some(given);
        Some((message, given))
    })
    .boxed()
}

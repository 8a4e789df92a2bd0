//! Forwarding of changing statements to the process with the writer role.
//!
//! ```text
//! client ── Session: a change ──> Remote ── Ask ──> Guests ──> a session of that process ── commit
//!           rows, tags, errors <──────── Told ───────┘
//! COMMIT, or the end of the statement ──> Commit ──> the number of the commit, which this process waits for
//! ```
//!
//! What is asked there is always a transaction. It begins with the first change of a block, after
//! the commit that the block has read, if it has read; or with a single change. From then on all
//! statements of the block are run there, for they see what it changed; settings and prepared
//! statements stay with the session here, and go with each statement that needs them. The
//! transaction is committed by a message of its own: so nobody is told that a statement was
//! canceled that was committed. It ends when this process, or its connection, does ([`Ask::Open`]).
//!
//! A forwarded statement carries what its user was authenticated by
//! ([`Session::with_passport`](crate::Session::with_passport)); the writing process checks the user
//! with each statement, as this process does.

mod guest;
mod guests;
mod incoming;
mod messages;
mod remote;
mod statements;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub use self::guest::{BeginGuest, GuestHeld, GuestUser, KnowGuest};
pub use self::guests::Guests;
pub(crate) use self::remote::Remote;

use bytes::Bytes;

/// The largest message. Rows are cut into smaller ones where they can be.
const MESSAGE_BYTES_MAX: usize = 60 << 20;
/// Rows, and what a client sends, are cut into pieces of so many bytes.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// The messages of an answer; an error is the last one.
pub type ForwardAnswer = BoxStream<'static, Result<Bytes, String>>;

/// Calls to the process with the writer role.
pub trait ForwardCalls: Send + Sync {
    /// The name of that process, where it is known now.
    fn writer(&self) -> Option<String>;

    /// Asks a process. Dropping the answer tells it to end.
    ///
    /// # Errors
    /// When it cannot be reached: it has seen nothing of the call, or is lost.
    fn call(
        &self,
        process: &str,
        request: Bytes,
    ) -> BoxFuture<'static, Result<ForwardAnswer, String>>;

    /// Returns when a commit is part of the newest state here, or will not be soon.
    fn wait_for(&self, commit: u64) -> BoxFuture<'_, ()>;
}

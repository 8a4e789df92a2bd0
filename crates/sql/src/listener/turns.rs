//! The door before the threads of queries, as listeners see it.
//!
//! A statement that computes has a place behind the door. One that waits, for the writers' turn, for another process or for the disk, gives it up
//! ([`Session::hold`](crate::Session::hold)): else those who wait have all places, and who is waited for finds none.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;

/// The right to compute, given up when dropped.
pub type Turn = Box<dyn Any + Send>;

/// Who may compute now: the door before the query threads.
pub trait Turns: Send + Sync + 'static {
    /// Waits for a turn; one sentence where there is none to be had.
    fn turn(&self) -> BoxFuture<'_, Result<Turn, String>>;

    /// The same for a statement of a transaction that has the writers' turn: all who want to change something wait for its end, so it comes in first.
    fn turn_of_writer(&self) -> BoxFuture<'_, Result<Turn, String>> {
        self.turn()
    }
}

/// The place of a statement behind the door, which is given up before the statement ends where it begins to wait.
#[derive(Clone, Default)]
pub(crate) struct Place(Arc<Mutex<Option<Turn>>>);

impl Place {
    pub(crate) fn of(turn: Turn) -> Self {
        Self(Arc::new(Mutex::new(Some(turn))))
    }

    /// Gives it up, if it is there.
    pub(crate) fn leave(&self) {
        let turn = self.0.lock().take();
        drop(turn);
    }
}

/// Gives a place up with the statement.
pub(crate) struct Held(pub(crate) Place);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.leave();
    }
}

//! The turn of a statement: the right to compute, which a limited number of statements have at a
//! time.
//!
//! A statement that waits, for the writers' turn, for another process or for the disk, gives its
//! turn up ([`Session::hold`](crate::Session::hold)): else waiting statements have all turns, and
//! the one that they wait for finds none.
//!
//! [`Spent`] ends a statement that costs more than its budget; whoever admits statements sends it.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The right to compute, given up when dropped.
pub type Turn = Box<dyn Any + Send>;

/// Where it is said that a statement costs more than there is.
pub type Spent = watch::Receiver<Option<String>>;

/// Completes with the client's message when a statement costs more than its budget; never if `said`
/// is `None`.
pub async fn spent(said: Option<&Spent>) -> String {
    if let Some(said) = said {
        // The statement may be asked for it again and again.
        let mut said = said.clone();
        if let Ok(said) = said.wait_for(Option::is_some).await
            && let Some(message) = &*said
        {
            return message.clone();
        }
    }
    std::future::pending().await
}

/// A statement's turn, which the statement gives up before its end where it begins to wait.
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

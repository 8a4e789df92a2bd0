//! The turn of a statement: the right to compute, among as many statements as may at a time.
//!
//! A statement that waits, for the writers' turn, for another process or for the disk, gives its turn up
//! ([`Session::hold`](crate::Session::hold)): else those who wait have all turns, and who is waited for finds none.
//!
//! Whoever lets statements in ends one that costs more than there is by [`Spent`].

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The right to compute, given up when dropped.
pub type Turn = Box<dyn Any + Send>;

/// Where it is said that a statement costs more than there is.
pub type Spent = watch::Receiver<Option<String>>;

/// Completes, with what the client is to be told, when a statement costs more than there is; never where nobody says so.
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

//! The handle of the writer, which callers clone and use.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::options::WriterOptions;
use super::shared::Shared;
use crate::{Database, Result};

/// The writer of a database; clones are the same writer.
#[derive(Debug, Clone)]
pub struct Writer {
    pub(super) handle: Arc<Handle>,
}

/// What all clones share; the last one to go ends the writing.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// The database that is written.
    pub fn database(&self) -> &Arc<Database> {
        &self.handle.shared.database
    }

    /// Ends the turn to write, for a reason of one clause: from now on this writer, and all that
    /// was begun with it, changes nothing, whoever still holds it; and the database is followed, or
    /// written in another turn. Commits that wait for the disk are told how it went.
    ///
    /// Without it, the turn ends with the last clone.
    pub fn end_turn(&self, reason: &str) {
        self.handle.shared.end(reason);
    }

    /// Whether the turn to write is over.
    pub fn is_over(&self) -> bool {
        self.handle.shared.end.is_over()
    }

    /// Its settings.
    pub fn options(&self) -> &WriterOptions {
        &self.handle.shared.options
    }

    /// Whether commits are possible; the error says why not.
    pub fn check(&self) -> Result<()> {
        let log = Arc::clone(&self.handle.shared.state.lock().log);
        log.check()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.worker.stop();
        if self.shared.end.is_over() {
            // Somebody else may write by now. What is left of the thread's work is refused, and
            // nobody waits for it: least of all a client's block, which may be the last to go.
            return;
        }
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that makes checkpoints has panicked");
        }
        if let Err(error) = self.shared.close() {
            tracing::error!("the log could not be closed: {error}");
        }
        self.shared.give_lock_back();
        self.shared.database.end_writing();
    }
}

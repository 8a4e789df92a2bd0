//! The writer that callers hold.

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
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that makes checkpoints has panicked");
        }
        if let Err(error) = self.shared.close() {
            tracing::error!("the log could not be closed: {error}");
        }
        self.shared.database.end_writing();
    }
}

//! A pending commit on its way to the disk.

use super::options::Durability;
use std::sync::Arc;
use std::time::Instant;

use super::handle::Writer;
use crate::files::log::LogWriter;
use crate::{PendingChange, Result};

/// A commit that has its number, but may not be on the disk yet.
///
/// If it is dropped without [`wait`](Self::wait), it becomes durable and visible with the next one
/// that is waited for.
#[derive(Debug)]
#[must_use = "a commit is durable and visible only after wait()"]
pub struct PendingCommit {
    pub(super) writer: Writer,
    pub(super) number: u64,
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) durability: Durability,
    /// The log file with the record, and the position after it.
    pub(super) log: Arc<LogWriter>,
    pub(super) position: u64,
    /// Where nothing was changed: when that was found. No record in the log tells that nobody else
    /// had written before it.
    pub(super) unchanged: Option<Instant>,
}

impl PendingCommit {
    /// The number of the commit; each is one more than the one before.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of quads that are there now and were not before.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Number of quads that were there before and are not now.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Whether [`wait`](Self::wait) returns at once, because the commit was made with
    /// [`Durability::Relaxed`].
    pub fn is_done(&self) -> bool {
        self.durability == Durability::Relaxed
    }

    /// Returns the number when the commit is durable and visible to new readers; at once if it was
    /// made with [`Durability::Relaxed`].
    ///
    /// Where nothing was changed, it makes sure that this was so in the newest state: a writer that
    /// another has followed meanwhile, and that does not know it yet, fails.
    ///
    /// Fails with [`crate::Error::OutcomeUnknown`] where nobody knows whether the commit will be
    /// there when the database is opened anew.
    pub fn wait(self) -> Result<u64> {
        if self.durability == Durability::Durable {
            let waited = self.log.wait(self.position);
            waited.map_err(|error| match self.unchanged {
                None => error.of_pending(PendingChange::Commit(self.number)),
                Some(_) => error,
            })?;
            if let Some(found) = self.unchanged {
                self.writer.handle.shared.confirm(found)?;
            }
            self.writer.handle.shared.publish(self.number);
        }
        Ok(self.number)
    }
}

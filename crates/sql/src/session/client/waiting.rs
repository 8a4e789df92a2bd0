//! The memory of a session's waiting portals and cursors ([`crate::transactions::waiting_rows`]).

use std::sync::atomic::Ordering;

use datafusion::execution::memory_pool::MemoryConsumer;

use super::Session;
use crate::transactions::waiting_rows::{HeldRows, WaitingRows};
use crate::{Error, Result};

impl Session {
    /// Reserves memory for a waiting statement, from the asker's share.
    ///
    /// # Errors
    /// When there is not so much: the statement is to be given up.
    pub fn hold_waiting(&self, rows: WaitingRows) -> Result<HeldRows> {
        let memory = MemoryConsumer::new("rows of a portal or a cursor").register(self.pool());
        let bytes = rows.bytes(self.state.config().target_partitions());
        let open = &self.waiting;
        memory.try_grow(bytes).map_err(|error| {
            let others = open.load(Ordering::Relaxed);
            Error::of_run(&error)
                .with_detail(format!(
                    "{others} other portals and cursors of this session are open, and hold memory until they are closed or their last row was taken."
                ))
                .with_hint("Close some, or end the transaction.")
        })?;
        Ok(HeldRows::new(memory, open))
    }

    /// Reserves memory for a statement whose rows are not fetched yet.
    ///
    /// # Errors
    /// When there is not so much: the statement is to be given up.
    pub fn hold_unfetched(&self) -> Result<HeldRows> {
        let memory = MemoryConsumer::new("an answer that was not fetched").register(self.pool());
        let bytes = WaitingRows::default().bytes(self.state.config().target_partitions());
        memory.try_grow(bytes).map_err(|error| {
            Error::of_run(&error).with_hint("Fetch the answers that wait, or cancel them.")
        })?;
        Ok(HeldRows::new(memory, &self.waiting))
    }
}

//! Statements that wait until their client asks for more rows, portals and cursors: what they hold meanwhile is taken from the memory of who asks, and of all.
//!
//! ```text
//! some rows were taken -> the batch at hand says what its plan holds: WaitingRows -> Session::hold_waiting -> HeldRows, until more are asked for, the last was given, or it is closed
//! ```
//!
//! A plan that has begun holds rows that nobody sees: each of its partitions has a batch at hand and others on their way, and a batch may be a piece of more (rows of a table that are in no file yet are decoded many at a
//! time, and given in slices). Operators that keep rows, such as sorts, account for them; the others are taken to hold what the batch at hand tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use super::Session;
use crate::value_bytes::bytes_of_array;
use crate::{Error, Result};

/// A plan, and what else there is of a statement that is open.
const OPEN_BYTES: usize = 256 << 10;
/// Batches of a partition: one that it makes, and one on its way.
const PARTITION_BATCHES: usize = 2;

/// What is known of the rows at hand of a statement that waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct WaitingRows {
    /// Bytes of what they are pieces of.
    whole: usize,
    /// Bytes of the rows themselves.
    own: usize,
}

impl WaitingRows {
    /// Of a batch.
    pub fn of(columns: &[ArrayRef]) -> Self {
        let own: u64 = columns.iter().map(bytes_of_array).sum();
        Self {
            whole: columns.iter().map(|it| it.get_array_memory_size()).sum(),
            own: usize::try_from(own).unwrap_or(usize::MAX),
        }
    }

    /// Bytes that a plan of so many partitions holds that gives such rows.
    fn bytes(self, partitions: usize) -> usize {
        let batches = partitions.saturating_mul(PARTITION_BATCHES);
        let on_their_way = self.own.saturating_mul(batches);
        OPEN_BYTES
            .saturating_add(self.whole)
            .saturating_add(on_their_way)
    }
}

/// Memory of a statement that waits, until this is dropped.
#[derive(Debug)]
pub struct HeldRows {
    _memory: MemoryReservation,
    open: Arc<AtomicUsize>,
}

impl Drop for HeldRows {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    /// Takes memory for a statement that waits from now on, out of what who asks may hold.
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
        open.fetch_add(1, Ordering::Relaxed);
        Ok(HeldRows {
            _memory: memory,
            open: Arc::clone(open),
        })
    }
}

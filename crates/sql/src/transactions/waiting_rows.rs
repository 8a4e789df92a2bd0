//! The memory of portals and cursors that wait for their client to fetch.
//!
//! ```text
//! some rows were taken -> the batch at hand gives what its plan holds: WaitingRows -> Session::hold_waiting
//!                      -> HeldRows, until more are asked for, the last was given, or it is closed
//! ```
//!
//! A plan that has begun holds rows that nobody sees: each of its partitions has a batch at hand
//! and others on their way, and a batch may be a piece of more (rows of a table that are in no file
//! yet are decoded many at a time, and given in slices). Operators that keep rows, such as sorts,
//! account for them; the others are taken to hold what the batch at hand tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::execution::memory_pool::MemoryReservation;

use crate::values::sizes::bytes_of_array;

/// A plan, and what else there is of a statement that is open.
const OPEN_BYTES: usize = 256 << 10;
/// Batches of a partition: one that it makes, and one on its way.
const PARTITION_BATCHES: usize = 2;

/// The size of the current rows of a waiting statement.
#[derive(Debug, Clone, Copy, Default)]
pub struct WaitingRows {
    /// Bytes of what they are pieces of.
    whole: usize,
    /// Bytes of the rows themselves.
    own: usize,
}

impl WaitingRows {
    /// The size of a batch.
    pub fn of(columns: &[ArrayRef]) -> Self {
        let own: u64 = columns.iter().map(bytes_of_array).sum();
        Self {
            whole: columns.iter().map(|it| it.get_array_memory_size()).sum(),
            own: usize::try_from(own).unwrap_or(usize::MAX),
        }
    }

    /// Bytes that a plan of so many partitions holds that gives such rows.
    pub(crate) fn bytes(self, partitions: usize) -> usize {
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

impl HeldRows {
    /// Of a statement that is one of those that are open from now on.
    pub(crate) fn new(memory: MemoryReservation, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self {
            _memory: memory,
            open: Arc::clone(open),
        }
    }
}

impl Drop for HeldRows {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

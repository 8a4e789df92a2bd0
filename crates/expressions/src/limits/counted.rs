//! The memory count of values that a batch makes or reads.
//!
//! Ids are small and texts are not: a function may make a megabyte of each row. What a column of
//! values holds is counted here as it comes, and given back when the column goes. The first
//! [`FREE_BYTES`] are the batch's own, which its query's working set has room for, so that most
//! columns ask nobody.
//!
//! Where many rows together would hold more than [`AT_ONCE_BYTES_MAX`], the answer is
//! [`Error::TooMuchAtOnce`], where there is no room for them it is the engine's error: in both
//! cases who evaluates takes fewer rows at a time (see `expression::physical`). Only what one row
//! needs alone and cannot have ends the query.

use std::sync::Arc;

use datafusion_execution::memory_pool::MemoryReservation;

use super::of_query::Limits;
use crate::error::{Error, Result};
use crate::values::value::Value;

/// What a column may hold without being counted.
const FREE_BYTES: usize = 1 << 16;
/// What a column of several rows may hold; less is more work for the same rows, more is memory that
/// others lack.
const AT_ONCE_BYTES_MAX: usize = 4 << 20;
/// Memory is asked for in steps of this size.
const STEP_BYTES: usize = 1 << 18;
/// Work between two looks at the clock, in bytes that functions are given.
const WORK_PER_LOOK: usize = 1 << 18;
/// The work of a call beside its texts.
const WORK_OF_CALL: usize = 256;

/// What keeps the memory of values reserved; empty for little.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(
    #[expect(dead_code, reason = "gives back when it is dropped")] Option<Arc<MemoryReservation>>,
);

/// Counts values as they come; see the module's documentation.
pub(crate) struct Counted<'c> {
    limits: &'c Limits,
    /// Whether fewer rows at a time are possible and would help.
    may_take_fewer: bool,
    bytes: usize,
    /// So much may be held before the pool is asked again.
    allowed_bytes: usize,
    reservation: Option<MemoryReservation>,
    work: usize,
}

impl<'c> Counted<'c> {
    /// For the values of so many rows of a batch.
    pub(crate) fn of_rows(rows: usize, limits: &'c Limits) -> Self {
        Self {
            may_take_fewer: rows > 1,
            ..Self::of_all(limits)
        }
    }

    /// For values that are needed all at once.
    pub(crate) fn of_all(limits: &'c Limits) -> Self {
        Self {
            limits,
            may_take_fewer: false,
            bytes: 0,
            allowed_bytes: FREE_BYTES,
            reservation: None,
            work: 0,
        }
    }

    /// A function is about to be given so many bytes of text, of which it may make as many.
    ///
    /// # Errors
    /// When there is no room for that, or nobody waits any more.
    #[inline]
    pub(crate) fn begin(&mut self, given_bytes: usize) -> Result<()> {
        self.work += WORK_OF_CALL + given_bytes;
        if self.work >= WORK_PER_LOOK {
            self.work = 0;
            self.look()?;
        }
        self.require(self.bytes + given_bytes)
    }

    /// # Errors
    /// When the time is over or nobody waits any more.
    pub(crate) fn look(&self) -> Result<()> {
        self.limits.ends.check()
    }

    /// One more value is held.
    ///
    /// # Errors
    /// When there is no room for it.
    #[inline]
    pub(crate) fn add(&mut self, value: &Value) -> Result<()> {
        self.add_bytes(value.heap_bytes())
    }

    /// So many bytes more are held.
    ///
    /// # Errors
    /// When there is no room for them.
    #[inline]
    pub(crate) fn add_bytes(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        self.require(self.bytes)
    }

    /// Nothing more comes: what is held stays counted for as long as the result lives.
    pub(crate) fn finish(self) -> Held {
        Held(self.reservation.map(|reservation| {
            _ = reservation.try_resize(self.bytes.min(reservation.size()));
            Arc::new(reservation)
        }))
    }

    #[inline]
    fn require(&mut self, bytes: usize) -> Result<()> {
        match bytes <= self.allowed_bytes {
            true => Ok(()),
            false => self.ask_for(bytes),
        }
    }

    #[cold]
    fn ask_for(&mut self, bytes: usize) -> Result<()> {
        if self.may_take_fewer && bytes > AT_ONCE_BYTES_MAX {
            return Err(Error::TooMuchAtOnce);
        }
        let reservation = self
            .reservation
            .get_or_insert_with(|| self.limits.new_reservation());
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        match reservation.try_resize(wanted) {
            Ok(()) => {
                self.allowed_bytes = wanted;
                Ok(())
            }
            Err(refused) => Err(refused.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    use super::*;
    #[test]
    fn what_is_held_is_counted_and_given_back() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(8 << 20));
        let limits = Limits::new(Arc::clone(&pool));
        let mut counted = Counted::of_rows(2, &limits);
        counted.add_bytes(FREE_BYTES).unwrap();
        assert_eq!(pool.reserved(), 0);
        counted.add_bytes(3 << 20).unwrap();
        let held = counted.finish();
        assert_eq!(pool.reserved(), (3 << 20) + FREE_BYTES);
        let mut second = Counted::of_rows(2, &limits);
        assert!(matches!(
            second.add_bytes(AT_ONCE_BYTES_MAX + 1),
            Err(Error::TooMuchAtOnce)
        ));
        let mut alone = Counted::of_rows(1, &limits);
        assert!(matches!(alone.add_bytes(6 << 20), Err(Error::Engine(_))));
        drop(held);
        drop(second);
        assert!(alone.add_bytes(1 << 20).is_ok());
        drop(alone);
        assert_eq!(pool.reserved(), 0);
    }
}

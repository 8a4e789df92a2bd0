//! The memory grants of a transaction's changes.

use crate::{Error, Result};

/// What a change takes at most, from its beginning to the end of the commit: 40 bytes in the list
/// of changes, which doubles, and 40 in its net form; 42 in the delta of each permutation; 40 while
/// these are sorted; up to 100 as a row of the log's record and in its bytes.
const CHANGE_BYTES: u64 = 448;
/// Beside its key, what a new term takes in the dictionary.
const TERM_BYTES: u64 = 64;
/// So much is asked for at least, where it can be had, so that nobody asks often.
const STEP_BYTES: u64 = 1 << 20;
/// Small transactions are not counted: they go on where memory is short.
const FREE_BYTES: u64 = 64 << 10;

/// Grants the memory that the changes of a transaction take. What was granted is given back when
/// this value is dropped.
pub trait ChangeMemory: Send + Sync + std::fmt::Debug {
    /// Takes so many bytes more; whether they can be had.
    fn try_grow(&mut self, bytes: u64) -> bool;

    /// The whole budget, for the message.
    fn limit_bytes(&self) -> u64;
}

/// Grants so many bytes, and no more.
#[derive(Debug, Clone, Copy)]
pub struct FixedMemory {
    left_bytes: u64,
    limit_bytes: u64,
}

impl FixedMemory {
    /// This is all that there is.
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            left_bytes: limit_bytes,
            limit_bytes,
        }
    }
}

impl ChangeMemory for FixedMemory {
    fn try_grow(&mut self, bytes: u64) -> bool {
        let left_bytes = self.left_bytes.checked_sub(bytes);
        self.left_bytes = left_bytes.unwrap_or(self.left_bytes);
        left_bytes.is_some()
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }
}

/// Counts what a transaction takes.
#[derive(Debug, Default)]
pub(super) struct MemoryCount {
    grants: Option<Box<dyn ChangeMemory>>,
    taken_bytes: u64,
    granted_bytes: u64,
}

impl MemoryCount {
    /// Lets somebody grant what is taken from now on, and what was taken so far. Only the first one
    /// counts.
    pub(super) fn set(&mut self, grants: impl FnOnce() -> Box<dyn ChangeMemory>) {
        self.grants.get_or_insert_with(grants);
    }

    /// Takes memory for some changes; an error says that there is none.
    pub(super) fn take_changes(&mut self, changes: u64) -> Result<()> {
        self.take(changes.saturating_mul(CHANGE_BYTES))
    }

    /// The same for a new term.
    pub(super) fn take_term(&mut self, key: &[u8]) -> Result<()> {
        self.take(key.len() as u64 + TERM_BYTES)
    }

    /// The same for anything.
    pub(super) fn take(&mut self, bytes: u64) -> Result<()> {
        self.taken_bytes = self.taken_bytes.saturating_add(bytes);
        let Some(grants) = &mut self.grants else {
            return Ok(());
        };
        if self.taken_bytes <= self.granted_bytes.max(FREE_BYTES) {
            return Ok(());
        }
        let needed = self.taken_bytes - self.granted_bytes;
        let steps = [needed.max(STEP_BYTES), needed];
        let Some(more) = steps.into_iter().find(|&bytes| grants.try_grow(bytes)) else {
            let needed_bytes = self.taken_bytes;
            self.taken_bytes -= bytes;
            return Err(Error::TransactionMemory {
                needed_bytes,
                limit_bytes: grants.limit_bytes(),
            });
        };
        self.granted_bytes += more;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_granted_in_steps_until_there_is_no_more() {
        let mut count = MemoryCount::default();
        count.take_changes(1_000_000).unwrap(); // nobody counts
        let mut count = MemoryCount::default();
        count.set(|| Box::new(FixedMemory::new(3 * STEP_BYTES)));
        count.take_changes(100).unwrap();
        count.take_term(b"key").unwrap();
        assert_eq!(count.granted_bytes, 0);
        count.take_changes(100).unwrap();
        assert_eq!(count.granted_bytes, STEP_BYTES);
        count.take(2 * STEP_BYTES - 100).unwrap();
        let refused = count.take(2 * STEP_BYTES);
        assert!(matches!(
            refused,
            Err(Error::TransactionMemory { limit_bytes, .. }) if limit_bytes == 3 * STEP_BYTES
        ));
    }
}

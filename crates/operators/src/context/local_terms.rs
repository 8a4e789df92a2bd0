//! The terms that a query computes and no dictionary knows.
//!
//! Keys stand one after another in an arena; a hash table of indexes finds them. An index, once
//! given out, stays. Cost: the key's bytes, eight for its end and about nine in the table.

use datafusion_execution::memory_pool::MemoryReservation;
use hashbrown::HashTable;

use crate::error::Result;

/// Memory is reserved in steps of this size, so that the pool is not asked for every term.
const RESERVATION_STEP_BYTES: usize = 1 << 16;
/// What a term costs beside its key: its end, and its share of the hash table at worst.
const OVERHEAD_BYTES: usize = 8 + 18;

/// An interning table of term keys; see the module's documentation.
pub(super) struct LocalTerms {
    arena: Vec<u8>,
    ends: Vec<usize>,
    indexes: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    reservation: MemoryReservation,
    used_bytes: usize,
    reserved_bytes: usize,
}

impl LocalTerms {
    pub(super) fn new(reservation: MemoryReservation) -> Self {
        Self {
            arena: Vec::new(),
            ends: Vec::new(),
            indexes: HashTable::new(),
            hasher: foldhash::fast::FixedState::default(),
            reservation,
            used_bytes: 0,
            reserved_bytes: 0,
        }
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key at an index.
    pub(super) fn key(&self, index: u64) -> Option<&[u8]> {
        let index = usize::try_from(index).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.arena[start..end])
    }

    /// The index of a key that is there.
    pub(super) fn find(&self, key: &[u8]) -> Option<u64> {
        self.indexes
            .find(self.hash(key), |&index| {
                self.key(u64::from(index)) == Some(key)
            })
            .map(|&index| u64::from(index))
    }

    /// The index of a key, which is added if it is not there.
    pub(super) fn insert(&mut self, key: &[u8]) -> Result<u64> {
        // Another thread may have added it since the caller looked.
        if let Some(index) = self.find(key) {
            return Ok(index);
        }
        let Ok(index) = u32::try_from(self.ends.len()) else {
            return Err(crate::error::Error::Unsupported(
                "more than 4,294,967,295 terms computed by one query".to_owned(),
            ));
        };
        self.reserve_term(key.len())?;
        self.arena.extend_from_slice(key);
        self.ends.push(self.arena.len());
        let (arena, ends, hasher) = (&self.arena, &self.ends, &self.hasher);
        self.indexes
            .insert_unique(hash(hasher, key), index, |&index| {
                let index = index as usize;
                let start = index.checked_sub(1).map_or(0, |before| ends[before]);
                hash(hasher, &arena[start..ends[index]])
            });
        Ok(u64::from(index))
    }

    /// Counts bytes that are kept elsewhere for the same query.
    pub(super) fn reserve_bytes(&self, bytes: usize) -> Result<()> {
        Ok(self.reservation.try_grow(bytes)?)
    }

    /// Counts a term before it is stored. The vectors may hold twice what is in them.
    fn reserve_term(&mut self, key_bytes: usize) -> Result<()> {
        let used_bytes = self.used_bytes + 2 * key_bytes + OVERHEAD_BYTES;
        if used_bytes > self.reserved_bytes {
            let step = (used_bytes - self.reserved_bytes).max(RESERVATION_STEP_BYTES);
            self.reservation.try_grow(step)?;
            self.reserved_bytes += step;
        }
        self.used_bytes = used_bytes;
        Ok(())
    }

    fn hash(&self, key: &[u8]) -> u64 {
        hash(&self.hasher, key)
    }
}

fn hash(hasher: &foldhash::fast::FixedState, key: &[u8]) -> u64 {
    std::hash::BuildHasher::hash_one(hasher, key)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    fn table(limit_bytes: usize) -> LocalTerms {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit_bytes));
        LocalTerms::new(MemoryConsumer::new("test").register(&pool))
    }

    #[test]
    fn a_key_keeps_its_index() {
        let mut terms = table(1 << 20);
        for round in 0..2 {
            for number in 0..1000_u64 {
                let index = terms
                    .insert(format!("Shttp://e/{number}").as_bytes())
                    .unwrap();
                assert_eq!(index, number, "round {round}");
            }
        }
        assert_eq!(terms.len(), 1000);
        assert_eq!(terms.key(7), Some(&b"Shttp://e/7"[..]));
        assert_eq!(terms.key(1000), None);
        assert_eq!(terms.find(b"Sabsent"), None);
    }

    #[test]
    fn the_memory_pool_bounds_the_table() {
        let mut terms = table(200_000);
        let error = (0..100_000_u64)
            .find_map(|number| terms.insert(&number.to_be_bytes()).err())
            .unwrap();
        assert!(error.to_string().contains("Resources exhausted"), "{error}");
        assert!(terms.len() > 1000);
    }
}

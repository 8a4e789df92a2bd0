//! Local terms: those that a query computes and no dictionary has.
//!
//! Keys stand one after another in segments, which never move: one growing arena would hold its
//! keys twice each time it grows. A hash table of indexes finds them. An index, once given out,
//! stays. Cost: the key's bytes, twelve for its place and about nine in the table.

use datafusion_execution::memory_pool::MemoryReservation;
use hashbrown::HashTable;

use crate::error::Result;

/// Memory is reserved in steps of this size, so that the pool is not asked for every term.
const RESERVATION_STEP_BYTES: usize = 1 << 16;
/// What a term costs beside its key: its place, and its share of the hash table, both at worst.
const OVERHEAD_BYTES: usize = 2 * size_of::<KeyPlace>() + 18;
/// Bytes of a segment of keys; a longer key has one of its own.
const SEGMENT_BYTES: usize = 1 << 16;

/// Where a key stands.
#[derive(Clone, Copy)]
struct KeyPlace {
    segment: u32,
    start: u32,
    bytes: u32,
}

/// The key at a place of the segments.
fn key_at(segments: &[Vec<u8>], place: KeyPlace) -> &[u8] {
    let start = place.start as usize;
    &segments[place.segment as usize][start..start + place.bytes as usize]
}

/// An interning table of term keys; see the module's documentation.
pub(super) struct LocalTerms {
    segments: Vec<Vec<u8>>,
    places: Vec<KeyPlace>,
    indexes: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    reservation: MemoryReservation,
    used_bytes: usize,
    reserved_bytes: usize,
}

impl LocalTerms {
    pub(super) fn new(reservation: MemoryReservation) -> Self {
        Self {
            segments: Vec::new(),
            places: Vec::new(),
            indexes: HashTable::new(),
            hasher: foldhash::fast::FixedState::default(),
            reservation,
            used_bytes: 0,
            reserved_bytes: 0,
        }
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The key at an index.
    pub(super) fn key(&self, index: u64) -> Option<&[u8]> {
        let index = usize::try_from(index).ok()?;
        let place = *self.places.get(index)?;
        Some(key_at(&self.segments, place))
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
        let Ok(index) = u32::try_from(self.places.len()) else {
            return Err(crate::error::Error::Unsupported(
                "more than 4,294,967,295 terms computed by one query".to_owned(),
            ));
        };
        let Ok(bytes) = u32::try_from(key.len()) else {
            return Err(crate::error::Error::Unsupported(
                "a computed term of more than 4,294,967,295 bytes".to_owned(),
            ));
        };
        self.reserve_term(key.len())?;
        let place = self.append(key, bytes);
        self.places.push(place);
        let (segments, places, hasher) = (&self.segments, &self.places, &self.hasher);
        self.indexes
            .insert_unique(hash(hasher, key), index, |&index| {
                hash(hasher, key_at(segments, places[index as usize]))
            });
        Ok(u64::from(index))
    }

    /// Puts a key to the end of the last segment, or begins the next one.
    fn append(&mut self, key: &[u8], bytes: u32) -> KeyPlace {
        let fits = |segment: &Vec<u8>| segment.len() + key.len() <= segment.capacity();
        if !self.segments.last().is_some_and(fits) {
            let capacity = match key.len() > SEGMENT_BYTES / 8 {
                true => key.len(),
                // The first terms of a query are often its only ones.
                false if self.segments.is_empty() => SEGMENT_BYTES / 16,
                false => SEGMENT_BYTES,
            };
            self.segments
                .push(Vec::with_capacity(capacity.max(key.len())));
        }
        let at = self.segments.len() - 1;
        let segment = &mut self.segments[at];
        let start = segment.len();
        segment.extend_from_slice(key);
        KeyPlace {
            segment: at as u32,
            start: start as u32,
            bytes,
        }
    }

    /// Counts bytes that are kept elsewhere for the same query.
    pub(super) fn reserve_bytes(&self, bytes: usize) -> Result<()> {
        Ok(self.reservation.try_grow(bytes)?)
    }

    /// Counts a term before it is stored; an eighth of a segment may stay empty.
    fn reserve_term(&mut self, key_bytes: usize) -> Result<()> {
        let used_bytes = self.used_bytes + key_bytes + key_bytes / 8 + OVERHEAD_BYTES;
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

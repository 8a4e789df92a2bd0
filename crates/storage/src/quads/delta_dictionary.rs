//! The delta dictionary: terms from updates that the base dictionary lacks.
//!
//! Append-only: a key gets the next index, and all snapshots over one base share the dictionary.
//! Each snapshot knows how many entries it may see, so an entry of a later commit is never found
//! through an older snapshot. Keys lie one after the other in chunks that never move; a hash table
//! of eight bytes an entry leads from key to index.
//!
//! Cost: a look-up either way is one hash or one array access, some 100 ns; in memory the key, 12
//! bytes for its place and 8 to 16 in the table. What is not done here: telling whether the base
//! has the term.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use parking_lot::RwLock;

/// Keys up to this length share chunks; a longer one has a chunk of its own.
const CHUNK_BYTES: usize = 64 * 1024;

/// The terms of a database's delta, by index and by key. Shared between threads.
#[derive(Debug, Default)]
pub struct DeltaDictionary {
    entries: RwLock<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// Full chunks never change, so they can be lent out while others append.
    chunks: Vec<Arc<[u8]>>,
    /// What will be the next chunk.
    open_chunk: Vec<u8>,
    places: Vec<KeyPlace>,
    table: HashTable<Slot>,
    key_bytes: u64,
}

/// Where a key lies.
#[derive(Debug, Clone, Copy)]
struct KeyPlace {
    chunk: u32,
    offset: u32,
    bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    index: u32,
}

impl DeltaDictionary {
    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.entries.read().places.len() as u64
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all keys.
    pub fn key_bytes(&self) -> u64 {
        self.entries.read().key_bytes
    }

    /// The index of a key among the first `limit` entries.
    pub fn find(&self, key: &[u8], limit: u64) -> Option<u64> {
        let hash = hash_of(key);
        self.entries.read().find(key, hash).filter(|&at| at < limit)
    }

    /// Writes the key of an index into `out`; returns whether there is such an entry.
    pub fn key(&self, index: u64, out: &mut Vec<u8>) -> bool {
        out.clear();
        let entries = self.entries.read();
        let key = usize::try_from(index).ok().and_then(|at| entries.key(at));
        key.map(|key| out.extend_from_slice(key)).is_some()
    }

    /// Calls `found` with the keys from index `from` up to, not including, `to`, in order.
    ///
    /// Holds the lock for reading meanwhile, so `found` must not come back to this dictionary.
    pub fn for_each(&self, from: u64, to: u64, mut found: impl FnMut(&[u8])) {
        let entries = self.entries.read();
        for index in from..to.min(entries.places.len() as u64) {
            if let Some(key) = entries.key(index as usize) {
                found(key);
            }
        }
    }

    /// The index of a key, which is entered if it is not there yet. `None` when all 2^32 indexes
    /// are given out.
    pub fn insert(&self, key: &[u8]) -> Option<u64> {
        let hash = hash_of(key);
        if let Some(index) = self.entries.read().find(key, hash) {
            return Some(index);
        }
        let mut entries = self.entries.write();
        // Someone else may have entered it between the two locks.
        entries
            .find(key, hash)
            .or_else(|| entries.append(key, hash))
    }

    /// Forgets all entries from index `length` on: those of a transaction that was rolled back.
    pub(crate) fn truncate(&self, length: u64) {
        let mut entries = self.entries.write();
        let entries = &mut *entries;
        while entries.places.len() as u64 > length {
            let index = entries.places.len() - 1;
            let Some(hash) = entries.key(index).map(hash_of) else {
                break;
            };
            if let Ok(entry) = entries
                .table
                .find_entry(spread(hash), |slot| slot.index as usize == index)
            {
                entry.remove();
            }
            entries.remove_last_key();
        }
    }
}

impl Entries {
    fn find(&self, key: &[u8], hash: u32) -> Option<u64> {
        let is_it = |slot: &Slot| slot.hash == hash && self.key(slot.index as usize) == Some(key);
        let slot = self.table.find(spread(hash), is_it)?;
        Some(u64::from(slot.index))
    }

    fn key(&self, index: usize) -> Option<&[u8]> {
        let place = self.places.get(index)?;
        let chunk = match self.chunks.get(place.chunk as usize) {
            Some(chunk) => chunk,
            None => self.open_chunk.as_slice(),
        };
        chunk
            .get(place.offset as usize..)?
            .get(..place.bytes as usize)
    }

    fn append(&mut self, key: &[u8], hash: u32) -> Option<u64> {
        let index = u32::try_from(self.places.len()).ok()?;
        let bytes = u32::try_from(key.len()).ok()?;
        if self.open_chunk.len() + key.len() > CHUNK_BYTES && !self.open_chunk.is_empty() {
            let full = std::mem::take(&mut self.open_chunk);
            self.chunks.push(full.into());
        }
        self.places.push(KeyPlace {
            chunk: u32::try_from(self.chunks.len()).ok()?,
            offset: u32::try_from(self.open_chunk.len()).ok()?,
            bytes,
        });
        if self.open_chunk.capacity() == 0 {
            self.open_chunk.reserve(CHUNK_BYTES.max(key.len()));
        }
        self.open_chunk.extend_from_slice(key);
        self.key_bytes += u64::from(bytes);
        let slot = Slot { hash, index };
        self.table
            .insert_unique(spread(hash), slot, |slot| spread(slot.hash));
        Some(u64::from(index))
    }

    fn remove_last_key(&mut self) {
        let Some(place) = self.places.pop() else {
            return;
        };
        self.key_bytes -= u64::from(place.bytes);
        if (place.chunk as usize) < self.chunks.len() {
            // The open chunk holds nothing any more: the one before is open again.
            self.open_chunk = self
                .chunks
                .pop()
                .map_or_else(Vec::new, |chunk| chunk.to_vec());
        }
        self.open_chunk.truncate(place.offset as usize);
    }
}

fn hash_of(key: &[u8]) -> u32 {
    // The seed may be known to attackers, but whoever can choose that many terms may write anyway.
    FixedState::default().hash_one(key) as u32
}

/// The table wants the high bits to be random, too.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(Vec<u8>),
        Truncate(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = prop_oneof![
            8 => proptest::collection::vec(0u8..4, 0..5),
            1 => (0usize..3 * CHUNK_BYTES).prop_map(|length| vec![length as u8; length]),
        ];
        prop_oneof![
            9 => key.prop_map(Step::Insert),
            1 => (0usize..60).prop_map(Step::Truncate),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_list_of_distinct_keys(steps in proptest::collection::vec(step(), 0..80)) {
            let dictionary = DeltaDictionary::default();
            let mut keys: Vec<Vec<u8>> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key) => {
                        let known = keys.iter().position(|other| *other == key);
                        let expected = known.unwrap_or(keys.len()) as u64;
                        prop_assert_eq!(dictionary.insert(&key), Some(expected));
                        if known.is_none() {
                            keys.push(key);
                        }
                    }
                    Step::Truncate(length) => {
                        keys.truncate(length);
                        dictionary.truncate(length as u64);
                    }
                }
                prop_assert_eq!(dictionary.len(), keys.len() as u64);
            }
            let mut found = Vec::new();
            for (index, key) in keys.iter().enumerate() {
                prop_assert!(dictionary.key(index as u64, &mut found));
                prop_assert_eq!(&found, key);
                prop_assert_eq!(dictionary.find(key, index as u64 + 1), Some(index as u64));
                prop_assert_eq!(dictionary.find(key, index as u64), None);
            }
            prop_assert!(!dictionary.key(keys.len() as u64, &mut found));
            let mut listed = HashMap::new();
            dictionary.for_each(0, u64::MAX, |key| {
                listed.insert(key.to_vec(), listed.len());
            });
            prop_assert_eq!(listed.len(), keys.len());
        }
    }
}

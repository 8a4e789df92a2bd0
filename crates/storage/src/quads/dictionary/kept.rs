//! A cache of recently read keys of a dictionary in a remote store.
//!
//! A page has some hundred keys, and an answer wants a few of each of many pages: what was read of
//! the pages takes up a twentieth of what the pages do. So where every page that is not there is a
//! request to a store, the keys are kept, in memory; of files on the disk the operating system
//! keeps the pages, and nothing is kept here.
//!
//! Shards with two generations each: what is asked for is in the young one, or comes back into it.
//! When that is full it becomes the old one, and what was in the old one and was not asked for
//! meanwhile is gone.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// Parts with a lock of their own.
const SHARDS: usize = 16;
/// As a part of the file of the dictionary, the most memory that is taken, ...
const FILE_PARTS: usize = 16;
/// ... and in any case no less than this, and no more.
const BYTES_MIN: usize = 256 << 10;
const BYTES_MAX: usize = 64 << 20;
/// Longer keys are not kept.
const KEY_BYTES_MAX: usize = 4 << 10;
/// What a key takes beside its bytes: a place in a table, and what the allocator adds.
const ENTRY_BYTES: usize = 48;

type Keys = HashMap<u64, Box<[u8]>, FixedState>;

/// The keys, by rank. They never go stale: a dictionary does not change.
pub(super) struct KeptKeys {
    shards: [Mutex<Shard>; SHARDS],
    /// What a generation of a shard may take.
    generation_bytes: usize,
}

#[derive(Default)]
struct Shard {
    young: Keys,
    young_bytes: usize,
    old: Keys,
}

impl KeptKeys {
    /// For a dictionary whose file is so long.
    pub(super) fn of_file(bytes: usize) -> Self {
        let memory = (bytes / FILE_PARTS).clamp(BYTES_MIN, BYTES_MAX);
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            generation_bytes: memory / SHARDS / 2,
        }
    }

    /// Appends a key to `out`, if it is kept; whether it is.
    pub(super) fn append(&self, rank: u64, out: &mut Vec<u8>) -> bool {
        let mut shard = self.shard(rank).lock();
        if let Some(key) = shard.young.get(&rank) {
            out.extend_from_slice(key);
            return true;
        }
        let Some(key) = shard.old.remove(&rank) else {
            return false;
        };
        out.extend_from_slice(&key);
        shard.put(rank, key, self.generation_bytes);
        true
    }

    /// Keeps a key.
    pub(super) fn keep(&self, rank: u64, key: &[u8]) {
        if key.len() <= KEY_BYTES_MAX {
            let mut shard = self.shard(rank).lock();
            shard.put(rank, key.into(), self.generation_bytes);
        }
    }

    fn shard(&self, rank: u64) -> &Mutex<Shard> {
        &self.shards[rank as usize % SHARDS]
    }
}

impl Shard {
    fn put(&mut self, rank: u64, key: Box<[u8]>, generation_bytes: usize) {
        let bytes = key.len() + ENTRY_BYTES;
        if self.young_bytes + bytes > generation_bytes {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if bytes <= generation_bytes && self.young.insert(rank, key).is_none() {
            self.young_bytes += bytes;
        }
    }
}

impl fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_asked_for_stay_and_others_go_within_the_memory() {
        let kept = KeptKeys::of_file(FILE_PARTS * SHARDS * 20_000);
        let key = |rank: u64| format!("Ihttp://example.org/{rank}").into_bytes();
        let has = |rank: u64| {
            let mut out = b"before".to_vec();
            let has = kept.append(rank, &mut out);
            assert!(!has || out == [&b"before"[..], &key(rank)].concat());
            has
        };
        assert!(!has(7));
        kept.keep(7, &key(7));
        for rank in 100..100_000 {
            kept.keep(rank, &key(rank));
            assert!(has(rank) && has(7), "{rank}");
        }
        let entry = key(99_999).len() + ENTRY_BYTES;
        let left = (100..100_000).filter(|&rank| has(rank)).count();
        assert!(left * entry <= SHARDS * 20_000, "{left}");
        assert!(left * entry > SHARDS * 20_000 / 4, "{left}");
    }

    #[test]
    fn long_keys_are_not_kept() {
        let kept = KeptKeys::of_file(64 << 20);
        let long = vec![b'S'; KEY_BYTES_MAX + 1];
        kept.keep(1, &long);
        assert!(!kept.append(1, &mut Vec::new()));
        kept.keep(1, &long[1..]);
        assert!(kept.append(1, &mut Vec::new()));
    }
}

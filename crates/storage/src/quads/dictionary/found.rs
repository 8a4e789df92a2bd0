//! A cache of recently found keys and their ranks.
//!
//! Every query names predicates and classes of its data again, and a search costs some ten thousand
//! instructions: a twentieth of a small query. A key has one place by its hash and drives out what
//! stood there. What is not in the dictionary is not kept, so nothing that clients make up fills
//! the places.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// Number of places; with the longest keys they take 150 KiB.
const PLACES: usize = 1024;
/// Longer keys are not kept.
const KEY_BYTES_MAX: usize = 120;

/// The cache of one dictionary, shared between threads. Its contents never go stale: a dictionary
/// does not change.
#[derive(Debug)]
pub(super) struct FoundKeys {
    places: Box<[Mutex<Option<FoundKey>>]>,
}

#[derive(Debug)]
struct FoundKey {
    key: Box<[u8]>,
    rank: u64,
}

impl Default for FoundKeys {
    fn default() -> Self {
        Self {
            places: (0..PLACES).map(|_| Mutex::new(None)).collect(),
        }
    }
}

impl FoundKeys {
    /// The rank of a key, if it was found before and not driven out.
    pub(super) fn rank(&self, key: &[u8]) -> Option<u64> {
        let place = self.place(key)?.lock();
        let found = place.as_ref().filter(|found| &*found.key == key)?;
        Some(found.rank)
    }

    /// Keeps the rank of a key.
    pub(super) fn keep(&self, key: &[u8], rank: u64) {
        if let Some(place) = self.place(key) {
            let key = key.into();
            *place.lock() = Some(FoundKey { key, rank });
        }
    }

    /// The place of a key that is short enough.
    fn place(&self, key: &[u8]) -> Option<&Mutex<Option<FoundKey>>> {
        if key.len() > KEY_BYTES_MAX {
            return None;
        }
        let hash = FixedState::default().hash_one(key) as usize;
        self.places.get(hash % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_until_another_takes_its_place() {
        let keys = FoundKeys::default();
        assert_eq!(keys.rank(b"Ihttp://example.org/a"), None);
        let key = |n: u64| format!("Ihttp://example.org/{n}");
        for n in 0..10 * PLACES as u64 {
            keys.keep(key(n).as_bytes(), n);
            assert_eq!(keys.rank(key(n).as_bytes()), Some(n));
        }
        let known = (0..10 * PLACES as u64).filter_map(|n| {
            let rank = keys.rank(key(n).as_bytes())?;
            assert_eq!(rank, n);
            Some(rank)
        });
        assert!((PLACES / 2..=PLACES).contains(&known.count()));
    }

    #[test]
    fn long_keys_are_not_kept() {
        let keys = FoundKeys::default();
        let long = vec![b'I'; KEY_BYTES_MAX + 1];
        keys.keep(&long, 1);
        assert_eq!(keys.rank(&long), None);
        keys.keep(&long[1..], 2);
        assert_eq!(keys.rank(&long[1..]), Some(2));
    }
}

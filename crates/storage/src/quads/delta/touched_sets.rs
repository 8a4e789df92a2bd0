//! Sets of keys that a delta touches, built on first use.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;

/// A set of keys with a filter before it: most keys that are asked for are in no set, and one bit
/// in the first cache tells that of all but one in sixteen.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// As many bits as `shift` leaves of a hash.
    filter: Box<[u64]>,
    shift: u32,
    keys: HashSet<u64>,
}

impl KeySet {
    const BITS_PER_KEY: usize = 16;

    pub(crate) fn new(keys: HashSet<u64>) -> Self {
        let bits = (keys.len() * Self::BITS_PER_KEY)
            .next_power_of_two()
            .max(64);
        let mut set = Self {
            filter: vec![0; bits / 64].into(),
            shift: u64::BITS - bits.trailing_zeros(),
            keys,
        };
        for &key in &set.keys {
            let bit = hash(key) >> set.shift;
            set.filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        set
    }

    #[inline]
    pub(crate) fn contains(&self, key: u64) -> bool {
        let bit = hash(key) >> self.shift;
        self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 1 && self.keys.contains(&key)
    }
}

/// Fibonacci hashing: the upper bits of the product depend on all bits of the key.
#[inline]
fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The sets of touched keys that were made of one delta, by the predicate.
#[derive(Debug, Default)]
pub(crate) struct TouchedSets(Mutex<HashMap<u64, Arc<KeySet>>>);

impl TouchedSets {
    pub(crate) fn get(&self, predicate: u64) -> Option<Arc<KeySet>> {
        self.0.lock().get(&predicate).cloned()
    }

    /// Keeps a set, unless there is one by now.
    pub(crate) fn keep(&self, predicate: u64, set: KeySet) -> Arc<KeySet> {
        let mut sets = self.0.lock();
        Arc::clone(sets.entry(predicate).or_insert_with(|| Arc::new(set)))
    }
}

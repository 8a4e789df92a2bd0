//! A string sort for keys with long common prefixes, such as IRIs.
//!
//! Comparing such keys one with another reads the shared beginning over and over, each time with
//! a cache miss. Here every round skips what all keys of a group share, caches the next seven
//! bytes of each key as a number, sorts by the numbers, and goes on within groups of equal ones.
//! `sort_unstable_by` on the keys themselves is the oracle in the test.

use crate::ingest::arena::{Arena, KeyRef};

/// Groups up to this size are sorted by plain comparison.
const SMALL_GROUP: usize = 12;

/// Bytes of the key that fit into the cached number beside the length.
const CACHED_BYTES: usize = 7;

/// The numbers of `keys` in the order of the keys' bytes. All keys must be distinct.
pub(crate) fn sorted_order(arena: &Arena, keys: &[KeyRef]) -> Vec<u32> {
    let key = |index: u32| arena.get(keys[index as usize]);
    let mut items: Vec<(u64, u32)> = (0..keys.len() as u32).map(|index| (0, index)).collect();
    // Groups still to sort: their range, and how many leading bytes are known to be equal.
    let mut groups = vec![(0, items.len(), 0)];
    while let Some((start, end, known_equal)) = groups.pop() {
        let group = &mut items[start..end];
        if group.len() <= SMALL_GROUP {
            group.sort_unstable_by(|a, b| key(a.1)[known_equal..].cmp(&key(b.1)[known_equal..]));
            continue;
        }
        let depth =
            known_equal + shared_prefix(group.iter().map(|item| &key(item.1)[known_equal..]));
        for item in group.iter_mut() {
            item.0 = cached(&key(item.1)[depth..]);
        }
        group.sort_unstable();
        let mut from = 0;
        for run in group.chunk_by(|a, b| a.0 == b.0) {
            if run.len() > 1 {
                groups.push((start + from, start + from + run.len(), depth + CACHED_BYTES));
            }
            from += run.len();
        }
    }
    items.into_iter().map(|(_, index)| index).collect()
}

/// The first seven bytes, then how many bytes there are, at most eight: of two keys that agree
/// in the (zero-padded) bytes, the shorter is the smaller. Equal numbers mean that both go on.
fn cached(rest: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = rest.len().min(CACHED_BYTES);
    bytes[..length].copy_from_slice(&rest[..length]);
    bytes[CACHED_BYTES] = rest.len().min(CACHED_BYTES + 1) as u8;
    u64::from_be_bytes(bytes)
}

fn shared_prefix<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> usize {
    let Some(first) = keys.next() else {
        return 0;
    };
    let mut shared = first.len();
    for key in keys {
        let limit = shared.min(key.len());
        shared = first[..limit]
            .iter()
            .zip(&key[..limit])
            .position(|(a, b)| a != b)
            .unwrap_or(limit);
        if shared == 0 {
            break;
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_bytes(
            keys in proptest::collection::btree_set("(|a|aaaaaaaa|Ihttp://x/)[\0a-b]{0,20}", 0..300)
        ) {
            // From a set, shuffled by length, so that the input is not sorted already.
            let mut keys: Vec<String> = keys.into_iter().collect();
            keys.sort_by_key(|key| (key.len() % 3, key.bytes().rev().collect::<Vec<_>>()));
            let mut arena = Arena::default();
            let refs: Vec<KeyRef> = keys.iter().map(|key| arena.push(key.as_bytes())).collect();
            let sorted: Vec<&[u8]> =
                sorted_order(&arena, &refs).into_iter().map(|n| arena.get(refs[n as usize])).collect();
            let mut expected: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }
}

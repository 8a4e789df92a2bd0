//! The chunk directory of a delta, in groups that successive versions share.
//!
//! A new root takes up the groups in which nothing changed as they are. With one list of chunks
//! each commit would count up, and the end of each snapshot count down, the references of all
//! chunks, which lie all over the memory: of a delta with some hundred thousand entries that took
//! three quarters of what applying a small update took.
//!
//! ```text
//! groups   | 8 to 39 slots | 8 to 39 slots | ...   each shared by all roots in which it is the same
//! ends       number of the slot behind each group
//! open       slots that are not in a group yet
//! ```
//!
//! Groups have different lengths, for what stands behind a chunk that is cut in two must not move
//! to another group.

use std::ops::Range;
use std::sync::Arc;

use super::Chunk;

/// Slots of a group that is cut off from a longer row of them.
const GROUP_SLOTS: usize = 32;
/// A smaller group takes up the slots of the one behind it. So many are kept open when a group is
/// cut off: with fewer, one more slot in a group would push slots through all groups behind it.
const GROUP_SLOTS_MIN: usize = 8;

/// Where a chunk is.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    Memory(Arc<Chunk>),
    /// In the file, under this number.
    File {
        number: u32,
        first_position: u64,
    },
}

impl Slot {
    /// Whether both are one chunk of the same delta or of two that share it.
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Memory(one), Self::Memory(other)) => Arc::ptr_eq(one, other),
            (Self::File { number: one, .. }, Self::File { number: other, .. }) => one == other,
            (Self::Memory(_), Self::File { .. }) | (Self::File { .. }, Self::Memory(_)) => false,
        }
    }
}

/// The slots of a root in the order of its chunks.
#[derive(Debug, Default)]
pub(super) struct Slots {
    groups: Vec<Arc<[Slot]>>,
    ends: Vec<usize>,
    open: Vec<Slot>,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.grouped() + self.open.len()
    }

    /// The slot of a chunk; a binary search in the groups.
    pub(super) fn get(&self, number: usize) -> Option<&Slot> {
        let Some(behind) = number.checked_sub(self.grouped()) else {
            let group = self.group_of(number);
            return self.groups[group].get(number - self.start_of(group));
        };
        self.open.get(behind)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.groups
            .iter()
            .flat_map(|group| group.iter())
            .chain(&self.open)
    }

    /// The numbers of a group's slots, if one begins with this number.
    pub(super) fn group_at(&self, number: usize) -> Option<Range<usize>> {
        if number >= self.grouped() {
            return None;
        }
        let group = self.group_of(number);
        let slots = self.start_of(group)..self.ends[group];
        (slots.start == number).then_some(slots)
    }

    /// Appends a slot.
    pub(super) fn push(&mut self, slot: Slot) {
        self.open.push(slot);
        if self.open.len() >= GROUP_SLOTS + GROUP_SLOTS_MIN {
            let group = self.open.drain(..GROUP_SLOTS).collect();
            self.append(group);
        }
    }

    /// Appends the group of another root that begins with this number. Unless what stands before it
    /// is too little for a group of its own, both share it.
    pub(super) fn push_group(&mut self, other: &Self, number: usize) {
        let group = &other.groups[other.group_of(number)];
        if (1..GROUP_SLOTS_MIN).contains(&self.open.len()) {
            group.iter().for_each(|slot| self.push(slot.clone()));
            return;
        }
        self.close();
        self.append(Arc::clone(group));
    }

    /// Makes a group of what is in none yet, so that later roots can share it.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            let group = self.open.drain(..).collect();
            self.append(group);
        }
    }

    fn append(&mut self, group: Arc<[Slot]>) {
        self.ends.push(self.grouped() + group.len());
        self.groups.push(group);
    }

    /// Slots in groups.
    fn grouped(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn group_of(&self, number: usize) -> usize {
        self.ends.partition_point(|end| *end <= number)
    }

    fn start_of(&self, group: usize) -> usize {
        group.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: usize) -> Slot {
        Slot::File {
            number: number as u32,
            first_position: 0,
        }
    }

    fn numbers(slots: &Slots) -> Vec<u32> {
        let number = |slot: &Slot| match slot {
            Slot::File { number, .. } => *number,
            Slot::Memory(_) => u32::MAX,
        };
        let listed: Vec<u32> = slots.iter().map(number).collect();
        let got = (0..slots.len()).map(|at| slots.get(at).map_or(u32::MAX, number));
        assert_eq!(listed, got.collect::<Vec<_>>());
        assert!(slots.get(slots.len()).is_none());
        listed
    }

    fn filled(count: usize) -> Slots {
        let mut slots = Slots::default();
        (0..count).for_each(|number| slots.push(slot(number)));
        slots.close();
        slots
    }

    #[test]
    fn a_root_shares_the_groups_that_it_takes_up() {
        let old = filled(100);
        let mut new = Slots::default();
        let mut number = 0;
        while number < old.len() {
            // One slot of the second group changes.
            let group = old.group_at(number).filter(|group| !group.contains(&40));
            if let Some(group) = group {
                new.push_group(&old, number);
                number = group.end;
            } else {
                new.push(slot(number));
                number += 1;
            }
        }
        new.close();
        assert_eq!(numbers(&new), (0..100).collect::<Vec<_>>());
        let shared = |group: &&Arc<[Slot]>| old.groups.iter().any(|old| Arc::ptr_eq(old, group));
        assert_eq!(
            new.groups.iter().filter(shared).count(),
            old.groups.len() - 1
        );
    }

    #[test]
    fn a_chunk_that_is_cut_changes_few_groups() {
        let mut slots = filled(1_000);
        for round in 0..300 {
            let cut = round * 97 % slots.len();
            let mut new = Slots::default();
            let mut number = 0;
            while number < slots.len() {
                let group = slots.group_at(number).filter(|group| !group.contains(&cut));
                if let Some(group) = group {
                    new.push_group(&slots, number);
                    number = group.end;
                } else {
                    new.push(slot(number));
                    if number == cut {
                        new.push(slot(number));
                    }
                    number += 1;
                }
            }
            new.close();
            assert_eq!(new.len(), slots.len() + 1);
            let is_shared =
                |group: &&Arc<[Slot]>| slots.groups.iter().any(|old| Arc::ptr_eq(old, group));
            let copied = new.groups.len() - new.groups.iter().filter(is_shared).count();
            assert!(copied <= 3, "{copied} groups are new in round {round}");
            slots = new;
        }
    }

    #[test]
    fn small_groups_grow_and_no_group_is_large() {
        let mut slots = filled(50);
        for round in 0..200 {
            // A new slot before each group, as if each first chunk were cut.
            let mut new = Slots::default();
            let mut number = 0;
            while let Some(group) = slots.group_at(number) {
                if round % 3 == 0 {
                    new.push(slot(1_000));
                }
                new.push_group(&slots, number);
                number = group.end;
            }
            new.close();
            assert_eq!(number, slots.len());
            let lengths = new.groups.iter().map(|group| group.len());
            assert!(
                lengths
                    .clone()
                    .all(|length| length < GROUP_SLOTS + GROUP_SLOTS_MIN)
            );
            let small = lengths.filter(|length| *length < GROUP_SLOTS_MIN).count();
            assert!(small <= 1, "{small} small groups in round {round}");
            slots = new;
        }
        assert_eq!(
            numbers(&slots)
                .iter()
                .filter(|number| **number < 1_000)
                .count(),
            50
        );
    }
}

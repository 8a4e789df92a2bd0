//! Dictionaries of text and blob columns: built group by group, and read back.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::super::types::ColumnType;
use super::codes::GroupCodes;
use super::vector::{read_list, take_u32, write_list};
use super::views::CheckedValues;
use super::{DICTIONARY_BYTES_MAX, DICTIONARY_ENTRIES_MAX, Decoded, GROUP_ROWS};

/// So many new values any group may bring.
const FEW_VALUES: usize = 16;
/// Else a group has so many rows for each new value.
const REPETITIONS_MIN: usize = 4;
/// Distinct values of a group, for each of which the reader keeps a code.
const GROUP_VALUES_MAX: usize = GROUP_ROWS / REPETITIONS_MIN;

/// The dictionary of a column in a file being written. Values have provisional numbers in the order
/// in which they came.
#[derive(Debug, Default)]
pub(super) struct DictionaryBuilder {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    /// Of each group with codes its distinct values, ascending by value.
    groups: Vec<Vec<u32>>,
    /// Per value its place in the group that is added.
    places: Vec<u32>,
    is_given_up: bool,
}

/// What the writer puts into the file.
#[derive(Debug)]
pub(super) struct FinishedDictionary {
    pub(super) count: u32,
    pub(super) entries: Vec<u8>,
    pub(super) groups: u32,
    pub(super) codes: Vec<u8>,
    /// Per provisional number the code.
    pub(super) ranks: Vec<u32>,
}

const NOT_IN_GROUP: u32 = u32::MAX;

impl DictionaryBuilder {
    /// Number of groups with codes.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The distinct values of the group that was added last.
    pub(super) fn last_group(&self) -> &[u32] {
        self.groups.last().map_or(&[], |group| group)
    }

    /// A value by its provisional number.
    pub(super) fn value(&self, number: u32) -> &[u8] {
        value_of(&self.bytes, &self.ends, number)
    }

    /// The codes of a group's rows, if it has few distinct values, for which there is room.
    /// `bytes_left` is what all dictionaries of the file may still take.
    pub(super) fn add_group<'a>(
        &mut self,
        values: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
        bytes_left: &mut usize,
    ) -> Option<Vec<u64>> {
        if self.is_given_up {
            return None;
        }
        let (entries_before, bytes_before) = (self.ends.len(), self.bytes.len());
        let mut group = Vec::new();
        let codes = self.number(values, &mut group, bytes_before + *bytes_left);
        for &number in &group {
            self.places[number as usize] = NOT_IN_GROUP;
        }
        let Some(mut codes) = codes else {
            self.give_up(entries_before, bytes_before);
            return None;
        };
        *bytes_left -= self.bytes.len() - bytes_before;
        let mut order: Vec<u32> = (0..group.len() as u32).collect();
        order.sort_unstable_by_key(|&place| self.value(group[place as usize]));
        let mut ranks = vec![0; group.len()];
        for (rank, &place) in order.iter().enumerate() {
            ranks[place as usize] = rank as u64;
        }
        for code in &mut codes {
            // A group of NULLs alone has no values.
            *code = ranks.get(*code as usize).copied().unwrap_or(0);
        }
        let ascending = order.iter().map(|&place| group[place as usize]);
        self.groups.push(ascending.collect());
        Some(codes)
    }

    /// Numbers the distinct values of a group in the order in which they come. NULL has the number
    /// of the row before.
    fn number<'a>(
        &mut self,
        values: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
        group: &mut Vec<u32>,
        bytes_max: usize,
    ) -> Option<Vec<u64>> {
        let entries_max = self.ends.len() + (values.len() / REPETITIONS_MIN).max(FEW_VALUES);
        let bytes_max = bytes_max.min(DICTIONARY_BYTES_MAX);
        let mut codes = Vec::with_capacity(values.len());
        let mut last = 0;
        for value in values {
            if let Some(value) = value {
                let number = self.find_or_insert(value, entries_max, bytes_max)?;
                let place = &mut self.places[number as usize];
                if *place == NOT_IN_GROUP {
                    if group.len() == GROUP_VALUES_MAX {
                        return None;
                    }
                    *place = group.len() as u32;
                    group.push(number);
                }
                last = u64::from(*place);
            }
            codes.push(last);
        }
        Some(codes)
    }

    fn find_or_insert(
        &mut self,
        value: &[u8],
        entries_max: usize,
        bytes_max: usize,
    ) -> Option<u32> {
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        let hash = hasher.hash_one(value);
        let is_value = |&number: &u32| value_of(bytes, ends, number) == value;
        if let Some(&number) = self.table.find(hash, is_value) {
            return Some(number);
        }
        let number = ends.len();
        if number >= entries_max.min(DICTIONARY_ENTRIES_MAX)
            || bytes.len() + value.len() > bytes_max
        {
            return None;
        }
        let rehash = |&number: &u32| hasher.hash_one(value_of(bytes, ends, number));
        self.table.insert_unique(hash, number as u32, rehash);
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        self.places.push(NOT_IN_GROUP);
        Some(number as u32)
    }

    /// No further group gets codes; what this one added is taken out.
    fn give_up(&mut self, entries: usize, bytes: usize) {
        self.is_given_up = true;
        self.ends.truncate(entries);
        self.bytes.truncate(bytes);
        self.table = HashTable::new();
        self.places = Vec::new();
    }

    /// The dictionary in its order, if any group has codes.
    pub(super) fn finish(self) -> Option<FinishedDictionary> {
        if self.groups.is_empty() {
            return None;
        }
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by_key(|&number| self.value(number));
        let mut ranks = vec![0; order.len()];
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        for (rank, &number) in order.iter().enumerate() {
            ranks[number as usize] = rank as u32;
            bytes.extend_from_slice(self.value(number));
            ends.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        ends.append(&mut bytes);
        let mut codes = Vec::new();
        for group in &self.groups {
            let group: Vec<u64> = group
                .iter()
                .map(|&number| u64::from(ranks[number as usize]))
                .collect();
            codes.extend_from_slice(&(group.len() as u32).to_le_bytes());
            write_list(&group, &mut codes);
        }
        Some(FinishedDictionary {
            count: order.len() as u32,
            entries: ends,
            groups: self.groups.len() as u32,
            codes,
            ranks,
        })
    }
}

fn value_of<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[number]]
}

/// The distinct values of a column in ascending order; the position of one is its code.
#[derive(Debug)]
pub struct TextDictionary {
    pub(super) values: CheckedValues,
    pub(super) groups: GroupCodes,
    pub(super) is_whole: bool,
}

impl TextDictionary {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none: all rows are NULL.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a code.
    pub fn value(&self, code: u32) -> Option<&[u8]> {
        self.values.get(code as usize)
    }

    /// The code of a value, or else the code that it would have, were it put in.
    pub fn find(&self, value: &[u8]) -> Result<u32, u32> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.values.get(middle) {
                Some(found) if found < value => from = middle + 1,
                _ => to = middle,
            }
        }
        match self.values.get(from) == Some(value) {
            true => Ok(from as u32),
            false => Err(from as u32),
        }
    }

    /// All values as an array, by code.
    pub fn array(&self) -> arrow::array::ArrayRef {
        self.values.array()
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.values.memory_bytes() + self.groups.memory_bytes()
    }

    pub(super) fn read(
        column_type: ColumnType,
        count: usize,
        entries: &[u8],
        groups: usize,
        codes: &[u8],
    ) -> Decoded<Self> {
        let values = read_entries(column_type, count, entries)?;
        Ok(Self {
            groups: read_groups(groups, codes, values.len())?,
            values,
            is_whole: false,
        })
    }
}

fn read_entries(column_type: ColumnType, count: usize, entries: &[u8]) -> Decoded<CheckedValues> {
    let (ends, bytes) = entries
        .split_at_checked(count.saturating_mul(4))
        .ok_or("entries of a dictionary are missing")?;
    let ends = ends.as_chunks::<4>().0.iter();
    let ends: Vec<usize> = ends.map(|&end| u32::from_le_bytes(end) as usize).collect();
    let values = CheckedValues::new(column_type, bytes, &ends)?;
    let is_ascending = (1..count).all(|entry| values.get(entry - 1) < values.get(entry));
    match is_ascending {
        true => Ok(values),
        false => Err("the entries of a dictionary do not ascend"),
    }
}

fn read_groups(groups: usize, mut bytes: &[u8], entries: usize) -> Decoded<GroupCodes> {
    let mut codes = GroupCodes::default();
    for _ in 0..groups {
        let count = take_u32(&mut bytes)? as usize;
        if count > entries {
            return Err("a group has more values than the dictionary");
        }
        let group = read_list(&mut bytes, count)?;
        if !group.is_sorted_by(|a, b| a < b)
            || group.last().is_some_and(|&last| last >= entries as u64)
        {
            return Err("the codes of a group do not ascend within the dictionary");
        }
        codes.push(group.into_iter().map(|code| code as u32));
    }
    Ok(codes)
}

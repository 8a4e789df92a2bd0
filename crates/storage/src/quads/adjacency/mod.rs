//! Adjacencies: all values of one predicate by key, decoded once and cached in memory.
//!
//! ```text
//! spans    id -> number          ids from the first to the last key, one span for each kind of key
//! words    number -> rank        which of 64 ids are keys, and how many keys there are before: one cache line a look-up
//! starts   rank -> position      only if some key has several values
//! values   position -> value     ascending for each key; four bytes each if they are that close together
//! ```
//!
//! Where most ids are keys (*dense*), there are no words: the number of an id is its rank, and ids
//! that are no keys have a hole among the values, or begin where they end.
//!
//! A look-up in the sorted permutation searches fences and decodes vectors, over a hundred
//! nanoseconds a key for keys in random order; here it is two or three loads. What is kept is the
//! permutation's *file*, which never changes: so an adjacency is good for all snapshots over one
//! base, and the keys that later changes touch ([`Touched`]) are looked up in the permutation as
//! before.
//!
//! An adjacency is of quads of the default graph only: a predicate that has others has none. It is
//! built in two passes over the predicate's rows, about five nanoseconds a row: one measures what
//! it takes ([`Measured`]), so that memory can be refused before it is used.
//!
//! Invariants: keys and the values of a key ascend, there are no empty keys. Not done here: when
//! one is built, and how much memory all of them may take; see `orrery_runtime::Adjacencies`.

mod build;
mod slot;
#[cfg(test)]
mod tests;

pub(crate) mod touched;

use std::ops::Range;

pub use build::Measured;
pub(crate) use slot::AdjacencySlots;
pub use slot::{AdjacencySlot, Build};
pub use touched::Touched;

/// The values of all keys of a predicate; see the module's documentation.
#[derive(Debug)]
pub struct Adjacency {
    spans: Box<[Span]>,
    /// Missing if it is dense.
    words: Option<Box<[Word]>>,
    /// Where the values of each rank begin, and where the last one's end; missing if each key has
    /// one value.
    starts: Option<Box<[u32]>>,
    values: Values,
}

/// The offset of an id that is no key, where each key has one value and it is dense.
const HOLE: u32 = u32::MAX;
/// Keys that are looked up together, if they are all there are between the first and the last of
/// them.
const KEYS_TOGETHER: usize = 64;

/// The ids from the first to the last key of one kind.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: u64,
    /// How many there are, one at least.
    ids: u64,
    /// The number of the first one: a multiple of 64 if there are words.
    start: usize,
}

impl Span {
    fn last(&self) -> u64 {
        self.first + (self.ids - 1)
    }
}

/// Which of 64 consecutive ids are keys.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    bits: u64,
    /// Keys before these ids.
    rank: u32,
}

#[derive(Debug)]
enum Values {
    /// As distances from the least one.
    Narrow {
        min: u64,
        offsets: Box<[u32]>,
    },
    Wide(Box<[u64]>),
}

impl Adjacency {
    /// The rank of a key, the argument of [`positions`](Self::positions); none if the key has no
    /// values.
    #[inline(always)]
    pub fn rank(&self, key: u64) -> Option<u32> {
        let number = self.number(key)?;
        match &self.words {
            Some(words) => rank_in(words, number),
            None => match (&self.starts, &self.values) {
                (Some(starts), _) => (starts[number] < starts[number + 1]).then_some(number as u32),
                (None, Values::Narrow { offsets, .. }) => {
                    (offsets[number] != HOLE).then_some(number as u32)
                }
                (None, Values::Wide(_)) => None,
            },
        }
    }

    /// The number of an id among those of all spans.
    #[inline(always)]
    fn number(&self, key: u64) -> Option<usize> {
        for span in &self.spans {
            let place = key.wrapping_sub(span.first);
            if place < span.ids {
                return Some(span.start + place as usize);
            }
        }
        None
    }

    /// The first key that is not below `key`; none behind the last.
    ///
    /// Asked with keys that ascend, all calls together look at each place once at most.
    pub fn key_from(&self, key: u64) -> Option<u64> {
        let span = self.spans.iter().find(|span| key <= span.last())?;
        let number = span.start + key.saturating_sub(span.first) as usize;
        let found = match &self.words {
            Some(words) => key_in_words(words, number)?,
            None => match (&self.starts, &self.values) {
                (Some(starts), _) => {
                    let mut pairs = starts[number..].windows(2);
                    number + pairs.position(|pair| pair[0] < pair[1])?
                }
                (None, Values::Narrow { offsets, .. }) => {
                    let mut rest = offsets[number..].iter();
                    number + rest.position(|&offset| offset != HOLE)?
                }
                (None, Values::Wide(_)) => return None,
            },
        };
        let mut spans = self.spans.iter().rev();
        let span = spans.find(|span| span.start <= found)?;
        Some(span.first + (found - span.start) as u64)
    }

    /// The value of each key that has one, and its row: the first key's is `first_row`. Only if
    /// each key has one value at most.
    ///
    /// Keys that come from a scan mostly are all there are, one after the other: then their values
    /// are, too, and are copied together. Elsewhere nothing here waits for the value of one key
    /// before it asks for the next one's, so that waits for memory overlap; and nothing branches on
    /// whether there is one. Copied together a value takes 0.5 ns, one by one 2 to 4.
    pub fn single_values(
        &self,
        keys: &[u64],
        first_row: u32,
        rows: &mut Vec<u32>,
        values: &mut Vec<u64>,
    ) {
        debug_assert!(self.is_functional());
        rows.clear();
        rows.resize(keys.len(), 0);
        values.clear();
        values.resize(keys.len(), 0);
        let mut count = 0;
        for (piece, first_row) in keys
            .chunks(KEYS_TOGETHER)
            .zip((first_row..).step_by(KEYS_TOGETHER))
        {
            let places = count..count + piece.len();
            let (rows, values) = (&mut rows[places.clone()], &mut values[places]);
            count += match self.values_in_a_row(piece, values) {
                true => {
                    number_rows(rows, first_row);
                    piece.len()
                }
                false => self.each_value(piece, first_row, rows, values),
            };
        }
        rows.truncate(count);
        values.truncate(count);
    }

    /// The values of keys, if these are all there are from the first to the last of them,
    /// ascending: then their values stand in a row. What is written otherwise means nothing.
    fn values_in_a_row(&self, keys: &[u64], out: &mut [u64]) -> bool {
        let start = match &self.words {
            Some(words) => self.first_rank_of_row(words, keys),
            None => self.first_place_of_row(keys),
        };
        let Some(start) = start else {
            return false;
        };
        let places = start..start + keys.len();
        match &self.values {
            Values::Narrow { min, offsets } => {
                let mut is_hole = false;
                for (value, &offset) in out.iter_mut().zip(&offsets[places]) {
                    is_hole |= offset == HOLE;
                    *value = min.wrapping_add(u64::from(offset));
                }
                !is_hole
            }
            Values::Wide(wide) => {
                out.copy_from_slice(&wide[places]);
                true
            }
        }
    }

    /// The place of the first key's value, if their ids follow one another. There may be holes.
    fn first_place_of_row(&self, keys: &[u64]) -> Option<usize> {
        let (&first, &last) = (keys.first()?, keys.last()?);
        if last.wrapping_sub(first) != (keys.len() - 1) as u64 {
            return None;
        }
        let differences = keys.iter().zip(first..).map(|(key, next)| key ^ next);
        let do_follow = differences.fold(0, |seen, bits| seen | bits) == 0;
        // Of several spans none follows upon another.
        let (start, end) = (self.number(first)?, self.number(last)?);
        (do_follow && end - start == keys.len() - 1).then_some(start)
    }

    /// The rank of the first key, if they ascend and are all there are from the first to the last.
    /// Of each word the bits are put together and compared: no rank is counted but the first.
    fn first_rank_of_row(&self, words: &[Word], keys: &[u64]) -> Option<usize> {
        let (&first, &last) = (keys.first()?, keys.last()?);
        let (first_number, last_number) = (self.number(first)?, self.number(last)?);
        // In the same span numbers lie as far apart as ids.
        if last < first || (last_number - first_number) as u64 != last - first {
            return None;
        }
        let (mut at, mut bits, mut before) = (first_number / 64, 0, None);
        // What counts of the first word.
        let mut counts = u64::MAX << (first_number % 64);
        for &key in keys {
            if before.is_some_and(|before| key <= before) {
                return None;
            }
            before = Some(key);
            let number = first_number + (key - first) as usize;
            while number / 64 > at {
                if words.get(at)?.bits & counts != bits {
                    return None;
                }
                (at, bits, counts) = (at + 1, 0, u64::MAX);
            }
            bits |= 1 << (number % 64);
        }
        counts &= u64::MAX >> (63 - last_number % 64);
        if words.get(at)?.bits & counts != bits {
            return None;
        }
        Some(rank_in(words, first_number)? as usize)
    }

    /// The values of keys, which may be any; how many have one.
    fn each_value(
        &self,
        keys: &[u64],
        first_row: u32,
        rows: &mut [u32],
        values: &mut [u64],
    ) -> usize {
        let mut count = 0;
        match (&self.words, &self.values) {
            (None, Values::Narrow { min, offsets }) => {
                let hole = min.wrapping_add(u64::from(HOLE));
                let is_any_missing = match &*self.spans {
                    // One kind of ids, as nearly always: its offsets are all there are.
                    [span] => values_at(keys, values, hole, *min, offsets, |key| {
                        key.wrapping_sub(span.first) as usize
                    }),
                    _ => values_at(keys, values, hole, *min, offsets, |key| {
                        self.number(key).unwrap_or(usize::MAX)
                    }),
                };
                if !is_any_missing {
                    number_rows(rows, first_row);
                    return keys.len();
                }
                for (at, row) in (first_row..).take(keys.len()).enumerate() {
                    let value = values[at];
                    rows[count] = row;
                    values[count] = value;
                    count += usize::from(value != hole);
                }
            }
            (Some(words), all) => {
                for (row, &key) in (first_row..).zip(keys) {
                    let rank = self.number(key).and_then(|number| rank_in(words, number));
                    rows[count] = row;
                    values[count] = u64::from(rank.unwrap_or(0));
                    count += usize::from(rank.is_some());
                }
                let ranks = &mut values[..count];
                match all {
                    Values::Narrow { min, offsets } => {
                        for value in ranks {
                            *value = min + u64::from(offsets[*value as usize]);
                        }
                    }
                    Values::Wide(wide) => {
                        for value in ranks {
                            *value = wide[*value as usize];
                        }
                    }
                }
            }
            // What is dense and has no starts is narrow.
            (None, Values::Wide(_)) => {}
        }
        count
    }

    /// The positions of the values of the key with this rank. Never empty.
    #[inline(always)]
    pub fn positions(&self, rank: u32) -> Range<usize> {
        let rank = rank as usize;
        match &self.starts {
            None => rank..rank + 1,
            Some(starts) => starts[rank] as usize..starts[rank + 1] as usize,
        }
    }

    /// The value at a position.
    #[inline(always)]
    pub fn value(&self, position: usize) -> u64 {
        match &self.values {
            Values::Narrow { min, offsets } => min + u64::from(offsets[position]),
            Values::Wide(values) => values[position],
        }
    }

    /// Appends the values at some positions.
    #[inline]
    pub fn extend(&self, positions: Range<usize>, out: &mut Vec<u64>) {
        match &self.values {
            Values::Narrow { min, offsets } => {
                out.extend(
                    offsets[positions]
                        .iter()
                        .map(|&offset| min + u64::from(offset)),
                );
            }
            Values::Wide(values) => out.extend_from_slice(&values[positions]),
        }
    }

    /// Whether a value is among those at some positions, which are those of one key.
    #[inline]
    pub fn contains(&self, positions: Range<usize>, value: u64) -> bool {
        match &self.values {
            Values::Narrow { min, offsets } => value
                .checked_sub(*min)
                .and_then(|offset| u32::try_from(offset).ok())
                .is_some_and(|offset| is_among(&offsets[positions], offset)),
            Values::Wide(values) => is_among(&values[positions], value),
        }
    }

    /// Intersects ascending values, from `first` on, with those of one key.
    pub fn retain(&self, positions: Range<usize>, first: usize, values: &mut Vec<u64>) {
        match &self.values {
            Values::Narrow { min, offsets } => {
                let of = |value: u64| value.checked_sub(*min);
                retain_common(
                    values,
                    first,
                    &offsets[positions],
                    |&offset| u64::from(offset),
                    of,
                );
            }
            Values::Wide(wide) => {
                retain_common(values, first, &wide[positions], |&value| value, Some);
            }
        }
    }

    /// Whether each key has one value.
    #[inline]
    pub fn is_functional(&self) -> bool {
        self.starts.is_none()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        let values = match &self.values {
            Values::Narrow { offsets, .. } => size_of_val(&**offsets),
            Values::Wide(values) => size_of_val(&**values),
        };
        let starts = self
            .starts
            .as_ref()
            .map_or(0, |starts| size_of_val(&**starts));
        let words = self.words.as_ref().map_or(0, |words| size_of_val(&**words));
        (words + values + starts) as u64
    }
}

/// Numbers rows from a first one on.
fn number_rows(rows: &mut [u32], first: u32) {
    for (row, number) in rows.iter_mut().zip(first..) {
        *row = number;
    }
}

/// Writes the value of each key, or that of a hole; whether there is a hole. The function gives the
/// place of a key's offset.
#[inline(always)]
fn values_at(
    keys: &[u64],
    out: &mut [u64],
    hole: u64,
    min: u64,
    offsets: &[u32],
    place: impl Fn(u64) -> usize,
) -> bool {
    let mut is_any_missing = false;
    for (value, &key) in out.iter_mut().zip(keys) {
        let offset = offsets.get(place(key)).copied().unwrap_or(HOLE);
        *value = min.wrapping_add(u64::from(offset));
        is_any_missing |= *value == hole;
    }
    is_any_missing
}

/// The number of the first key from a number on.
fn key_in_words(words: &[Word], number: usize) -> Option<usize> {
    let first = number / 64;
    let mut bits = words[first].bits & (u64::MAX << (number % 64));
    let mut at = first;
    while bits == 0 {
        at += 1;
        bits = words.get(at)?.bits;
    }
    Some(at * 64 + bits.trailing_zeros() as usize)
}

/// The number of an id among all keys, if it is one.
#[inline(always)]
fn rank_in(words: &[Word], number: usize) -> Option<u32> {
    let word = words[number / 64];
    let bit = 1u64 << (number % 64);
    let before = (word.bits & (bit - 1)).count_ones();
    (word.bits & bit != 0).then_some(word.rank + before)
}

/// Whether a value is in an ascending list. Most lists are short.
#[inline]
fn is_among<T: Ord + Copy>(list: &[T], value: T) -> bool {
    const SHORT: usize = 8;
    match list.len() {
        0..=SHORT => list.contains(&value),
        _ => list.binary_search(&value).is_ok(),
    }
}

/// Keeps the values from `first` on, which ascend, that are in an ascending list. The functions
/// make both comparable; what has nothing to compare is not in the list.
fn retain_common<T>(
    values: &mut Vec<u64>,
    first: usize,
    list: &[T],
    item: impl Fn(&T) -> u64,
    of: impl Fn(u64) -> Option<u64>,
) {
    /// From this many times as many items on they are searched rather than merged.
    const SEARCH_FACTOR: usize = 8;
    let is_searched = (values.len() - first) * SEARCH_FACTOR < list.len();
    let mut kept = first;
    let mut place = 0;
    for at in first..values.len() {
        let is_in = of(values[at]).is_some_and(|value| {
            if is_searched {
                return list.binary_search_by_key(&value, &item).is_ok();
            }
            while place < list.len() && item(&list[place]) < value {
                place += 1;
            }
            place < list.len() && item(&list[place]) == value
        });
        values[kept] = values[at];
        kept += usize::from(is_in);
    }
    values.truncate(kept);
}

//! The spatial index of a base's literals, built in one pass over its geometries.

use std::ops::Range;

use orrery_geo::{Notation, covering, from_text};
use orrery_storage::{Dictionary, Result};
use orrery_term::TermId;
use orrery_term::key::typed_key;

use super::search::PlaceSearch;
use super::tree::{Bounds, PackedTree};

/// What an entry takes while the tree is made: itself, its place along the curve, and its copies in
/// the tree.
const MAKING_BYTES: u64 = 56;

/// Where the literals of geometries are in a dictionary.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    /// In the order of their keys.
    ranges: [(Notation, Range<u64>); Notation::ALL.len()],
}

impl Ranks {
    /// Two look-ups for each notation.
    pub(super) fn of(dictionary: &Dictionary) -> Result<Self> {
        let of = |notation: Notation| {
            let mut key = Vec::new();
            typed_key("", notation.datatype(), &mut key);
            let first = dictionary.lower_bound(&key)?;
            // What follows all texts of the type: the zero byte before these becomes a one.
            key.pop();
            key.push(1);
            Result::Ok((notation, first..dictionary.lower_bound(&key)?))
        };
        let [one, two, three, four] = Notation::ALL.map(of);
        let ranges = [one?, two?, three?, four?];
        debug_assert!(ranges.is_sorted_by_key(|(_, ranks)| ranks.start));
        Ok(Self { ranges })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        let counts = self.ranges.iter().map(|(_, ranks)| ranks.end - ranks.start);
        counts.sum()
    }

    /// Bytes that the index takes while it is made.
    pub(super) fn making_bytes(&self) -> u64 {
        self.count().saturating_mul(MAKING_BYTES)
    }

    /// The id of the literal of a number, which counts those of all ranges.
    pub(super) fn id(&self, number: u32) -> TermId {
        let mut left = u64::from(number);
        for (_, ranks) in &self.ranges {
            let count = ranks.end - ranks.start;
            if left < count {
                return TermId::literal(ranks.start + left);
            }
            left -= count;
        }
        unreachable!("numbers are those of the ranges")
    }

    /// All ids but those of the ranges, as intervals with both ends.
    pub(super) fn others(&self) -> Vec<(TermId, TermId)> {
        let mut others = Vec::new();
        let mut next = TermId::MIN.bits();
        for (_, ranks) in self.ranges.iter().filter(|(_, ranks)| !ranks.is_empty()) {
            let first = TermId::literal(ranks.start).bits();
            others.push((TermId::from_bits(next), TermId::from_bits(first - 1)));
            next = TermId::literal(ranks.end - 1).bits() + 1;
        }
        others.push((TermId::from_bits(next), TermId::MAX));
        others
    }
}

/// What is known of a literal.
pub(super) enum Entry {
    /// It is within this rectangle.
    Within(Bounds),
    /// It has to be looked at whatever is asked for.
    Anywhere,
    /// It is no geometry, an empty one, or one of a plane: no relation to a place of the earth but
    /// those of places that are apart, and no distance.
    Nowhere,
}

impl Entry {
    pub(super) fn of(text: &[u8], notation: Notation) -> Self {
        let shape = std::str::from_utf8(text).ok();
        let shape = shape.and_then(|text| from_text(text, notation));
        match shape.and_then(|shape| covering(&shape)) {
            None => Self::Nowhere,
            Some(rect) => match Bounds::of(&rect) {
                bounds if bounds.is_everywhere() => Self::Anywhere,
                bounds => Self::Within(bounds),
            },
        }
    }
}

/// The text of a key of a literal with this datatype, if it is one.
pub(super) fn text_of(key: &[u8]) -> Option<(Notation, &[u8])> {
    for notation in Notation::ALL {
        let rest = key.strip_prefix(b"T");
        let rest = rest.and_then(|rest| rest.strip_prefix(notation.datatype().as_bytes()));
        if let Some([0, text @ ..]) = rest {
            return Some((notation, text));
        }
    }
    None
}

/// See the module.
#[derive(Debug)]
pub(super) struct BasePlaces {
    pub(super) ranks: Ranks,
    tree: PackedTree,
    anywhere: Vec<u32>,
    nowhere: Vec<u32>,
}

impl BasePlaces {
    /// Reads all literals of geometries. There have to be fewer than 2^32.
    pub(super) fn read(dictionary: &Dictionary, ranks: Ranks) -> Result<Self> {
        let mut entries = Vec::with_capacity(ranks.count() as usize);
        let (mut anywhere, mut nowhere) = (Vec::new(), Vec::new());
        let mut number = 0_u32;
        for (notation, range) in &ranks.ranges {
            let mut keys = dictionary.iter(range.start);
            while keys.next_rank() < range.end {
                let Some(key) = keys.next()? else { break };
                let text = text_of(key).map_or(&[][..], |(_, text)| text);
                match Entry::of(text, *notation) {
                    Entry::Within(bounds) => entries.push((bounds, number)),
                    Entry::Anywhere => anywhere.push(number),
                    Entry::Nowhere => nowhere.push(number),
                }
                number += 1;
            }
        }
        Ok(Self {
            tree: PackedTree::new(&entries),
            ranks,
            anywhere,
            nowhere,
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        let others = (self.anywhere.capacity() + self.nowhere.capacity()) * size_of::<u32>();
        (self.tree.bytes() + others) as u64
    }

    /// How many have a rectangle.
    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    /// The numbers of those that can be what is asked for, ascending; none if there are more than
    /// so many.
    pub(super) fn candidates(&self, search: &PlaceSearch, most: usize) -> Option<Vec<u32>> {
        let mut found = self.anywhere.clone();
        let mut is_enough = found.len() > most;
        for window in &search.windows {
            is_enough = is_enough
                || !self.tree.meeting(*window, &mut |number| {
                    found.push(number);
                    found.len() <= most
                });
        }
        found.sort_unstable();
        found.dedup();
        (!is_enough).then_some(found)
    }

    /// Those that have no distance from anything on the earth.
    pub(super) fn nowhere(&self) -> &[u32] {
        &self.nowhere
    }
}

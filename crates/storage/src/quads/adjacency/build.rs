//! Construction of an adjacency from the rows of a predicate.

use std::sync::Arc;

use orrery_term::TermId;

use super::{Adjacency, HOLE, Span, Values, Word};
use crate::Result;
use crate::quads::index::{QuadIndex, RowRange, Scan};

/// Columns of PSOG and POSG.
const KEY: usize = 1;
const VALUE: usize = 2;
const GRAPH: usize = 3;

/// Kinds of keys at most: there are no more kinds of terms that many rows share.
const SPANS_MAX: usize = 4;
/// Ids of the spans for each key at most. A word of 16 bytes is for 64 ids: so words take no more
/// than 64 bytes a key.
const IDS_PER_KEY_MAX: u64 = 256;
/// With no more ids for each key than this it is dense.
const IDS_PER_KEY_DENSE: u64 = 2;
/// Spans up to this size are taken in any case.
const IDS_FREE: u64 = 1 << 20;

/// The size of an adjacency, after one pass over the rows.
#[derive(Debug)]
pub struct Measured {
    /// The permutation's file.
    file: Arc<QuadIndex>,
    range: RowRange,
    spans: Vec<Span>,
    /// Numbers that all spans take.
    ids: usize,
    keys: u64,
    is_dense: bool,
    value_min: u64,
    value_max: u64,
}

impl Measured {
    /// Measures the rows of a predicate in PSOG or POSG. Nothing if there can be no adjacency:
    /// quads are in named graphs, or the keys lie far apart.
    pub fn new(index: &QuadIndex, predicate: TermId) -> Result<Option<Self>> {
        let file = index.base();
        let range = file.range(&[predicate])?;
        if range.is_empty() || range.len() >= u64::from(u32::MAX) {
            return Ok(None);
        }
        let mut measured = Self {
            file,
            range,
            spans: Vec::new(),
            ids: 0,
            keys: 0,
            is_dense: false,
            value_min: u64::MAX,
            value_max: 0,
        };
        let mut last_key = None;
        let mut scan = measured.scan([false, true, true, true]);
        while let Some(vector) = scan.next_vector()? {
            let default = TermId::DEFAULT_GRAPH.bits();
            if vector.column(GRAPH).iter().any(|&graph| graph != default) {
                return Ok(None);
            }
            for &value in vector.column(VALUE) {
                measured.value_min = measured.value_min.min(value);
                measured.value_max = measured.value_max.max(value);
            }
            for &key in vector.column(KEY) {
                if last_key != Some(key) {
                    last_key = Some(key);
                    measured.note_key(key);
                }
            }
            if measured.spans.len() > SPANS_MAX {
                return Ok(None);
            }
        }
        let ids = measured.spans.iter().map(|span| span.ids);
        let ids = ids.fold(0, u64::saturating_add);
        if ids > IDS_FREE.max(measured.keys.saturating_mul(IDS_PER_KEY_MAX)) {
            return Ok(None);
        }
        // A dense one without starts marks holes by an offset.
        measured.is_dense = ids <= measured.keys * IDS_PER_KEY_DENSE
            && (measured.is_narrow() || !measured.is_functional());
        for span in &mut measured.spans {
            span.start = measured.ids;
            measured.ids += match measured.is_dense {
                true => span.ids as usize,
                false => span.ids.next_multiple_of(64) as usize,
            };
        }
        Ok(Some(measured))
    }

    fn scan(&self, columns: [bool; 4]) -> Scan {
        self.file.scan(self.range, columns)
    }

    fn note_key(&mut self, key: u64) {
        self.keys += 1;
        let kind = |id: u64| TermId::from_bits(id).kind();
        match self.spans.last_mut() {
            Some(span) if kind(span.first) == kind(key) => span.ids = key - span.first + 1,
            _ => self.spans.push(Span {
                first: key,
                ids: 1,
                start: 0,
            }),
        }
    }

    fn is_narrow(&self) -> bool {
        self.value_max - self.value_min < u64::from(HOLE)
    }

    fn is_functional(&self) -> bool {
        self.keys == self.range.len()
    }

    /// How many ranks there are: of keys, and where it is dense of the ids between them.
    fn ranks(&self) -> usize {
        match self.is_dense {
            true => self.ids,
            false => self.keys as usize,
        }
    }

    /// How many values are kept, with holes.
    fn places(&self) -> usize {
        match self.is_functional() {
            true => self.ranks(),
            false => self.range.len() as usize,
        }
    }

    /// Bytes of memory that the adjacency will take.
    pub fn bytes(&self) -> u64 {
        let value_bytes = if self.is_narrow() { 4 } else { 8 };
        let starts = match self.is_functional() {
            true => 0,
            false => (self.ranks() + 1) * size_of::<u32>(),
        };
        let words = match self.is_dense {
            true => 0,
            false => self.ids / 64 * size_of::<Word>(),
        };
        (words + starts + self.places() * value_bytes) as u64
    }

    /// Reads the rows once more, and keeps them.
    pub fn build(self) -> Result<Adjacency> {
        let words = match self.is_dense {
            true => 0,
            false => self.ids / 64,
        };
        let mut keys = Keys {
            words: vec![Word::default(); words],
            is_dense: self.is_dense,
            starts: (!self.is_functional()).then(|| Vec::with_capacity(self.ranks() + 1)),
            span: 0,
            last: None,
            number: 0,
        };
        let values = if self.is_narrow() {
            let mut offsets = Vec::with_capacity(self.places());
            let has_holes = self.is_dense && self.is_functional();
            self.read(&mut keys, |number, value| {
                if has_holes {
                    offsets.resize(number, HOLE);
                }
                offsets.push((value - self.value_min) as u32);
            })?;
            Values::Narrow {
                min: self.value_min,
                offsets: offsets.into(),
            }
        } else {
            let mut wide = Vec::with_capacity(self.places());
            self.read(&mut keys, |_, value| wide.push(value))?;
            Values::Wide(wide.into())
        };
        let mut rank = 0;
        for word in &mut keys.words {
            word.rank = rank;
            rank += word.bits.count_ones();
        }
        debug_assert!(self.is_dense || u64::from(rank) == self.keys);
        if let Some(starts) = &mut keys.starts {
            starts.resize(self.ranks() + 1, self.range.len() as u32);
        }
        Ok(Adjacency {
            spans: self.spans.into(),
            words: (!self.is_dense).then(|| keys.words.into()),
            starts: keys.starts.map(Vec::into_boxed_slice),
            values,
        })
    }

    /// Gives the number of the key and the value of each row.
    #[inline]
    fn read(&self, keys: &mut Keys, mut found: impl FnMut(usize, u64)) -> Result<()> {
        let mut scan = self.scan([false, true, true, false]);
        let mut row = 0;
        while let Some(vector) = scan.next_vector()? {
            for (&key, &value) in vector.column(KEY).iter().zip(vector.column(VALUE)) {
                keys.add(key, row, &self.spans);
                found(keys.number, value);
                row += 1;
            }
        }
        Ok(())
    }
}

/// The keys so far.
struct Keys {
    words: Vec<Word>,
    is_dense: bool,
    starts: Option<Vec<u32>>,
    span: usize,
    /// The last one, and its number.
    last: Option<u64>,
    number: usize,
}

impl Keys {
    /// Takes up a key, which is not below the one before, of this row.
    #[inline]
    fn add(&mut self, key: u64, row: u32, spans: &[Span]) {
        if self.last == Some(key) {
            return;
        }
        self.last = Some(key);
        while key - spans[self.span].first >= spans[self.span].ids {
            self.span += 1;
        }
        let span = &spans[self.span];
        self.number = span.start + (key - span.first) as usize;
        if !self.is_dense {
            self.words[self.number / 64].bits |= 1 << (self.number % 64);
        }
        if let Some(starts) = &mut self.starts {
            // Ids that are no keys begin, as the key does, where the key before ends.
            let rank = match self.is_dense {
                true => self.number,
                false => starts.len(),
            };
            starts.resize(rank + 1, row);
        }
    }
}

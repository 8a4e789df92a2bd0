//! One commit as it stands in the log: its content, and its coding.

use orrery_term::TermId;

use super::header::u64_at;
use crate::graph_set::GraphSet;
use crate::varint;

/// A commit: who changed what, and what was needed for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRecord {
    /// The number of the commit; each is one more than the one before.
    pub commit: u64,
    /// When it was committed, in microseconds since 1970-01-01T00:00:00Z.
    pub time_micros: i64,
    /// Who committed.
    pub who: String,
    /// The number that the next new blank node gets after this commit.
    pub next_blank_node: u64,
    /// Index of the first of the new terms in the delta dictionary.
    pub first_new_term: u64,
    /// The term keys that the delta dictionary got with this commit, in order.
    pub new_terms: Keys,
    /// Quads that are there after the commit and were not before: s, p, o, g. Sorted ones take less space.
    pub insertions: Vec<[TermId; 4]>,
    /// Quads that were there before the commit and are not after it.
    pub deletions: Vec<[TermId; 4]>,
    /// Graphs of which all quads went first: insertions and deletions are relative to what was left then.
    pub cleared: Option<ClearedGraphs>,
}

/// Graphs that a commit cleared as a whole, and what the commit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearedGraphs {
    /// The graphs.
    pub graphs: GraphSet,
    /// Number of quads that are there after the commit and were not before.
    pub added: u64,
    /// Number of quads that were there before the commit and are not after it.
    pub removed: u64,
}

impl LogRecord {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.commit.to_le_bytes());
        out.extend_from_slice(&self.time_micros.to_le_bytes());
        varint::write(self.who.len() as u64, out);
        out.extend_from_slice(self.who.as_bytes());
        varint::write(self.next_blank_node, out);
        varint::write(self.first_new_term, out);
        varint::write(self.new_terms.len() as u64, out);
        for key in self.new_terms.iter() {
            varint::write(key.len() as u64, out);
            out.extend_from_slice(key);
        }
        encode_rows(&self.insertions, out);
        encode_rows(&self.deletions, out);
        if let Some(cleared) = &self.cleared {
            cleared.graphs.encode(out);
            varint::write(cleared.added, out);
            varint::write(cleared.removed, out);
        }
    }

    /// Number of quads that the commit added, and that it removed.
    pub(crate) fn added_and_removed(&self) -> (u64, u64) {
        match &self.cleared {
            Some(cleared) => (cleared.added, cleared.removed),
            None => (self.insertions.len() as u64, self.deletions.len() as u64),
        }
    }

    /// `None` where the bytes do not have the form of a record, of a commit that cleared graphs or of another.
    pub(super) fn decode(bytes: &[u8], has_cleared: bool) -> Option<Self> {
        let commit = u64_at(bytes, 0)?;
        let time_micros = u64_at(bytes, 8)?.cast_signed();
        let rest = &mut bytes.get(16..)?;
        let who = std::str::from_utf8(take(rest)?).ok()?.to_owned();
        let next_blank_node = varint::read(rest)?;
        let first_new_term = varint::read(rest)?;
        let mut new_terms = Keys::default();
        for _ in 0..varint::read(rest)? {
            new_terms.push(take(rest)?);
        }
        let insertions = decode_rows(rest)?;
        let deletions = decode_rows(rest)?;
        let cleared = match has_cleared {
            true => Some(ClearedGraphs {
                graphs: GraphSet::decode(rest)?,
                added: varint::read(rest)?,
                removed: varint::read(rest)?,
            }),
            false => None,
        };
        rest.is_empty().then_some(Self {
            commit,
            time_micros,
            who,
            next_blank_node,
            first_new_term,
            new_terms,
            insertions,
            deletions,
            cleared,
        })
    }
}

/// A length and that many bytes.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::read_length(bytes)?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn encode_rows(rows: &[[TermId; 4]], out: &mut Vec<u8>) {
    varint::write(rows.len() as u64, out);
    let mut before = [0u64; 4];
    for row in rows {
        let row = row.map(TermId::bits);
        let mask_at = out.len();
        out.push(0);
        for column in 0..4 {
            let difference = row[column].wrapping_sub(before[column]).cast_signed();
            if difference != 0 {
                out[mask_at] |= 1 << column;
                let zigzag = (difference << 1) ^ (difference >> 63);
                varint::write(zigzag.cast_unsigned(), out);
            }
        }
        before = row;
    }
}

fn decode_rows(bytes: &mut &[u8]) -> Option<Vec<[TermId; 4]>> {
    let count = varint::read_length(bytes)?;
    if count > bytes.len() {
        return None; // each row has at least its mask
    }
    let mut rows = Vec::with_capacity(count);
    let mut row = [0u64; 4];
    for _ in 0..count {
        let (&mask, rest) = bytes.split_first()?;
        *bytes = rest;
        for (column, value) in row.iter_mut().enumerate() {
            if mask & (1 << column) != 0 {
                let zigzag = varint::read(bytes)?;
                let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
                *value = value.wrapping_add(difference);
            }
        }
        let ids = row.map(TermId::from_bits);
        if mask >> 4 != 0 || ids.iter().any(|id| id.checked_kind().is_none()) {
            return None;
        }
        rows.push(ids);
    }
    Some(rows)
}

/// Term keys one after the other in one piece of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The keys in the order in which they were appended.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }
}

impl<K: AsRef<[u8]>> FromIterator<K> for Keys {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut all = Self::default();
        for key in keys {
            all.push(key.as_ref());
        }
        all
    }
}

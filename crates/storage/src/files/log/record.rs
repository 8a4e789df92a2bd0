//! The record of one commit in the log: its content and its encoding.

use orrery_term::{LanguageTags, PrefixChange, TermId};

use super::header::{u32_at, u64_at};
use crate::files::varint;
use crate::quads::graph_set::GraphSet;
use crate::table::TableChange;

/// Length of the length of a section.
const SECTION_LENGTH_BYTES: usize = 4;

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
    /// Quads that are there after the commit and were not before: s, p, o, g. Sorted ones take less
    /// space.
    pub insertions: Vec<[TermId; 4]>,
    /// Quads that were there before the commit and are not after it.
    pub deletions: Vec<[TermId; 4]>,
    /// Graphs of which all quads went first: insertions and deletions are relative to what was left
    /// then.
    pub cleared: Option<ClearedGraphs>,
    /// How language tags are written that no commit before had.
    pub language_tags: LanguageTags,
    /// What became of the prefixes of the database.
    pub prefixes: Vec<PrefixChange>,
    /// What became of its tables, in that order.
    pub tables: Vec<TableChange>,
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

/// What a section of a record holds. A number below `OPTIONAL` must be understood by who reads the
/// record; one from there on may be passed over.
mod section {
    pub(super) const WHO: u8 = 1;
    pub(super) const NEXT_BLANK_NODE: u8 = 2;
    pub(super) const NEW_TERMS: u8 = 3;
    pub(super) const INSERTIONS: u8 = 4;
    pub(super) const DELETIONS: u8 = 5;
    pub(super) const CLEARED: u8 = 6;
    pub(super) const TABLES: u8 = 7;
    pub(super) const OPTIONAL: u8 = 128;
    pub(super) const LANGUAGE_TAGS: u8 = 128;
    pub(super) const PREFIXES: u8 = 129;
    /// A record without these would say that the numbers begin anew.
    pub(super) const ALWAYS_THERE: [u8; 2] = [NEXT_BLANK_NODE, NEW_TERMS];
}

/// Why bytes with the right checksum are not a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordError {
    /// They do not have the form of one.
    Form,
    /// A section that must be understood was written by a newer program.
    UnknownSection(u8),
}

impl LogRecord {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.commit.to_le_bytes());
        out.extend_from_slice(&self.time_micros.to_le_bytes());
        if !self.who.is_empty() {
            write_section(section::WHO, out, |out| {
                out.extend_from_slice(self.who.as_bytes());
            });
        }
        write_section(section::NEXT_BLANK_NODE, out, |out| {
            varint::write(self.next_blank_node, out);
        });
        write_section(section::NEW_TERMS, out, |out| {
            varint::write(self.first_new_term, out);
            for key in self.new_terms.iter() {
                varint::write(key.len() as u64, out);
                out.extend_from_slice(key);
            }
        });
        for (kind, rows) in [
            (section::INSERTIONS, &self.insertions),
            (section::DELETIONS, &self.deletions),
        ] {
            if !rows.is_empty() {
                write_section(kind, out, |out| encode_rows(rows, out));
            }
        }
        if let Some(cleared) = &self.cleared {
            write_section(section::CLEARED, out, |out| {
                cleared.graphs.encode(out);
                varint::write(cleared.added, out);
                varint::write(cleared.removed, out);
            });
        }
        if !self.tables.is_empty() {
            write_section(section::TABLES, out, |out| {
                self.tables.iter().for_each(|change| change.encode(out));
            });
        }
        if !self.language_tags.is_empty() {
            write_section(section::LANGUAGE_TAGS, out, |out| {
                for tag in self.language_tags.iter() {
                    varint::write(tag.len() as u64, out);
                    out.extend_from_slice(tag.as_bytes());
                }
            });
        }
        if !self.prefixes.is_empty() {
            write_section(section::PREFIXES, out, |out| {
                self.prefixes
                    .iter()
                    .for_each(|change| write_prefix(change, out));
            });
        }
    }

    /// Number of quads that the commit added, and that it removed.
    pub(crate) fn added_and_removed(&self) -> (u64, u64) {
        match &self.cleared {
            Some(cleared) => (cleared.added, cleared.removed),
            None => (self.insertions.len() as u64, self.deletions.len() as u64),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut record = Self::default();
        let rest = &mut record.decode_head(bytes).ok_or(RecordError::Form)?;
        let (mut last, mut always_there) = (0, 0);
        while !rest.is_empty() {
            let (kind, mut content) = take_section(rest).ok_or(RecordError::Form)?;
            // Each stands once, in the order of the numbers.
            if kind <= last {
                return Err(RecordError::Form);
            }
            last = kind;
            always_there += usize::from(section::ALWAYS_THERE.contains(&kind));
            match record.decode_section(kind, &mut content) {
                Some(true) if content.is_empty() => {}
                Some(false) if kind >= section::OPTIONAL => {}
                Some(false) => return Err(RecordError::UnknownSection(kind)),
                Some(true) | None => return Err(RecordError::Form),
            }
        }
        match always_there == section::ALWAYS_THERE.len() {
            true => Ok(record),
            false => Err(RecordError::Form),
        }
    }

    /// Commit and time; returns what follows.
    fn decode_head<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        self.commit = u64_at(bytes, 0)?;
        self.time_micros = u64_at(bytes, 8)?.cast_signed();
        bytes.get(16..)
    }

    /// Whether the section is known; `None` where it has not the form of its kind. What is left of
    /// `content` was not expected.
    fn decode_section(&mut self, kind: u8, content: &mut &[u8]) -> Option<bool> {
        match kind {
            section::WHO => {
                self.who = std::str::from_utf8(std::mem::take(content))
                    .ok()?
                    .to_owned();
            }
            section::NEXT_BLANK_NODE => self.next_blank_node = varint::read(content)?,
            section::NEW_TERMS => {
                self.first_new_term = varint::read(content)?;
                while !content.is_empty() {
                    self.new_terms.push(take(content)?);
                }
            }
            section::INSERTIONS => self.insertions = decode_rows(content)?,
            section::DELETIONS => self.deletions = decode_rows(content)?,
            section::CLEARED => {
                self.cleared = Some(ClearedGraphs {
                    graphs: GraphSet::decode(content)?,
                    added: varint::read(content)?,
                    removed: varint::read(content)?,
                });
            }
            section::TABLES => {
                while !content.is_empty() {
                    self.tables.push(TableChange::decode(content)?);
                }
            }
            section::LANGUAGE_TAGS => {
                while !content.is_empty() {
                    let tag = std::str::from_utf8(take(content)?).ok()?;
                    self.language_tags.note(tag);
                }
            }
            section::PREFIXES => {
                while !content.is_empty() {
                    self.prefixes.push(take_prefix(content)?);
                }
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Reads a record of the log's versions 1 and 2, which had no sections: one of a commit that
    /// cleared graphs, or of another.
    pub(super) fn decode_unsectioned(bytes: &[u8], has_cleared: bool) -> Option<Self> {
        let mut record = Self::default();
        let rest = &mut record.decode_head(bytes)?;
        record.who = std::str::from_utf8(take(rest)?).ok()?.to_owned();
        record.next_blank_node = varint::read(rest)?;
        record.first_new_term = varint::read(rest)?;
        for _ in 0..varint::read(rest)? {
            record.new_terms.push(take(rest)?);
        }
        record.insertions = decode_rows(rest)?;
        record.deletions = decode_rows(rest)?;
        if has_cleared {
            record.decode_section(section::CLEARED, rest)?;
        }
        rest.is_empty().then_some(record)
    }
}

/// What happened to a prefix.
mod prefix {
    pub(super) const REMOVED: u8 = 0;
    pub(super) const LOADED: u8 = 1;
    pub(super) const GIVEN: u8 = 2;
}

fn write_prefix(change: &PrefixChange, out: &mut Vec<u8>) {
    let mut write = |what: u8, texts: &[&str]| {
        out.push(what);
        for text in texts {
            varint::write(text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
    };
    match change {
        PrefixChange::Removed { name } => write(prefix::REMOVED, &[name]),
        PrefixChange::Loaded { name, iri } => write(prefix::LOADED, &[name, iri]),
        PrefixChange::Given { name, iri } => write(prefix::GIVEN, &[name, iri]),
    }
}

fn take_prefix(bytes: &mut &[u8]) -> Option<PrefixChange> {
    let (&what, rest) = bytes.split_first()?;
    *bytes = rest;
    let mut text = || Some(std::str::from_utf8(take(bytes)?).ok()?.to_owned());
    let name = text()?;
    Some(match what {
        prefix::REMOVED => PrefixChange::Removed { name },
        prefix::LOADED => PrefixChange::Loaded { name, iri: text()? },
        prefix::GIVEN => PrefixChange::Given { name, iri: text()? },
        _ => return None,
    })
}

/// Appends a section: kind, length, content.
fn write_section(kind: u8, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let length_at = out.len();
    out.extend_from_slice(&[0; SECTION_LENGTH_BYTES]);
    content(out);
    // A longer one is in a record that is refused for its length.
    let length = (out.len() - length_at - SECTION_LENGTH_BYTES) as u32;
    out[length_at..length_at + SECTION_LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Takes the next section: its kind and content.
fn take_section<'b>(bytes: &mut &'b [u8]) -> Option<(u8, &'b [u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let length = u32_at(rest, 0)? as usize;
    let (content, rest) = rest[SECTION_LENGTH_BYTES..].split_at_checked(length)?;
    *bytes = rest;
    Some((kind, content))
}

/// A length and that many bytes.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::read_length(bytes)?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

pub(super) fn encode_rows(rows: &[[TermId; 4]], out: &mut Vec<u8>) {
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

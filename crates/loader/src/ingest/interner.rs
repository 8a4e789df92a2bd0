//! The interner of one worker: each distinct term once, under a local number.
//!
//! Every term becomes a *sort key*, a byte string whose order is the order of term ids:
//!
//! ```text
//! '@'                                     the default graph (always local number 0)
//! 'A' number (u64, big-endian)            a blank node of the database
//! 'B' file number (u32, big-endian) label a blank node; its scope is its file
//! 'I' 'L' 'S' 'T' ...                     a term of the dictionary: its term key (for a large literal see `large_literals`)
//! 'X' ...                                 a triple term, see `triple_keys`
//! '~' id bits (u64, big-endian)           a term that lives inside its id
//! ```
//!
//! So everything behind this file, sorting, merging, numbering, knows only keys and numbers. A
//! [`LocalId`] counts the keys of one batch in order of first appearance.

use crate::ingest::arena::{Arena, KeyRef};
use crate::ingest::large_literals::{LargeLiterals, StagedText};
use crate::ingest::sort_keys::{
    BLANK_NODE_KEY, DEFAULT_GRAPH_KEY, INLINE_KEY, NUMBERED_BLANK_NODE_KEY,
};
use crate::ingest::triple_keys::{write_mark, write_triple_key};
use crate::parse::iris::Iris;
use crate::parse::ntriples::TermSink;
use foldhash::fast::FixedState;
use hashbrown::{HashSet, HashTable};
use orrery_storage::dictionary::KeySource;
use orrery_term::prefixes::PREFIXES_MAX;
use orrery_term::{
    Direction, LanguageTags, PrefixOrigin, Prefixes, TRIPLE_DEPTH_MAX, TermId, directional_key,
    inline_string, inline_typed, iri_key, language_key, string_key, typed_key,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Number of a term within one batch.
pub(crate) type LocalId = u32;

/// The default graph has this number in every batch.
pub(crate) const DEFAULT_GRAPH: LocalId = 0;

/// A statement in local numbers: subject, predicate, object, graph.
pub(crate) type LocalQuad = [LocalId; 4];

/// Quads of one chunk of memory (1 MiB), so that growing copies nothing.
const CHUNK_QUADS: usize = 1 << 16;

/// Distinct terms of a batch; far below 2^32 so that one more block always fits.
const TERMS_MAX: usize = 1 << 31;

/// More distinct datatypes than this and the list of known ones starts anew.
const DATATYPES_MAX: usize = 4096;

/// A stored hash and the local number of its key. With the hash at hand neither growing the
/// table nor passing by a wrong slot touches the keys.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    id: LocalId,
}

/// Collects the distinct terms and the quads of one batch.
pub(crate) struct Interner {
    hasher: FixedState,
    table: HashTable<Slot>,
    arena: Arena,
    keys: Vec<KeyRef>,
    quads: Vec<Vec<LocalQuad>>,
    quad_count: u64,
    has_named_graphs: bool,
    /// Whether a term may stand here that no quad uses: it came with a wrong statement.
    has_orphans: bool,
    key_buffer: Vec<u8>,
    /// How language tags were written, in all batches so far.
    language_tags: LanguageTags,
    /// What documents declare: the IRI of each name in the first file that has it, and the number
    /// of that file.
    prefixes: BTreeMap<String, (u32, String)>,
    /// Where large literals go; without it all stay in memory.
    large: Option<Arc<LargeLiterals>>,
    /// Keys of literals go there beyond this.
    literal_bytes_max: usize,
    /// Why a large literal could not be put there.
    failure: Option<orrery_storage::Error>,
    /// Datatype IRIs known to be valid.
    datatypes: HashSet<Box<str>, FixedState>,
    /// The file whose blank nodes are read.
    file_number: u32,
    /// Where quads without a graph go (`--graph`).
    target_graph: Option<Box<str>>,
    /// Its number in this batch, once it was needed.
    target_graph_id: Option<LocalId>,
    /// Which IRIs are taken.
    iris: Iris,
    /// How many were taken that are odd, and the first.
    odd_iris: Option<(u64, String)>,
}

/// What an interner gives up when its batch is full.
pub(crate) struct InternedTerms {
    pub(crate) arena: Arena,
    pub(crate) keys: Vec<KeyRef>,
    pub(crate) quads: Vec<Vec<LocalQuad>>,
    pub(crate) quad_count: u64,
    pub(crate) has_orphans: bool,
}

impl Interner {
    /// An empty batch. Quads without a graph go to `target_graph`, a valid IRI.
    pub(crate) fn new(target_graph: Option<&str>) -> Self {
        let mut interner = Self {
            hasher: FixedState::default(),
            table: HashTable::new(),
            arena: Arena::default(),
            keys: Vec::new(),
            quads: Vec::new(),
            quad_count: 0,
            has_named_graphs: false,
            has_orphans: false,
            key_buffer: Vec::new(),
            language_tags: LanguageTags::default(),
            prefixes: BTreeMap::new(),
            large: None,
            literal_bytes_max: usize::MAX,
            failure: None,
            datatypes: HashSet::default(),
            file_number: 0,
            target_graph: target_graph.map(Into::into),
            target_graph_id: None,
            iris: Iris::Right,
            odd_iris: None,
        };
        interner.start_batch();
        interner
    }

    /// As [`Self::new`]; literals that are large stand in the batch by their order keys.
    pub(crate) fn with_large_literals(
        target_graph: Option<&str>,
        large: &Arc<LargeLiterals>,
    ) -> Self {
        Self {
            large: Some(Arc::clone(large)),
            literal_bytes_max: large.key_bytes_max(),
            ..Self::new(target_graph)
        }
    }

    /// Whether all large literals could be put where they belong. To be asked before a batch is
    /// taken.
    pub(crate) fn check(&mut self) -> Result<(), orrery_storage::Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn start_batch(&mut self) {
        self.target_graph_id = None;
        self.key_buffer.clear();
        self.key_buffer.push(DEFAULT_GRAPH_KEY);
        let id = self.intern_key_buffer();
        debug_assert_eq!(id, DEFAULT_GRAPH);
    }

    /// Says of which file the following blank nodes are.
    pub(crate) fn set_file_number(&mut self, file_number: u32) {
        self.file_number = file_number;
    }

    /// Where the following quads go that have no graph: a valid IRI, or the default graph.
    pub(crate) fn set_target_graph(&mut self, target_graph: Option<&str>) {
        if self.target_graph.as_deref() != target_graph {
            self.target_graph = target_graph.map(Into::into);
            self.target_graph_id = None;
        }
    }

    /// Notes that terms of a wrong statement may have been taken in.
    pub(crate) fn note_wrong_statement(&mut self) {
        self.has_orphans = true;
    }

    /// Statements in this batch.
    pub(crate) fn quad_count(&self) -> u64 {
        self.quad_count
    }

    /// Whether a quad of this batch is in a named graph.
    pub(crate) fn has_named_graphs(&self) -> bool {
        self.has_named_graphs
    }

    /// Bytes that the batch holds now, and that sorting it would need on top.
    pub(crate) fn memory_bytes(&self) -> usize {
        let table = self.table.capacity() * (size_of::<Slot>() + 1);
        let keys = self.keys.capacity() * size_of::<KeyRef>();
        // While sorting: a number and an index for each key; the table is gone by then.
        let sorting = self.keys.len() * (size_of::<(u64, u32)>() + size_of::<u32>());
        let quads = self.quads.len() * CHUNK_QUADS * size_of::<LocalQuad>();
        self.arena.allocated_bytes() + keys + quads + table.max(sorting)
    }

    /// Whether the batch must be sealed whatever memory there is.
    pub(crate) fn has_too_many_terms(&self) -> bool {
        self.keys.len() >= TERMS_MAX
    }

    /// Gives up the batch and starts the next.
    pub(crate) fn take(&mut self) -> InternedTerms {
        self.table = HashTable::new();
        self.has_named_graphs = false;
        let terms = InternedTerms {
            arena: std::mem::take(&mut self.arena),
            keys: std::mem::take(&mut self.keys),
            quads: std::mem::take(&mut self.quads),
            quad_count: std::mem::take(&mut self.quad_count),
            has_orphans: std::mem::take(&mut self.has_orphans),
        };
        self.start_batch();
        terms
    }

    /// Takes what a document declares.
    pub(crate) fn note_prefixes(&mut self, prefixes: &Prefixes) {
        let file = self.file_number;
        for (name, iri, origin) in prefixes.iter() {
            if origin != PrefixOrigin::WellKnown {
                self.note_prefix(file, name, iri);
            }
        }
    }

    /// Takes what the document of this file declares. Of several IRIs of one name the first file's
    /// is kept.
    pub(crate) fn note_prefix(&mut self, file: u32, name: &str, iri: &str) {
        if let Some(known) = self.prefixes.get_mut(name) {
            if file < known.0 {
                *known = (file, iri.to_owned());
            }
        } else if self.prefixes.len() < PREFIXES_MAX {
            let declared = (file, iri.to_owned());
            self.prefixes.insert(name.to_owned(), declared);
        }
    }

    /// What documents declare: the number of the file, the name and its IRI.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = (u32, &str, &str)> {
        self.prefixes
            .iter()
            .map(|(name, (file, iri))| (*file, name.as_str(), iri.as_str()))
    }

    /// How language tags were written so far.
    pub(crate) fn language_tags(&self) -> &LanguageTags {
        &self.language_tags
    }

    /// The number of the key in `key_buffer`, new or known.
    #[inline]
    fn intern_key_buffer(&mut self) -> LocalId {
        match self.find_key_buffer() {
            Ok(id) => id,
            Err(hash) => self.insert_key_buffer(hash),
        }
    }

    /// The number of the key in `key_buffer`, or its hash if it is new.
    #[inline]
    fn find_key_buffer(&self) -> Result<LocalId, u32> {
        let key = self.key_buffer.as_slice();
        let hash = self.hasher.hash_one(key);
        let hash = (hash ^ hash >> 32) as u32;
        let found = self.table.find(spread(hash), |slot| {
            slot.hash == hash && self.arena.get(self.keys[slot.id as usize]) == key
        });
        found.map_or(Err(hash), |slot| Ok(slot.id))
    }

    #[inline]
    fn insert_key_buffer(&mut self, hash: u32) -> LocalId {
        let id = self.keys.len() as LocalId;
        self.keys.push(self.arena.push(&self.key_buffer));
        self.table
            .insert_unique(spread(hash), Slot { hash, id }, |slot| spread(slot.hash));
        id
    }

    /// Says which IRIs are taken.
    pub(crate) fn set_iris(&mut self, iris: Iris) {
        self.iris = iris;
    }

    /// IRIs that were taken though RFC 3987 does not allow them: how many distinct ones of each
    /// batch, and the first.
    pub(crate) fn odd_iris(&self) -> Option<(u64, &str)> {
        self.odd_iris
            .as_ref()
            .map(|(count, first)| (*count, first.as_str()))
    }

    fn check_iri(&mut self, iri: &str) -> Result<(), Cow<'static, str>> {
        if self.iris.check(iri)? {
            let first = || (0, iri.to_owned());
            self.odd_iris.get_or_insert_with(first).0 += 1;
        }
        Ok(())
    }

    /// Takes an IRI that a parser of documents gives, which has checked it.
    pub(crate) fn parsed_iri(&mut self, iri: &str) -> LocalId {
        if self.iris == Iris::Right {
            return self.checked_iri(iri);
        }
        self.key_buffer.clear();
        iri_key(iri, &mut self.key_buffer);
        match self.find_key_buffer() {
            Ok(id) => id,
            Err(hash) => {
                // It counts those that are odd.
                let _ = self.check_iri(iri);
                self.insert_key_buffer(hash)
            }
        }
    }

    /// Takes an IRI that a parser has checked already.
    pub(crate) fn checked_iri(&mut self, iri: &str) -> LocalId {
        self.key_buffer.clear();
        iri_key(iri, &mut self.key_buffer);
        self.intern_key_buffer()
    }

    /// Takes a literal, neither a string nor with a language, whose datatype a parser has checked.
    pub(crate) fn checked_typed(&mut self, lexical: &str, datatype: &str) -> LocalId {
        if let Some(id) = inline_typed(lexical, datatype) {
            return self.inline(id);
        }
        self.key_buffer.clear();
        typed_key(lexical, datatype, &mut self.key_buffer);
        self.intern_literal()
    }

    /// The number of the literal whose key stands in `key_buffer`.
    #[inline]
    fn intern_literal(&mut self) -> LocalId {
        if self.key_buffer.len() > self.literal_bytes_max {
            return self.intern_large();
        }
        self.intern_key_buffer()
    }

    #[cold]
    fn intern_large(&mut self) -> LocalId {
        let key = std::mem::take(&mut self.key_buffer);
        self.intern_order_key(|large, order_key| large.take_key(&key, order_key))
    }

    /// The number of the large literal whose order key `take` makes. A failure is noted, and any
    /// number given.
    fn intern_order_key(
        &mut self,
        take: impl FnOnce(&LargeLiterals, &mut Vec<u8>) -> Result<(), orrery_storage::Error>,
    ) -> LocalId {
        let Some(large) = &self.large else {
            return DEFAULT_GRAPH;
        };
        match take(large, &mut self.key_buffer) {
            Ok(()) => self.intern_key_buffer(),
            Err(error) => {
                self.fail(error);
                DEFAULT_GRAPH
            }
        }
    }

    /// Notes why a literal could not be taken.
    pub(crate) fn fail(&mut self, error: orrery_storage::Error) {
        self.failure.get_or_insert(error);
    }

    /// Takes a literal whose text stands in a file, given the key of the same literal with an empty
    /// text.
    pub(crate) fn staged_literal(&mut self, head: Vec<u8>, text: StagedText) -> LocalId {
        self.intern_order_key(|large, order_key| large.take_text(head, text, order_key))
    }

    /// Takes the large literal of a dictionary.
    pub(crate) fn streamed_key(&mut self, source: Arc<dyn KeySource>) -> LocalId {
        self.intern_order_key(|large, order_key| large.take(source, order_key))
    }

    /// Whether a literal of this length, with its tag or datatype, has to be large.
    pub(crate) fn is_large(&self, key_bytes: u64) -> bool {
        key_bytes > self.literal_bytes_max as u64
    }

    /// Says for the merge that a blank node occurs in a triple term.
    fn mark_blank_node(&mut self, id: LocalId) {
        let key = self.arena.get(self.keys[id as usize]);
        if key.first() == Some(&BLANK_NODE_KEY) {
            self.key_buffer.clear();
            write_mark(key, &mut self.key_buffer);
            self.intern_key_buffer();
        }
    }

    /// Takes the term of a dictionary by its key.
    pub(crate) fn stored_key(&mut self, key: &[u8]) -> LocalId {
        self.key_buffer.clear();
        self.key_buffer.extend_from_slice(key);
        match self.large.as_ref().is_some_and(|large| large.is_large(key)) {
            true => self.intern_large(),
            false => self.intern_key_buffer(),
        }
    }

    /// Takes a blank node of the database, which keeps its number.
    pub(crate) fn numbered_blank_node(&mut self, number: u64) -> LocalId {
        self.key_buffer.clear();
        self.key_buffer.push(NUMBERED_BLANK_NODE_KEY);
        self.key_buffer.extend_from_slice(&number.to_be_bytes());
        self.intern_key_buffer()
    }

    /// Takes a term that lives inside its id.
    pub(crate) fn inline(&mut self, id: TermId) -> LocalId {
        self.key_buffer.clear();
        self.key_buffer.push(INLINE_KEY);
        self.key_buffer.extend_from_slice(&id.bits().to_be_bytes());
        self.intern_key_buffer()
    }

    /// Accepts the IRI of a datatype or says what is wrong with it.
    pub(crate) fn check_datatype(&mut self, datatype: &str) -> Result<(), Cow<'static, str>> {
        if !self.datatypes.contains(datatype) {
            self.check_iri(datatype)?;
            if self.datatypes.len() >= DATATYPES_MAX {
                self.datatypes.clear();
            }
            self.datatypes.insert(datatype.into());
        }
        Ok(())
    }

    fn target_graph(&mut self) -> LocalId {
        if let Some(id) = self.target_graph_id {
            return id;
        }
        let id = match &self.target_graph {
            None => DEFAULT_GRAPH,
            Some(iri) => {
                self.key_buffer.clear();
                iri_key(iri, &mut self.key_buffer);
                self.intern_key_buffer()
            }
        };
        self.target_graph_id = Some(id);
        id
    }
}

/// A full hash from the stored half: the table takes its slot from the low bits and its tag from
/// the top ones.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl TermSink for Interner {
    type Id = LocalId;

    #[inline]
    fn iri(&mut self, iri: &str) -> Result<LocalId, Cow<'static, str>> {
        self.key_buffer.clear();
        iri_key(iri, &mut self.key_buffer);
        match self.find_key_buffer() {
            // What stands here was valid when it came.
            Ok(id) => Ok(id),
            Err(hash) => {
                self.check_iri(iri)?;
                Ok(self.insert_key_buffer(hash))
            }
        }
    }

    fn blank_node(&mut self, label: &str) -> LocalId {
        self.key_buffer.clear();
        self.key_buffer.push(BLANK_NODE_KEY);
        self.key_buffer
            .extend_from_slice(&self.file_number.to_be_bytes());
        self.key_buffer.extend_from_slice(label.as_bytes());
        self.intern_key_buffer()
    }

    #[inline]
    fn string(&mut self, lexical: &str) -> LocalId {
        if let Some(id) = inline_string(lexical) {
            return self.inline(id);
        }
        self.key_buffer.clear();
        string_key(lexical, &mut self.key_buffer);
        self.intern_literal()
    }

    fn language(&mut self, lexical: &str, tag: &str) -> LocalId {
        self.key_buffer.clear();
        language_key(lexical, tag, &mut self.key_buffer);
        self.intern_literal()
    }

    fn language_tag(&mut self, tag: &str) {
        self.language_tags.note(tag);
    }

    fn directional(&mut self, lexical: &str, tag: &str, direction: Direction) -> LocalId {
        self.key_buffer.clear();
        directional_key(lexical, tag, direction, &mut self.key_buffer);
        self.intern_literal()
    }

    fn triple(
        &mut self,
        subject: LocalId,
        predicate: LocalId,
        object: LocalId,
    ) -> Result<LocalId, Cow<'static, str>> {
        self.mark_blank_node(subject);
        self.mark_blank_node(object);
        self.key_buffer.clear();
        let parts = [subject, predicate, object];
        let parts = parts.map(|part| self.arena.get(self.keys[part as usize]));
        if let Some(large) = &self.large
            && parts.iter().any(|part| large.is_large(part))
        {
            let limit = self.literal_bytes_max;
            let what = format!("expected a literal of at most {limit} bytes within a triple term");
            return Err(what.into());
        }
        if !write_triple_key(parts, &mut self.key_buffer) {
            let what = format!("triple terms nest {TRIPLE_DEPTH_MAX} levels deep at most");
            return Err(what.into());
        }
        Ok(self.intern_key_buffer())
    }

    fn typed(&mut self, lexical: &str, datatype: &str) -> Result<LocalId, Cow<'static, str>> {
        // Only literals of datatypes that it knows, so valid ones, go inline.
        if let Some(id) = inline_typed(lexical, datatype) {
            return Ok(self.inline(id));
        }
        self.check_datatype(datatype)?;
        self.key_buffer.clear();
        typed_key(lexical, datatype, &mut self.key_buffer);
        Ok(self.intern_literal())
    }

    #[inline]
    fn quad(
        &mut self,
        subject: LocalId,
        predicate: LocalId,
        object: LocalId,
        graph: Option<LocalId>,
    ) {
        let graph = match graph {
            Some(graph) => graph,
            None => self.target_graph(),
        };
        self.has_named_graphs |= graph != DEFAULT_GRAPH;
        let quad = [subject, predicate, object, graph];
        match self.quads.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_QUADS => chunk.push(quad),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK_QUADS);
                chunk.push(quad);
                self.quads.push(chunk);
            }
        }
        self.quad_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_have_equal_numbers_and_others_not() {
        let mut interner = Interner::new(None);
        let iri = interner.iri("http://example.org/a").unwrap();
        assert_eq!(interner.iri("http://example.org/a").unwrap(), iri);
        assert_ne!(interner.string("http://example.org/a"), iri);
        let integer = interner
            .typed("1", "http://www.w3.org/2001/XMLSchema#integer")
            .unwrap();
        let other = interner
            .typed("01", "http://www.w3.org/2001/XMLSchema#integer")
            .unwrap();
        assert_ne!(integer, other);
        let node = interner.blank_node("a");
        assert_eq!(interner.blank_node("a"), node);
        interner.set_file_number(1);
        assert_ne!(interner.blank_node("a"), node);
        assert!(interner.iri("not absolute").is_err());
        assert!(interner.typed("a", "not absolute").is_err());
    }

    #[test]
    fn many_terms_keep_their_numbers_while_the_table_grows() {
        let mut interner = Interner::new(None);
        let text = |n: u32| format!("a string too long for an id {n}");
        let ids: Vec<LocalId> = (0..50_000).map(|n| interner.string(&text(n))).collect();
        for (n, &id) in ids.iter().enumerate() {
            assert_eq!(interner.string(&text(n as u32)), id);
        }
        let terms = interner.take();
        assert_eq!(terms.keys.len(), 50_001);
        assert_eq!(terms.arena.get(terms.keys[0]), [DEFAULT_GRAPH_KEY]);
    }
}

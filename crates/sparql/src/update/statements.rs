//! Statements with local term numbers, as loaded documents bring them, before terms get ids.
//!
//! ```text
//!  terms:  0 the default graph | 1 <http://e/a> | 2 "text" | 3 a blank node | ...
//!  quads:  [1, 1, 2, 0] [3, 1, 2, 0] ...
//! ```
//!
//! Each distinct term stands here once, as a term key in one buffer, so a transaction looks up each
//! once however often it is used. Made without a lock or a snapshot, on any thread.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use orrery_storage::{Snapshot, Transaction};
use orrery_term::{LanguageTags, Prefixes, Term, TermId, Triple, inline, parse_key, write_key};

use crate::error::QueryError;

/// A term's number among the [`Statements`] it belongs to.
pub type TermNumber = u32;

/// A quad of term numbers: subject, predicate, object, graph.
pub type NumberedQuad = [TermNumber; 4];

/// What a number stands for.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// A term whose id is known without any dictionary.
    Id(TermId),
    /// A blank node of these statements, and of nothing else.
    BlankNode,
    /// A triple term of the terms with these numbers.
    Triple([TermNumber; 3]),
    /// A term key: its end in the buffer; it starts where the one before ends.
    Key { start: u32, end: u32 },
}

/// Some quads and the distinct terms in them.
#[derive(Debug)]
pub struct Statements {
    entries: Vec<Entry>,
    keys: Vec<u8>,
    by_key: HashTable<TermNumber>,
    by_id: HashMap<TermId, TermNumber, FixedState>,
    by_label: HashMap<Box<str>, TermNumber, FixedState>,
    labels_bytes: usize,
    by_parts: HashMap<[TermNumber; 3], TermNumber, FixedState>,
    quads: Vec<NumberedQuad>,
    hasher: FixedState,
    buffer: Vec<u8>,
    language_tags: LanguageTags,
    prefixes: Prefixes,
}

/// More text than the numbers of [`Statements`] reach: 4 GiB.
#[derive(Debug, thiserror::Error)]
#[error("the distinct terms of one request have more than 4 GiB; load them with `orrery load`")]
pub struct TooMuchText;

impl From<TooMuchText> for QueryError {
    fn from(error: TooMuchText) -> Self {
        Self::update_failed(error.to_string())
    }
}

impl Default for Statements {
    fn default() -> Self {
        Self::new()
    }
}

impl Statements {
    /// The number of the default graph, for the fourth place of a quad.
    pub const DEFAULT_GRAPH: TermNumber = 0;

    /// No statements.
    pub fn new() -> Self {
        Self {
            entries: vec![Entry::Id(TermId::DEFAULT_GRAPH)],
            keys: Vec::new(),
            by_key: HashTable::new(),
            by_id: HashMap::default(),
            by_label: HashMap::default(),
            labels_bytes: 0,
            by_parts: HashMap::default(),
            quads: Vec::new(),
            hasher: FixedState::default(),
            buffer: Vec::new(),
            language_tags: LanguageTags::default(),
            prefixes: Prefixes::default(),
        }
    }

    /// The spelling of language tags in the statements.
    pub fn language_tags(&self) -> &LanguageTags {
        &self.language_tags
    }

    /// Adds the spelling of language tags, which terms have in lower case.
    pub fn note_language_tags(&mut self, tags: &LanguageTags) {
        self.language_tags.note_all(tags);
    }

    /// The prefixes that the document of the statements declares.
    pub(super) fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// Adds the prefixes that a document declares.
    pub fn note_prefixes(&mut self, prefixes: &Prefixes) {
        self.prefixes.note_all_loaded(prefixes);
    }

    /// The number of a term without blank nodes, which are taken by [`Self::blank_node`].
    pub fn term(&mut self, term: &Term<'_>) -> Result<TermNumber, TooMuchText> {
        if let Some(id) = inline(term) {
            return Ok(self.id(id));
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        write_key(term, &mut buffer);
        let number = self.key(&buffer);
        self.buffer = buffer;
        number
    }

    /// The number of a term that has an id of its own everywhere, such as an inline literal.
    pub fn id(&mut self, id: TermId) -> TermNumber {
        let next = self.entries.len() as TermNumber;
        let number = *self.by_id.entry(id).or_insert(next);
        if number == next {
            self.entries.push(Entry::Id(id));
        }
        number
    }

    /// The number of the term with this key.
    pub fn key(&mut self, key: &[u8]) -> Result<TermNumber, TooMuchText> {
        let hash = self.hasher.hash_one(key);
        let Self {
            entries,
            keys,
            by_key,
            hasher,
            ..
        } = self;
        let text = |entries: &[Entry], keys: &[u8], number: TermNumber| -> u64 {
            hasher.hash_one(key_of(entries, keys, number))
        };
        if let Some(&number) = by_key.find(hash, |&number| key_of(entries, keys, number) == key) {
            return Ok(number);
        }
        let start = u32::try_from(keys.len()).map_err(|_| TooMuchText)?;
        let end = u32::try_from(keys.len() + key.len()).map_err(|_| TooMuchText)?;
        let number = TermNumber::try_from(entries.len()).map_err(|_| TooMuchText)?;
        keys.extend_from_slice(key);
        entries.push(Entry::Key { start, end });
        by_key.insert_unique(hash, number, |&number| text(entries, keys, number));
        Ok(number)
    }

    /// The number of the blank node with this label: a new node for each label.
    pub fn blank_node(&mut self, label: &str) -> TermNumber {
        if let Some(&number) = self.by_label.get(label) {
            return number;
        }
        let number = self.entries.len() as TermNumber;
        self.entries.push(Entry::BlankNode);
        self.labels_bytes += label.len();
        self.by_label.insert(label.into(), number);
        number
    }

    /// The number of the triple term with these parts, which must stand where a triple has them.
    pub fn triple(&mut self, parts: [TermNumber; 3]) -> TermNumber {
        let next = self.entries.len() as TermNumber;
        let number = *self.by_parts.entry(parts).or_insert(next);
        if number == next {
            self.entries.push(Entry::Triple(parts));
        }
        number
    }

    /// The labels of the blank nodes, in no order.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.by_label.keys().map(|label| &**label)
    }

    /// Adds a quad of numbers that this value has given out.
    pub fn quad(&mut self, quad: NumberedQuad) {
        debug_assert!(quad.iter().all(|&n| (n as usize) < self.entries.len()));
        self.quads.push(quad);
    }

    /// The number of quads, with repetitions.
    pub fn len(&self) -> usize {
        self.quads.len()
    }

    /// Whether there are no quads.
    pub fn is_empty(&self) -> bool {
        self.quads.is_empty()
    }

    /// About the memory that they take.
    pub fn memory_bytes(&self) -> usize {
        // Beside each place of a hash table is a byte of its hash.
        let table = |places: usize, entry_bytes: usize| places * (entry_bytes + 1);
        self.keys.capacity()
            + self.labels_bytes
            + self.entries.capacity() * size_of::<Entry>()
            + self.quads.capacity() * size_of::<NumberedQuad>()
            + table(self.by_key.capacity(), size_of::<TermNumber>())
            + table(self.by_id.capacity(), size_of::<(TermId, TermNumber)>())
            + table(
                self.by_label.capacity(),
                size_of::<(Box<str>, TermNumber)>(),
            )
            + table(
                self.by_parts.capacity(),
                size_of::<([TermNumber; 3], TermNumber)>(),
            )
    }

    /// Moves all quads of the default graph to a named graph. False if there were others.
    pub fn move_to_graph(&mut self, graph: &Term<'_>) -> Result<bool, TooMuchText> {
        let number = self.term(graph)?;
        let is_whole = self
            .quads
            .iter()
            .all(|quad| [Self::DEFAULT_GRAPH, number].contains(&quad[3]));
        for quad in &mut self.quads {
            if quad[3] == Self::DEFAULT_GRAPH {
                quad[3] = number;
            }
        }
        Ok(is_whole)
    }

    /// Whether any quad is in a named graph.
    pub fn has_named_graphs(&self) -> bool {
        self.quads.iter().any(|quad| quad[3] != Self::DEFAULT_GRAPH)
    }

    /// The graphs of the quads, each once; the default graph has no name.
    pub(super) fn graphs(&self) -> Result<Vec<Option<Term<'static>>>, QueryError> {
        let numbers: BTreeSet<TermNumber> = self.quads.iter().map(|quad| quad[3]).collect();
        let graphs = numbers.into_iter().map(|number| match number {
            Self::DEFAULT_GRAPH => Ok(None),
            named => Ok(Some(self.term_of(named, &[])?.into_owned())),
        });
        graphs.collect()
    }

    /// The quads with the ids that a transaction gives their terms; blank nodes are new ones.
    pub(crate) fn intern(
        &self,
        transaction: &mut Transaction,
    ) -> Result<Vec<[TermId; 4]>, QueryError> {
        let mut ids: Vec<TermId> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            ids.push(match *entry {
                Entry::Id(id) => id,
                Entry::BlankNode => transaction.fresh_blank_node(),
                Entry::Key { start, end } => transaction.intern(&self.parse(start, end)?)?,
                Entry::Triple(parts) => transaction.intern(&self.triple_term(parts, &ids)?)?,
            });
        }
        let quad = |quad: &NumberedQuad| quad.map(|number| ids[number as usize]);
        Ok(self.quads.iter().map(quad).collect())
    }

    /// The quads whose terms a snapshot knows all; the others cannot be in it.
    pub(crate) fn known_to(&self, snapshot: &Snapshot) -> Result<Vec<[TermId; 4]>, QueryError> {
        let mut ids = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            ids.push(match *entry {
                Entry::Id(id) => Some(id),
                Entry::BlankNode => None,
                Entry::Key { start, end } => snapshot.term_id(&self.parse(start, end)?)?,
                // Ground, for it is to be deleted: no blank node whose number would be missing.
                Entry::Triple(parts) => snapshot.term_id(&self.triple_term(parts, &[])?)?,
            });
        }
        let known = |quad: &NumberedQuad| -> Option<[TermId; 4]> {
            let [s, p, o, g] = quad.map(|number| ids[number as usize]);
            Some([s?, p?, o?, g?])
        };
        Ok(self.quads.iter().filter_map(known).collect())
    }

    /// The quads as text, in their order; blank nodes by their labels.
    #[cfg(test)]
    pub(super) fn shown(&self) -> Vec<[String; 4]> {
        let term = |number: TermNumber| match self.entries[number as usize] {
            Entry::Id(TermId::DEFAULT_GRAPH) => "default".to_owned(),
            Entry::BlankNode => {
                let mut labels = self.by_label.iter();
                let label = labels.find(|(_, of_label)| **of_label == number);
                label.map_or_else(String::new, |(label, _)| format!("_:{label}"))
            }
            _ => format!("{:?}", self.term_of(number, &[])),
        };
        self.quads.iter().map(|quad| quad.map(term)).collect()
    }

    fn parse(&self, start: u32, end: u32) -> Result<Term<'_>, QueryError> {
        parse_key(&self.keys[start as usize..end as usize])
            .map_err(|error| QueryError::internal(format!("a term of an update: {error}")))
    }
}

impl Statements {
    /// A triple term; `ids` are those of all terms before it.
    fn triple_term(&self, parts: [TermNumber; 3], ids: &[TermId]) -> Result<Term<'_>, QueryError> {
        let [subject, predicate, object] = parts.map(|part| self.term_of(part, ids));
        let triple = Triple::new(subject?, predicate?, object?);
        let triple = triple.map_err(|error| QueryError::update_failed(error.to_string()))?;
        Ok(triple.into())
    }

    fn term_of(&self, number: TermNumber, ids: &[TermId]) -> Result<Term<'_>, QueryError> {
        let unknown = || QueryError::internal("a term without text in an update");
        match self.entries[number as usize] {
            Entry::Id(id) => id.to_inline_term().ok_or_else(unknown),
            Entry::BlankNode => {
                let id = ids.get(number as usize).ok_or_else(unknown)?;
                Ok(Term::BlankNode(id.payload()))
            }
            Entry::Key { start, end } => self.parse(start, end),
            Entry::Triple(parts) => self.triple_term(parts, ids),
        }
    }
}

fn key_of<'k>(entries: &[Entry], keys: &'k [u8], number: TermNumber) -> &'k [u8] {
    match entries[number as usize] {
        Entry::Key { start, end } => &keys[start as usize..end as usize],
        Entry::Id(_) | Entry::BlankNode | Entry::Triple(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distinct_term_has_one_number() {
        let mut statements = Statements::new();
        let iri = statements.term(&Term::iri("http://e/a")).unwrap();
        assert_eq!(statements.term(&Term::iri("http://e/a")).unwrap(), iri);
        let one = Term::typed("1", "http://www.w3.org/2001/XMLSchema#integer");
        let number = statements.term(&one).unwrap();
        assert_eq!(statements.term(&one).unwrap(), number);
        assert_ne!(statements.term(&Term::string("http://e/a")).unwrap(), iri);
        let node = statements.blank_node("a");
        assert_eq!(statements.blank_node("a"), node);
        assert_ne!(statements.blank_node("b"), node);
        assert_eq!(statements.entries.len(), 1 + 5);
    }

    #[test]
    fn many_terms_keep_their_numbers() {
        let mut statements = Statements::new();
        let term = |n: u32| Term::iri(format!("http://example.org/{n}"));
        let numbers: Vec<_> = (0..5000)
            .map(|n| statements.term(&term(n)).unwrap())
            .collect();
        for (n, &number) in numbers.iter().enumerate() {
            assert_eq!(statements.term(&term(n as u32)).unwrap(), number);
        }
    }

    #[test]
    fn their_memory_grows_with_them() {
        let mut statements = Statements::new();
        assert!(statements.memory_bytes() < 1000);
        for number in 0..1000_u32 {
            let name = format!("http://example.org/{number}");
            let iri = statements.term(&Term::iri(&*name)).unwrap();
            let node = statements.blank_node(&name);
            let triple = statements.triple([node, iri, iri]);
            statements.quad([node, iri, triple, Statements::DEFAULT_GRAPH]);
        }
        let texts = 2 * "http://example.org/".len() + 4;
        let least = 1000 * (texts + 3 * size_of::<Entry>() + size_of::<NumberedQuad>());
        let taken = statements.memory_bytes();
        assert!((least..5 * least).contains(&taken), "{taken}");
    }

    #[test]
    fn triples_move_to_a_graph_unless_they_name_another() {
        let graph = Term::iri("http://e/g");
        let mut statements = Statements::new();
        let a = statements.term(&Term::iri("http://e/a")).unwrap();
        statements.quad([a, a, a, Statements::DEFAULT_GRAPH]);
        assert!(!statements.has_named_graphs());
        assert!(statements.move_to_graph(&graph).unwrap());
        assert!(statements.has_named_graphs());
        statements.quad([a, a, a, a]);
        assert!(!statements.move_to_graph(&graph).unwrap());
    }
}

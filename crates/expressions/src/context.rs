//! The context that all expressions of one query share.
//!
//! An [`ExpressionContext`] holds the terms of the snapshot that the query reads, the terms it
//! computes that no dictionary knows, and what SPARQL fixes per query: the time of `NOW()`, the
//! base IRI, the labels given to `BNODE()`. It is shared by `Arc` between all operators, on all
//! threads.
//!
//! **Ids stay exact.** [`ExpressionContext::intern`] gives every term exactly one id for the whole
//! query: the inline one if the term fits, else the dictionary's, else one of the query's own table
//! ([`TermKind::QueryLocal`]). So joins, `DISTINCT` and `GROUP BY` compare ids and nothing else,
//! also on computed terms.
//!
//! **Bounds.** The query's own table is counted against the query's memory pool (see
//! [`ExpressionOptions`]), and so are the values of a batch while they are there (`limits`); when
//! that is exhausted the query ends with the engine's `ResourcesExhausted` error. Ids of the table
//! mean nothing outside the query.

mod blank_nodes;
mod local_terms;
mod tags;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
use hashbrown::HashMap;
use orrery_storage::{Dictionary, Snapshot};
use orrery_term::{LanguageTags, Term, TermId, TermKind, inline, parse_key, write_key};
use oxiri::Iri;
use oxsdatatypes::DateTime;
use parking_lot::{Mutex, RwLock};

use self::blank_nodes::BlankNodeCounter;
pub(crate) use self::blank_nodes::BlankNodeNumbers;
use self::local_terms::LocalTerms;
use self::tags::OwnTags;
pub use self::tags::WrittenTags;
use crate::error::{Error, Result};
use crate::limits::{Counted, Held, Limits};
use crate::xpath_regex::RegexCache;

/// The initial settings of an expression context.
#[derive(Clone, Debug)]
pub struct ExpressionOptions {
    /// Relative IRIs given to `IRI()` are resolved against it.
    pub base_iri: Option<String>,
    /// What the query's own terms are counted against.
    pub memory_pool: Arc<dyn MemoryPool>,
    /// What `NOW()` returns; the clock's time when absent.
    pub now: Option<DateTime>,
}

impl Default for ExpressionOptions {
    /// No base IRI, no memory limit, the clock's time.
    fn default() -> Self {
        Self {
            base_iri: None,
            memory_pool: Arc::new(UnboundedMemoryPool::default()),
            now: None,
        }
    }
}

/// Ranks at which the dictionary's literals change their kind. Term keys sort by kind first
/// (language-tagged, strings, typed), so that a rank alone tells which one it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiteralRanks {
    /// Rank of the first `xsd:string`; literals below have a language tag.
    strings: u64,
    /// Rank of the first literal of another datatype.
    typed: u64,
}

/// What a dictionary literal is, as far as its rank tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LiteralClass {
    /// It has a language tag.
    Language,
    /// It is an `xsd:string`.
    String,
    /// It has another datatype.
    Typed,
}

impl LiteralRanks {
    /// What the literal of this rank is.
    #[inline]
    pub(crate) fn class(self, rank: u64) -> LiteralClass {
        if rank < self.strings {
            LiteralClass::Language
        } else if rank < self.typed {
            LiteralClass::String
        } else {
            LiteralClass::Typed
        }
    }
}

/// What strings are sorted by in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringKeys {
    /// By rank, without reading them.
    Ranks,
    /// By their text.
    Texts,
}

/// What most keys take beside the texts of their terms.
const KEY_BYTES: usize = 64;

/// The context that all expressions of one query share; see the module's documentation.
pub struct ExpressionContext {
    snapshot: Arc<Snapshot>,
    base_iri: Option<Iri<String>>,
    /// Asked of the clock when the query asks for it first: to make a date of it takes as long as a
    /// look-up.
    now: OnceLock<DateTime>,
    counts_rows: AtomicBool,
    blank_nodes: BlankNodeCounter,
    local_terms: RwLock<LocalTerms>,
    own_tags: OwnTags,
    labelled_blank_nodes: Mutex<HashMap<(u64, Box<str>), u64>>,
    literal_ranks: OnceLock<LiteralRanks>,
    string_keys: OnceLock<StringKeys>,
    regexes: RegexCache,
    /// What a batch may take.
    limits: Limits,
}

impl std::fmt::Debug for ExpressionContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExpressionContext")
            .field("base_iri", &self.base_iri)
            .field("now", &self.now)
            .field("local_terms", &self.local_terms.read().len())
            .finish_non_exhaustive()
    }
}

impl ExpressionContext {
    /// A context for one run of one query.
    pub fn new(snapshot: Arc<Snapshot>, options: ExpressionOptions) -> Result<Arc<Self>> {
        let first = snapshot.next_blank_node();
        Self::with_blank_nodes(snapshot, options, BlankNodeNumbers { first, step: 1 })
    }

    /// A context that gives these numbers to the blank nodes that it makes.
    pub(crate) fn with_blank_nodes(
        snapshot: Arc<Snapshot>,
        options: ExpressionOptions,
        blank_nodes: BlankNodeNumbers,
    ) -> Result<Arc<Self>> {
        let base_iri = options
            .base_iri
            .map(|iri| {
                Iri::parse(iri.clone()).map_err(|error| Error::BaseIri {
                    iri,
                    reason: error.to_string(),
                })
            })
            .transpose()?;
        let reservation =
            MemoryConsumer::new("terms computed by the query").register(&options.memory_pool);
        Ok(Arc::new(Self {
            snapshot,
            base_iri,
            now: options.now.map_or_else(OnceLock::new, OnceLock::from),
            counts_rows: AtomicBool::new(false),
            blank_nodes: BlankNodeCounter::new(blank_nodes),
            local_terms: RwLock::new(LocalTerms::new(reservation)),
            own_tags: OwnTags::default(),
            labelled_blank_nodes: Mutex::new(HashMap::new()),
            literal_ranks: OnceLock::new(),
            string_keys: OnceLock::new(),
            regexes: RegexCache::default(),
            limits: Limits::new(options.memory_pool),
        }))
    }

    /// The terms of the database.
    pub(crate) fn dictionary(&self) -> &Dictionary {
        self.snapshot.dictionary()
    }

    /// The base of relative IRIs.
    pub fn base_iri(&self) -> Option<&Iri<String>> {
        self.base_iri.as_ref()
    }

    /// The time of the query, the same at every call.
    pub fn now(&self) -> DateTime {
        *self.now.get_or_init(DateTime::now)
    }

    /// The patterns that the query has compiled.
    pub(crate) fn regexes(&self) -> &RegexCache {
        &self.regexes
    }

    /// The query runs from now on for this long at most, and as long as somebody holds on to what
    /// is given: functions look at both within a batch.
    pub fn begin_run(&self, limit: Option<Duration>) -> Arc<()> {
        self.limits.ends.begin(limit)
    }

    /// Counts the values of so many rows of a batch.
    pub(crate) fn count_rows(&self, rows: usize) -> Counted<'_> {
        Counted::of_rows(rows, &self.limits)
    }

    /// Counts values that are needed all at once.
    pub(crate) fn count_all(&self) -> Counted<'_> {
        Counted::of_all(&self.limits)
    }

    /// Says that an expression of the query tells rows apart by counting them (`BNODE(label)`) or
    /// is another one each time: then all expressions must see the rows in the same order.
    pub fn note_volatile(&self) {
        self.counts_rows.store(true, Ordering::Relaxed);
    }

    /// Whether the order in which rows come may change what the query's expressions give, as far as
    /// noted: those compiled so far, and those of which the planner said so before.
    pub fn depends_on_row_order(&self) -> bool {
        self.counts_rows.load(Ordering::Relaxed)
    }

    /// The number of a blank node that nothing else has.
    pub fn fresh_blank_node(&self) -> u64 {
        self.blank_nodes.next()
    }

    /// Deals the numbers of blank nodes to so many others, before the query runs; nothing if there
    /// are too few for that.
    pub(crate) fn deal_blank_nodes(&self, others: u32) -> Option<BlankNodeNumbers> {
        self.blank_nodes.deal(others)
    }

    /// Calls `f` with the keys of the query's own terms, in the order of their numbers.
    pub(crate) fn own_terms(&self, mut f: impl FnMut(&[u8])) {
        let terms = self.local_terms.read();
        (0..).map_while(|number| terms.key(number)).for_each(&mut f);
    }

    /// The number of the query's own terms so far.
    pub fn own_term_count(&self) -> u64 {
        self.local_terms.read().len() as u64
    }

    /// All language tags that the query noted, in any spelling.
    pub fn noted_language_tags(&self) -> Arc<LanguageTags> {
        self.own_tags.all()
    }

    /// The number of the blank node that `BNODE(label)` makes for this solution. The same for the
    /// same label and row, another for every other.
    pub(crate) fn labelled_blank_node(&self, row: u64, label: &str) -> Result<u64> {
        let mut labels = self.labelled_blank_nodes.lock();
        let key = (row, Box::from(label));
        if let Some(&number) = labels.get(&key) {
            return Ok(number);
        }
        // Lock order: labels, then local terms.
        self.local_terms
            .read()
            .reserve_bytes(label.len() + 2 * size_of::<((u64, Box<str>), u64)>())?;
        let number = self.fresh_blank_node();
        labels.insert(key, number);
        Ok(number)
    }

    /// The one id of a term: inline, else the dictionary's, else the query's own.
    pub fn intern(&self, term: &Term<'_>) -> Result<TermId> {
        if let Some(id) = inline(term) {
            return Ok(id);
        }
        let (key, _held) = self.key(term)?;
        // The own table first: a hash look-up is cheaper than a search of the dictionary, and a
        // computed term that is in neither is looked for once only.
        if let Some(index) = self.local_terms.read().find(&key) {
            return Ok(TermId::query_local(index));
        }
        if let Some(id) = self.snapshot.term_id(term)? {
            return Ok(id);
        }
        let index = self.local_terms.write().insert(&key)?;
        Ok(TermId::query_local(index))
    }

    /// The key of a term, which is counted while it is there.
    fn key(&self, term: &Term<'_>) -> Result<(Vec<u8>, Held)> {
        let bytes = KEY_BYTES + term.text_bytes();
        let mut counted = self.count_all();
        counted.add_bytes(bytes)?;
        let mut key = Vec::with_capacity(bytes);
        write_key(term, &mut key);
        Ok((key, counted.finish()))
    }

    /// The id of a term that is known to be neither inline nor in the state that the query reads.
    pub fn intern_own(&self, term: &Term<'_>) -> Result<TermId> {
        debug_assert!(inline(term).is_none());
        let (key, _held) = self.key(term)?;
        if let Some(index) = self.local_terms.read().find(&key) {
            return Ok(TermId::query_local(index));
        }
        let index = self.local_terms.write().insert(&key)?;
        Ok(TermId::query_local(index))
    }

    /// The term of an id, with text of its own.
    pub fn term(&self, id: TermId) -> Result<Term<'static>> {
        if let Some(term) = id.to_inline_term() {
            return Ok(term);
        }
        match id.kind() {
            TermKind::QueryLocal => {
                let terms = self.local_terms.read();
                let key = terms.key(id.payload()).ok_or(Error::NoSuchTerm { id })?;
                Ok(parse_key(key)
                    .map_err(|_| Error::NoSuchTerm { id })?
                    .into_owned())
            }
            TermKind::Iri | TermKind::Literal | TermKind::TripleTerm | TermKind::Delta => {
                Ok(self.snapshot.term(id)?)
            }
            _ => Err(Error::NoSuchTerm { id }),
        }
    }

    /// Calls `f` with the place and the term of each id. The ids must be strictly ascending: then
    /// the dictionary is read in one pass, and each page of it decompressed once.
    pub fn terms(&self, ids: &[TermId], mut f: impl FnMut(usize, Term<'_>)) -> Result<()> {
        debug_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        let mut ranks = Vec::new();
        let mut at = 0;
        while at < ids.len() {
            let id = ids[at];
            if !id.is_dictionary() {
                f(at, self.term(id)?);
                at += 1;
                continue;
            }
            // One run of one kind: its ranks ascend.
            let kind = id.kind();
            let run = ids[at..]
                .iter()
                .take_while(|other| other.kind() == kind)
                .count();
            ranks.clear();
            ranks.extend(ids[at..at + run].iter().map(|id| id.payload()));
            let mut damaged = None;
            self.snapshot
                .dictionary()
                .keys(&ranks, |offset, key| match parse_key(key) {
                    Ok(term) => f(at + offset, term),
                    Err(_) => damaged = Some(ids[at + offset]),
                })?;
            if let Some(id) = damaged {
                return Err(Error::NoSuchTerm { id });
            }
            at += run;
        }
        Ok(())
    }

    /// Notes the spelling of language tags that the query or an endpoint's answer brings: terms
    /// have them in lower case. Of several ways the first stays.
    pub fn note_language_tags(&self, tags: &LanguageTags) {
        if !tags.is_empty() {
            self.own_tags.add(self.snapshot.language_tags(), tags);
        }
    }

    /// The same for one tag that is computed.
    pub(crate) fn note_language_tag(&self, lower: &str, tag: &str) {
        let known = self.snapshot.language_tags();
        self.own_tags.add_tag(known, lower, tag);
    }

    /// The spelling of language tags in results: the database's, where it knows the tag.
    pub fn language_tags(&self) -> WrittenTags<'_> {
        WrittenTags {
            known: self.snapshot.language_tags(),
            own: self.own_tags.with_capitals(),
        }
    }

    /// The spelling of tags that the query brings and the database lacks, if one has capitals. As
    /// long as none is added it is the same table.
    pub fn own_language_tags(&self) -> Option<Arc<LanguageTags>> {
        self.own_tags.with_capitals()
    }

    /// What strings are sorted by in this query; whoever asks first decides.
    pub(crate) fn string_keys(&self, choose: impl FnOnce() -> StringKeys) -> StringKeys {
        *self.string_keys.get_or_init(choose)
    }

    /// Where the dictionary's literals change their kind; searched for once.
    pub(crate) fn literal_ranks(&self) -> Result<LiteralRanks> {
        if let Some(ranks) = self.literal_ranks.get() {
            return Ok(*ranks);
        }
        let dictionary = self.snapshot.dictionary();
        dictionary.will_find(&[b"S", b"T"])?;
        let ranks = LiteralRanks {
            strings: dictionary.lower_bound(b"S")?,
            typed: dictionary.lower_bound(b"T")?,
        };
        Ok(*self.literal_ranks.get_or_init(|| ranks))
    }
}

#[cfg(test)]
mod tests;

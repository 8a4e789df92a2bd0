//! One unchanging state of a database, which queries read.
//!
//! ```text
//! base (files) <- hidden graphs <- flushed delta (files) <- delta in memory
//! ```
//!
//! Each permutation is a view of these, with exact counts; a term is looked up in the base's
//! dictionary and then in the delta's. A commit makes a new snapshot that shares all but what
//! changed. A snapshot is shared by `Arc`; whoever has one goes on reading it, whatever writers do.
//! What the permutations hold is read through a [`ReadView`](crate::ReadView) alone.

use crate::snapshots::counts::SnapshotCounts;
use std::path::Path;
use std::sync::Arc;

use orrery_term::{
    LanguageTags, PrefixChange, Prefixes, Term, TermId, TermKind, inline, parse_key, write_key,
};

use crate::files::manifest::{Manifest, PrefixEntry};
use crate::quads::changes::has_named_graph;
use crate::quads::delta::DeltaIndex;
use crate::quads::delta_dictionary::DeltaDictionary;
use crate::quads::dictionary::Dictionary;
use crate::quads::graph_set::GraphSet;
use crate::quads::index::{COLUMNS, PerPermutation, Permutation, QuadIndex};
use crate::quads::statistics::{Figures, Sampled, SampledStatistics};
use crate::snapshots::base::Base;
use crate::snapshots::scoped_states::ScopedStates;
use crate::snapshots::shown_files::ShownFiles;
use crate::snapshots::stored::{Deltas, Stored};
use crate::table::Tables;
use crate::{Error, Result};

/// Threads that look terms up at the same time.
const LOOKED_UP_TOGETHER: usize = 16;

/// One state of a database.
#[derive(Debug)]
pub struct Snapshot {
    manifest: Arc<Manifest>,
    stored: Arc<Stored>,
    /// What changed since `stored`.
    deltas: Deltas,
    indexes: PerPermutation<Arc<QuadIndex>>,
    counts: SnapshotCounts,
    language_tags: Arc<LanguageTags>,
    prefixes: Arc<Prefixes>,
    tables: Arc<Tables>,
    /// What of it some askers see.
    scoped: ScopedStates<Self>,
    /// What some askers see of `stored`, for all states over it.
    shown_files: Arc<ShownFiles>,
    /// Of what some askers see: figures about that alone.
    sampled: Option<Arc<SampledStatistics>>,
    /// Whether it is what a commit left, or files: see [`Self::committed`].
    is_committed: bool,
}

/// The identity of a state: equal ones have the same ids and rows, for equal scopes. What is kept
/// of states is kept by this, and there is none of what a transaction sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedState {
    /// The name of the base.
    pub base: Box<str>,
    /// Number of the last commit.
    pub commit: u64,
}

impl Snapshot {
    /// What the files hold, with nothing in memory; without tables, which are put to it by
    /// [`Self::with_tables`].
    pub(crate) fn of_stored(manifest: Arc<Manifest>, stored: Arc<Stored>) -> Self {
        let tags = manifest.language_tags.iter().map(String::as_str);
        Self {
            language_tags: Arc::new(tags.collect()),
            prefixes: Arc::new(manifest.prefix_table()),
            manifest,
            deltas: Deltas::default(),
            indexes: stored.indexes.clone(),
            counts: stored.counts,
            stored,
            tables: Arc::default(),
            scoped: ScopedStates::default(),
            shown_files: Arc::default(),
            sampled: None,
            is_committed: true,
        }
    }

    /// The same database with other changes in memory, over the files of `stored`; the quads are
    /// counted anew. No commit is known to have left that: where one has, [`Self::of_commit`] says
    /// so.
    pub(crate) fn with_deltas(
        &self,
        stored: Arc<Stored>,
        deltas: Deltas,
        mut counts: SnapshotCounts,
    ) -> Result<Self> {
        let indexes = stored.views(&deltas)?;
        // What is kept there lies over these very files.
        let shown_files = match Arc::ptr_eq(&stored, &self.stored) {
            true => Arc::clone(&self.shown_files),
            false => Arc::default(),
        };
        if let Some(spog) = indexes.get(Permutation::Spog) {
            counts.quads = spog.rows();
        }
        Ok(Self {
            manifest: Arc::clone(&self.manifest),
            stored,
            deltas,
            indexes,
            counts,
            language_tags: Arc::clone(&self.language_tags),
            prefixes: Arc::clone(&self.prefixes),
            tables: Arc::clone(&self.tables),
            scoped: ScopedStates::default(),
            shown_files,
            sampled: None,
            is_committed: false,
        })
    }

    /// The same state, told from another manifest.
    pub(crate) fn with_manifest(&self, manifest: Arc<Manifest>) -> Self {
        Self {
            manifest,
            stored: Arc::clone(&self.stored),
            deltas: self.deltas.clone(),
            indexes: self.indexes.clone(),
            counts: self.counts,
            language_tags: Arc::clone(&self.language_tags),
            prefixes: Arc::clone(&self.prefixes),
            tables: Arc::clone(&self.tables),
            scoped: ScopedStates::default(),
            shown_files: Arc::clone(&self.shown_files),
            sampled: None,
            is_committed: self.is_committed,
        }
    }

    /// The same state over files of which the index of texts alone is another one, told from
    /// another manifest. What is kept of the files for who does not see all of them is made anew,
    /// for it has the index, too.
    pub(crate) fn with_texts(&self, stored: Arc<Stored>, manifest: Arc<Manifest>) -> Self {
        Self {
            stored,
            shown_files: Arc::default(),
            ..self.with_manifest(manifest)
        }
    }

    /// The same state with further language tags.
    pub(crate) fn with_language_tags(mut self, new: &LanguageTags) -> Self {
        if !new.is_empty() {
            Arc::make_mut(&mut self.language_tags).add(new);
        }
        self
    }

    /// How tags are written that an earlier state does not know.
    pub(crate) fn language_tags_since(&self, earlier: &Self) -> LanguageTags {
        match Arc::ptr_eq(&self.language_tags, &earlier.language_tags) {
            true => LanguageTags::default(),
            false => earlier.language_tags.unknown_of(&self.language_tags),
        }
    }

    /// The same state with other prefixes.
    pub(crate) fn with_prefixes(mut self, prefixes: &Arc<Prefixes>) -> Self {
        self.prefixes = Arc::clone(prefixes);
        self
    }

    /// The same state with other tables.
    pub(crate) fn with_tables(mut self, tables: &Arc<Tables>) -> Self {
        self.tables = Arc::clone(tables);
        self.scoped = ScopedStates::default();
        self
    }

    /// The same state, as one that a commit leaves.
    pub(crate) fn of_commit(mut self) -> Self {
        self.is_committed = true;
        self
    }

    /// Whether it has what no commit has, yet or ever: its ids may get to stand for other terms.
    pub fn is_of_transaction(&self) -> bool {
        !self.is_committed
    }

    /// The identity of the state; none within a transaction with changes, which may never be
    /// committed.
    pub fn committed(&self) -> Option<CommittedState> {
        self.is_committed.then(|| CommittedState {
            base: self.base_name().into(),
            commit: self.commit(),
        })
    }

    /// The tables, views and schemas. Unchanged ones are the same `Arc`.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// What became of the prefixes since an earlier state.
    pub(crate) fn prefixes_since(&self, earlier: &Self) -> Vec<PrefixChange> {
        match Arc::ptr_eq(&self.prefixes, &earlier.prefixes) {
            true => Vec::new(),
            false => self.prefixes.changes_since(&earlier.prefixes),
        }
    }

    /// The manifest to be changed and published next: what the commits in the log told of the whole
    /// database is in it.
    pub(crate) fn to_manifest(&self) -> Manifest {
        Manifest {
            language_tags: self.language_tags.iter().map(str::to_owned).collect(),
            prefixes: PrefixEntry::all_of(&self.prefixes),
            ..self.manifest.as_ref().clone()
        }
    }

    /// The same state without the quads of some graphs. What the base has of them is hidden; the
    /// changes since the base, flushed or not, that are left are all in memory then.
    pub(crate) fn without(&self, graphs: &GraphSet) -> Result<Self> {
        let stored = self.stored.hiding(graphs, self.counts)?;
        let mut changes = Vec::new();
        // Nothing is left of them where all graphs go.
        if let Some(spog) = self.index(Permutation::Spog)
            && !graphs.is_all()
        {
            for change in spog.changes()? {
                let change = change?;
                if !graphs.contains_bits(change.row[COLUMNS - 1]) {
                    changes.push(change);
                }
            }
        }
        let with_gspo = stored.base.index(Permutation::Gspo).is_some() || has_named_graph(&changes);
        let deltas = Deltas::default().apply(&changes, None, with_gspo)?;
        self.with_deltas(Arc::new(stored), deltas, self.counts)
    }

    /// What somebody sees of it who does not see all graphs: what is left of the files and of the
    /// changes. It tells no more than a database does that holds nothing else: GSPO is there where
    /// a quad of a named graph is seen, and figures are of what is seen, also where nothing is
    /// hidden just now: that it is so would tell something. Language tags are in lower case, for
    /// how they are written may have been decided where nothing is seen.
    pub(crate) fn showing(
        &self,
        files: &Arc<Stored>,
        deltas: Deltas,
        sampled: Arc<SampledStatistics>,
    ) -> Result<Self> {
        let mut shown = self.with_deltas(Arc::clone(files), deltas, self.counts)?;
        if let Some(gspo) = shown.index(Permutation::Gspo) {
            let named = gspo
                .cursor()
                .distinct_next(&[], Some(TermId::DEFAULT_GRAPH))?;
            if named.is_none() {
                shown.indexes.remove(Permutation::Gspo);
            }
        }
        shown.sampled = Some(sampled);
        shown.is_committed = self.is_committed;
        shown.language_tags = Arc::default();
        Ok(shown)
    }

    /// What of it some askers see.
    pub(crate) fn scoped(&self) -> &ScopedStates<Self> {
        &self.scoped
    }

    /// What some askers see of the files.
    pub(crate) fn shown_files(&self) -> &ShownFiles {
        &self.shown_files
    }

    /// Number of quads of some graphs.
    pub(crate) fn quads_of(&self, graphs: &GraphSet) -> Result<u64> {
        if graphs.is_all() {
            return Ok(self.counts.quads);
        }
        let Some(gspo) = self.index(Permutation::Gspo) else {
            let has_default = graphs.contains(TermId::DEFAULT_GRAPH);
            return Ok(if has_default { self.counts.quads } else { 0 });
        };
        let mut cursor = gspo.cursor();
        if graphs.has_all_named() {
            let default = cursor.seek(&[TermId::DEFAULT_GRAPH])?;
            return Ok(self.counts.quads - default.len());
        }
        graphs
            .listed()
            .try_fold(0, |sum, graph| Ok(sum + cursor.seek(&[graph])?.len()))
    }

    /// Changes since the base was written that are counted one by one, in memory or flushed.
    pub(crate) fn change_count(&self) -> u64 {
        let spog = self.index(Permutation::Spog);
        spog.map_or(0, |index| index.deltas().iter().map(DeltaIndex::len).sum())
    }

    /// Number of the last commit that the snapshot holds.
    pub fn commit(&self) -> u64 {
        self.counts.commit
    }

    /// The time of the commit, in microseconds since 1970; 0 where unknown.
    pub fn commit_time_us(&self) -> i64 {
        self.counts.time_us
    }

    /// Number of quads.
    pub(crate) fn quad_count(&self) -> u64 {
        self.counts.quads
    }

    /// A permutation. PSOG, POSG, SPOG and OSPG are always there, GSPO where there are named
    /// graphs.
    pub(crate) fn index(&self, permutation: Permutation) -> Option<&Arc<QuadIndex>> {
        self.indexes.get(permutation)
    }

    /// The permutation SPOG, without which there is no database.
    pub(crate) fn spog(&self) -> Result<&Arc<QuadIndex>> {
        self.index(Permutation::Spog)
            .ok_or_else(|| Error::corrupt(self.directory(), 0, "the permutation SPOG is missing"))
    }

    /// All permutations that there are.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = &Arc<QuadIndex>> {
        self.indexes.values()
    }

    /// The name of the base in this process, which is changed by loads and compactions, and where
    /// the database is read anew after commits may have been lost: what is known of one base's
    /// statistics and ids holds for all snapshots over it.
    pub fn base_name(&self) -> &str {
        self.stored.base.known_as()
    }

    /// The name of the base's files, which all processes know them by.
    pub fn segment_name(&self) -> &str {
        self.stored.base.name()
    }

    /// The dictionary of the base: the terms whose ids tell a rank in it.
    pub fn dictionary(&self) -> &Dictionary {
        self.stored.base.dictionary()
    }

    /// The terms that came after the base, of this snapshot and of later ones; see
    /// [`delta_terms`](Self::delta_terms).
    pub fn delta_dictionary(&self) -> &DeltaDictionary {
        &self.stored.base.delta_dictionary
    }

    /// The number of this snapshot's entries in the delta dictionary.
    pub fn delta_terms(&self) -> u64 {
        self.counts.delta_terms
    }

    /// What is known of the quads without looking at each.
    pub(crate) fn figures(&self) -> Figures<'_> {
        match &self.sampled {
            None => Figures::Counted(self.stored.base.statistics()),
            Some(found) => Figures::Sampled(Sampled::new(found, &self.indexes)),
        }
    }

    /// Whether there are quads outside the default graph, or were lately.
    pub(crate) fn has_named_graphs(&self) -> bool {
        self.index(Permutation::Gspo).is_some()
    }

    /// The manifest of the snapshot.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The spelling of language tags, which terms have in lower case.
    pub fn language_tags(&self) -> &LanguageTags {
        &self.language_tags
    }

    /// The prefixes of the database: those of loaded files, and those that were given to it.
    /// Unchanged ones are the same `Arc`.
    pub fn prefixes(&self) -> &Arc<Prefixes> {
        &self.prefixes
    }

    pub(crate) fn shared_manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    pub(crate) fn stored(&self) -> &Arc<Stored> {
        &self.stored
    }

    pub(crate) fn base(&self) -> &Arc<Base> {
        &self.stored.base
    }

    pub(crate) fn deltas(&self) -> &Deltas {
        &self.deltas
    }

    pub(crate) fn counts(&self) -> SnapshotCounts {
        self.counts
    }

    /// The number that the next new blank node gets.
    pub fn next_blank_node(&self) -> u64 {
        self.counts.next_blank_node
    }

    /// Bytes of all files of the base and of the flushed delta.
    pub fn file_bytes(&self) -> u64 {
        let base = self.manifest.present();
        let delta = base.deltas.last().map_or(0, |delta| delta.delta.bytes());
        base.segment.bytes() + delta
    }

    /// The directory of the base's files.
    pub fn directory(&self) -> &Path {
        self.stored.base.directory()
    }

    /// The id of a term; `None` if it stands neither in an id nor in one of the dictionaries.
    ///
    /// A blank node always has an id, whether any quad has it or not.
    pub fn term_id(&self, term: &Term<'_>) -> Result<Option<TermId>> {
        if let Term::BlankNode(number) = term {
            return Ok(Some(TermId::blank_node(*number)));
        }
        if let Some(id) = inline(term) {
            return Ok(Some(id));
        }
        let mut key = Vec::new();
        write_key(term, &mut key);
        if let Some(rank) = self.dictionary().find(&key)? {
            return Ok(Some(self.id_of_rank(rank)));
        }
        let terms = self.delta_terms();
        if terms == 0 {
            return Ok(None);
        }
        let index = self.delta_dictionary().find(&key, terms);
        Ok(index.map(TermId::delta))
    }

    /// Whether what leads to terms may have to be fetched from far away.
    pub fn is_far(&self) -> bool {
        self.dictionary().terms_file().is_far()
    }

    /// Looks up several terms in parallel. Who asks for one of them afterwards finds that it is
    /// there, and why one could not be looked up.
    pub fn look_up_together(&self, terms: &[Term<'_>]) {
        for some in terms.chunks(LOOKED_UP_TOGETHER) {
            std::thread::scope(|scope| {
                for term in some {
                    let thread = std::thread::Builder::new();
                    // One for which there is no thread is looked up later.
                    let _ignored = thread.spawn_scoped(scope, || drop(self.term_id(term)));
                }
            });
        }
    }

    /// The id of a rank in the base's dictionary.
    pub fn id_of_rank(&self, rank: u64) -> TermId {
        self.dictionary().id_of_rank(rank)
    }

    /// Puts the key of a term of the dictionaries into `key`, which is emptied first.
    pub(crate) fn term_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<()> {
        match id.kind() {
            TermKind::Delta => self.delta_key(id, key),
            _ if id.is_dictionary() => self.dictionary().key(id.payload(), key),
            _ => Err(self.no_term(id)),
        }
    }

    /// The term of an id of this database. Ids of the default graph, of query-local terms, ranks
    /// and indexes that do not exist are errors. Many ids are decoded faster by
    /// [`terms`](Self::terms).
    pub fn term(&self, id: TermId) -> Result<Term<'static>> {
        match id.checked_kind() {
            Some(TermKind::BlankNode) => Ok(Term::BlankNode(id.payload())),
            Some(TermKind::Iri | TermKind::Literal | TermKind::TripleTerm) => {
                let mut key = Vec::new();
                self.dictionary().key(id.payload(), &mut key)?;
                self.parse(&key)
            }
            Some(TermKind::Delta) => {
                let mut key = Vec::new();
                self.delta_key(id, &mut key)?;
                self.parse(&key)
            }
            _ => id.to_inline_term().ok_or_else(|| self.no_term(id)),
        }
    }

    /// The term of an id that this state knows, or another one over the same files that has so many
    /// terms of the delta dictionary.
    pub(crate) fn term_of_any(&self, id: TermId, delta_terms: u64) -> Result<Term<'static>> {
        if id.kind() != TermKind::Delta {
            return self.term(id);
        }
        let (index, mut key) = (id.payload(), Vec::new());
        let terms = self.delta_terms().max(delta_terms);
        match index < terms && self.delta_dictionary().key(index, &mut key) {
            true => self.parse(&key),
            false => Err(self.no_term(id)),
        }
    }

    /// Calls `found` with the place in `ids` and the term, for each id; quick if the ids ascend.
    pub fn terms(&self, ids: &[TermId], mut found: impl FnMut(usize, Term<'_>)) -> Result<()> {
        let mut cursor = self.dictionary().iter(0);
        let mut delta_key = Vec::new();
        for (place, &id) in ids.iter().enumerate() {
            match id.checked_kind() {
                Some(TermKind::BlankNode) => found(place, Term::BlankNode(id.payload())),
                Some(TermKind::Iri | TermKind::Literal | TermKind::TripleTerm) => {
                    let key = cursor.at(id.payload())?;
                    found(place, self.parse_borrowed(key)?);
                }
                Some(TermKind::Delta) => {
                    self.delta_key(id, &mut delta_key)?;
                    found(place, self.parse_borrowed(&delta_key)?);
                }
                _ => found(place, id.to_inline_term().ok_or_else(|| self.no_term(id))?),
            }
        }
        Ok(())
    }

    fn delta_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<()> {
        let index = id.payload();
        match index < self.delta_terms() && self.delta_dictionary().key(index, key) {
            true => Ok(()),
            false => Err(self.no_term(id)),
        }
    }

    fn parse(&self, key: &[u8]) -> Result<Term<'static>> {
        self.parse_borrowed(key).map(Term::into_owned)
    }

    fn parse_borrowed<'k>(&self, key: &'k [u8]) -> Result<Term<'k>> {
        parse_key(key).map_err(|error| {
            let path = self.dictionary().terms_file().path();
            Error::corrupt(path, 0, format!("a key is not that of a term: {error}"))
        })
    }

    fn no_term(&self, id: TermId) -> Error {
        let what = format!("the id {:016x} stands for no term", id.bits());
        Error::corrupt(self.directory(), 0, what)
    }
}

//! A transaction: changes that become visible together or never.
//!
//! Each batch of quads is sorted and compared with what is visible to the transaction in SPOG, one
//! ascending look-up a quad; only those that really change something are kept. The other
//! permutations are brought up to date when somebody reads from the transaction, and at the commit.
//! A quad that holds a term which the transaction itself brought cannot be there yet, so the first
//! batch of new subjects needs no look-ups.
//!
//! Graphs with many quads are not deleted quad by quad: they are cleared as a whole
//! ([`Transaction::clear`]), which makes another state to which further changes are relative. The
//! log gets one record that names the graphs.

use std::sync::Arc;
use std::time::Instant;

use orrery_term::{
    LanguageTags, Literal, LiteralKind, Prefixes, Term, TermId, TermKind, inline, write_key,
};

use super::commit::PendingCommit;
use super::handle::Writer;
use super::memory::{ChangeMemory, MemoryCount};
use super::options::{CommitOptions, Durability};
use super::shared::{RecordChanges, WriteGuard};
use super::staged::Staged;
use crate::files::log::ClearedGraphs;
use crate::quads::changes::{change, drop_graphs, has_named_graph, net_changes};
use crate::quads::delta::DeltaEntry;
use crate::quads::delta::DeltaIndex;
use crate::quads::graph_set::GraphSet;
use crate::quads::index::{COLUMNS, Permutation, QuadIndex, QuadRow, RowRange};
use crate::snapshots::counts::SnapshotCounts;
use crate::snapshots::snapshot::Snapshot;
use crate::snapshots::stored::Deltas;
use crate::table::{NewDirectory, TableChange, Tables};
use crate::{Error, Result};

/// Rows taken at a time where a whole graph goes.
const CLEAR_ROWS: u64 = 64 * 1024;

/// The changes of the one writer whose turn it is. Dropped without [`commit`](Self::commit) it
/// leaves no trace.
#[derive(Debug)]
pub struct Transaction {
    writer: Writer,
    /// Given back when the transaction ends; the next one begins then. Missing once it went on to a
    /// new base.
    pub(super) turn: Option<WriteGuard>,
    /// The state before the transaction.
    pub(super) start: Arc<Snapshot>,
    /// Graphs that were cleared as a whole.
    cleared: GraphSet,
    /// The state before the transaction without these.
    origin: Arc<Snapshot>,
    /// That with the first `applied` changes.
    current: Arc<Snapshot>,
    applied: usize,
    /// All changes of the origin in the order in which they came, as rows of SPOG.
    changes: Vec<DeltaEntry>,
    /// Where in `changes` the batches begin; the rows of each ascend.
    batches: Vec<usize>,
    /// SPOG with all changes, and those that are in memory.
    spog: Arc<QuadIndex>,
    spog_delta: DeltaIndex,
    pub(super) memory: MemoryCount,
    /// Takes insertions that memory is refused for; only of a
    /// [bulk transaction](super::BulkTransaction).
    pub(super) staged: Option<Staged>,
    next_blank_node: u64,
    /// How tags may be written in terms to come.
    language_tags: LanguageTags,
    /// How those are written that no commit before had.
    pub(super) new_language_tags: LanguageTags,
    /// The prefixes of the database, as the transaction leaves them.
    pub(super) prefixes: Arc<Prefixes>,
    /// The tables as the transaction leaves them, and what it did to them.
    pub(super) tables: Arc<Tables>,
    pub(super) table_changes: Vec<TableChange>,
    /// What was written for tables and is in no manifest.
    pub(super) table_directories: Vec<NewDirectory>,
    key: Vec<u8>,
    is_committed: bool,
}

impl Writer {
    /// Begins a transaction, after waiting for the one that is under way. It sees all commits
    /// before it.
    ///
    /// Fails with [`crate::Error::WritingStopped`] when the log could not be written, until the
    /// database is opened anew.
    pub fn begin(&self) -> Result<Transaction> {
        let turn = self.handle.shared.take_turn()?;
        let (latest, log) = {
            let state = turn.shared.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        log.check()?;
        Transaction::new(self.clone(), turn, latest)
    }
}

impl Transaction {
    fn new(writer: Writer, turn: WriteGuard, start: Arc<Snapshot>) -> Result<Self> {
        let spog_delta = start.deltas().get(Permutation::Spog).cloned();
        Ok(Self {
            spog: Arc::clone(start.spog()?),
            spog_delta: spog_delta.unwrap_or_else(|| DeltaIndex::new(Permutation::Spog)),
            writer,
            turn: Some(turn),
            staged: None,
            cleared: GraphSet::default(),
            origin: Arc::clone(&start),
            current: Arc::clone(&start),
            applied: 0,
            changes: Vec::new(),
            batches: Vec::new(),
            memory: MemoryCount::default(),
            next_blank_node: start.next_blank_node(),
            prefixes: Arc::clone(start.prefixes()),
            tables: Arc::clone(start.tables()),
            table_changes: Vec::new(),
            table_directories: Vec::new(),
            start,
            language_tags: LanguageTags::default(),
            new_language_tags: LanguageTags::default(),
            key: Vec::new(),
            is_committed: false,
        })
    }

    /// The writer that the transaction belongs to.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The state that the transaction begins on, without its own changes.
    pub fn start(&self) -> &Arc<Snapshot> {
        &self.start
    }

    /// Number of the commit that the transaction begins after.
    pub fn begins_after(&self) -> u64 {
        self.start.commit()
    }

    /// Counts the memory that changes take from now on, by what `grants` makes, unless somebody
    /// counts already. Where it is refused, changes fail with [`Error::TransactionMemory`]; the
    /// transaction can only be dropped then.
    pub fn count_memory(&mut self, grants: impl FnOnce() -> Box<dyn ChangeMemory>) {
        self.memory.set(grants);
    }

    /// The data with this transaction's own changes so far. Later changes do not show in it; it
    /// must not be used after the transaction was rolled back.
    ///
    /// Fails with [`Error::StagedUnreadable`] when insertions went beyond the memory.
    pub fn snapshot(&mut self) -> Result<Arc<Snapshot>> {
        match self
            .staged
            .as_ref()
            .is_some_and(|staged| !staged.is_empty())
        {
            true => Err(Error::StagedUnreadable),
            false => self.state(),
        }
    }

    /// Whether insertions may go beyond the memory.
    pub fn is_bulk(&self) -> bool {
        self.staged.is_some()
    }

    /// The state without what is staged.
    fn state(&mut self) -> Result<Arc<Snapshot>> {
        let counts = self.counts();
        if self.applied < self.changes.len() {
            let net = self.net_changes(self.applied);
            let deltas = self.apply(&net)?;
            self.current = Arc::new(self.snapshot_with(deltas, counts)?);
            self.applied = self.changes.len();
        } else if self.current.counts() != counts
            || !Arc::ptr_eq(self.current.tables(), &self.tables)
        {
            let deltas = self.current.deltas().clone();
            self.current = Arc::new(self.snapshot_with(deltas, counts)?);
        }
        Ok(Arc::clone(&self.current))
    }

    /// The id of a term, if it has one.
    pub fn term_id(&self, term: &Term<'_>) -> Result<Option<TermId>> {
        let known = self.start.term_id(term)?;
        if known.is_some() {
            return Ok(known);
        }
        let mut key = Vec::new();
        write_key(term, &mut key);
        let index = self.start.delta_dictionary().find(&key, u64::MAX);
        Ok(index.map(TermId::delta))
    }

    /// The id of a term, which gets one if it has none.
    pub fn intern(&mut self, term: &Term<'_>) -> Result<TermId> {
        if let Term::BlankNode(number) = term {
            // A number from outside must not be given out again.
            self.next_blank_node = self.next_blank_node.max(number + 1);
            return Ok(TermId::blank_node(*number));
        }
        if let Some(id) = inline(term) {
            return Ok(id);
        }
        self.key.clear();
        write_key(term, &mut self.key);
        let dictionary = self.start.delta_dictionary();
        if let Some(index) = dictionary.find(&self.key, u64::MAX) {
            return Ok(TermId::delta(index));
        }
        if let Some(rank) = self.start.dictionary().find(&self.key)? {
            return Ok(self.start.id_of_rank(rank));
        }
        self.memory.take_term(&self.key)?;
        let index = dictionary
            .insert(&self.key)
            .ok_or_else(|| Error::TooManyTerms {
                path: self.start.directory().to_path_buf(),
            })?;
        self.note_language_tag(term);
        Ok(TermId::delta(index))
    }

    /// Adds the spelling of language tags for terms to come.
    pub fn add_language_tags(&mut self, tags: &LanguageTags) {
        self.language_tags.add(tags);
    }

    /// Adds the prefixes that loaded documents declare, where their names are free.
    pub fn note_loaded_prefixes(&mut self, loaded: &Prefixes) {
        if !loaded.is_empty() {
            Arc::make_mut(&mut self.prefixes).note_all_loaded(loaded);
        }
    }

    /// The prefixes of the database, to be changed: with the transaction, and as durable as it is.
    pub fn prefixes_mut(&mut self) -> &mut Prefixes {
        Arc::make_mut(&mut self.prefixes)
    }

    /// Whether the prefixes are others than before.
    pub(super) fn has_other_prefixes(&self) -> bool {
        !Arc::ptr_eq(&self.prefixes, self.start.prefixes())
            && self.prefixes != *self.start.prefixes()
    }

    /// A blank node that no quad has yet.
    pub fn fresh_blank_node(&mut self) -> TermId {
        let number = self.next_blank_node;
        self.next_blank_node += 1;
        TermId::blank_node(number)
    }

    /// Inserts quads: subject, predicate, object, graph ([`TermId::DEFAULT_GRAPH`] for the default
    /// graph). Returns how many were not there before; these stay in `quads`, in ascending order.
    pub fn insert(&mut self, quads: &mut Vec<[TermId; COLUMNS]>) -> Result<u64> {
        self.change(quads, true)
    }

    /// Inserts quads that may be there already past the memory. Only while
    /// [`is_bulk`](Self::is_bulk).
    pub fn insert_staged(&mut self, quads: &[[TermId; COLUMNS]]) -> Result<()> {
        match &mut self.staged {
            Some(staged) => staged.insert(quads),
            None => Err(self.misuse("only a bulk transaction stages insertions")),
        }
    }

    /// Deletes quads, given as for [`insert`](Self::insert). Returns how many were there; these
    /// stay in `quads`, in ascending order.
    pub fn delete(&mut self, quads: &mut Vec<[TermId; COLUMNS]>) -> Result<u64> {
        self.change(quads, false)
    }

    /// Deletes all quads of some graphs; returns how many there were. From
    /// [`WriterOptions::whole_graph_quads`](super::WriterOptions) on it makes no difference how
    /// many, for time, memory and the log, but that the column of the graph is read once in each
    /// permutation; and nothing is read where all graphs go.
    pub fn clear(&mut self, graphs: &GraphSet) -> Result<u64> {
        if self
            .staged
            .as_ref()
            .is_some_and(|staged| staged.may_be_in(graphs))
        {
            return Err(Error::StagedUnreadable);
        }
        let quads = match graphs.is_all() {
            true => self.spog.rows(),
            false => self.state()?.quads_of(graphs)?,
        };
        if quads >= self.writer.handle.shared.options.whole_graph_quads.max(1) {
            match self.clear_whole(graphs) {
                // Masks of a large base may take more than single deletions of a graph that is
                // small beside it.
                Err(Error::TransactionMemory { .. }) => {}
                cleared => return cleared.map(|()| quads),
            }
        }
        if graphs.is_all() {
            let spog = Arc::clone(&self.spog);
            return self.clear_rows(&spog, spog.all(), graphs);
        }
        let snapshot = self.state()?;
        let Some(gspo) = snapshot.index(Permutation::Gspo) else {
            // All quads are in the default graph.
            let spog = Arc::clone(&self.spog);
            return match graphs.contains(TermId::DEFAULT_GRAPH) {
                true => self.clear_rows(&spog, spog.all(), graphs),
                false => Ok(0),
            };
        };
        if graphs.has_all_named() {
            // The mark of the default graph is less than every term.
            let start = gspo.range(&[TermId::DEFAULT_GRAPH])?.end;
            return self.clear_rows(gspo, RowRange::new(start, gspo.rows()), graphs);
        }
        graphs.listed().try_fold(0, |sum, graph| {
            Ok(sum + self.clear_rows(gspo, gspo.range(&[graph])?, graphs)?)
        })
    }

    /// Deletes all quads of one graph (or of [`TermId::DEFAULT_GRAPH`]); returns how many there
    /// were.
    pub fn clear_graph(&mut self, graph: TermId) -> Result<u64> {
        self.clear(&GraphSet::one(graph))
    }

    /// Deletes all quads; returns how many there were.
    pub fn clear_all(&mut self) -> Result<u64> {
        self.clear(&GraphSet::all())
    }

    /// Number of quads that the transaction sees.
    pub fn quad_count(&self) -> u64 {
        self.spog.rows()
    }

    /// Commits the changes. What returns has its place in the order of commits;
    /// [`PendingCommit::wait`] returns once it is durable, and visible to everybody. Without
    /// changes of quads or prefixes there is no commit, and the number is that of the last one.
    pub fn commit(mut self, options: CommitOptions) -> Result<PendingCommit> {
        self.check_expected(&options)?;
        let net = self.net_changes(0);
        let cleared = self.cleared_graphs(&net)?;
        let (added, removed) = added_and_removed(&net, cleared.as_ref());
        if added + removed == 0 && !self.has_other_prefixes() && self.table_changes.is_empty() {
            return Ok(self.nothing_to_commit(options.durability));
        }
        let mut counts = self.counts();
        counts.commit = self.start.commit() + 1;
        counts.time_us = self
            .writer
            .handle
            .shared
            .now_us()
            .max(self.start.commit_time_us());
        let deltas = match self.applied {
            0 => self.apply(&net)?,
            _ => self.apply(&self.net_changes(self.applied))?,
        };
        let mut snapshot = self.snapshot_with(deltas, counts)?.of_commit();
        if let Some(manifest) = self.list_table_files()? {
            snapshot = snapshot.with_manifest(manifest);
        }
        let snapshot = Arc::new(snapshot);
        let Some(turn) = &self.turn else {
            return Err(self.misuse("the transaction went on to a new base"));
        };
        let changes = RecordChanges {
            net: &net,
            cleared,
            tables: std::mem::take(&mut self.table_changes),
        };
        let (log, position) = turn.submit(&self.start, snapshot, changes, &options)?;
        self.is_committed = true;
        Ok(PendingCommit {
            writer: self.writer.clone(),
            number: counts.commit,
            added,
            removed,
            durability: options.durability,
            log,
            position,
            unchanged: None,
        })
    }

    /// Fails if another commit came before that which is expected.
    pub(super) fn check_expected(&self, options: &CommitOptions) -> Result<()> {
        let found = self.start.commit();
        match options.expected {
            Some(expected) if expected != found => Err(Error::CommitConflict { expected, found }),
            _ => Ok(()),
        }
    }

    /// How many quads the transaction adds and removes, beside what is staged.
    pub(super) fn added_and_removed(&self) -> Result<(u64, u64)> {
        let net = self.net_changes(0);
        let cleared = self.cleared_graphs(&net)?;
        Ok(added_and_removed(&net, cleared.as_ref()))
    }

    fn misuse(&self, what: &str) -> Error {
        Error::invalid_input(self.start.directory(), what)
    }

    /// Done when the commits before are, for the transaction has seen them, and nobody else has
    /// written.
    fn nothing_to_commit(&self, durability: Durability) -> PendingCommit {
        let log = Arc::clone(&self.writer.handle.shared.state.lock().log);
        PendingCommit {
            writer: self.writer.clone(),
            number: self.start.commit(),
            added: 0,
            removed: 0,
            durability,
            position: log.end(),
            log,
            unchanged: Some(Instant::now()),
        }
    }

    fn counts(&self) -> SnapshotCounts {
        SnapshotCounts {
            quads: self.spog.rows(),
            delta_terms: self.start.delta_dictionary().len(),
            next_blank_node: self.next_blank_node,
            ..self.start.counts()
        }
    }

    fn apply(&self, net: &[DeltaEntry]) -> Result<Deltas> {
        let with_gspo = self.current.has_named_graphs() || has_named_graph(net);
        // SPOG is up to date already.
        let spog = Some(&self.spog_delta);
        self.current.deltas().apply(net, spog, with_gspo)
    }

    fn snapshot_with(&self, deltas: Deltas, counts: SnapshotCounts) -> Result<Snapshot> {
        let stored = Arc::clone(self.origin.stored());
        let snapshot = self.start.with_deltas(stored, deltas, counts)?;
        Ok(snapshot
            .with_language_tags(&self.new_language_tags)
            .with_prefixes(&self.prefixes)
            .with_tables(&self.tables))
    }

    /// Notes how the tag of a new term is written, if nobody does yet.
    fn note_language_tag(&mut self, term: &Term<'_>) {
        match term {
            Term::Literal(Literal {
                kind: LiteralKind::Language(tag) | LiteralKind::Directional(tag, _),
                ..
            }) => {
                if !self.start.language_tags().is_known(tag)
                    && !self.new_language_tags.is_known(tag)
                {
                    let written = self.language_tags.written(tag);
                    self.new_language_tags.note(written.unwrap_or(tag));
                }
            }
            Term::Triple(triple) => self.note_language_tag(triple.object()),
            Term::Literal(_) | Term::Iri(_) | Term::BlankNode(_) => {}
        }
    }

    fn change(&mut self, quads: &mut Vec<[TermId; COLUMNS]>, is_insertion: bool) -> Result<u64> {
        quads.sort_unstable();
        quads.dedup();
        self.keep_effective(quads, is_insertion)?;
        let rows = quads.iter().map(|quad| quad.map(TermId::bits));
        match (self.push(rows, is_insertion), &mut self.staged) {
            (Err(Error::TransactionMemory { .. }), Some(staged)) if is_insertion => {
                staged.insert(quads)?;
                Ok(quads.len() as u64)
            }
            (pushed, _) => pushed,
        }
    }

    /// Keeps the quads that are not visible, for an insertion, or that are, for a deletion.
    fn keep_effective(&self, quads: &mut Vec<[TermId; COLUMNS]>, is_insertion: bool) -> Result<()> {
        let known_terms = match self.changes.is_empty() {
            true => self.start.delta_terms(),
            // A new term may be in a quad of an earlier batch.
            false => u64::MAX,
        };
        let is_new = |id: &TermId| id.kind() == TermKind::Delta && id.payload() >= known_terms;
        let mut cursor = self.spog.cursor();
        let mut failure = None;
        quads.retain(|quad| {
            if failure.is_some() {
                return false;
            }
            let is_visible = match quad.iter().any(is_new) {
                true => Ok(false),
                false => cursor.seek(quad).map(|rows| !rows.is_empty()),
            };
            match is_visible {
                Ok(is_visible) => is_visible != is_insertion,
                Err(error) => {
                    failure = Some(error);
                    false
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    /// Adds a batch of ascending rows, each of which changes what is visible.
    fn push(
        &mut self,
        rows: impl ExactSizeIterator<Item = QuadRow>,
        is_insertion: bool,
    ) -> Result<u64> {
        self.memory.take_changes(rows.len() as u64)?;
        let first = self.changes.len();
        self.changes
            .extend(rows.map(|row| change(row, is_insertion)));
        let batch = &self.changes[first..];
        if batch.is_empty() {
            return Ok(0);
        }
        self.batches.push(first);
        self.spog_delta = self.spog_delta.apply(batch)?;
        self.spog = spog_over(&self.origin, &self.spog_delta)?;
        Ok(batch.len() as u64)
    }

    /// Hides the quads of some graphs. What the transaction did to these is forgotten, the rest is
    /// laid over what is left. Where memory is refused, nothing was changed.
    fn clear_whole(&mut self, graphs: &GraphSet) -> Result<()> {
        if !graphs.is_all() {
            // What is left of earlier changes comes into memory; a bit for each row of each
            // permutation.
            self.memory.take_changes(self.start.change_count())?;
            let rows = self.spog.base_file_rows();
            self.memory
                .take(rows.div_ceil(8) * Permutation::ALL.len() as u64)?;
        }
        let mut changes = self.net_changes(0);
        drop_graphs(&mut changes, graphs);
        let origin = Arc::new(self.origin.without(graphs)?);
        let spog_delta = origin.deltas().get(Permutation::Spog).cloned();
        self.spog_delta = spog_delta
            .unwrap_or_else(|| DeltaIndex::new(Permutation::Spog))
            .apply(&changes)?;
        self.spog = match changes.is_empty() {
            true => Arc::clone(origin.spog()?),
            false => spog_over(&origin, &self.spog_delta)?,
        };
        self.cleared = self.cleared.union(graphs);
        self.batches = Vec::from_iter((!changes.is_empty()).then_some(0));
        self.changes = changes;
        self.applied = 0;
        self.current = Arc::clone(&origin);
        self.origin = origin;
        Ok(())
    }

    /// What clearing graphs as a whole came to, together with the net changes since; `None` if none
    /// were cleared.
    fn cleared_graphs(&self, net: &[DeltaEntry]) -> Result<Option<ClearedGraphs>> {
        if self.cleared.is_empty() {
            return Ok(None);
        }
        let gone = self.start.quads_of(&self.cleared)?;
        let mut before = self.start.spog()?.cursor();
        let (mut added, mut deleted, mut returned) = (0, 0, 0);
        for change in net {
            if !change.is_insertion {
                deleted += 1;
                continue;
            }
            let is_of_cleared = self.cleared.contains_bits(change.row[COLUMNS - 1]);
            let quad = change.row.map(TermId::from_bits);
            match is_of_cleared && !before.seek(&quad)?.is_empty() {
                true => returned += 1,
                false => added += 1,
            }
        }
        Ok(Some(ClearedGraphs {
            graphs: self.cleared.clone(),
            added,
            removed: gone - returned + deleted,
        }))
    }

    /// Deletes rows of a permutation that are in some graphs, a part at a time.
    fn clear_rows(
        &mut self,
        index: &Arc<QuadIndex>,
        range: RowRange,
        graphs: &GraphSet,
    ) -> Result<u64> {
        let permutation = index.permutation();
        let mut cursor = index.cursor();
        let mut columns: [Vec<u64>; COLUMNS] = Default::default();
        let mut rows = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let part = RowRange::new(start, range.end.min(start + CLEAR_ROWS));
            for (column, values) in columns.iter_mut().enumerate() {
                values.clear();
                cursor.read(part, column, values)?;
            }
            let row = |row: usize| permutation.quad(std::array::from_fn(|c| columns[c][row]));
            rows.clear();
            rows.extend((0..part.len() as usize).map(row));
            // SPOG and, within one graph, GSPO are in the order of SPOG.
            if graphs.has_all_named() {
                rows.sort_unstable();
            }
            self.push(rows.iter().copied(), false)?;
            start = part.end;
        }
        Ok(range.len())
    }

    /// What the changes from `from` on come to, ascending.
    fn net_changes(&self, from: usize) -> Vec<DeltaEntry> {
        let changes = self.changes[from..].to_vec();
        match self.batches.last() {
            // Several batches.
            Some(&last) if last > from => net_changes(changes),
            _ => changes,
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_committed {
            let terms = self.start.delta_terms();
            self.start.delta_dictionary().truncate(terms);
        }
    }
}

/// How many quads net changes add and remove, with graphs that were cleared as a whole.
fn added_and_removed(net: &[DeltaEntry], cleared: Option<&ClearedGraphs>) -> (u64, u64) {
    if let Some(cleared) = cleared {
        return (cleared.added, cleared.removed);
    }
    let insertions = net.iter().filter(|change| change.is_insertion);
    let added = insertions.count() as u64;
    (added, net.len() as u64 - added)
}

/// SPOG of what a snapshot's files hold, with changes in memory.
fn spog_over(snapshot: &Snapshot, delta: &DeltaIndex) -> Result<Arc<QuadIndex>> {
    let stored = snapshot.stored().indexes.get(Permutation::Spog);
    match stored {
        Some(stored) => QuadIndex::view(stored, delta.clone()),
        None => snapshot.spog().cloned(),
    }
}

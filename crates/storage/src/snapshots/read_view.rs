//! The read view: a snapshot filtered for one asker, and the only source of cursors and counts.
//!
//! ```text
//! snapshot + scope (who asks, which graphs) -> ReadView -> IndexView -> Cursor, Scan, counts
//!                                                 ^------- cost ---------'
//! ```
//!
//! A [`Snapshot`] gives terms, and nothing that is in the permutations; these are reached through a
//! view alone, so that what a scope hides is hidden wherever rows are read or counted, whatever
//! reads them. Where graphs are hidden, the view is of a snapshot without their quads, as after a
//! `DROP` of them: rows are masked in each permutation, row numbers and counts are those of what is
//! left. Making the first such view over some files reads the column of the graph once; a view of
//! all graphs costs two small allocations.
//!
//! What is known of the quads ([`ReadView::figures`]) is of those that are shown, too, so that
//! estimates tell no more than answers.
//!
//! Not hidden are terms: that a dictionary knows a term says not in which graph it is.

use std::sync::Arc;

use orrery_term::{Term, TermId};

use crate::Result;
use crate::access::read_scope::ReadScope;
use crate::asker::Asker;
use crate::quads::adjacency::{AdjacencySlot, Measured, Touched};
use crate::quads::delta::{Changes, DeltaIndex};
use crate::quads::index::{COLUMNS, Cursor, Permutation, QuadIndex, RowRange, Scan};
use crate::quads::read_cost::{ReadCost, ReadCounts};
use crate::quads::statistics::Figures;
use crate::snapshots::shown_states::shown_to;
use crate::snapshots::snapshot::Snapshot;

/// A snapshot filtered for one asker, with a cost counter; see the module's documentation.
///
/// Nothing else leads to a permutation:
///
/// ```compile_fail,E0624
/// fn leaf(snapshot: &orrery_storage::Snapshot) -> u64 {
///     snapshot.index(orrery_storage::Permutation::Spog).map_or(0, |index| index.rows())
/// }
/// ```
///
/// ```
/// fn leaf(view: &orrery_storage::ReadView) -> u64 {
///     view.index(orrery_storage::Permutation::Spog).map_or(0, |index| index.rows())
/// }
/// ```
#[derive(Debug)]
pub struct ReadView {
    /// Without the quads that the scope hides.
    snapshot: Arc<Snapshot>,
    scope: ReadScope,
    cost: Arc<ReadCost>,
}

impl ReadView {
    /// The view of a snapshot within a scope.
    ///
    /// Two small allocations where all graphs may be seen; otherwise, when a list of graphs asks
    /// for a state first, what was committed since it asked for another one; and for the first one
    /// over some files a look-up for each graph, and one pass over the column of the graph.
    pub fn new(snapshot: Arc<Snapshot>, scope: ReadScope) -> Result<Arc<Self>> {
        let seen = match scope.list() {
            None => None,
            Some(visible) => Some(snapshot.scoped().of(visible, || {
                let (shown, bytes) = shown_to(visible, &snapshot)?;
                Ok((Arc::new(shown), bytes))
            })?),
        };
        let snapshot = seen.unwrap_or(snapshot);
        Ok(Arc::new(Self {
            snapshot,
            scope,
            cost: Arc::default(),
        }))
    }

    /// An unfiltered view, for the process's own work: loads, compactions, reports on the command
    /// line.
    pub fn of_process(snapshot: Arc<Snapshot>) -> Arc<Self> {
        Arc::new(Self {
            snapshot,
            scope: ReadScope::all_graphs(Asker::Process),
            cost: Arc::default(),
        })
    }

    /// The terms of the state, and what it is.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The asker and the readable graphs.
    pub fn scope(&self) -> &ReadScope {
        &self.scope
    }

    /// The cost counter of the view's reads.
    pub fn cost(&self) -> ReadCounts {
        self.cost.counts()
    }

    /// A permutation. PSOG, POSG, SPOG and OSPG are always there, GSPO where there are named
    /// graphs.
    pub fn index(&self, permutation: Permutation) -> Option<IndexView> {
        let index = self.snapshot.index(permutation)?;
        Some(IndexView {
            index: Arc::clone(index),
            cost: Arc::clone(&self.cost),
        })
    }

    /// All permutations that there are.
    pub fn indexes(&self) -> impl Iterator<Item = IndexView> {
        Permutation::ALL
            .into_iter()
            .filter_map(|permutation| self.index(permutation))
    }

    /// The id of a term that patterns ask for; `None` where no quad has it. Who sees all graphs
    /// gets that of every term that the dictionaries know; for others it has to stand in a quad
    /// that is shown, so that nothing follows from what is known of hidden ones.
    pub fn id_in_quads(&self, term: &Term<'_>) -> Result<Option<TermId>> {
        let Some(id) = self.snapshot.term_id(term)? else {
            return Ok(None);
        };
        if self.scope.list().is_none() {
            return Ok(Some(id));
        }
        for permutation in [
            Permutation::Psog,
            Permutation::Spog,
            Permutation::Ospg,
            Permutation::Gspo,
        ] {
            let index = self.snapshot.index(permutation);
            let rows = index.map(|index| index.range(&[id])).transpose()?;
            if rows.is_some_and(|rows| !rows.is_empty()) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Whether there is a permutation.
    pub fn has_index(&self, permutation: Permutation) -> bool {
        self.snapshot.index(permutation).is_some()
    }

    /// Number of quads.
    pub fn quad_count(&self) -> u64 {
        self.snapshot.quad_count()
    }

    /// Whether there are quads outside the default graph, or were lately.
    pub fn has_named_graphs(&self) -> bool {
        self.snapshot.has_named_graphs()
    }

    /// The statistics of the view: exact where all graphs are readable, else without counts of
    /// hidden ones.
    pub fn figures(&self) -> Figures<'_> {
        self.snapshot.figures()
    }
}

/// A permutation as a view shows it. Cheap to copy; what its cursors read is counted in the view.
#[derive(Debug, Clone)]
pub struct IndexView {
    index: Arc<QuadIndex>,
    cost: Arc<ReadCost>,
}

impl IndexView {
    /// The order of the columns.
    pub fn permutation(&self) -> Permutation {
        self.index.permutation()
    }

    /// Number of quads.
    pub fn rows(&self) -> u64 {
        self.index.rows()
    }

    /// All rows.
    pub fn all(&self) -> RowRange {
        self.index.all()
    }

    /// Whether both are the same permutation of the same state.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.index, &other.index)
    }

    /// Whether the rows are those of the base, none hidden and none changed.
    pub fn is_unchanged(&self) -> bool {
        self.index.is_unchanged()
    }

    /// A cursor, which makes a series of look-ups cheap.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(Arc::clone(&self.index)).counted(&self.cost)
    }

    /// Walks over a range, and decodes the columns that are asked for.
    pub fn scan(&self, range: RowRange, columns: [bool; COLUMNS]) -> Scan {
        Scan::new(&self.index, range, columns).counted(&self.cost)
    }

    /// The rows that begin with `prefix`, exactly. Decodes at most two vectors.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than four ids.
    pub fn range(&self, prefix: &[TermId]) -> Result<RowRange> {
        self.cursor().seek(prefix)
    }

    /// The change in the number of rows that begin with `prefix`, since the base. Nothing of the
    /// file is touched.
    ///
    /// # Panics
    ///
    /// If `prefix` has more than four ids.
    pub fn net(&self, prefix: &[TermId]) -> Result<i64> {
        self.index.net(prefix)
    }

    /// Rows of the base that are hidden, for their graphs were cleared as a whole since it was
    /// written, or are not in the scope.
    pub fn hidden_rows(&self) -> u64 {
        self.index.hidden_rows()
    }

    /// The rows of the base that are not hidden, before all changes.
    pub fn base(&self) -> Self {
        Self {
            index: self.index.base(),
            cost: Arc::clone(&self.cost),
        }
    }

    /// The permutation after the changes of a delta that was made over it. Costs nothing.
    pub fn with_changes(&self, delta: DeltaIndex) -> Result<Self> {
        Ok(Self {
            index: QuadIndex::view(&self.index, delta)?,
            cost: Arc::clone(&self.cost),
        })
    }

    /// The merged deltas since the base.
    pub fn changes(&self) -> Result<Changes> {
        self.index.changes()
    }

    /// Number of changes since the base was written, one on another.
    pub fn change_count(&self) -> u64 {
        self.index.deltas().iter().map(DeltaIndex::len).sum()
    }

    /// The place for the adjacency of a predicate, which is of the rows before all changes; only
    /// PSOG and POSG have any, and none while rows of the predicate are hidden.
    pub fn adjacency_slot(&self, predicate: TermId) -> Result<Option<Arc<AdjacencySlot>>> {
        self.index.adjacency_slot(predicate)
    }

    /// The size that an adjacency of the predicate would have; see [`Measured`].
    pub fn measure_adjacency(&self, predicate: TermId) -> Result<Option<Measured>> {
        Measured::new(&self.index, predicate)
    }

    /// The keys, in the second column, that changes to rows of the predicate touch. About so many
    /// keys will be asked for.
    pub fn touched(&self, predicate: TermId, keys: usize) -> Result<Touched> {
        self.index.touched(predicate, keys)
    }
}

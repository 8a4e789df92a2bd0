//! The stored part of a state: a base, a mask of cleared graphs, and a flushed delta.
//!
//! All snapshots between two checkpoints share it; each lays the changes that are in memory over
//! it. When graphs are cleared as a whole, there is a new one, over which changes are gathered anew
//! ([`Snapshot::without`](crate::Snapshot)).

use std::sync::Arc;

use crate::quads::changes::{drop_graphs, has_named_graph};
use crate::quads::delta::DeltaEntry;
use crate::quads::delta::DeltaIndex;
use crate::quads::graph_set::GraphSet;
use crate::quads::index::{PerPermutation, Permutation, QuadIndex};
use crate::snapshots::base::{BASE_PERMUTATIONS, Base};
use crate::snapshots::counts::SnapshotCounts;
use crate::{Error, Result};

/// Changes of all permutations, relative to the same state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deltas {
    /// Missing where nothing changed, and GSPO also while there are no named graphs.
    indexes: PerPermutation<DeltaIndex>,
}

impl Deltas {
    pub(crate) fn get(&self, permutation: Permutation) -> Option<&DeltaIndex> {
        self.indexes.get(permutation)
    }

    pub(crate) fn set(&mut self, delta: DeltaIndex) {
        self.indexes.set(delta.permutation(), delta);
    }

    /// Bytes of memory, of chunks shared with others too.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.indexes.values().map(DeltaIndex::memory_bytes).sum()
    }

    /// Number of changes.
    pub(crate) fn len(&self) -> u64 {
        self.get(Permutation::Spog).map_or(0, DeltaIndex::len)
    }

    /// The changes with some more: `changes` are rows of SPOG, ascending, each of which changes
    /// what is visible. `spog` is what comes out for SPOG, if that is known already.
    pub(crate) fn apply(
        &self,
        changes: &[DeltaEntry],
        spog: Option<&DeltaIndex>,
        with_gspo: bool,
    ) -> Result<Self> {
        let mut next = self.clone();
        if changes.is_empty() {
            return Ok(next);
        }
        match spog {
            Some(spog) => next.set(spog.clone()),
            None => next.apply_to(Permutation::Spog, changes)?,
        }
        let mut arranged: Vec<DeltaEntry> = Vec::with_capacity(changes.len());
        for permutation in BASE_PERMUTATIONS {
            if permutation != Permutation::Spog {
                next.apply_arranged(permutation, changes, &mut arranged)?;
            }
        }
        if with_gspo {
            if self.get(Permutation::Gspo).is_none() && self.len() > 0 {
                // The first named graph: what is there so far is all in the default graph.
                let earlier = self.changes()?;
                next.apply_arranged(Permutation::Gspo, &earlier, &mut arranged)?;
            }
            next.apply_arranged(Permutation::Gspo, changes, &mut arranged)?;
        }
        Ok(next)
    }

    /// All changes, as ascending rows of SPOG.
    pub(crate) fn changes(&self) -> Result<Vec<DeltaEntry>> {
        let spog = self.get(Permutation::Spog);
        spog.map_or_else(|| Ok(Vec::new()), |delta| delta.entries().collect())
    }

    fn apply_arranged(
        &mut self,
        permutation: Permutation,
        changes: &[DeltaEntry],
        arranged: &mut Vec<DeltaEntry>,
    ) -> Result<()> {
        arranged.clear();
        arranged.extend(changes.iter().map(|change| DeltaEntry {
            row: permutation.arrange(change.row),
            ..*change
        }));
        arranged.sort_unstable_by_key(|change| change.row);
        self.apply_to(permutation, arranged)
    }

    fn apply_to(&mut self, permutation: Permutation, changes: &[DeltaEntry]) -> Result<()> {
        let delta = match self.get(permutation) {
            Some(delta) => delta.apply(changes)?,
            None => DeltaIndex::new(permutation).apply(changes)?,
        };
        self.set(delta);
        Ok(())
    }
}

/// An open base with its flushed delta.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) base: Arc<Base>,
    /// The base's quads of these graphs are hidden.
    pub(crate) hidden: GraphSet,
    /// GSPO of a base that has no file for it, without what is hidden.
    hidden_gspo: Option<Arc<QuadIndex>>,
    flushed: Deltas,
    /// The permutations of both together.
    pub(crate) indexes: PerPermutation<Arc<QuadIndex>>,
    pub(crate) counts: SnapshotCounts,
}

impl Stored {
    /// A base as it was written.
    pub(crate) fn of_base(base: Arc<Base>, counts: SnapshotCounts) -> Result<Self> {
        Self::new(base, GraphSet::default(), Deltas::default(), false, counts)
    }

    /// A base without the quads of some graphs, with its flushed delta if `flushed` is not empty.
    /// GSPO is shown where a named graph was ever written.
    pub(crate) fn new(
        base: Arc<Base>,
        hidden: GraphSet,
        flushed: Deltas,
        has_named_graphs: bool,
        counts: SnapshotCounts,
    ) -> Result<Self> {
        let mut indexes = PerPermutation::default();
        for permutation in Permutation::ALL {
            if let Some(index) = base.index(permutation) {
                indexes.set(permutation, index.hiding(&hidden)?);
            }
        }
        let differ = {
            let mut left = indexes.values().map(|index| index.rows());
            let first = left.next();
            left.any(|rows| Some(rows) != first)
        };
        if differ {
            let what =
                "the permutations do not have the same quads of the graphs that were cleared";
            return Err(Error::corrupt(base.directory(), 0, what));
        }
        let hidden_gspo = match base.index(Permutation::Gspo) {
            None if !hidden.is_empty() => Some(base.gspo()?.hiding(&hidden)?),
            _ => None,
        };
        let mut stored = Self {
            indexes,
            base,
            hidden,
            hidden_gspo,
            flushed: Deltas::default(),
            counts,
        };
        stored.indexes = stored.views(&flushed)?;
        stored.flushed = flushed;
        if !has_named_graphs && stored.base.index(Permutation::Gspo).is_none() {
            stored.indexes.remove(Permutation::Gspo);
        }
        Ok(stored)
    }

    /// The same over a base that has the same files, with another index of texts.
    pub(crate) fn over(&self, base: Arc<Base>) -> Self {
        assert_eq!(base.name(), self.base.name(), "its files are the same");
        Self {
            base,
            hidden: self.hidden.clone(),
            hidden_gspo: self.hidden_gspo.clone(),
            flushed: self.flushed.clone(),
            indexes: self.indexes.clone(),
            counts: self.counts,
        }
    }

    /// The same over the same base, whose files were opened anew.
    pub(crate) fn reopened(&self, base: Arc<Base>) -> Result<Self> {
        let has_named_graphs = self.indexes.get(Permutation::Gspo).is_some();
        let (hidden, flushed) = (self.hidden.clone(), self.flushed.clone());
        Self::new(base, hidden, flushed, has_named_graphs, self.counts)
    }

    /// The same base with the quads of some more graphs hidden, and nothing laid over it.
    pub(crate) fn hiding(&self, graphs: &GraphSet, counts: SnapshotCounts) -> Result<Self> {
        let (base, hidden) = (Arc::clone(&self.base), self.hidden.union(graphs));
        Self::new(base, hidden, Deltas::default(), false, counts)
    }

    /// The same without the quads of some graphs, for who does not see these. What is left of the
    /// flushed changes is in memory.
    pub(crate) fn showing_all_but(&self, graphs: &GraphSet) -> Result<Self> {
        let mut changes = match graphs.is_all() {
            true => Vec::new(),
            false => self.flushed.changes()?,
        };
        drop_graphs(&mut changes, graphs);
        // GSPO always, as in files: what is laid over it may need that.
        let flushed = Deltas::default().apply(&changes, None, true)?;
        let (base, hidden) = (Arc::clone(&self.base), self.hidden.union(graphs));
        let has_named_graphs = has_named_graph(&changes);
        Self::new(base, hidden, flushed, has_named_graphs, self.counts)
    }

    /// Bytes of memory of what is hidden and of changes, without files.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let indexes = self.indexes.values().chain(&self.hidden_gspo);
        let masks = indexes.map(|index| index.mask_bytes());
        masks.sum::<u64>() + self.flushed.memory_bytes()
    }

    /// The permutations with changes laid over them.
    pub(crate) fn views(&self, deltas: &Deltas) -> Result<PerPermutation<Arc<QuadIndex>>> {
        let mut views = self.indexes.clone();
        for permutation in Permutation::ALL {
            let Some(delta) = deltas.get(permutation) else {
                continue;
            };
            let lower = match self.indexes.get(permutation) {
                Some(lower) => Arc::clone(lower),
                // Only GSPO can be missing.
                None => self.gspo()?,
            };
            views.set(permutation, QuadIndex::view(&lower, delta.clone())?);
        }
        Ok(views)
    }

    /// GSPO with changes laid over it that did not need it so far, for they are all in the default
    /// graph.
    pub(crate) fn gspo_with(&self, deltas: &Deltas) -> Result<Arc<QuadIndex>> {
        let mut of_gspo = Deltas::default();
        let changes = deltas.changes()?;
        of_gspo.apply_arranged(Permutation::Gspo, &changes, &mut Vec::new())?;
        let gspo = self.gspo()?;
        match of_gspo.get(Permutation::Gspo) {
            Some(delta) => QuadIndex::view(&gspo, delta.clone()),
            None => Ok(gspo),
        }
    }

    fn gspo(&self) -> Result<Arc<QuadIndex>> {
        let base = match &self.hidden_gspo {
            Some(index) => Arc::clone(index),
            None => Arc::clone(self.base.gspo()?),
        };
        match self.flushed.get(Permutation::Gspo) {
            Some(delta) => QuadIndex::view(&base, delta.clone()),
            None => Ok(base),
        }
    }
}

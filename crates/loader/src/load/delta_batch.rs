//! The insertions since the base was written, as batches of a load.
//!
//! The base's own rows stay sorted under new numbers, but those of the delta do not: terms that
//! updates brought get their places among all others. So the inserted quads go the way of a load,
//! by the keys of their terms. Terms of the delta dictionary that no quad uses any more are left
//! behind.

use crate::error::LoadError;
use crate::ingest::batch::{SpilledBatch, seal, spill};
use crate::ingest::interner::{DEFAULT_GRAPH, InternedTerms, Interner, LocalId};
use crate::ingest::stage_dir::StageDir;
use crate::parse::ntriples::TermSink;
use crate::progress::Progress;
use crate::progress::check_cancelled;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use orrery_storage::dictionary::KeySource;
use orrery_storage::{Error, ReadView, Snapshot};
use orrery_storage::{Permutation, QuadPosition};
use orrery_term::{TermId, TermKind};
use std::sync::Arc;

/// Ids whose local numbers are remembered, at most.
const KNOWN_MAX: usize = 1 << 20;

/// Quads between two looks whether to go on.
const CHECK_QUADS: u64 = 1 << 14;

/// Batches of inserted quads.
pub(crate) struct DeltaBatches {
    /// The last batch, not sealed.
    pub(crate) open: Interner,
    pub(crate) spilled: Vec<SpilledBatch>,
}

/// Takes up all quads of a snapshot that its base does not have. Batches that outgrow `share_bytes`
/// go to the stage directory under numbers from `first_number` on.
pub(crate) fn delta_batches(
    view: &ReadView,
    stage: &StageDir,
    share_bytes: usize,
    first_number: u32,
    progress: &dyn Progress,
) -> Result<DeltaBatches, LoadError> {
    let mut collector = Collector::new(stage);
    let mut spilled = Vec::new();
    let snapshot = view.snapshot();
    let Some(index) = view.index(Permutation::Spog) else {
        return Err(damage(snapshot, "the permutation SPOG is missing").into());
    };
    for change in index.changes()? {
        let change = change?;
        if !change.is_insertion {
            continue;
        }
        collector.push(snapshot, change.row)?;
        if collector.interner.quad_count().is_multiple_of(CHECK_QUADS) {
            check_cancelled(progress)?;
        }
        collector.interner.check()?;
        if collector.interner.memory_bytes() >= share_bytes {
            let number = first_number + spilled.len() as u32;
            spilled.push(spill(seal(collector.take()), stage, number)?);
        }
    }
    Ok(DeltaBatches {
        open: collector.interner,
        spilled,
    })
}

/// Takes up quads of a snapshot's ids, or of the ids that a transaction over it gave.
pub(crate) struct Collector {
    pub(crate) interner: Interner,
    /// Local numbers of ids that were met in this batch.
    known: HashMap<u64, LocalId, FixedState>,
    key: Vec<u8>,
}

impl Collector {
    pub(crate) fn new(stage: &StageDir) -> Self {
        Self {
            interner: Interner::with_large_literals(None, stage.large_literals()),
            known: HashMap::default(),
            key: Vec::new(),
        }
    }

    /// The batch so far; another one begins.
    pub(crate) fn take(&mut self) -> InternedTerms {
        self.known.clear();
        self.interner.take()
    }

    /// Takes a quad, in the order of SPOG.
    pub(crate) fn push(&mut self, snapshot: &Snapshot, row: [u64; 4]) -> Result<(), Error> {
        let mut quad = [DEFAULT_GRAPH; 4];
        for (local, bits) in quad.iter_mut().zip(row) {
            *local = self.local(snapshot, bits)?;
        }
        let [subject, predicate, object, graph] = quad;
        self.interner.quad(subject, predicate, object, Some(graph));
        Ok(())
    }

    fn local(&mut self, snapshot: &Snapshot, bits: u64) -> Result<LocalId, Error> {
        if let Some(&local) = self.known.get(&bits) {
            return Ok(local);
        }
        let id = TermId::from_bits(bits);
        let local = match id.checked_kind() {
            Some(TermKind::Special) if id == TermId::DEFAULT_GRAPH => DEFAULT_GRAPH,
            Some(TermKind::BlankNode) => self.interner.numbered_blank_node(id.payload()),
            Some(TermKind::Iri | TermKind::Literal | TermKind::TripleTerm) => {
                let mut cursor = snapshot.dictionary().iter(id.payload());
                let streamed = cursor.streamed(id.payload())?;
                match streamed.filter(|key| self.interner.is_large(key.bytes())) {
                    Some(key) => self.interner.streamed_key(Arc::new(key)),
                    None => self.interner.stored_key(cursor.at(id.payload())?),
                }
            }
            Some(TermKind::Delta) => {
                let dictionary = snapshot.delta_dictionary();
                if !dictionary.key(id.payload(), &mut self.key) {
                    return Err(no_term(snapshot, id));
                }
                self.interner.stored_key(&self.key)
            }
            Some(_) if id.is_inline() => self.interner.inline(id),
            Some(_) | None => return Err(no_term(snapshot, id)),
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(bits, local);
        Ok(local)
    }
}

fn no_term(snapshot: &Snapshot, id: TermId) -> Error {
    let what = format!("the id {:016x} of a change stands for no term", id.bits());
    damage(snapshot, &what)
}

fn damage(snapshot: &Snapshot, what: &str) -> Error {
    Error::corrupt(snapshot.directory(), 0, what)
}

/// Whether a snapshot has quads in named graphs now.
pub(crate) fn has_named_graphs(view: &ReadView) -> Result<bool, LoadError> {
    let Some(index) = view.index(Permutation::Gspo) else {
        return Ok(false);
    };
    debug_assert_eq!(Permutation::Gspo.columns()[0], QuadPosition::Graph);
    let default = index.range(&[TermId::DEFAULT_GRAPH])?;
    Ok(default.len() < index.rows())
}

/// Number of insertions and tombstones over the base of a view's snapshot, and of the base's quads
/// whose graphs were cleared as a whole.
pub fn changes_of(view: &ReadView) -> u64 {
    let spog = view.index(Permutation::Spog);
    spog.map_or(0, |index| index.change_count() + index.hidden_rows())
}

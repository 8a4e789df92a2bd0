//! Bulk updates: insertions beyond memory are staged like a load, and merged into a new base.
//!
//! ```text
//! change     a transaction; insertions that memory does not hold -> batches of sorted term keys and quads, on disk
//! nothing staged     a commit like any other
//! else       old base without what was deleted + changes in memory + batches -> new base -> published, which is the commit
//! ```
//!
//! Other writers wait until its end. It costs what a bulk load into the database costs.

use crate::LoadOptions;
use crate::error::LoadError;
use crate::ingest::batch::{SpilledBatch, seal, spill};
use crate::ingest::stage::{Ingested, SHARE_BYTES_MIN};
use crate::ingest::stage_dir::StageDir;
use crate::load::check::LoadCheck;
use crate::load::compact::CompactOptions;
use crate::load::delta_batch::Collector;
use crate::load::publish::{Parsed, write};
use crate::progress::Progress;
use crate::report::Effort;
use orrery_storage::{
    BulkEnd, CommitOptions, Error, InsertionStage, PendingCommit, ReadView, Snapshot, StagedCommit,
    Transaction, Writer,
};
use orrery_term::TermId;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// The outcome of a bulk update.
#[derive(Debug)]
pub enum BulkCommit {
    /// It was small enough for the log.
    InLog(PendingCommit),
    /// It is a new base, on the disk and visible.
    InBase {
        /// The number of the commit, or of the last one if nothing was changed.
        number: u64,
        /// Quads that came.
        added: u64,
        /// Quads that went; some of them may have come again.
        removed: u64,
    },
}

/// Runs changes in a transaction that may exceed memory, and commits them. `change` says how;
/// `check` looks at a new base before it is visible.
pub fn commit_in_bulk<E: From<LoadError>>(
    writer: &Writer,
    options: &CompactOptions,
    check: Option<&LoadCheck>,
    progress: &dyn Progress,
    change: impl FnOnce(&mut Transaction) -> Result<CommitOptions, E>,
) -> Result<BulkCommit, E> {
    let of_storage = |error: Error| E::from(LoadError::from(error));
    let options = options.as_load();
    let database = writer.database();
    let stage = StageDir::create_beside_others(
        Arc::clone(database.file_system()),
        database.directory(),
        options.literal_bytes_max,
    );
    let stage = Arc::new(stage.map_err(of_storage)?);
    let staged: Arc<Mutex<Option<Staged>>> = Arc::default();
    let begun = writer.begin_bulk(|start| {
        *staged.lock() = Some(Staged {
            snapshot: Arc::clone(start),
            stage: Arc::clone(&stage),
            share_bytes: (options.usable_bytes() / 2).max(SHARE_BYTES_MIN),
            collector: Collector::new(&stage),
            spilled: Vec::new(),
            quads: 0,
            has_named_graphs: false,
            is_failed: false,
        });
        Box::new(Handle(Arc::clone(&staged)))
    });
    let mut bulk = begun.map_err(of_storage)?;
    let changed = change(bulk.transaction());
    // What is wrong with the change is for its author, and no failed load; that the disk did not
    // take its insertions is one.
    let (is_load, is_failed) = match &*staged.lock() {
        Some(staged) => (staged.quads > 0, staged.is_failed),
        None => (false, false),
    };
    let note_if = |is_failed: bool| {
        if is_failed {
            database.activity().loads.note_failure();
        }
    };
    note_if(is_failed);
    let commit_options = changed?;
    let end = bulk.end(commit_options).map_err(LoadError::from);
    let commit = match end {
        Ok(BulkEnd::Committed(pending)) => return Ok(BulkCommit::InLog(pending)),
        Ok(BulkEnd::Staged(mut commit)) => {
            if let Some(check) = check {
                commit.check_with(check.for_state());
            }
            commit
        }
        Err(error) => {
            note_if(is_load && error.is_of_the_place());
            return Err(error.into());
        }
    };
    let written = in_new_base(*commit, &staged, &stage, &options, progress);
    note_if(written.as_ref().is_err_and(|error| error.is_of_the_place()));
    Ok(written?)
}

/// Writes what was staged, and the state with the changes in memory, into a new base and publishes
/// it.
fn in_new_base(
    commit: StagedCommit<'_>,
    staged: &Mutex<Option<Staged>>,
    stage: &StageDir,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<BulkCommit, LoadError> {
    let parsed = match staged.lock().take() {
        Some(staged) => staged.parsed(),
        None => Parsed::nothing(),
    };
    let existing = ReadView::of_process(Arc::clone(commit.existing()));
    let mut outcome = (0, None);
    let written = write(parsed, &existing, commit.files(), stage, options, progress)?;
    if commit.is_unchanged() && written.changes_nothing(&existing) {
        return Ok(BulkCommit::InBase {
            number: existing.snapshot().commit(),
            added: 0,
            removed: 0,
        });
    }
    written.publish(&existing, progress, |counts, statistics| {
        let snapshot = commit.publish(counts, statistics)?;
        outcome = (snapshot.commit(), snapshot.manifest().present().loaded);
        Ok(snapshot)
    })?;
    progress.end();
    let (number, loaded) = outcome;
    Ok(BulkCommit::InBase {
        number,
        added: loaded.map_or(0, |loaded| loaded.added),
        removed: loaded.map_or(0, |loaded| loaded.removed),
    })
}

/// What was inserted beyond the memory.
struct Staged {
    snapshot: Arc<Snapshot>,
    stage: Arc<StageDir>,
    share_bytes: usize,
    collector: Collector,
    spilled: Vec<SpilledBatch>,
    quads: u64,
    has_named_graphs: bool,
    /// Whether the disk refused some of it.
    is_failed: bool,
}

/// The transaction's side of it.
struct Handle(Arc<Mutex<Option<Staged>>>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl InsertionStage for Handle {
    fn insert(&mut self, quads: &[[TermId; 4]]) -> orrery_storage::Result<()> {
        match &mut *self.0.lock() {
            Some(staged) => staged.insert(quads),
            None => Ok(()), // not reached: it is taken when the transaction has ended
        }
    }
}

impl Staged {
    fn insert(&mut self, quads: &[[TermId; 4]]) -> orrery_storage::Result<()> {
        for quad in quads {
            self.has_named_graphs |= quad[3] != TermId::DEFAULT_GRAPH;
            self.collector
                .push(&self.snapshot, quad.map(TermId::bits))?;
        }
        self.quads += quads.len() as u64;
        self.collector.interner.check()?;
        if self.collector.interner.memory_bytes() >= self.share_bytes {
            let number = self.spilled.len() as u32;
            let batch = spill(seal(self.collector.take()), &self.stage, number);
            self.is_failed |= batch.is_err();
            self.spilled.push(batch?);
        }
        Ok(())
    }

    fn parsed(self) -> Parsed<'static> {
        Parsed::of(
            Ingested {
                open: vec![self.collector.interner],
                next_batch_number: self.spilled.len() as u32,
                spilled: self.spilled,
                quads_read: self.quads,
                has_named_graphs: self.has_named_graphs,
                ..Ingested::nothing()
            },
            Effort::default(),
        )
    }
}

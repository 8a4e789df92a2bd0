//! A transaction with more insertions than memory holds, which becomes a new base.
//!
//! ```text
//! begin      no checkpoint and no compaction until its end; the writers' turn
//! changes    as in any transaction, but insertions for which memory is refused go to an [`InsertionStage`], on disk
//! end        nothing went there: a commit like any other
//!            else the state with the changes in memory, and what was staged -> a new base, written by the loader -> published
//! ```
//!
//! As with a bulk load, what it changed is not recorded, and the states before it stay readable
//! from the old base. What was staged cannot be read before it is published: an operation that
//! would have to is refused.

use super::staged::{InsertionStage, Staged};
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::handle::Writer;
use super::rebase::StateCheck;
use super::{CommitOptions, PendingCommit, Rebase, Transaction};
use crate::database::segment::{PublishedCounts, SegmentFiles};
use crate::quads::statistics::Statistics;
use crate::snapshots::snapshot::Snapshot;
use crate::{Error, Result};

/// A transaction that may change more than memory holds.
#[derive(Debug)]
pub struct BulkTransaction<'a> {
    writer: &'a Writer,
    maintenance: MutexGuard<'a, ()>,
    transaction: Transaction,
}

/// The end of a bulk transaction.
#[derive(Debug)]
pub enum BulkEnd<'a> {
    /// All of it was held in memory, and is a commit like others.
    Committed(PendingCommit),
    /// A new base is to be written.
    Staged(Box<StagedCommit<'a>>),
}

/// A bulk transaction with staged insertions, at its end.
#[derive(Debug)]
pub struct StagedCommit<'a> {
    /// Holds the new terms until the base is written. Dropped before `rebase`, which has the turn:
    /// when the next transaction begins, the terms of one that failed are gone.
    transaction: Transaction,
    rebase: Rebase<'a>,
    existing: Arc<Snapshot>,
    /// Whether nothing was changed beside what is staged.
    is_unchanged: bool,
}

impl Writer {
    /// Begins a transaction that may change more than memory holds; `stage` makes what takes the
    /// rest, given the state before. Waits for a checkpoint, a compaction or a load that is under
    /// way.
    pub fn begin_bulk(
        &self,
        stage: impl FnOnce(&Arc<Snapshot>) -> Box<dyn InsertionStage>,
    ) -> Result<BulkTransaction<'_>> {
        let maintenance = self.handle.shared.maintenance.lock();
        let mut transaction = self.begin()?;
        transaction.staged = Some(Staged::new(stage(&transaction.start)));
        Ok(BulkTransaction {
            writer: self,
            maintenance,
            transaction,
        })
    }
}

impl<'a> BulkTransaction<'a> {
    /// The transaction, for changes.
    pub fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Ends the changes.
    pub fn end(mut self, options: CommitOptions) -> Result<BulkEnd<'a>> {
        let staged = self.transaction.staged.take();
        if staged.is_none_or(|staged| staged.is_empty()) {
            drop(self.maintenance);
            return self.transaction.commit(options).map(BulkEnd::Committed);
        }
        self.transaction.check_expected(&options)?;
        if !self.transaction.table_changes.is_empty() {
            let what = "a transaction of more quads than memory holds changes tables as well";
            return Err(Error::Rows {
                what: what.to_owned(),
            });
        }
        let existing = self.transaction.snapshot()?;
        let (added, removed) = self.transaction.added_and_removed()?;
        // Where this fails, the transaction still has its turn.
        let mut rebase = Rebase::begin(self.writer, self.maintenance, None, true)?;
        if options.keeps_history {
            rebase.require_history()?;
        }
        rebase.turn = self.transaction.turn.take();
        rebase.removed = removed;
        rebase.add_language_tags(&self.transaction.new_language_tags);
        rebase.prefixes = Some(Arc::clone(&self.transaction.prefixes));
        Ok(BulkEnd::Staged(Box::new(StagedCommit {
            rebase,
            existing,
            is_unchanged: added + removed == 0 && !self.transaction.has_other_prefixes(),
            transaction: self.transaction,
        })))
    }
}

impl<'a> StagedCommit<'a> {
    /// The state that the new base has to hold together with what was staged.
    pub fn existing(&self) -> &Arc<Snapshot> {
        &self.existing
    }

    /// Whether nothing was changed beside what was staged: if that brings nothing new either, there
    /// is no commit.
    pub fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Sets a check of the new state, which runs before it is published.
    pub fn check_with(&mut self, check: StateCheck<'a>) {
        self.rebase.check_with(check);
    }

    /// The destination of dictionary and permutations.
    pub fn files(&self) -> &SegmentFiles {
        self.rebase.files()
    }

    /// Publishes the segment as the database's base, once dictionary and permutations are finished:
    /// this is the commit.
    pub fn publish(
        self,
        counts: PublishedCounts,
        statistics: &Statistics,
    ) -> Result<Arc<Snapshot>> {
        // The new base has all terms. While the rebase still has the turn, for the next transaction
        // brings terms of its own.
        drop(self.transaction);
        self.rebase.publish(counts, statistics)
    }
}

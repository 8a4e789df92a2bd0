//! The compaction of a table's deltas into its files, beside running writers.
//!
//! ```text
//! writers' turn   the state to start from; from here on the changes of the table are noted
//! no lock         the rows of that state -> other files
//! writers' turn   a commit: these files, and the changes that were noted, once more
//! ```
//!
//! The commit changes no row, but it has a number like others, and a state before it reads the
//! files of then. Where the table was emptied, written anew or redefined meanwhile, the files are
//! given up. So they are where more was changed than one commit may hold; after [`ATTEMPTS_BESIDE`]
//! of these the table is written in the writers' turn.

use std::sync::Arc;

use super::handle::Writer;
use super::noted_changes::NotedChanges;
use super::options::CommitOptions;
use super::shared::{Shared, WriteGuard};
use crate::table::{RelationId, TableRewrite, TableState};
use crate::{Result, Snapshot};

/// What is noted of changes beside a compaction; beyond it there would be more to do once more than
/// was brought into files.
const NOTED_BYTES_MAX: u64 = 64 << 20;
/// So often a table that is changed faster than it is written begins anew, before other writers
/// have to wait.
const ATTEMPTS_BESIDE: usize = 2;

/// What came of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Done,
    /// There is nothing to do any more, or it was to end.
    GivenUp,
    /// More was changed than can be done once more.
    Outrun,
}

impl Writer {
    /// Writes the files of a table anew if it changed since they were written. Returns whether that
    /// was done. Readers do not wait, other writers only for the commit at the end.
    pub fn compact_table(&self, table: RelationId) -> Result<bool> {
        self.compact_table_unless(table, &|| false)
    }

    /// Compacts a table, until `cancelled`, which is called every some thousand rows, says so.
    pub fn compact_table_unless(
        &self,
        table: RelationId,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<bool> {
        self.compact_noting(table, NOTED_BYTES_MAX, cancelled)
    }

    pub(crate) fn compact_noting(
        &self,
        table: RelationId,
        noted_bytes_max: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let _one = self.handle.shared.table_compaction.lock();
        let work = &self.database().activity().table_compactions;
        let run = work.begin();
        let written = self.compact_one(table, noted_bytes_max, cancelled);
        match &written {
            Ok(true) => run.done(),
            Ok(false) => {}
            Err(_) => work.note_failure(),
        }
        written
    }

    fn compact_one(
        &self,
        table: RelationId,
        noted_bytes_max: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<bool> {
        for _ in 0..ATTEMPTS_BESIDE {
            match self.compact_beside(table, noted_bytes_max, cancelled)? {
                Attempt::Done => return Ok(true),
                Attempt::GivenUp => return Ok(false),
                Attempt::Outrun => {}
            }
        }
        self.compact_alone(table, cancelled)
    }

    /// While others write.
    fn compact_beside(
        &self,
        table: RelationId,
        noted_bytes_max: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Attempt> {
        let shared = &self.handle.shared;
        let turn = shared.take_turn()?;
        let source = Arc::clone(&shared.state.lock().latest);
        let Some(state) = changed_table(&source, table) else {
            return Ok(Attempt::GivenUp);
        };
        // While nobody else looks for a free name.
        let mut rewrite = begin_rewrite(&turn, &source, state)?;
        let noting = Noting::begin(shared, NotedChanges::of(table, noted_bytes_max));
        drop(turn);
        if !rewrite.write_state(state, &|| cancelled() || noting.is_too_much())? {
            return Ok(match noting.is_too_much() {
                true => Attempt::Outrun,
                false => Attempt::GivenUp,
            });
        }

        let mut transaction = self.begin()?;
        let noted = noting.end();
        if noted.is_too_much() {
            return Ok(Attempt::Outrun);
        }
        let is_there = transaction
            .tables()
            .table(table)
            .is_some_and(|now| now.definition() == state.definition());
        if noted.is_overtaken() || !is_there {
            return Ok(Attempt::GivenUp);
        }
        transaction.put_rewritten(rewrite, state.next_row_number())?;
        for change in noted.changes {
            transaction.apply_to_tables(change)?;
        }
        transaction.commit(as_compaction())?.wait()?;
        Ok(Attempt::Done)
    }

    /// While others wait for their turn.
    fn compact_alone(&self, table: RelationId, cancelled: &dyn Fn() -> bool) -> Result<bool> {
        let mut transaction = self.begin()?;
        let state = transaction.tables().table(table).cloned();
        let Some(state) = state.filter(TableState::has_changes) else {
            return Ok(false);
        };
        let mut rewrite = transaction.rewrite_table(table)?;
        if !rewrite.write_state(&state, cancelled)? {
            return Ok(false);
        }
        transaction.put_rewritten(rewrite, state.next_row_number())?;
        transaction.commit(as_compaction())?.wait()?;
        Ok(true)
    }
}

fn changed_table(snapshot: &Snapshot, table: RelationId) -> Option<&TableState> {
    let table = snapshot.tables().table(table);
    table.filter(|state| state.has_changes())
}

fn begin_rewrite(turn: &WriteGuard, source: &Snapshot, state: &TableState) -> Result<TableRewrite> {
    let shared = &turn.shared;
    let generation = source.manifest().generation + 1;
    let directory = shared.database.directory();
    TableRewrite::begin(&shared.files, directory, generation, state)
}

/// Who commits files that a table's changes were brought into.
pub(crate) const COMPACTION: &str = "compaction";

fn as_compaction() -> CommitOptions {
    CommitOptions {
        who: COMPACTION.to_owned(),
        ..CommitOptions::default()
    }
}

/// Commits are noted while it lives.
struct Noting<'a>(&'a Shared);

impl<'a> Noting<'a> {
    /// For who has the turn.
    fn begin(shared: &'a Shared, noted: NotedChanges) -> Self {
        shared.state.lock().noted_table_changes = Some(noted);
        Self(shared)
    }

    fn is_too_much(&self) -> bool {
        let state = self.0.state.lock();
        let noted = state.noted_table_changes.as_ref();
        noted.is_some_and(NotedChanges::is_too_much)
    }
}

impl Noting<'_> {
    /// What was noted, for who has the turn.
    fn end(self) -> NotedChanges {
        let noted = self.0.state.lock().noted_table_changes.take();
        noted.unwrap_or_else(|| NotedChanges::of(RelationId(0), 0))
    }
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().noted_table_changes = None;
    }
}

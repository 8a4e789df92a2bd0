//! Bringing the changes of a table into its files, beside running writers.
//!
//! ```text
//! writers' turn   the state to start from; from here on the changes of tables are noted
//! no lock         the rows of that state -> other files
//! writers' turn   a commit: these files, and the changes that were noted, once more
//! ```
//!
//! The commit changes no row, but it has a number like others, and a state before it reads the files of then. Where the table was emptied,
//! written anew or redefined meanwhile, the files are given up.

use std::sync::Arc;

use super::handle::Writer;
use super::options::CommitOptions;
use super::shared::Shared;
use crate::Result;
use crate::table::{RelationId, TableChange, TableRewrite, TableState};

/// A table's changes are brought into its files when they are so many, or that part of its rows if this is more: they are in memory, and each
/// checkpoint writes them.
const CHANGES_MIN: u64 = 100_000;
const ROWS_PER_CHANGE: u64 = 10;

impl Writer {
    /// Writes the files of a table anew if it changed since they were written. Returns whether that was done. Readers do not wait, other writers only
    /// for the commit at the end.
    pub fn compact_table(&self, table: RelationId) -> Result<bool> {
        let shared = &self.handle.shared;
        let _one = shared.table_compaction.lock();
        let turn = shared.take_turn();
        let source = Arc::clone(&shared.state.lock().latest);
        let Some(state) = source
            .tables()
            .table(table)
            .filter(|state| has_changes(state))
        else {
            return Ok(false);
        };
        let database = &shared.database;
        let generation = source.manifest().generation + 1;
        let (file_system, directory) = (database.file_system(), database.directory());
        // While nobody else looks for a free name.
        let mut rewrite = TableRewrite::begin(file_system, directory, generation, state)?;
        let noted = NotedChanges::begin(shared);
        drop(turn);
        rewrite.write_state(state)?;

        let mut transaction = self.begin()?;
        let since = noted.end(table);
        let is_overtaken = since.iter().any(|change| {
            !matches!(
                change,
                TableChange::Insert { .. } | TableChange::Delete { .. }
            )
        });
        let is_there = transaction
            .tables()
            .table(table)
            .is_some_and(|now| now.definition() == state.definition());
        if is_overtaken || !is_there {
            return Ok(false);
        }
        transaction.put_rewritten(rewrite, state.next_row_number())?;
        for change in since {
            transaction.apply_to_tables(change)?;
        }
        let options = CommitOptions {
            who: "compaction".to_owned(),
            ..CommitOptions::default()
        };
        transaction.commit(options)?.wait()?;
        Ok(true)
    }

    /// Does so with each table that has many changes for its size. Returns the number of tables.
    pub fn compact_changed_tables(&self) -> Result<u64> {
        let latest = Arc::clone(&self.handle.shared.state.lock().latest);
        let tables = latest.tables().tables().filter(|table| {
            let changes = table.projections().map(|it| it.changes().len()).max();
            changes.unwrap_or(0) >= CHANGES_MIN.max(table.rows() / ROWS_PER_CHANGE)
        });
        tables.into_iter().try_fold(0, |count, table| {
            Ok(count + u64::from(self.compact_table(table.definition().id)?))
        })
    }
}

fn has_changes(table: &TableState) -> bool {
    table
        .projections()
        .any(|projection| !projection.changes().is_empty() || projection.file().is_none())
}

/// The changes of tables by all commits since it was begun.
struct NotedChanges<'a>(&'a Shared);

impl<'a> NotedChanges<'a> {
    /// For who has the turn.
    fn begin(shared: &'a Shared) -> Self {
        shared.state.lock().noted_table_changes = Some(Vec::new());
        Self(shared)
    }

    /// Those of a table.
    fn end(self, table: RelationId) -> Vec<TableChange> {
        let noted = self.0.state.lock().noted_table_changes.take();
        let mut noted = noted.unwrap_or_default();
        noted.retain(|change| change.table() == Some(table));
        noted
    }
}

impl Drop for NotedChanges<'_> {
    fn drop(&mut self) {
        self.0.state.lock().noted_table_changes = None;
    }
}

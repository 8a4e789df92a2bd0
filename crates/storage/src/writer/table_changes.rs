//! The table changes of a transaction: a new state of the tables, and its log record.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::checkpoint::stop_where_unknown;
use super::shared::WriteGuard;
use super::transaction::Transaction;
use crate::files::components::DirectoryComponents;
use crate::files::manifest::Manifest;
use crate::table::{
    DefinitionChange, RelationId, RowPlace, TableChange, TableRewrite, TableState, Tables,
    new_rows_bytes,
};
use crate::{Error, Result};

impl Transaction {
    /// The tables with this transaction's own changes so far.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Changes what there is. Whether it may be is for the caller to know: that names are free,
    /// that nothing else needs what goes.
    pub fn define(&mut self, change: DefinitionChange) -> Result<()> {
        self.define_while(change, |_| true)
    }

    /// The same as long as `goes_on` says so, which is asked before some thousand rows are made
    /// anew for an index or a layout, of the bytes that they take with those before them.
    ///
    /// Fails with [`Error::Rows`] where it does not, and with [`Error::TransactionMemory`]; nothing
    /// has changed then.
    pub fn define_while(
        &mut self,
        change: DefinitionChange,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Result<()> {
        let memory = &mut self.memory;
        let mut taken_bytes = 0_u64;
        let tables = self.tables.redefine(&change, &mut |bytes| {
            taken_bytes = taken_bytes.saturating_add(bytes);
            match goes_on(taken_bytes) {
                true => memory.take(bytes),
                false => Err(Error::Rows {
                    what: "a table was not defined anew to the end".to_owned(),
                }),
            }
        })?;
        self.tables = Arc::new(tables);
        self.table_changes.push(TableChange::Definition(change));
        Ok(())
    }

    /// Inserts rows, given as an array for each column of the table, of
    /// [`ColumnType::arrow`](crate::table::ColumnType::arrow). Returns how many.
    ///
    /// Fails with [`Error::NotNull`] and [`Error::Duplicate`], and has inserted none then.
    pub fn insert_rows(&mut self, table: RelationId, columns: &[ArrayRef]) -> Result<u64> {
        let before = self.table(table)?;
        let (columns, next_row_number) = before.numbered(columns)?;
        // Of what may be NULL it is said before anything is encoded.
        before.check_nulls(&columns)?;
        let rows = before.primary().codec().encode(&columns);
        let rows = rows.map_err(|error| Error::Rows {
            what: error.to_string(),
        })?;
        let inserted = rows.len() as u64;
        if inserted == 0 {
            return Ok(0);
        }
        // Once for the log, and in each projection.
        let bytes = rows.memory_bytes() as u64;
        let of_projections = before.inserted_bytes(&columns, inserted, bytes);
        self.memory.take(bytes + of_projections)?;
        let after = before.insert_projected(&columns, next_row_number)?;
        self.table_changes.push(TableChange::Insert {
            table,
            next_row_number: after.next_row_number(),
            rows,
        });
        self.tables = Arc::new(self.tables.with_table(after));
        Ok(inserted)
    }

    /// Deletes the rows at some places of the primary projection, each once, as this transaction
    /// sees the table. Returns how many.
    pub fn delete_rows(&mut self, table: RelationId, places: Vec<RowPlace>) -> Result<u64> {
        let before = self.table(table)?;
        let keys = before.keys_at(&places)?;
        let deleted = keys.len() as u64;
        if deleted == 0 {
            return Ok(0);
        }
        let projections = before.projections().count() as u64;
        let entries = new_rows_bytes(deleted, 0, 0) * projections;
        self.memory.take(keys.memory_bytes() as u64 + entries)?;
        let after = before.delete(places)?;
        self.table_changes.push(TableChange::Delete { table, keys });
        self.tables = Arc::new(self.tables.with_table(after));
        Ok(deleted)
    }

    /// Deletes all rows of a table; returns how many there were.
    pub fn truncate(&mut self, table: RelationId) -> Result<u64> {
        let rows = self.table(table)?.rows();
        let change = TableChange::Truncate(table);
        self.apply_to_tables(change)?;
        Ok(rows)
    }

    /// Begins to write the files of a table anew. Indexes and columns are those that it has now;
    /// they must not change before [`Self::put_rewritten`].
    pub fn rewrite_table(&self, table: RelationId) -> Result<TableRewrite> {
        let table = self.table(table)?;
        let generation = self.start.manifest().generation + 1;
        let shared = &self.writer().handle.shared;
        let directory = shared.database.directory();
        TableRewrite::begin(&shared.files, directory, generation, &table)
    }

    /// Replaces a table's rows by rewritten ones. Returns how many.
    pub fn put_rewritten(&mut self, rewrite: TableRewrite, next_row_number: u64) -> Result<u64> {
        let table = self.table(rewrite.definition().id)?;
        if table.definition() != rewrite.definition() {
            return Err(Error::Rows {
                what: format!(
                    "{} was changed while it was written",
                    table.definition().name
                ),
            });
        }
        let (directory, files, rows) = rewrite.close()?;
        self.apply_to_tables(TableChange::Rewrite {
            table: table.definition().id,
            next_row_number,
            rows,
            files,
        })?;
        self.table_directories.push(directory);
        Ok(rows)
    }

    pub(super) fn apply_to_tables(&mut self, change: TableChange) -> Result<()> {
        let database = Arc::clone(self.writer().database());
        let (file_system, directory) = (&**database.file_system(), database.directory());
        self.tables = Arc::new(self.tables.apply(&change, file_system, directory)?);
        self.table_changes.push(change);
        Ok(())
    }

    /// Before a commit: a manifest that names the directories that its record will name. The others
    /// are removed with the transaction.
    pub(super) fn list_table_files(&mut self) -> Result<Option<Arc<Manifest>>> {
        let named: Vec<&DirectoryComponents> = self
            .table_changes
            .iter()
            .filter_map(TableChange::files)
            .collect();
        let Some(turn) = self.turn.as_ref().filter(|_| !named.is_empty()) else {
            return Ok(None);
        };
        let listed = turn.list_table_files(&named);
        for directory in &mut self.table_directories {
            if named.iter().any(|files| files.name == directory.name()) {
                directory.keep_if_listed(&listed);
            }
        }
        listed.map(Some)
    }

    /// A savepoint of tables, to which a statement can be rolled back.
    pub fn table_savepoint(&self) -> TableSavepoint {
        TableSavepoint {
            tables: Arc::clone(&self.tables),
            changes: self.table_changes.len(),
        }
    }

    /// Undoes all changes of tables since a savepoint of this transaction.
    pub fn undo_to(&mut self, savepoint: &TableSavepoint) {
        self.tables = Arc::clone(&savepoint.tables);
        self.table_changes.truncate(savepoint.changes);
    }

    fn table(&self, id: RelationId) -> Result<TableState> {
        self.tables.table(id).cloned().ok_or_else(|| Error::Rows {
            what: format!("there is no table {}", id.0),
        })
    }
}

impl WriteGuard {
    /// Publishes a manifest whose present log names directories of tables.
    fn list_table_files(&self, named: &[&DirectoryComponents]) -> Result<Arc<Manifest>> {
        self.settle()?;
        let shared = &self.shared;
        let (latest, log) = {
            let state = shared.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        let mut manifest = latest.to_manifest();
        manifest.generation += 1;
        if let Some(log) = manifest.present_mut().logs.last_mut() {
            log.tables.extend(named.iter().map(|&files| files.clone()));
        }
        shared
            .publish_manifest(&manifest)
            .map_err(|error| stop_where_unknown(&log, error))?;
        let manifest = Arc::new(manifest);
        let snapshot = Arc::new(latest.with_manifest(Arc::clone(&manifest)));
        shared.state.lock().latest = Arc::clone(&snapshot);
        shared.show(snapshot);
        Ok(manifest)
    }
}

/// The tables at some point of a transaction.
#[derive(Debug, Clone)]
pub struct TableSavepoint {
    tables: Arc<Tables>,
    changes: usize,
}

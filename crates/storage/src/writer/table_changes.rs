//! A transaction's changes of tables: each makes another state of them, and what the log will tell of it.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::transaction::Transaction;
use crate::table::{DefinitionChange, RelationId, RowPlace, TableChange, TableState, Tables};
use crate::{Error, Result};

impl Transaction {
    /// The tables with this transaction's own changes so far.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Changes what there is. Whether it may be is for the caller to know: that names are free, that nothing else needs what goes.
    pub fn define(&mut self, change: DefinitionChange) -> Result<()> {
        let change = TableChange::Definition(change);
        self.tables = Arc::new(self.tables.apply(&change)?);
        self.table_changes.push(change);
        Ok(())
    }

    /// Inserts rows, given as an array for each column of the table, of [`ColumnType::arrow`](crate::table::ColumnType::arrow). Returns how many.
    ///
    /// Fails with [`Error::NotNull`] and [`Error::Duplicate`], and has inserted none then.
    pub fn insert_rows(&mut self, table: RelationId, columns: &[ArrayRef]) -> Result<u64> {
        let before = self.table(table)?;
        let (after, columns) = before.insert(columns)?;
        let rows = after.primary().codec().encode(&columns);
        let rows = rows.map_err(|error| Error::Rows {
            what: error.to_string(),
        })?;
        let inserted = rows.len() as u64;
        if inserted == 0 {
            return Ok(0);
        }
        // Once for the log, once for each projection, by what stands in the log.
        let bytes = rows.memory_bytes() as u64;
        self.memory
            .take(bytes * (1 + after.projections().count() as u64))?;
        self.table_changes.push(TableChange::Insert {
            table,
            next_row_number: after.next_row_number(),
            rows,
        });
        self.tables = Arc::new(self.tables.with_table(after));
        Ok(inserted)
    }

    /// Deletes the rows at some places of the primary projection, each once, as this transaction sees the table. Returns how many.
    pub fn delete_rows(&mut self, table: RelationId, places: Vec<RowPlace>) -> Result<u64> {
        let before = self.table(table)?;
        let keys = before.keys_at(&places)?;
        let deleted = keys.len() as u64;
        if deleted == 0 {
            return Ok(0);
        }
        self.memory.take(keys.memory_bytes() as u64)?;
        let after = before.delete(places)?;
        self.table_changes.push(TableChange::Delete { table, keys });
        self.tables = Arc::new(self.tables.with_table(after));
        Ok(deleted)
    }

    /// Deletes all rows of a table; returns how many there were.
    pub fn truncate(&mut self, table: RelationId) -> Result<u64> {
        let rows = self.table(table)?.rows();
        let change = TableChange::Truncate(table);
        self.tables = Arc::new(self.tables.apply(&change)?);
        self.table_changes.push(change);
        Ok(rows)
    }

    /// What a statement can be undone to.
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

/// The tables at some point of a transaction.
#[derive(Debug, Clone)]
pub struct TableSavepoint {
    tables: Arc<Tables>,
    changes: usize,
}

//! Table changes of a commit, for followers of the change feed.
//!
//! The log has rows and keys as bytes of the table's layout of then. So whoever reads it has to
//! know the definitions of then: those of the newest state where none has changed since, else those
//! of the state before the first commit that is read, and what commits made of them.
//!
//! Rows that were written to files in one go (a load, an index that was added) are not in the log:
//! it tells that there are others, and how many. What a compaction does is nothing: it has all that
//! was done meanwhile once more.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;

use crate::files::log::LogRecord;
use crate::table::{
    DefinitionChange, KeyEncoder, ProjectionLayout, RelationId, RowCodec, TableChange,
    TableDefinition, Tables,
};
use crate::writer::COMPACTION;
use crate::{Error, Result};

/// Rows that are decoded at a time.
const ROWS_AT_ONCE: usize = 1_024;

/// Something that a commit did to tables.
#[derive(Debug)]
pub enum TableEvent<'a> {
    /// There is something else.
    Defined(&'a DefinitionChange),
    /// Rows came: the columns of the layout, of which the first are the key.
    Inserted(&'a TableDefinition, &'a ProjectionLayout, Vec<ArrayRef>),
    /// The rows with these keys went: the key's columns.
    Deleted(&'a TableDefinition, &'a ProjectionLayout, Vec<ArrayRef>),
    /// All rows went.
    Truncated(&'a TableDefinition),
    /// The rows are others from now on, so many of them.
    Replaced(&'a TableDefinition, u64),
}

/// The tables as a commit found them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownTables(BTreeMap<RelationId, Arc<TableDefinition>>);

impl KnownTables {
    pub(crate) fn of(tables: &Tables) -> Self {
        let definitions = tables.with_system_tables().map(|table| table.definition());
        Self(definitions.map(|it| (it.id, Arc::clone(it))).collect())
    }

    /// After a commit.
    pub(crate) fn apply(&mut self, record: &LogRecord) {
        for change in &record.tables {
            if let TableChange::Definition(change) = change {
                self.define(change);
            }
        }
    }

    fn define(&mut self, change: &DefinitionChange) {
        match change {
            DefinitionChange::CreateTable(definition)
            | DefinitionChange::AlterTable(definition) => {
                self.0.insert(definition.id, Arc::new(definition.clone()));
            }
            DefinitionChange::DropTable(id) => {
                self.0.remove(id);
            }
            DefinitionChange::CreateSchema(_)
            | DefinitionChange::DropSchema(_)
            | DefinitionChange::DefineView(_)
            | DefinitionChange::DropView(_) => {}
        }
    }

    fn table(&self, id: RelationId) -> Result<&Arc<TableDefinition>> {
        self.0.get(&id).ok_or_else(|| Error::Rows {
            what: format!("there is no table {}", id.0),
        })
    }
}

fn is_of_system(change: &DefinitionChange) -> bool {
    match change {
        DefinitionChange::CreateTable(definition) | DefinitionChange::AlterTable(definition) => {
            definition.is_system()
        }
        // They stay.
        DefinitionChange::DropTable(_)
        | DefinitionChange::CreateSchema(_)
        | DefinitionChange::DropSchema(_)
        | DefinitionChange::DefineView(_)
        | DefinitionChange::DropView(_) => false,
    }
}

/// Whether a commit changes what tables there are.
pub(crate) fn has_definitions(record: &LogRecord) -> bool {
    let mut changes = record.tables.iter();
    changes.any(|change| matches!(change, TableChange::Definition(_)))
}

/// Calls `found` with what a commit did, in its order.
pub(crate) fn events(
    record: &LogRecord,
    before: &KnownTables,
    mut found: impl FnMut(TableEvent<'_>) -> Result<()>,
) -> Result<()> {
    let is_rewritten = matches!(record.tables.first(), Some(TableChange::Rewrite { .. }));
    if is_rewritten && record.who == COMPACTION {
        return Ok(());
    }
    let mut known = Cow::Borrowed(before);
    for change in &record.tables {
        // What the database keeps for itself is no news for others.
        if !matches!(change, TableChange::Definition(_))
            && let Some(table) = change.table()
            && known.table(table)?.is_system()
        {
            continue;
        }
        match change {
            TableChange::Definition(change) => {
                known.to_mut().define(change);
                if !is_of_system(change) {
                    found(TableEvent::Defined(change))?;
                }
            }
            TableChange::Insert { table, rows, .. } => {
                let table = known.table(*table)?;
                let layout = table.primary_layout();
                let codec = RowCodec::new(layout.columns.iter().map(|it| it.column_type));
                let wanted: Vec<usize> = (0..layout.columns.len()).collect();
                for start in (0..rows.len()).step_by(ROWS_AT_ONCE) {
                    let part = rows.iter().skip(start).take(ROWS_AT_ONCE);
                    let columns = codec.decode(part, &wanted);
                    let columns = columns.map_err(|error| Error::Rows {
                        what: error.to_string(),
                    })?;
                    found(TableEvent::Inserted(table, &layout, columns))?;
                }
            }
            TableChange::Delete { table, keys } => {
                let table = known.table(*table)?;
                let layout = table.primary_layout();
                let encoder = KeyEncoder::new(layout.key());
                for start in (0..keys.len()).step_by(ROWS_AT_ONCE) {
                    let part = keys.iter().skip(start).take(ROWS_AT_ONCE);
                    let columns = encoder.decode(part, layout.key_columns);
                    let columns = columns.ok_or_else(|| Error::Rows {
                        what: format!("keys of table {} are none of it", table.name),
                    })?;
                    found(TableEvent::Deleted(table, &layout, columns))?;
                }
            }
            TableChange::Truncate(table) => found(TableEvent::Truncated(known.table(*table)?))?,
            TableChange::Rewrite { table, rows, .. } => {
                found(TableEvent::Replaced(known.table(*table)?, *rows))?;
            }
        }
    }
    Ok(())
}

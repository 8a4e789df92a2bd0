//! All tables, views and schemas of a snapshot, and the changes from one state to the next.
//!
//! A [`TableChange`] is what the log keeps of a statement: the same function does it when it is
//! committed and when the log is read again, so that both come to the same state. A state that was
//! made is never changed; unchanged tables are shared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::definition::{ForeignKey, RelationId, TableDefinition, ViewDefinition};
use super::key::KeyRows;
use super::new_rows::Look;
use super::rewrite::open_rewritten;
use super::rows::RowBytes;
use super::state::TableState;
use crate::files::components::DirectoryComponents;
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// The schema in which tables are if nothing else is said.
pub const DEFAULT_SCHEMA: &str = "public";

/// Tables, views and schemas. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tables {
    schemas: BTreeSet<String>,
    tables: BTreeMap<RelationId, TableState>,
    views: BTreeMap<RelationId, Arc<ViewDefinition>>,
    next_relation: u32,
}

/// A change of what there is, not of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionChange {
    /// A schema comes.
    CreateSchema(String),
    /// A schema, which must be empty, goes.
    DropSchema(String),
    /// A table comes, without rows.
    CreateTable(TableDefinition),
    /// A table is something else from now on.
    AlterTable(TableDefinition),
    /// A table goes, with its rows.
    DropTable(RelationId),
    /// A view comes, or takes the place of the one with its number.
    DefineView(ViewDefinition),
    /// A view goes.
    DropView(RelationId),
}

/// A change of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// Of what there is.
    Definition(DefinitionChange),
    /// Rows come.
    Insert {
        /// Into which table.
        table: RelationId,
        /// The table's next row number after it.
        next_row_number: u64,
        /// The rows, as the primary projection has them.
        rows: RowBytes,
    },
    /// Rows go.
    Delete {
        /// From which table.
        table: RelationId,
        /// The keys of the rows, ascending.
        keys: KeyRows,
    },
    /// All rows go.
    Truncate(RelationId),
    /// The rows are from now on those of other files.
    Rewrite {
        /// Of which table.
        table: RelationId,
        /// The table's next row number after it.
        next_row_number: u64,
        /// Number of rows.
        rows: u64,
        /// A file for each projection.
        files: DirectoryComponents,
    },
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            schemas: BTreeSet::from([DEFAULT_SCHEMA.to_owned()]),
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            next_relation: 1,
        }
    }
}

impl Tables {
    /// Whether there is nothing but the default schema, and there never was.
    pub fn is_untouched(&self) -> bool {
        self.next_relation == 1 && self.schemas.len() == 1
    }

    /// The names of all schemas, ascending.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas.iter().map(String::as_str)
    }

    /// Whether there is a schema.
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains(name)
    }

    /// All tables by number, without system tables.
    pub fn tables(&self) -> impl Iterator<Item = &TableState> {
        let tables = self.tables.values();
        tables.filter(|table| !table.definition().is_system())
    }

    /// All tables by number, with system tables.
    pub fn with_system_tables(&self) -> impl Iterator<Item = &TableState> {
        self.tables.values()
    }

    /// A table that the database keeps for itself.
    pub fn system_table(&self, name: &str) -> Option<&TableState> {
        self.tables.values().find(|table| {
            let definition = table.definition();
            definition.is_system() && definition.name == name
        })
    }

    /// All views, by their numbers.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewDefinition>> {
        self.views.values()
    }

    /// Whether both have the same schemas, tables and views by definition, whatever rows there are.
    pub fn has_same_definitions(&self, other: &Self) -> bool {
        let same_tables = self.tables.len() == other.tables.len()
            && self.tables.iter().zip(&other.tables).all(|(one, other)| {
                let definitions = (one.1.definition(), other.1.definition());
                one.0 == other.0
                    && (Arc::ptr_eq(definitions.0, definitions.1) || definitions.0 == definitions.1)
            });
        let same_views = self.views.len() == other.views.len()
            && self.views.iter().zip(&other.views).all(|(one, other)| {
                one.0 == other.0 && (Arc::ptr_eq(one.1, other.1) || one.1 == other.1)
            });
        same_tables && same_views && self.schemas == other.schemas
    }

    /// The table with a number.
    pub fn table(&self, id: RelationId) -> Option<&TableState> {
        self.tables.get(&id)
    }

    /// The table with a name.
    pub fn table_named(&self, schema: &str, name: &str) -> Option<&TableState> {
        self.tables().find(|table| {
            let definition = table.definition();
            definition.name == name && definition.schema == schema
        })
    }

    /// The view with a name.
    pub fn view_named(&self, schema: &str, name: &str) -> Option<&Arc<ViewDefinition>> {
        let mut views = self.views.values();
        views.find(|view| view.name == name && view.schema == schema)
    }

    /// The table whose index has a name.
    pub fn table_of_index(&self, schema: &str, index: &str) -> Option<&TableState> {
        self.tables().find(|table| {
            let definition = table.definition();
            definition.schema == schema && definition.indexes.iter().any(|it| it.name == index)
        })
    }

    /// A read-only filter to these schemas, tables and views, without foreign keys to others.
    /// Tables that the database keeps for itself are not among them.
    #[must_use]
    pub fn only(
        &self,
        schemas: BTreeSet<String>,
        has_table: impl Fn(&TableDefinition) -> bool,
        has_view: impl Fn(&ViewDefinition) -> bool,
    ) -> Self {
        let tables = self.tables().filter(|table| has_table(table.definition()));
        let mut tables: BTreeMap<RelationId, TableState> = tables
            .map(|table| (table.definition().id, table.clone()))
            .collect();
        let there: BTreeSet<RelationId> = tables.keys().copied().collect();
        for table in tables.values_mut() {
            let keys = &table.definition().foreign_keys;
            if keys.iter().any(|key| !there.contains(&key.table)) {
                let mut definition = (**table.definition()).clone();
                let is_there = |key: &ForeignKey| there.contains(&key.table);
                definition.foreign_keys.retain(is_there);
                *table = table.shown_as(definition);
            }
        }
        let views = self.views.iter().filter(|(_, view)| has_view(view));
        Self {
            schemas,
            tables,
            views: views.map(|(id, view)| (*id, Arc::clone(view))).collect(),
            next_relation: self.next_relation,
        }
    }

    /// The number that the next new table, index or view gets.
    pub fn next_relation(&self) -> u32 {
        self.next_relation
    }

    /// Puts states together again that were kept.
    pub(crate) fn restored(
        schemas: impl IntoIterator<Item = String>,
        tables: impl IntoIterator<Item = TableState>,
        views: impl IntoIterator<Item = ViewDefinition>,
        next_relation: u32,
    ) -> Self {
        let tables = tables.into_iter();
        let views = views.into_iter();
        Self {
            schemas: schemas.into_iter().collect(),
            tables: tables.map(|table| (table.definition().id, table)).collect(),
            views: views.map(|view| (view.id, Arc::new(view))).collect(),
            next_relation,
        }
    }

    /// With another state of a table.
    pub(crate) fn with_table(&self, table: TableState) -> Self {
        let mut after = self.clone();
        after.tables.insert(table.definition().id, table);
        after
    }

    /// The same, which know where the changes of an earlier state of them were written.
    pub(crate) fn with_written_of(&self, earlier: &Self) -> Self {
        let mut after = self.clone();
        for (id, table) in &mut after.tables {
            if let Some(earlier) = earlier.tables.get(id) {
                *table = table.with_written_of(earlier);
            }
        }
        after
    }

    /// What they are after a change, in the database of a directory. Fails if it cannot be made
    /// here: a log with such a change is damaged.
    pub(crate) fn apply(
        &self,
        change: &TableChange,
        file_system: &dyn FileSystem,
        directory: &Path,
    ) -> Result<Self> {
        match change {
            TableChange::Definition(change) => self.redefine(change, &mut |_| Ok(())),
            TableChange::Insert {
                table,
                next_row_number,
                rows,
            } => {
                let table = self.existing(*table)?;
                let primary = table.primary();
                let wanted: Vec<usize> = (0..primary.layout().columns.len()).collect();
                let columns = primary.codec().decode(rows.iter(), &wanted);
                let columns = columns.map_err(|error| Error::Rows {
                    what: error.to_string(),
                })?;
                Ok(self.with_table(table.insert_projected(&columns, *next_row_number)?))
            }
            TableChange::Delete { table, keys } => {
                Ok(self.with_table(self.existing(*table)?.delete_keys(keys)?))
            }
            TableChange::Truncate(table) => {
                let table = self.existing(*table)?;
                Ok(self.with_table(table.truncated()))
            }
            TableChange::Rewrite {
                table,
                next_row_number,
                rows,
                files,
            } => {
                let table = self.existing(*table)?;
                let after = open_rewritten(file_system, directory, table, files)?;
                match after.rows() == *rows {
                    true => Ok(self.with_table(after.with_next_row_number(*next_row_number))),
                    false => Err(Error::Rows {
                        what: format!("{} has {} rows, expected {rows}", files.name, after.rows()),
                    }),
                }
            }
        }
    }

    /// The same for a definition; `look` is called before rows are made anew for it.
    pub(crate) fn redefine(&self, change: &DefinitionChange, look: Look<'_>) -> Result<Self> {
        let mut after = self.clone();
        match change {
            DefinitionChange::CreateSchema(name) => {
                after.schemas.insert(name.clone());
            }
            DefinitionChange::DropSchema(name) => {
                after.schemas.remove(name);
            }
            DefinitionChange::CreateTable(definition) => {
                definition.check()?;
                after.note_numbers(definition);
                let table = TableState::empty(Arc::new(definition.clone()));
                after.tables.insert(definition.id, table);
            }
            DefinitionChange::AlterTable(definition) => {
                definition.check()?;
                after.note_numbers(definition);
                let table = self.existing(definition.id)?;
                let table = table.redefined(Arc::new(definition.clone()), look)?;
                after.tables.insert(definition.id, table);
            }
            DefinitionChange::DropTable(id) => {
                after.tables.remove(id);
            }
            DefinitionChange::DefineView(view) => {
                let next = view.id.0.checked_add(1).ok_or_else(|| Error::Rows {
                    what: "a view has a number that it cannot have".to_owned(),
                })?;
                after.next_relation = after.next_relation.max(next);
                after.views.insert(view.id, Arc::new(view.clone()));
            }
            DefinitionChange::DropView(id) => {
                after.views.remove(id);
            }
        }
        Ok(after)
    }

    /// Numbers that are taken are never given again.
    fn note_numbers(&mut self, definition: &TableDefinition) {
        let indexes = definition.indexes.iter().map(|index| index.id.0);
        let greatest = indexes.fold(definition.id.0, u32::max);
        self.next_relation = self.next_relation.max(greatest + 1);
    }

    fn existing(&self, id: RelationId) -> Result<&TableState> {
        self.table(id).ok_or_else(|| Error::Rows {
            what: format!("there is no table {}", id.0),
        })
    }
}

/// What a change is, in the log.
mod tag {
    pub(super) const DEFINITION: u8 = 1;
    pub(super) const INSERT: u8 = 2;
    pub(super) const DELETE: u8 = 3;
    pub(super) const TRUNCATE: u8 = 4;
    pub(super) const REWRITE: u8 = 5;
}

impl TableChange {
    /// The table whose rows or definition it changes.
    pub(crate) fn table(&self) -> Option<RelationId> {
        match self {
            Self::Insert { table, .. }
            | Self::Delete { table, .. }
            | Self::Truncate(table)
            | Self::Rewrite { table, .. } => Some(*table),
            Self::Definition(DefinitionChange::CreateTable(definition))
            | Self::Definition(DefinitionChange::AlterTable(definition)) => Some(definition.id),
            Self::Definition(DefinitionChange::DropTable(table)) => Some(*table),
            Self::Definition(_) => None,
        }
    }

    /// The files that it names.
    pub(crate) fn files(&self) -> Option<&DirectoryComponents> {
        match self {
            Self::Rewrite { files, .. } => Some(files),
            _ => None,
        }
    }

    /// Number of rows that come, or that go one by one.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Insert { rows, .. } => rows.len() as u64,
            Self::Delete { keys, .. } => keys.len() as u64,
            Self::Rewrite { rows, .. } => *rows,
            Self::Definition(_) | Self::Truncate(_) => 0,
        }
    }

    /// The memory that rows and keys take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Insert { rows, .. } => rows.memory_bytes(),
            Self::Delete { keys, .. } => keys.memory_bytes(),
            Self::Definition(_) | Self::Truncate(_) | Self::Rewrite { .. } => 0,
        };
        bytes as u64
    }

    /// Appends it as a log has it: what it is u8, then of rows and keys table, count, and each
    /// after its length, as LEB128; of definitions and files the length and JSON.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        use crate::files::varint::write;
        match self {
            Self::Definition(change) => {
                out.push(tag::DEFINITION);
                // What is made of strings and numbers alone is always JSON.
                let json = serde_json::to_vec(change).unwrap_or_default();
                write(json.len() as u64, out);
                out.extend_from_slice(&json);
            }
            Self::Insert {
                table,
                next_row_number,
                rows,
            } => {
                out.push(tag::INSERT);
                write(table.0.into(), out);
                write(*next_row_number, out);
                write(rows.len() as u64, out);
                for row in rows.iter() {
                    write(row.len() as u64, out);
                    out.extend_from_slice(row);
                }
            }
            Self::Delete { table, keys } => {
                out.push(tag::DELETE);
                write(table.0.into(), out);
                write(keys.len() as u64, out);
                for key in 0..keys.len() {
                    let key = keys.get(key);
                    write(key.len() as u64, out);
                    out.extend_from_slice(key);
                }
            }
            Self::Truncate(table) => {
                out.push(tag::TRUNCATE);
                write(table.0.into(), out);
            }
            Self::Rewrite {
                table,
                next_row_number,
                rows,
                files,
            } => {
                out.push(tag::REWRITE);
                write(table.0.into(), out);
                write(*next_row_number, out);
                write(*rows, out);
                let json = serde_json::to_vec(files).unwrap_or_default();
                write(json.len() as u64, out);
                out.extend_from_slice(&json);
            }
        }
    }

    /// Takes one off the bytes; `None` if they are none.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        use crate::files::varint::{read, read_length};
        let table = |bytes: &mut &[u8]| Some(RelationId(u32::try_from(read(bytes)?).ok()?));
        fn take<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
            let length = read_length(bytes)?;
            let (taken, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Some(taken)
        }
        let (&what, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(match what {
            tag::DEFINITION => Self::Definition(serde_json::from_slice(take(bytes)?).ok()?),
            tag::INSERT => {
                let (table, next_row_number) = (table(bytes)?, read(bytes)?);
                let mut rows = RowBytes::default();
                for _ in 0..read(bytes)? {
                    rows.push(take(bytes)?);
                }
                Self::Insert {
                    table,
                    next_row_number,
                    rows,
                }
            }
            tag::DELETE => {
                let table = table(bytes)?;
                let mut keys = KeyRows::default();
                for _ in 0..read(bytes)? {
                    keys.push(take(bytes)?);
                }
                Self::Delete { table, keys }
            }
            tag::TRUNCATE => Self::Truncate(table(bytes)?),
            tag::REWRITE => Self::Rewrite {
                table: table(bytes)?,
                next_row_number: read(bytes)?,
                rows: read(bytes)?,
                files: serde_json::from_slice(take(bytes)?).ok()?,
            },
            _ => return None,
        })
    }
}

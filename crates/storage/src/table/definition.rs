//! The definition of a table: columns, keys and indexes. All of it is in the manifest and, as it
//! changes, in the log, as JSON.
//!
//! Tables, and columns within a table, have numbers that are never used again; files, log records
//! and other definitions name them by these. So renaming changes no file, a column that was dropped
//! is passed over where files still have it, and one that was added later reads as its *initial
//! value* where they do not.
//!
//! ```text
//! table     columns | primary projection: all columns, by the primary key (or by row number, where there is none)
//! index     a projection: its key columns, the primary key, what it includes; sorted by the first two
//! ```

use std::collections::BTreeSet;

use arrow::array::{ArrayRef, new_null_array};
use serde::{Deserialize, Serialize};

use super::rows::RowCodec;
use super::types::ColumnType;
use crate::Error;

/// Columns that a table may have.
pub const COLUMNS_MAX: usize = 1_600;
/// The schema of tables that the database keeps for itself, such as its users: no name of it can be
/// written. They are in the same transactions, log and backups as others, and seen by those alone
/// who ask for [`Tables::system_table`](super::Tables::system_table).
pub const SYSTEM_SCHEMA: &str = "";

/// The number of a table, an index or a view in its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RelationId(pub u32);

/// The number of a column in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ColumnId(pub u32);

/// The column of row numbers, by which a table without a primary key is sorted. No other column has
/// this number.
pub const ROW_NUMBER: ColumnId = ColumnId(0);

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDefinition {
    /// Its number.
    pub id: RelationId,
    /// The schema in which it is.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, in the order in which they are shown; never empty.
    pub columns: Vec<ColumnDefinition>,
    /// The number that the next new column gets.
    pub next_column: u32,
    /// The primary key, if there is one: the order of the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_key: Option<PrimaryKey>,
    /// Further projections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexDefinition>,
    /// Rows that must be in other tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// Conditions on each row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDefinition {
    /// Its number.
    pub id: ColumnId,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// The SQL expression whose value a new row gets where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What rows have that are older than the column: a row of this value alone, as records of the
    /// log have it, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
}

/// The primary key of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryKey {
    /// The name of the constraint.
    pub name: String,
    /// Its columns, none of which may be NULL.
    pub columns: Vec<ColumnId>,
}

/// A sorted copy of some columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDefinition {
    /// Its number.
    pub id: RelationId,
    /// Its name; the schema is that of its table.
    pub name: String,
    /// What it is sorted by, before the primary key.
    pub columns: Vec<ColumnId>,
    /// What it holds beside these and the primary key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<ColumnId>,
    /// Whether two rows may not be equal in `columns`, unless one of these is NULL.
    #[serde(default)]
    pub is_unique: bool,
    /// Whether it was made for a constraint `UNIQUE`.
    #[serde(default)]
    pub is_constraint: bool,
}

/// Rows of this table have a row in another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// The name of the constraint.
    pub name: String,
    /// Columns of this table.
    pub columns: Vec<ColumnId>,
    /// The other table, which may be this one.
    pub table: RelationId,
    /// Its columns: its primary key, or those of a unique index.
    pub referenced: Vec<ColumnId>,
}

/// A condition that no row of a table makes false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The name of the constraint.
    pub name: String,
    /// The condition in SQL.
    pub condition: String,
}

/// A query with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDefinition {
    /// Its number.
    pub id: RelationId,
    /// The schema in which it is.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The names of its columns where it says some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The query in SQL.
    pub query: String,
}

/// The columns of a projection and their order: what its files and its changes are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectionLayout {
    /// The table or index that it belongs to.
    pub relation: RelationId,
    /// Its columns, those of the key first.
    pub columns: Vec<ProjectionColumn>,
    /// How many of them are the key: no two rows are equal in these, and rows ascend by them, NULL
    /// behind all values.
    pub key_columns: usize,
}

/// A column of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectionColumn {
    /// Its number in the table.
    pub id: ColumnId,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it may be NULL.
    pub is_nullable: bool,
}

/// The column of row numbers in a projection.
const ROW_NUMBER_COLUMN: ProjectionColumn = ProjectionColumn {
    id: ROW_NUMBER,
    column_type: ColumnType::BigInt,
    is_nullable: false,
};

impl TableDefinition {
    /// Fails if projections cannot be made of it: where numbers are used twice, or name columns
    /// that are not there. What the SQL side makes is always right; what comes from a log or a
    /// manifest may be anything.
    pub(crate) fn check(&self) -> crate::Result<()> {
        let wrong = |what: &str| Error::Rows {
            what: format!("the definition of the table {} {what}", self.id.0),
        };
        let mut columns = BTreeSet::new();
        for column in &self.columns {
            let is_new = columns.insert(column.id);
            if !is_new || column.id == ROW_NUMBER || column.id.0 >= self.next_column {
                return Err(wrong("has a column whose number it cannot have"));
            }
            if column.initial.is_some() {
                self.initial(column.id)?;
            }
        }
        if columns.len() > COLUMNS_MAX {
            return Err(wrong("has too many columns"));
        }
        let mut relations = BTreeSet::from([self.id]);
        let is_new = self.indexes.iter().all(|index| relations.insert(index.id));
        if !is_new || relations.last().is_some_and(|last| last.0 == u32::MAX) {
            return Err(wrong("has a number that it cannot have"));
        }
        let primary_key = self.primary_key.iter().map(|key| (&key.columns, [].iter()));
        let indexes = self.indexes.iter();
        let indexes = indexes.map(|index| (&index.columns, index.included.iter()));
        for (key, included) in primary_key.chain(indexes) {
            let distinct: BTreeSet<ColumnId> = key.iter().copied().collect();
            let are_there = key.iter().chain(included).all(|id| columns.contains(id));
            if key.is_empty() || distinct.len() < key.len() || !are_there {
                return Err(wrong("has a key of columns that cannot be one"));
            }
        }
        Ok(())
    }

    /// Whether the database keeps it for itself.
    pub fn is_system(&self) -> bool {
        self.schema == SYSTEM_SCHEMA
    }

    /// The column with a number.
    pub fn column(&self, id: ColumnId) -> Option<&ColumnDefinition> {
        self.columns.iter().find(|column| column.id == id)
    }

    /// The column with a name, as it is written in the definition.
    pub fn column_named(&self, name: &str) -> Option<&ColumnDefinition> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// What rows have that are older than a column: an array of one value, NULL where nothing else
    /// is said.
    pub(crate) fn initial(&self, id: ColumnId) -> crate::Result<ArrayRef> {
        let invalid = || Error::Rows {
            what: format!("a column of {} has an impossible initial value", self.name),
        };
        let column = self.column(id).ok_or_else(invalid)?;
        let Some(digits) = &column.initial else {
            return Ok(new_null_array(&column.column_type.arrow(), 1));
        };
        let bytes = (0..digits.len()).step_by(2).map(|at| {
            let byte = digits.get(at..at + 2)?;
            u8::from_str_radix(byte, 16).ok()
        });
        let row: Vec<u8> = bytes.collect::<Option<_>>().ok_or_else(invalid)?;
        let codec = RowCodec::new([column.column_type]);
        let mut decoded = codec
            .decode(std::iter::once(row.as_slice()), &[0])
            .map_err(|_| invalid())?;
        decoded.pop().ok_or_else(invalid)
    }

    /// The same of all columns of which something is said.
    pub(crate) fn initial_values(&self) -> crate::Result<Vec<(ColumnId, ArrayRef)>> {
        let columns = self.columns.iter();
        let said = columns.filter(|column| column.initial.is_some());
        said.map(|column| Ok((column.id, self.initial(column.id)?)))
            .collect()
    }

    /// The columns that identify a row: those of the primary key, or the row number.
    pub fn row_key(&self) -> &[ColumnId] {
        match &self.primary_key {
            Some(key) => &key.columns,
            None => &[ROW_NUMBER],
        }
    }

    /// The layout of the primary projection: all columns, by the primary key.
    pub fn primary_layout(&self) -> ProjectionLayout {
        let key = self.row_key();
        let others = self.columns.iter().map(|column| column.id);
        let others = others.filter(|id| !key.contains(id));
        self.layout(self.id, key.iter().copied().chain(others), key.len())
    }

    /// The layout of an index's projection.
    pub fn index_layout(&self, index: &IndexDefinition) -> ProjectionLayout {
        let mut columns = index.columns.clone();
        for id in self.row_key() {
            if !columns.contains(id) {
                columns.push(*id);
            }
        }
        let key_columns = columns.len();
        for id in &index.included {
            if !columns.contains(id) {
                columns.push(*id);
            }
        }
        self.layout(index.id, columns.into_iter(), key_columns)
    }

    /// The primary projection's layout, then those of the indexes.
    pub fn layouts(&self) -> impl Iterator<Item = ProjectionLayout> {
        let indexes = self.indexes.iter().map(|index| self.index_layout(index));
        std::iter::once(self.primary_layout()).chain(indexes)
    }

    fn layout(
        &self,
        relation: RelationId,
        ids: impl Iterator<Item = ColumnId>,
        key_columns: usize,
    ) -> ProjectionLayout {
        let column = |id: ColumnId| match self.column(id) {
            Some(column) => Some(ProjectionColumn {
                id,
                column_type: column.column_type,
                is_nullable: column.is_nullable,
            }),
            None => (id == ROW_NUMBER).then_some(ROW_NUMBER_COLUMN),
        };
        ProjectionLayout {
            relation,
            columns: ids.filter_map(column).collect(),
            key_columns,
        }
    }
}

impl ProjectionLayout {
    /// The place of a column.
    pub fn position(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// The columns of the key.
    pub fn key(&self) -> &[ProjectionColumn] {
        &self.columns[..self.key_columns]
    }
}

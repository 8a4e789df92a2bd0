//! Relational tables: typed columns in the same vectors, blocks, log and snapshots as quads.
//!
//! ```text
//! table -> projections: the primary one with all columns, one for each index
//! projection = file (sorted rows, columns in vectors of 1,024) <- changes in memory (by position)
//! ```
//!
//! The way of a change: [`Transaction::insert_rows`](crate::Transaction::insert_rows) and the like
//! make another [`Tables`] and note a [`TableChange`] for the log; a commit puts both into the next
//! snapshot. A checkpoint writes the changes to files (`flushed`), and opening reads these and the
//! log after them.

mod changes;
mod definition;
pub mod file;
mod flushed;
mod key;
mod lanes;
mod names;
mod new_rows;
mod opened;
mod projection;
mod rewrite;
mod rows;
mod state;
mod tables;
mod types;
mod written;

pub use changes::{Change, Entry, NewRow, ProjectionChanges, RowBatch};
pub use definition::{
    COLUMNS_MAX, Check, ColumnDefinition, ColumnId, ForeignKey, IndexDefinition, PrimaryKey,
    ProjectionColumn, ProjectionLayout, ROW_NUMBER, RelationId, SYSTEM_SCHEMA, TableDefinition,
    ViewDefinition,
};
pub use file::{
    ColumnStatistics, ColumnZones, FileStatistics, ProjectionCursor, ProjectionFile,
    ProjectionSummary, ProjectionWriter, SomeRows, TextDictionary, ZoneKind, zone_lane,
};
pub(crate) use flushed::{
    CHANGES_KIND as TABLE_CHANGES_KIND, TABLE_CHANGES_PREFIX, open_tables, write_tables,
};
pub use flushed::{TableEntry, TablesEntry};
pub use key::{KeyEncoder, KeyRows, behind_prefix};
pub use names::TableNames;
pub(crate) use new_rows::new_rows_bytes;
pub(crate) use opened::TABLE_PREFIX;
pub use projection::{Pieces, Projection, RowPlace};
pub(crate) use rewrite::NewDirectory;
pub use rewrite::{RewrittenRows, TableRewrite};
pub use rows::{RowBytes, RowCodec, RowError};
pub use state::TableState;
pub use tables::{DEFAULT_SCHEMA, DefinitionChange, TableChange, Tables};
pub use types::{ColumnType, DECIMAL_DIGITS_MAX, LANE_DIGITS_MAX, Physical};

#[cfg(test)]
mod testing;

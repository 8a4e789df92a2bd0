//! Relational tables: typed columns in the same vectors, blocks, log and snapshots as the quads.
//!
//! ```text
//! table -> projections: the primary one with all columns, one for each index
//! projection = file (sorted rows, columns in vectors of 1,024) <- changes in memory (by position)
//! ```

mod definition;
pub mod file;
mod key;
mod lanes;
mod types;

pub use definition::{
    COLUMNS_MAX, Check, ColumnDefinition, ColumnId, ForeignKey, IndexDefinition, PrimaryKey,
    ProjectionColumn, ProjectionLayout, ROW_NUMBER, RelationId, TableDefinition, ViewDefinition,
};
pub use file::{
    ColumnStatistics, ColumnZones, FileStatistics, ProjectionCursor, ProjectionFile,
    ProjectionSummary, ProjectionWriter, TextDictionary, ZoneKind, zone_lane,
};
pub use key::{KeyEncoder, KeyRows, behind_prefix};
pub use types::{ColumnType, DECIMAL_DIGITS_MAX, LANE_DIGITS_MAX, Physical};

#[cfg(test)]
mod testing;

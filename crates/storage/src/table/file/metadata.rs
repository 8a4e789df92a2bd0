//! The metadata of a projection file: columns, places of blocks, statistics. JSON, read when it is
//! opened.

use serde::{Deserialize, Serialize};

use super::super::definition::{ColumnId, RelationId};
use super::super::types::ColumnType;

/// The version that this program writes and reads.
pub(super) const VERSION: u32 = 1;

/// The metadata of the block file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Metadata {
    pub(super) version: u32,
    pub(super) relation: RelationId,
    pub(super) rows: u64,
    pub(super) key_columns: usize,
    /// The block of the first column of each group; those of the other columns follow.
    pub(super) groups: Vec<u32>,
    /// The first block of fences.
    pub(super) fences: u32,
    pub(super) columns: Vec<ColumnMetadata>,
}

/// A column of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ColumnMetadata {
    pub(super) id: ColumnId,
    #[serde(rename = "type")]
    pub(super) column_type: ColumnType,
    pub(super) is_nullable: bool,
    pub(super) zones: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dictionary: Option<DictionaryMetadata>,
    pub(super) statistics: ColumnStatistics,
}

/// The dictionary of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DictionaryMetadata {
    /// Number of its values.
    pub(super) count: u32,
    pub(super) entries: u32,
    /// The codes of groups: of how many, and their block.
    pub(super) groups: u32,
    pub(super) codes: u32,
    /// Whether all groups have codes, so that the zones are codes, too.
    pub(super) is_whole: bool,
}

/// The statistics of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// Rows that are NULL.
    pub nulls: u64,
    /// Number of distinct values that are not NULL.
    pub distinct: u64,
    /// Whether that is exact; else it is an estimate, off by some percents.
    pub is_distinct_exact: bool,
    /// The least value, encoded as the key of this column alone were it not nullable (see
    /// [`KeyEncoder`](crate::table::KeyEncoder)); `None` if all are NULL, or where it is too long
    /// to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<Vec<u8>>,
    /// The greatest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greatest: Option<Vec<u8>>,
    /// Bytes that the column takes in the file.
    pub bytes: u64,
    /// Bytes of its values, uncompressed, if they are texts or blobs.
    pub value_bytes: u64,
}

/// The statistics of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatistics {
    /// Number of rows.
    pub rows: u64,
    /// Of the layout's columns, in its order; `None` for those that the file does not have.
    pub columns: Vec<Option<ColumnStatistics>>,
}

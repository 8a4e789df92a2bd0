//! Projection files: rows sorted by a key, stored column by column.
//!
//! ```text
//! rows 0..1,024 = vector 0, ...          vectors 0..32 = group 0, ...
//!
//! block file (kind `TABL`)
//!   per group      long values, a block each | a column block per column, in the order of the columns
//!   per column     a block of zones | where it has a dictionary: entries, codes of groups
//!   fences         of 1,024 vectors a block
//!   metadata       JSON: rows, groups, columns with types and statistics, where these blocks are (see `metadata`)
//!
//! column block  kind u8 (0 lanes, 1 codes, 2 bytes) | vectors u8 | table bytes u32 | per vector: end u32, from the first vector on
//!               | table | vectors
//! vector        tag u8 (0 no row is NULL, 1 some are, 2 all are, and nothing follows)
//!               | if some: bytes u16, encoded vector of 1 for a value and 0 for NULL | content
//! content       lanes: encoded vector; of a type with two lanes: bytes u16 of the first, first lanes, second lanes
//!               codes: encoded vector of positions among the group's distinct values, which ascend
//!               bytes: bytes u16, encoded vector of lengths | compressed values back to back
//! table         of bytes: symbols (see `symbols`) | per long value: its block u32, its bytes u32
//! long value    0 u8 | the bytes, or 1 u8 | zstd frame
//! zones         lanes: least, greatest, rows that are NULL, each as many as there are vectors, as a list
//! list          per 1,024 numbers: bytes u16, encoded vector
//! entries       per value: end u32 | the values, which ascend strictly
//! codes         per group: number of distinct values u32 | list of the positions of its distinct values among the entries
//! fences        per vector: end u32 | the fences
//! ```
//!
//! Encoded vectors are `orrery_column`'s. A row that is NULL has a lane of no meaning.
//!
//! *Texts and blobs.* While a group has few values that are not in the file's dictionary yet (a
//! quarter of its rows), and that has room, it stores codes; one group that does not, and the
//! column stores bytes from there on, compressed by a symbol table, which goes from group to group
//! while it does well. Codes of a group become codes of the file through an ascending list, so the
//! writer needs no second pass; the file's dictionary is sorted, and where all groups have codes,
//! comparing values is comparing codes. A value is compressed alone, so one can be read without the
//! others. Values of more than [`LONG_BYTES`] are blocks of their own.
//!
//! *Fences.* The fence of a vector is the shortest beginning of its first key that is behind the
//! last key of the vector before.
//!
//! *Memory.* The writer keeps one group: its encoded vectors, with several threads the lanes of up
//! to 64 columns, a quarter of a MiB each, and the texts of its rows, up to [`LONG_BYTES`] each;
//! the dictionaries, [`DICTIONARIES_BYTES_MAX`] in all; and per vector its fence and 32 bytes a
//! column. The reader keeps zones and dictionaries that were asked for.
//!
//! *Damage.* Checksums find it (see `block_file`); beyond them, any bytes at all end in values or
//! in an error.

mod bytes_block;
mod bytes_column;
mod codes;
mod cursor;
mod dictionary;
mod distinct;
mod lane_column;
mod metadata;
mod read;
mod read_bytes;
mod reader;
mod search;
mod symbols;
mod vector;
mod verify;
mod views;
mod wanted;
mod writer;
mod zones;

pub use cursor::ProjectionCursor;
pub use dictionary::TextDictionary;
pub use metadata::{ColumnStatistics, FileStatistics};
pub use read::SomeRows;
pub use reader::ProjectionFile;
pub use writer::{ProjectionSummary, ProjectionWriter};
pub use zones::{ColumnZones, ZoneKind, zone_lane};

use orrery_column::VECTOR_ROWS;

use crate::files::block_file::FileKind;

/// Vectors of a group.
pub const GROUP_VECTORS: usize = 32;
/// Rows of a group.
pub const GROUP_ROWS: usize = GROUP_VECTORS * VECTOR_ROWS;
/// A longer value is a block of its own.
pub const LONG_BYTES: usize = 4096;
/// The longest value.
pub const VALUE_BYTES_MAX: usize = 1 << 30;
/// Values that the dictionary of a column may have.
pub const DICTIONARY_ENTRIES_MAX: usize = 1 << 16;
/// Their bytes.
pub const DICTIONARY_BYTES_MAX: usize = 4 << 20;
/// Bytes of the dictionaries of all columns of a file.
pub const DICTIONARIES_BYTES_MAX: usize = 64 << 20;

const KIND: FileKind = FileKind(*b"TABL");
const FENCES_PER_BLOCK: usize = VECTOR_ROWS;

/// Why bytes are not what they should be.
type Fault = &'static str;

/// What is read from bytes, or what is wrong with them.
type Decoded<T> = Result<T, Fault>;

/// Number of vectors of so many rows.
const fn vectors_of(rows: u64) -> usize {
    rows.div_ceil(VECTOR_ROWS as u64) as usize
}

#[cfg(test)]
mod tests;

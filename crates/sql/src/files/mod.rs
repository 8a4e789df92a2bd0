//! External files: those that statements read and write by name.

mod bytes;
mod csv;
mod foreign;
mod json;
mod kind;
mod listing;
mod location;
mod parquet;
mod paying;
mod table;

pub(crate) use bytes::READING_BYTES;
pub(crate) use listing::parquet_plan;
pub use location::FileAccess;
pub(crate) use location::{FoundFile, Location, of_store};
pub(crate) use parquet::short_batches;
pub(crate) use table::{
    ExternalTable, KnownOfForeign, file_table, is_external, named_files, rename_files,
};

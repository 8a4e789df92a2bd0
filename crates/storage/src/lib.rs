//! Dictionary, sorted permutations, manifest, snapshots: the only place that knows files.

pub mod block_file;
pub mod dictionary;
pub mod index;
pub mod io;
pub mod statistics;

mod error;
mod lock;
mod manifest;
mod varint;

pub use dictionary::{Dictionary, DictionarySummary, DictionaryWriter};
pub use error::{Error, Result};
pub use lock::WriterLock;
pub use manifest::{FileEntry, Manifest, SegmentEntry};
pub use statistics::{Statistics, StatisticsBuilder};

//! Dictionary, sorted permutations, manifest, snapshots: the only place that knows files.
//!
//! A [`Database`] is a directory; its [`Snapshot`] is what queries read: a [`Dictionary`] between terms and ids, sorted
//! permutations of all quads (`index`), and [`Statistics`]. A [`SegmentBuilder`] writes the next state under
//! a [`WriterLock`] and publishes it by one atomic rename; [`verify()`] checks every byte.
//!
//! All files go through the seam in [`io`] and are made of checksummed blocks ([`block_file`]).

pub mod adjacency;
mod asker;
pub mod backup;
pub mod block_file;
mod by_list;
pub mod delta;
pub mod dictionary;
mod index;
pub mod io;
pub mod log;
pub mod statistics;
pub mod table;
pub mod text;

mod activity;
mod base;
mod changed_quads;
mod changes;
mod components;
mod counts;
mod create;
mod damage;
mod database;
mod delta_dictionary;
mod derived;
mod dump;
mod durations;
mod error;
mod flushed;
mod graph_set;
mod held;
mod history;
mod identity;
mod listed_files;
mod lock;
mod manifest;
mod read_cost;
mod read_scope;
mod read_view;
mod renumbering;
mod reopened;
mod replay;
mod row_checks;
mod scoped_states;
mod segment;
mod shown_files;
mod shown_states;
mod small;
mod snapshot;
mod stored;
mod table_events;
mod time;
mod unlisted;
mod varint;
mod verify;
mod verify_changes;
mod verify_tables;
mod warm;
mod words;
mod writer;

pub use activity::{Activity, LogActivity, Run, Work};
pub use adjacency::{Adjacency, AdjacencySlot};
pub use asker::Asker;
pub use components::{ComponentEntry, DirectoryComponents, FileEntry, Need};
pub use damage::{Damage, Note, Verified};
pub use database::Database;
pub use delta::{DeltaEntry, DeltaIndex};
pub use delta_dictionary::DeltaDictionary;
pub use derived::{BaseChange, DERIVED_MAX, DerivedIndex};
pub use dictionary::{Dictionary, DictionarySummary, DictionaryWriter, KeySearch, KeyText};
pub use dump::{QuadBatch, QuadRef, Quads};
pub use durations::{DurationCounts, Durations};
pub use error::{Error, PendingChange, Result, TableName};
pub use graph_set::GraphSet;
pub use history::{At, CommitChanges, CommitEntry};
pub use identity::DatabaseIdentity;
pub use index::{
    COLUMNS, Cursor, IndexSummary, PerPermutation, Permutation, QuadIndexWriter, QuadPosition,
    QuadRow, RowRange, Scan, ScanVector,
};
pub use lock::WriterLock;
pub use manifest::{BaseEntry, FlushedEntry, Loaded, LogEntry, Manifest, ManifestNames};
pub use read_cost::ReadCounts;
pub use read_scope::{GraphNames, IriPrefixes, ReadScope};
pub use read_view::{IndexView, ReadView};
pub use segment::{PublishedCounts, SegmentBuilder, SegmentFiles};
pub use small::{SmallQuad, build_small, build_small_with};
pub use snapshot::{CommittedState, Snapshot};
pub use statistics::{Statistics, StatisticsBuilder};
pub use table_events::TableEvent;
pub use time::{AtError, format_time, parse_time};
pub use verify::{VerifyProgress, verify, verify_with};
pub use warm::{WarmExtent, Warmed};
pub use words::{ByteCount, reason, without_numbers};
pub use writer::{
    BulkEnd, BulkTransaction, ChangeMemory, CommitOptions, Durability, FixedMemory, InsertionStage,
    PendingCommit, Rebase, Retention, StagedCommit, StateCheck, TableSavepoint, Transaction,
    Writer, WriterOptions,
};

#[cfg(test)]
mod tests;

//! The storage engine: dictionary, sorted permutations, tables, commit log, manifest and snapshots.
//!
//! A [`Database`] is a directory. Queries read a [`Snapshot`] of it: a [`Dictionary`] between terms
//! and ids, sorted permutations of all quads, and [`Statistics`]. A [`SegmentBuilder`] writes
//! the next state under a [`WriterLock`] and publishes it by one atomic rename; [`verify()`] checks
//! every byte.
//!
//! All file access goes through the interface in [`io`]; files consist of checksummed blocks
//! ([`block_file`]).
//!
//! | room | what it holds |
//! | --- | --- |
//! | `files` | the file system interface, block files, the log, the lock, the manifest |
//! | `quads` | the dictionary, permutations, deltas over them, statistics, adjacencies |
//! | [`table`] | tables: projections, indexes, and deltas over them |
//! | [`text`] | the full-text index of literals |
//! | `access` | read scopes: the graphs an asker may read |
//! | `snapshots` | snapshots, put together from files and log, and filtered views of them |
//! | `database` | creation, opening, bulk filling, dump and backup of a database |
//! | `history` | past commits, their changes, and the states after them |
//! | `writer` | the one writer: transactions, commits, checkpoints, new bases |
//! | `verification` | the check of all bytes, and of the agreement of all parts |

pub mod table;
pub mod text;

mod access;
mod activity;
mod asker;
mod database;
mod durations;
mod error;
mod files;
mod history;
mod quads;
mod snapshots;
mod verification;
mod words;
mod writer;

pub use access::read_scope::{GraphNames, IriPrefixes, ReadScope};
pub use activity::{Activity, LogActivity, Run, Work};
pub use asker::Asker;
pub use database::backup;
pub use database::directory::Database;
pub use database::dump::{QuadBatch, QuadRef, Quads};
pub use database::segment::{PublishedCounts, SegmentBuilder, SegmentFiles};
pub use database::small::{SmallQuad, build_small, build_small_with};
pub use database::warm::{WarmExtent, Warmed};
pub use durations::{DurationCounts, Durations};
pub use error::{Error, PendingChange, Result, TableName};
pub use files::components::{ComponentEntry, DirectoryComponents, FileEntry, Need};
pub use files::damage::{Damage, Note, Verified};
pub use files::identity::DatabaseIdentity;
pub use files::lock::WriterLock;
pub use files::manifest::{BaseEntry, FlushedEntry, Loaded, LogEntry, Manifest, ManifestNames};
pub use files::{block_file, io, log};
pub use history::old_states::{At, CommitChanges, CommitEntry};
pub use history::table_events::TableEvent;
pub use history::time::{AtError, format_time, parse_time};
pub use quads::adjacency::{Adjacency, AdjacencySlot};
pub use quads::delta::{DeltaEntry, DeltaIndex};
pub use quads::delta_dictionary::DeltaDictionary;
pub use quads::dictionary::{Dictionary, DictionarySummary, DictionaryWriter, KeySearch, KeyText};
pub use quads::graph_set::GraphSet;
pub use quads::index::{
    COLUMNS, Cursor, IndexSummary, PerPermutation, Permutation, QuadIndexWriter, QuadPosition,
    QuadRow, RowRange, Scan, ScanVector,
};
pub use quads::read_cost::ReadCounts;
pub use quads::statistics::{Statistics, StatisticsBuilder};
pub use quads::{adjacency, delta, dictionary, statistics};
pub use snapshots::derived::{BaseChange, DERIVED_MAX, DerivedIndex};
pub use snapshots::read_view::{IndexView, ReadView};
pub use snapshots::snapshot::{CommittedState, Snapshot};
pub use verification::verify::{VerifyProgress, verify, verify_with};
pub use words::{ByteCount, reason, storage_place, without_numbers};
pub use writer::{
    BulkEnd, BulkTransaction, ChangeMemory, CommitOptions, Durability, FixedMemory, InsertionStage,
    PendingCommit, Rebase, Retention, StagedCommit, StateCheck, TableSavepoint, Transaction,
    Writer, WriterOptions,
};

#[cfg(test)]
mod tests;

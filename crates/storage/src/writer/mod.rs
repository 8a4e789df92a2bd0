//! The single writer of a database: serial transactions that become durable in groups.
//!
//! ```text
//! begin -> insert, delete ... -> commit -> append to the log -> next transaction begins
//!                                             wait -> fdatasync, shared -> visible to new readers
//! ```
//!
//! A transaction begins on the state that the last commit left, whether that is durable yet or not,
//! so the next writer need not wait for the disk. Readers see a durable commit once its record is
//! on the disk. One that was made with [`Durability::Relaxed`] is acknowledged at once, and seen at
//! once if no durable commit before it still waits for the disk, else together with that: what
//! readers see never holds a durable commit that a power cut could take. If fdatasync fails,
//! nothing more is written until the database is opened anew.
//!
//! A thread of its own ([`worker`]) makes checkpoints ([`checkpoint`]), and puts relaxed commits on
//! the disk soon.
//!
//! Locks, in the order in which they may be taken: the turn, `State`, the old states that the
//! database has in memory, its current snapshot.

mod bulk;
mod checkpoint;
mod commit;
mod handle;
mod memory;
mod next_log;
mod noted_changes;
mod open;
mod options;
mod rebase;
mod requests;
mod shared;
mod staged;
mod table_changes;
mod table_compaction;
mod texts;
mod transaction;
mod turn_files;
mod worker;

pub use bulk::{BulkEnd, BulkTransaction, StagedCommit};
pub use commit::PendingCommit;
pub use handle::Writer;
pub use memory::{ChangeMemory, FixedMemory};
pub use options::{CommitOptions, Durability, Retention, WriterOptions};
pub use rebase::{Rebase, StateCheck};
pub use staged::InsertionStage;
pub use table_changes::TableSavepoint;
pub(crate) use table_compaction::COMPACTION;
pub use transaction::Transaction;

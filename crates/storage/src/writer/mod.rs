//! The one writer of a database: transactions, one after the other, that become durable together.
//!
//! ```text
//! begin -> insert, delete ... -> commit -> append to the log -> next transaction begins
//!                                             wait -> fdatasync, shared -> visible to new readers
//! ```
//!
//! A transaction begins on the state that the last commit left, whether that is durable yet or not, so the next writer need not
//! wait for the disk. Readers see a durable commit once its record is on the disk. One that was made with
//! [`Durability::Relaxed`] is acknowledged at once, and seen at once if no durable commit before it still waits for the disk, else
//! together with that: what readers see never holds a durable commit that a power cut could take. If fdatasync fails,
//! nothing more is written until the database is opened anew.
//!
//! A thread of its own makes checkpoints ([`checkpoint`]), and puts relaxed commits on the disk soon.
//!
//! Locks, in the order in which they may be taken: the turn, `State`, the old states that the database has in memory, its current
//! snapshot.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use orrery_term::TermId;
use parking_lot::{Condvar, Mutex};

use crate::delta::DeltaEntry;
use crate::io::{Clock, SystemClock};
use crate::lock::{ClosedLog, WriterLock};
use crate::log::{ClearedGraphs, LogRecord, LogWriter};
use crate::snapshot::Snapshot;
use crate::{Database, Result};

mod bulk;
mod checkpoint;
mod commit;
mod memory;
mod open;
mod rebase;
mod transaction;
mod worker;

pub use bulk::{BulkEnd, BulkTransaction, InsertionStage, StagedCommit};
pub use commit::{CommitOptions, Durability, PendingCommit};
pub use memory::ChangeMemory;
pub use rebase::Rebase;
pub use transaction::Transaction;

use worker::Worker;

/// How long old states can be read: a commit is kept while both limits allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// So many of the last commits are kept; with 0 nothing but the present state.
    pub commits_max: u64,
    /// Commits younger than that are kept.
    pub age_max: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            commits_max: 100,
            age_max: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Settings of a writer.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// How long old states can be read.
    pub retention: Retention,
    /// Length of the log from which on a checkpoint is made in the background.
    pub checkpoint_bytes: u64,
    /// Changes since the last checkpoint from which on another is made in the background.
    pub checkpoint_quads: u64,
    /// A graph, or all graphs that one change clears, of so many quads or more is cleared as a whole: one small record of the log, and the
    /// quads are hidden. Fewer are deleted one by one.
    pub whole_graph_quads: u64,
    /// Stamps the commits.
    pub clock: Arc<dyn Clock>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            retention: Retention::default(),
            checkpoint_bytes: 64 * 1024 * 1024,
            checkpoint_quads: 500_000,
            whole_graph_quads: 100_000,
            clock: Arc::new(SystemClock),
        }
    }
}

/// The writer of a database; clones are the same writer.
#[derive(Debug, Clone)]
pub struct Writer {
    handle: Arc<Handle>,
}

/// What all clones share; the last one to go ends the writing.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer and its thread share.
#[derive(Debug)]
struct Shared {
    database: Arc<Database>,
    options: WriterOptions,
    /// Whether a transaction is under way.
    is_taken: Mutex<bool>,
    given_back: Condvar,
    state: Mutex<State>,
    worker: Worker,
    /// Only one checkpoint or compaction at a time.
    maintenance: Mutex<()>,
    /// The last to go, so that nobody else writes before.
    lock: WriterLock,
}

#[derive(Debug)]
struct State {
    /// What the last commit left.
    latest: Arc<Snapshot>,
    /// Commits that are not visible yet, the oldest first.
    pending: VecDeque<PendingSnapshot>,
    /// Where commits are appended.
    log: Arc<LogWriter>,
    /// Changes that were committed since the log file was begun.
    changes_in_log: u64,
}

/// What a commit left that is not visible yet.
#[derive(Debug)]
struct PendingSnapshot {
    snapshot: Arc<Snapshot>,
    durability: Durability,
}

impl Writer {
    /// Begins a transaction, after waiting for the one that is under way. It sees all commits before it.
    ///
    /// Fails with [`crate::Error::WritingStopped`] when the log could not be written, until the database is opened anew.
    pub fn begin(&self) -> Result<Transaction> {
        let turn = self.handle.shared.take_turn();
        let (latest, log) = {
            let state = turn.shared.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        log.check()?;
        Transaction::new(self.clone(), turn, latest)
    }

    /// The database that is written.
    pub fn database(&self) -> &Arc<Database> {
        &self.handle.shared.database
    }

    /// Its settings.
    pub fn options(&self) -> &WriterOptions {
        &self.handle.shared.options
    }

    /// Whether commits are possible; the error says why not.
    pub fn check(&self) -> Result<()> {
        let log = Arc::clone(&self.handle.shared.state.lock().log);
        log.check()
    }

    /// Writes what is in memory to files and begins a new log file, so that opening need not read the old one. Returns
    /// whether there was anything to write. Neither readers nor other writers wait for the files.
    pub fn checkpoint(&self) -> Result<bool> {
        self.handle.shared.checkpoint()
    }

    /// Gives up older states beyond another retention than that of the options, and removes the files that only they need.
    /// Returns whether there were any. Snapshots that are in use stay readable. Commits since the last checkpoint stay,
    /// for the present state needs them: make one before to give up all.
    pub fn forget_history(&self, retention: &Retention) -> Result<bool> {
        self.handle.shared.forget_history(retention)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.worker.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that makes checkpoints has panicked");
        }
        if let Err(error) = self.shared.close() {
            tracing::error!("the log could not be closed: {error}");
        }
        self.shared.database.end_writing();
    }
}

impl Shared {
    fn now_us(&self) -> i64 {
        self.options.clock.now_us()
    }

    fn take_turn(self: &Arc<Self>) -> Turn {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            self.given_back.wait(&mut is_taken);
        }
        *is_taken = true;
        Turn {
            shared: Arc::clone(self),
        }
    }

    /// Puts everything on the disk for good, and notes in the lock's file where the log ends.
    fn close(&self) -> Result<()> {
        self.sync()?;
        let (log, commit) = {
            let state = self.state.lock();
            (Arc::clone(&state.log), state.latest.commit())
        };
        log.close()?;
        let name = log.path().file_name().and_then(|name| name.to_str());
        self.lock.note_closed(&ClosedLog {
            name: name.unwrap_or_default().to_owned(),
            salt: log.salt(),
            position: log.end(),
            commit,
        })
    }

    /// Makes visible what may be when the commits up to a number are on the disk: these, and the relaxed ones that follow them
    /// without a durable one between.
    fn publish(&self, synced: u64) {
        let mut state = self.state.lock();
        let mut newest = None;
        let is_visible = |next: &mut PendingSnapshot| {
            next.durability == Durability::Relaxed || next.snapshot.commit() <= synced
        };
        while let Some(next) = state.pending.pop_front_if(is_visible) {
            newest = Some(next.snapshot);
        }
        if let Some(newest) = newest {
            self.database.replace_snapshot(newest);
        }
    }

    /// Puts all commits so far on the disk and makes them visible.
    fn sync(&self) -> Result<()> {
        let (log, number) = {
            let state = self.state.lock();
            (Arc::clone(&state.log), state.latest.commit())
        };
        log.wait(log.end())?;
        self.publish(number);
        Ok(())
    }
}

/// The right to change the database; given back when dropped.
#[derive(Debug)]
struct Turn {
    shared: Arc<Shared>,
}

impl Turn {
    /// Takes a commit into the order of commits. Returns the log file and the position after its record.
    fn submit(
        &self,
        start: &Snapshot,
        snapshot: Arc<Snapshot>,
        net: &[DeltaEntry],
        cleared: Option<ClearedGraphs>,
        options: &CommitOptions,
    ) -> Result<(Arc<LogWriter>, u64)> {
        let shared = &self.shared;
        // Quads that were cleared count as changes: until there is a checkpoint, who opens the database hides them anew.
        let changes = net.len() as u64 + cleared.as_ref().map_or(0, |cleared| cleared.removed);
        let mut record = record_of(start, &snapshot, net, &options.who);
        record.cleared = cleared;
        let log = Arc::clone(&shared.state.lock().log);
        let appended = log.append(&record)?;
        let mut state = shared.state.lock();
        state.changes_in_log += changes;
        state.latest = Arc::clone(&snapshot);
        state.pending.push_back(PendingSnapshot {
            snapshot,
            durability: options.durability,
        });
        let is_checkpoint_due = appended.end >= shared.options.checkpoint_bytes
            || state.changes_in_log >= shared.options.checkpoint_quads;
        drop(state);
        if options.durability == Durability::Relaxed {
            shared.publish(0);
            shared.worker.request_sync();
        }
        if is_checkpoint_due {
            shared.worker.request_checkpoint();
        }
        Ok((log, appended.end))
    }

    /// Waits until all commits are on the disk, and makes them visible. Nobody can commit meanwhile.
    fn settle(&self) -> Result<()> {
        self.shared.sync()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.shared.is_taken.lock() = false;
        self.shared.given_back.notify_one();
    }
}

fn record_of(start: &Snapshot, snapshot: &Snapshot, net: &[DeltaEntry], who: &str) -> LogRecord {
    let mut record = LogRecord {
        commit: snapshot.commit(),
        time_micros: snapshot.commit_time_us(),
        who: who.to_owned(),
        next_blank_node: snapshot.next_blank_node(),
        first_new_term: start.delta_terms(),
        language_tags: snapshot.language_tags_since(start),
        ..LogRecord::default()
    };
    let terms = start.delta_terms()..snapshot.delta_terms();
    let dictionary = start.delta_dictionary();
    dictionary.for_each(terms.start, terms.end, |key| record.new_terms.push(key));
    for change in net {
        let rows = match change.is_insertion {
            true => &mut record.insertions,
            false => &mut record.deletions,
        };
        rows.push(change.row.map(TermId::from_bits));
    }
    record
}

//! The state shared by clones of a writer and its thread: log, pending commits, and the writer
//! role.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_term::TermId;
use parking_lot::{Condvar, Mutex};

use super::next_log::next_log;
use super::noted_changes::NotedChanges;
use super::options::{CommitOptions, Durability, WriterOptions};
use super::requests::Worker;
use super::turn_files::{TurnEnd, turn_ended};
use crate::files::io::FileSystem;
use crate::files::lock::{ClosedLog, WriterLock};
use crate::files::log::{ClearedGraphs, LogRecord, LogWriter};
use crate::files::manifest::Manifest;
use crate::quads::delta::DeltaEntry;
use crate::snapshots::snapshot::Snapshot;
use crate::table::TableChange;
use crate::{Database, Error, Result};

/// How long the end of a turn waits for what was acknowledged and is not on the disk.
const LAST_SYNC_MAX: Duration = Duration::from_secs(2);
/// What who comes after the end is told, where the reason is not known any more.
const CLOSED: &str = "the turn to write is over";

/// What the writer and its thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) database: Arc<Database>,
    pub(super) options: WriterOptions,
    /// Whether a transaction is under way.
    pub(super) is_taken: Mutex<bool>,
    pub(super) given_back: Condvar,
    pub(super) state: Mutex<State>,
    pub(super) worker: Worker,
    /// Only one checkpoint or compaction at a time.
    pub(super) maintenance: Mutex<()>,
    /// Only one table at a time is written anew beside writers.
    pub(super) table_compaction: Mutex<()>,
    /// When it was last asked whether anybody else has written, and nobody had.
    pub(super) confirmed: Mutex<Option<Instant>>,
    /// Through which the writer changes files, and its helpers.
    pub(super) files: Arc<dyn FileSystem>,
    /// Whether the turn to write is over.
    pub(super) end: Arc<TurnEnd>,
    /// Given back at the end of the turn; else the last to go, so that nobody else writes before.
    pub(super) lock: Mutex<Option<Arc<WriterLock>>>,
}

#[derive(Debug)]
pub(super) struct State {
    /// What the last commit left.
    pub(super) latest: Arc<Snapshot>,
    /// Commits that are not visible yet, the oldest first.
    pub(super) pending: VecDeque<PendingSnapshot>,
    /// Where commits are appended.
    pub(super) log: Arc<LogWriter>,
    /// Changes that were committed since the log file was begun.
    pub(super) changes_in_log: u64,
    /// What commits do to a table, while it is compacted.
    pub(super) noted_table_changes: Option<NotedChanges>,
}

/// What a commit left that is not visible yet.
#[derive(Debug)]
pub(super) struct PendingSnapshot {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) durability: Durability,
}

impl Shared {
    pub(super) fn now_us(&self) -> i64 {
        self.options.clock.now_us()
    }

    /// Waits for whoever changes something; fails as soon as the turn to write is over.
    pub(super) fn take_turn(self: &Arc<Self>) -> Result<WriteGuard> {
        let mut is_taken = self.is_taken.lock();
        loop {
            drop(self.end.require(self.database.directory())?);
            if !*is_taken {
                break;
            }
            self.given_back.wait(&mut is_taken);
        }
        *is_taken = true;
        Ok(WriteGuard {
            shared: Arc::clone(self),
        })
    }

    /// Ends the turn to write: nothing more is committed or changed by this writer, whoever still
    /// holds it; and the database can be followed, or be written in another turn, from now on.
    /// Returns once what changes the catalog or the manifest at this moment is done.
    pub(super) fn end(self: &Arc<Self>, reason: &str) {
        let reason: Arc<str> = reason.into();
        self.try_last_sync();
        if !self.end.end(&reason) {
            return;
        }
        {
            let _taken = self.is_taken.lock();
            self.given_back.notify_all();
        }
        self.worker.stop();
        self.state.lock().log.end_turn(&reason);
        // A put of the catalog may hang; whoever waits for the turn has been told before that.
        self.end.settle();
        // It may have become another one meanwhile.
        self.state.lock().log.end_turn(&reason);
        self.give_lock_back();
        self.database.end_writing();
    }

    /// Lets others write. A store is asked to take the lock back, which may take its time: nobody
    /// who looks at it waits for that.
    pub(super) fn give_lock_back(&self) {
        let lock = self.lock.lock().take();
        drop(lock);
    }

    /// Puts on the disk what was acknowledged before it was there, if that can be done soon:
    /// another may write already, or nobody be there who takes it.
    fn try_last_sync(self: &Arc<Self>) {
        if self.state.lock().pending.is_empty() && self.is_all_durable() {
            return;
        }
        let (done, waits) = std::sync::mpsc::channel();
        let shared = Arc::clone(self);
        let syncing = std::thread::Builder::new().name("last-sync".to_owned());
        let syncing = syncing.spawn(move || {
            // Whoever waits for it is told by the log, too.
            _ = done.send(shared.sync());
        });
        if syncing.is_ok() {
            // A commit that is not there then is lost, which is what was said of it, or fails.
            _ = waits.recv_timeout(LAST_SYNC_MAX);
        }
    }

    fn is_all_durable(&self) -> bool {
        let log = Arc::clone(&self.state.lock().log);
        log.durable() >= log.end()
    }

    /// Makes a manifest that of the database.
    pub(super) fn publish_manifest(&self, manifest: &Manifest) -> Result<()> {
        let directory = self.database.directory();
        // As a whole, or not at all: the next turn writes the same file.
        let _turn = self.end.require(directory)?;
        manifest.publish(&**self.database.file_system(), directory)
    }

    /// Begins a log file after a state, and publishes the manifest that names it.
    pub(super) fn begin_next_log(&self, after: &Snapshot) -> Result<(LogWriter, Manifest)> {
        let directory = self.database.directory();
        let _turn = self.end.require(directory)?;
        next_log(&**self.database.file_system(), directory, after)
    }

    /// Shows a state to readers, as long as it is this writer's affair.
    pub(super) fn show(&self, snapshot: Arc<Snapshot>) {
        if let Ok(_turn) = self.end.require(self.database.directory()) {
            self.database.replace_snapshot(snapshot);
        }
    }

    /// Puts everything on the disk for good, and notes in the lock's file where the log ends.
    pub(super) fn close(&self) -> Result<()> {
        self.sync()?;
        let (log, commit) = {
            let state = self.state.lock();
            (Arc::clone(&state.log), state.latest.commit())
        };
        log.close()?;
        let name = log.path().file_name().and_then(|name| name.to_str());
        let lock = self.lock.lock().clone();
        let lock = lock.ok_or_else(|| turn_ended(self.database.directory(), CLOSED))?;
        lock.note_closed(&ClosedLog {
            name: name.unwrap_or_default().to_owned(),
            salt: log.salt(),
            position: log.end(),
            commit,
        })
    }

    /// Fails if somebody else may have written before a moment, in which case what was read then
    /// need not have been the newest state. One question to the lock serves all moments before it.
    pub(super) fn confirm(&self, moment: Instant) -> Result<()> {
        let mut confirmed = self.confirmed.lock();
        if confirmed.is_some_and(|asked| asked >= moment) {
            return Ok(());
        }
        let asked = Instant::now();
        let lock = self.lock.lock().clone();
        let lock = lock.ok_or_else(|| turn_ended(self.database.directory(), CLOSED))?;
        match lock.confirm() {
            Ok(()) => *confirmed = Some(asked),
            Err(error @ Error::WritingStopped { .. }) => {
                let log = Arc::clone(&self.state.lock().log);
                return Err(log.stop(&error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes visible what may be when the commits up to a number are on the disk: these, and the
    /// relaxed ones that follow them without a durable one between.
    pub(super) fn publish(&self, synced: u64) {
        let mut state = self.state.lock();
        let mut newest = None;
        let is_visible = |next: &mut PendingSnapshot| {
            next.durability == Durability::Relaxed || next.snapshot.commit() <= synced
        };
        while let Some(next) = state.pending.pop_front_if(is_visible) {
            newest = Some(next.snapshot);
        }
        // Of what is shown, only what is on the disk stays for sure.
        self.note_lasting(synced);
        if let Some(newest) = newest {
            self.show(newest);
        }
    }

    /// Notes that the commits up to one are on the disk.
    pub(super) fn note_lasting(&self, synced: u64) {
        if synced > 0
            && let Ok(_turn) = self.end.require(self.database.directory())
        {
            self.database.note_lasting(synced);
        }
    }

    /// Puts all commits so far on the disk and makes them visible.
    pub(super) fn sync(&self) -> Result<()> {
        let (log, number) = {
            let state = self.state.lock();
            (Arc::clone(&state.log), state.latest.commit())
        };
        log.wait(log.end())?;
        self.publish(number);
        Ok(())
    }
}

/// What a commit does.
#[derive(Debug)]
pub(super) struct RecordChanges<'a> {
    /// Quads that come and go.
    pub(super) net: &'a [DeltaEntry],
    /// Graphs that were cleared first.
    pub(super) cleared: Option<ClearedGraphs>,
    /// What it does to tables.
    pub(super) tables: Vec<TableChange>,
}

/// The right to change the database; given back when dropped.
#[derive(Debug)]
pub(super) struct WriteGuard {
    pub(super) shared: Arc<Shared>,
}

impl WriteGuard {
    /// Takes a commit into the order of commits. Returns the log file and the position after its
    /// record.
    pub(super) fn submit(
        &self,
        start: &Snapshot,
        snapshot: Arc<Snapshot>,
        changes: RecordChanges<'_>,
        options: &CommitOptions,
    ) -> Result<(Arc<LogWriter>, u64)> {
        let shared = &self.shared;
        // Quads that were cleared count as changes: until there is a checkpoint, who opens the
        // database hides them anew.
        let cleared = changes
            .cleared
            .as_ref()
            .map_or(0, |cleared| cleared.removed);
        let rows: u64 = changes.tables.iter().map(TableChange::rows).sum();
        let count = changes.net.len() as u64 + cleared + rows;
        let mut record = record_of(start, &snapshot, changes, &options.who);
        let log = Arc::clone(&shared.state.lock().log);
        let appended = log.append(&record)?;
        let mut state = shared.state.lock();
        if let Some(noted) = &mut state.noted_table_changes {
            noted.note(&mut record);
        }
        state.changes_in_log += count;
        state.latest = Arc::clone(&snapshot);
        state.pending.push_back(PendingSnapshot {
            snapshot,
            durability: options.durability,
        });
        let is_checkpoint_due = appended.end >= shared.options.checkpoint_bytes
            || log.should_end()
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

    /// Waits until all commits are on the disk, and makes them visible. Nobody can commit
    /// meanwhile.
    pub(super) fn settle(&self) -> Result<()> {
        self.shared.sync()
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        *self.shared.is_taken.lock() = false;
        self.shared.given_back.notify_one();
    }
}

fn record_of(
    start: &Snapshot,
    snapshot: &Snapshot,
    changes: RecordChanges<'_>,
    who: &str,
) -> LogRecord {
    let mut record = LogRecord {
        commit: snapshot.commit(),
        time_micros: snapshot.commit_time_us(),
        who: who.to_owned(),
        next_blank_node: snapshot.next_blank_node(),
        first_new_term: start.delta_terms(),
        language_tags: snapshot.language_tags_since(start),
        prefixes: snapshot.prefixes_since(start),
        cleared: changes.cleared,
        tables: changes.tables,
        ..LogRecord::default()
    };
    let terms = start.delta_terms()..snapshot.delta_terms();
    let dictionary = start.delta_dictionary();
    dictionary.for_each(terms.start, terms.end, |key| record.new_terms.push(key));
    for change in changes.net {
        let rows = match change.is_insertion {
            true => &mut record.insertions,
            false => &mut record.deletions,
        };
        rows.push(change.row.map(TermId::from_bits));
    }
    record
}

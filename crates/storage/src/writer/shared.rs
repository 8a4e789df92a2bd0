//! What the clones of a writer and its thread share: the log, the commits on their way to the disk, and whose turn it is to write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use orrery_term::TermId;
use parking_lot::{Condvar, Mutex};

use super::noted_changes::NotedChanges;
use super::options::{CommitOptions, Durability, WriterOptions};
use super::requests::Worker;
use crate::delta::DeltaEntry;
use crate::lock::{ClosedLog, WriterLock};
use crate::log::{ClearedGraphs, LogRecord, LogWriter};
use crate::snapshot::Snapshot;
use crate::table::TableChange;
use crate::{Database, Error, Result};

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
    /// The last to go, so that nobody else writes before.
    pub(super) lock: WriterLock,
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

    pub(super) fn take_turn(self: &Arc<Self>) -> WriteGuard {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            self.given_back.wait(&mut is_taken);
        }
        *is_taken = true;
        WriteGuard {
            shared: Arc::clone(self),
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
        self.lock.note_closed(&ClosedLog {
            name: name.unwrap_or_default().to_owned(),
            salt: log.salt(),
            position: log.end(),
            commit,
        })
    }

    /// Fails if somebody else may have written before a moment, in which case what was read then need not have been the newest state. One question to the lock serves all
    /// moments before it.
    pub(super) fn confirm(&self, moment: Instant) -> Result<()> {
        let mut confirmed = self.confirmed.lock();
        if confirmed.is_some_and(|asked| asked >= moment) {
            return Ok(());
        }
        let asked = Instant::now();
        match self.lock.confirm() {
            Ok(()) => *confirmed = Some(asked),
            Err(error @ Error::WritingStopped { .. }) => {
                let log = Arc::clone(&self.state.lock().log);
                return Err(log.stop(&error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes visible what may be when the commits up to a number are on the disk: these, and the relaxed ones that follow them
    /// without a durable one between.
    pub(super) fn publish(&self, synced: u64) {
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
    /// Takes a commit into the order of commits. Returns the log file and the position after its record.
    pub(super) fn submit(
        &self,
        start: &Snapshot,
        snapshot: Arc<Snapshot>,
        changes: RecordChanges<'_>,
        options: &CommitOptions,
    ) -> Result<(Arc<LogWriter>, u64)> {
        let shared = &self.shared;
        // Quads that were cleared count as changes: until there is a checkpoint, who opens the database hides them anew.
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

    /// Waits until all commits are on the disk, and makes them visible. Nobody can commit meanwhile.
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

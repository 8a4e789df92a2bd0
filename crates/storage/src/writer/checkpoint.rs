//! Checkpoints: the changes in memory become files, and a new log file begins.
//!
//! ```text
//! the writers' turn   all commits on the disk; new log file; manifest that names it
//! no lock             delta dictionary and changes of that state -> DIR/delta-NNNNNN/
//! the writers' turn   manifest that names the delta; commits since are laid over it in memory
//! no lock             files that no kept commit needs are removed
//! ```
//!
//! Killed between any two steps, the old delta and both log files tell the same state. Readers
//! never wait; writers wait for two manifests, some ten fdatasyncs in all. When a step fails, what
//! it has written is removed, and the next checkpoint takes up the new log file if there is no
//! commit in it yet.

use crate::Writer;
use std::path::Path;
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::options::Retention;
use super::shared::{Shared, WriteGuard};
use crate::database::segment::DELTA_PREFIX;
use crate::files::io::FileSystem;
use crate::files::log::LogWriter;
use crate::files::manifest::{FlushedEntry, Manifest};
use crate::files::unlisted::ignore_missing;
use crate::history::old_states::forget;
use crate::quads::index::Permutation;
use crate::snapshots::flushed;
use crate::snapshots::replay::{Start, log_path};
use crate::snapshots::snapshot::Snapshot;
use crate::snapshots::stored::{Deltas, Stored};
use crate::table::Tables;
use crate::{Error, Result};

impl Writer {
    /// Writes what is in memory to files and begins a new log file, so that opening need not read
    /// the old one. Returns whether there was anything to write. Neither readers nor other writers
    /// wait for the files.
    pub fn checkpoint(&self) -> Result<bool> {
        self.handle.shared.checkpoint()
    }

    /// Drops history beyond a given retention, and removes the files that only it needs. Returns
    /// whether there were any. Snapshots that are in use stay readable. Commits since the last
    /// checkpoint stay, for the present state needs them: make one before to give up all.
    pub fn forget_history(&self, retention: &Retention) -> Result<bool> {
        self.handle.shared.forget_history(retention)
    }
}

impl Shared {
    /// See [`super::Writer::checkpoint`].
    fn checkpoint(self: &Arc<Self>) -> Result<bool> {
        self.checkpoint_under(self.maintenance.lock())
    }

    /// The same, unless a compaction or a load is under way, which makes a checkpoint of its own at
    /// its end.
    pub(super) fn checkpoint_unless_busy(self: &Arc<Self>) -> Result<bool> {
        match self.maintenance.try_lock() {
            Some(maintenance) => self.checkpoint_under(maintenance),
            None => Ok(false),
        }
    }

    /// See [`super::Writer::forget_history`].
    fn forget_history(self: &Arc<Self>, retention: &Retention) -> Result<bool> {
        let _maintenance = self.maintenance.lock();
        let turn = self.take_turn()?;
        turn.settle()?;
        let (latest, log) = {
            let state = self.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        let before = Arc::clone(latest.shared_manifest());
        let mut manifest = latest.to_manifest();
        forget(&mut manifest, latest.commit(), retention, self.now_us());
        if manifest.bases == before.bases {
            return Ok(false);
        }
        manifest.generation += 1;
        let file_system = &*self.files;
        let directory = self.database.directory();
        self.publish_manifest(&manifest)
            .map_err(|error| stop_where_unknown(&log, error))?;
        let snapshot = Arc::new(latest.with_manifest(Arc::new(manifest)));
        self.state.lock().latest = Arc::clone(&snapshot);
        self.show(Arc::clone(&snapshot));
        drop(turn);
        remove_dropped(file_system, directory, &before, snapshot.manifest());
        Ok(true)
    }

    /// Has the newest state's files opened anew if the file system asks for it, and nothing else is
    /// done with them.
    pub(super) fn reopen_files(self: &Arc<Self>) -> Result<()> {
        if !self.database.file_system().wants_reopening() {
            return Ok(());
        }
        let Some(_maintenance) = self.maintenance.try_lock() else {
            return Ok(());
        };
        let turn = self.take_turn()?;
        turn.settle()?;
        let latest = Arc::clone(&self.state.lock().latest);
        let reopened = self.database.reopened(&latest)?;
        self.state.lock().latest = Arc::clone(&reopened);
        self.show(reopened);
        Ok(())
    }

    fn checkpoint_under(self: &Arc<Self>, maintenance: MutexGuard<'_, ()>) -> Result<bool> {
        let written = self.write_checkpoint(maintenance);
        if written.is_err() {
            self.database.activity().checkpoints.note_failure();
        }
        written
    }

    fn write_checkpoint(self: &Arc<Self>, _maintenance: MutexGuard<'_, ()>) -> Result<bool> {
        let run = self.database.activity().checkpoints.begin();
        let turn = self.take_turn()?;
        let latest = Arc::clone(&self.state.lock().latest);
        // Not by the number of changes: commits that cancel each other fill the log, too.
        if Start::present(latest.manifest()).commit() == latest.commit() {
            return Ok(false);
        }
        let flushing = turn.begin_log()?;
        drop(turn);

        let file_system = &*self.files;
        let directory = self.database.directory();
        let name = format!("{DELTA_PREFIX}{:06}", flushing.manifest().generation);
        let flushed = flushed::write(file_system, directory, &name, &flushing)?;
        let base = Arc::clone(flushing.base());
        let stored = flushed::open(file_system, directory, base, &flushed.entry)?;

        let turn = self.take_turn()?;
        if !Arc::ptr_eq(self.state.lock().latest.stored(), flushing.stored()) {
            // Graphs were cleared meanwhile: what was written is not what the changes since lie
            // over, and is removed. The logs tell all of it until the next checkpoint.
            return Ok(false);
        }
        let before = Arc::clone(flushing.shared_manifest());
        let after = turn.lay_over(Arc::new(stored), flushed.entry, &flushed.tables, &flushing);
        flushed.unlisted.keep_if_listed(&after);
        let after = after?;
        drop(turn);
        remove_dropped(file_system, directory, &before, &after);
        run.done();
        Ok(true)
    }
}

impl WriteGuard {
    /// Begins a new log file, unless the last one has no commit. Returns the state before it, which
    /// no commit adds to any more; the log before it is closed.
    pub(super) fn begin_log(&self) -> Result<Arc<Snapshot>> {
        self.settle()?;
        let shared = &self.shared;
        let (latest, old_log) = {
            let state = shared.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        let logs = &latest.manifest().present().logs;
        if logs.last().map(|log| log.first_commit) == Some(latest.commit() + 1) {
            return Ok(latest);
        }
        old_log.close()?;
        let (log, manifest) = shared
            .begin_next_log(&latest)
            .map_err(|error| stop_where_unknown(&old_log, error))?;
        let snapshot = Arc::new(latest.with_manifest(Arc::new(manifest)));
        let mut state = shared.state.lock();
        state.log = Arc::new(log.counted_in(&shared.database.activity().log));
        state.changes_in_log = 0;
        state.latest = Arc::clone(&snapshot);
        drop(state);
        shared.show(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Publishes a flushed delta, with what was committed since over it.
    fn lay_over(
        &self,
        stored: Arc<Stored>,
        entry: FlushedEntry,
        tables: &Arc<Tables>,
        flushed: &Snapshot,
    ) -> Result<Arc<Manifest>> {
        self.settle()?;
        let shared = &self.shared;
        let latest = Arc::clone(&shared.state.lock().latest);
        let mut manifest = latest.to_manifest();
        manifest.generation += 1;
        manifest.present_mut().deltas.push(entry);
        let (retention, now_us) = (&shared.options.retention, shared.now_us());
        forget(&mut manifest, latest.commit(), retention, now_us);

        let deltas = carried(&latest, flushed)?;
        let manifest = Arc::new(manifest);
        let snapshot = latest
            .with_deltas(stored, deltas, latest.counts())?
            .with_tables(&written_there(&latest, flushed, tables))
            .with_manifest(Arc::clone(&manifest))
            .of_commit();
        let log = Arc::clone(&shared.state.lock().log);
        shared
            .publish_manifest(&manifest)
            .map_err(|error| stop_where_unknown(&log, error))?;
        let snapshot = Arc::new(snapshot);
        shared.state.lock().latest = Arc::clone(&snapshot);
        shared.show(snapshot);
        Ok(manifest)
    }
}

/// Ends writing if nobody knows which manifest is on the disk: commits might go to a log that it
/// does not name.
pub(super) fn stop_where_unknown(log: &LogWriter, error: Error) -> Error {
    match error {
        Error::WritingStopped { .. } => log.stop(&error),
        other => other,
    }
}

/// The tables of a state, which know where those of an earlier one were written; the same ones if
/// none was.
pub(super) fn written_there(
    latest: &Snapshot,
    earlier: &Snapshot,
    written: &Arc<Tables>,
) -> Arc<Tables> {
    match Arc::ptr_eq(earlier.tables(), written) {
        true => Arc::clone(latest.tables()),
        false => Arc::new(latest.tables().with_written_of(written)),
    }
}

/// What was committed between two snapshots over the same files.
fn carried(latest: &Snapshot, flushed: &Snapshot) -> Result<Deltas> {
    let of = |snapshot: &Snapshot| snapshot.deltas().get(Permutation::Spog).cloned();
    let changes = match (of(latest), of(flushed)) {
        (Some(latest), Some(flushed)) => latest.changes_since(&flushed)?,
        (Some(latest), None) => latest.entries().collect::<Result<_>>()?,
        (None, _) => Vec::new(),
    };
    Deltas::default().apply(&changes, None, latest.has_named_graphs())
}

/// Removes the files that the manifest before named and the one after does not. That one stays does
/// no harm: the next writer that opens the database removes it.
pub(super) fn remove_dropped(
    file_system: &dyn FileSystem,
    directory: &Path,
    before: &Manifest,
    after: &Manifest,
) {
    let dropped = before
        .directories()
        .filter(|name| !after.directories().any(|kept| kept == *name))
        .map(|name| file_system.remove_dir_all(&directory.join(name)));
    let dropped_logs = before
        .log_names()
        .filter(|name| !after.log_names().any(|kept| kept == *name))
        .map(|name| file_system.remove_file(&log_path(directory, name)));
    for removed in dropped.chain(dropped_logs) {
        if let Err(error) = ignore_missing(removed) {
            tracing::warn!("a file that is needed no more could not be removed: {error}");
        }
    }
}

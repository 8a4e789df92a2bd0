//! Opening of a database for writing: recovery of the log, and its first file.

use super::next_log::next_log;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::handle::{Handle, Writer};
use super::options::WriterOptions;
use super::requests::Worker;
use super::shared::{Shared, State};
use super::turn_files::{TurnEnd, TurnFiles};
use super::worker::{self};
use crate::database::segment::remove_leftovers;
use crate::files::io::FileSystem;
use crate::files::lock::WriterLock;
use crate::files::log::{LogEnd, LogTail, LogWriter};
use crate::snapshots::replay::log_path;
use crate::snapshots::snapshot::Snapshot;
use crate::{Database, Error, Result};

impl Database {
    /// Opens the database for writing; there can be one writer at a time, here or in any other
    /// process.
    ///
    /// Fails with [`crate::Error::Locked`] when there is another. Brings this database up to date
    /// with what other processes wrote before, cuts off a record that was being written when the
    /// last writer was killed, and removes what killed writers left.
    pub fn open_writer(self: &Arc<Self>, options: WriterOptions) -> Result<Writer> {
        let lock = WriterLock::acquire_with(self.file_system(), self.directory())?;
        let end = self.begin_writing()?;
        match self.start(lock, options, end) {
            Ok(writer) => Ok(writer),
            Err(error) => {
                self.end_writing();
                Err(error)
            }
        }
    }

    /// The present state, with an identity if the database had none; it is on the disk with the
    /// next manifest.
    fn identified(&self) -> Arc<Snapshot> {
        let present = self.snapshot();
        let mut manifest = present.to_manifest();
        if !manifest.identify() {
            return present;
        }
        // Who has the old manifest in memory shall read this one before it writes.
        manifest.generation += 1;
        Arc::new(present.with_manifest(Arc::new(manifest)))
    }

    fn start(
        self: &Arc<Self>,
        lock: WriterLock,
        options: WriterOptions,
        end: Option<LogEnd>,
    ) -> Result<Writer> {
        let file_system = &**self.file_system();
        let present = self.identified();
        remove_leftovers(file_system, self.directory(), Some(present.manifest()))?;
        self.replace_snapshot(Arc::clone(&present));
        let resumed = match (end, present.manifest().present().logs.last()) {
            (Some(end), Some(entry)) => {
                let path = log_path(self.directory(), &entry.name);
                resume(file_system, &path, &end, present.commit())?
            }
            _ => None,
        };
        let (log, snapshot) = match resumed {
            Some(log) => (log, present),
            None => {
                let (log, manifest) = next_log(file_system, self.directory(), &present)?;
                let snapshot = Arc::new(present.with_manifest(Arc::new(manifest)));
                self.replace_snapshot(Arc::clone(&snapshot));
                (log, snapshot)
            }
        };
        let end_of_turn = Arc::<TurnEnd>::default();
        let shared = Arc::new(Shared {
            database: Arc::clone(self),
            options,
            is_taken: Mutex::new(false),
            given_back: Condvar::new(),
            state: Mutex::new(State {
                changes_in_log: snapshot.deltas().len(),
                noted_table_changes: None,
                latest: snapshot,
                pending: VecDeque::new(),
                log: Arc::new(log.counted_in(&self.activity().log)),
            }),
            worker: Worker::default(),
            maintenance: Mutex::new(()),
            table_compaction: Mutex::new(()),
            confirmed: Mutex::new(None),
            files: Arc::new(TurnFiles {
                files: Arc::clone(self.file_system()),
                end: Arc::clone(&end_of_turn),
            }),
            end: end_of_turn,
            lock: Mutex::new(Some(Arc::new(lock))),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || worker::run(&of_thread))
            .map_err(|error| Error::from_io(self.directory(), "start a thread for", error))?;
        Ok(Writer {
            handle: Arc::new(Handle {
                shared,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }
}

/// Puts on the disk what was read of the last log file, and cuts off the rest. `None` where the
/// commits have to go on in another file: one of the present version, or one in which nothing of a
/// torn tail can come back.
fn resume(
    file_system: &dyn FileSystem,
    path: &Path,
    end: &LogEnd,
    last_commit: u64,
) -> Result<Option<LogWriter>> {
    let is_torn = match end.tail {
        LogTail::Mark | LogTail::Nothing => false,
        LogTail::BrokenMark => {
            let place = end.position;
            let path = path.display();
            tracing::warn!(
                "{path}: the mark at byte {place} behind commit {last_commit} is not whole; no commit is missing"
            );
            true
        }
        LogTail::Torn(bytes) => {
            let (place, next, path) = (end.position, last_commit + 1, path.display());
            tracing::warn!(
                "{path}: the last {bytes} bytes, from byte {place} on, are no whole commit and are cut off; what a killed \
                 process did not finish looks so, and so does a commit {next} that was damaged: the next commit gets its number"
            );
            true
        }
    };
    let log = LogWriter::resume(file_system, path, end)?;
    if !is_torn && end.is_current {
        return Ok(Some(log));
    }
    log.close()?;
    Ok(None)
}

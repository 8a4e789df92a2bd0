//! The writer of log files, with one fdatasync shared by all waiting commits.
//!
//! A full disk refuses commits, and later ones succeed when there is space again. A failed
//! fdatasync ends writing until the database is opened anew. Readers go on in either case.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::reader::LogEnd;
use super::record::LogRecord;
use super::{FRAME_BYTES, KIND_COMMIT, LogHeader, RECORD_BYTES_MAX, frame, mark_bytes};
use crate::activity::LogActivity;
use crate::files::io::{FileSystem, LogFile};
use crate::{Error, Result};

/// Writes one log file; shared by all threads that commit.
///
/// [`append`](Self::append) hands a record to the operating system, [`wait`](Self::wait) returns
/// when it is on the disk. Of those who wait one calls fdatasync for all records that were appended
/// by then; who comes meanwhile waits for the next. So a lone client pays one fdatasync a commit,
/// and many share it.
///
/// A failed fdatasync ends writing for good: what is on the disk is known only after the file was
/// opened anew. A failed append is taken back; where the disk was full, the next one tries again.
#[derive(Debug)]
pub struct LogWriter {
    file: Arc<dyn LogFile>,
    salt: u32,
    /// Lock order: `tail` before `sync`; nobody holds either while waiting for the disk.
    tail: Mutex<Tail>,
    sync: Mutex<SyncState>,
    synced: Condvar,
    /// Everything before it is on the disk.
    durable: AtomicU64,
    activity: Arc<LogActivity>,
}

/// The end of the file, as the next append finds it.
#[derive(Debug)]
struct Tail {
    end: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct SyncState {
    is_syncing: bool,
    /// Why writing has ended.
    failure: Option<String>,
    /// Why nothing more may be written, though nothing has failed: somebody else writes.
    ended: Option<Arc<str>>,
}

/// The place of an appended record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last one: what [`LogWriter::wait`] takes.
    pub end: u64,
}

/// Memory that stays reserved for encoding between records.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

impl LogWriter {
    /// Creates a log file; when it returns, the header is on the disk, and so is the file's name.
    pub fn create(file_system: &dyn FileSystem, path: &Path, header: &LogHeader) -> Result<Self> {
        let salt = RandomState::new().hash_one(header.first_commit) as u32;
        let bytes = header.to_bytes(salt);
        let file = file_system.create_log(path)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        if let Some(directory) = path.parent() {
            file_system.sync_dir(directory)?;
        }
        Ok(Self::new(file, salt, bytes.len() as u64))
    }

    /// Goes on with a log file at the end that a [`super::LogReader`] found; a torn tail is cut
    /// off.
    ///
    /// What was read may be in the operating system's memory only, even after a failed fdatasync,
    /// so it is written once more: when this returns, every record that was read is on the disk.
    pub fn resume(file_system: &dyn FileSystem, path: &Path, end: &LogEnd) -> Result<Self> {
        let file = file_system.open_log(path)?;
        let mut tail = Vec::new();
        file_system
            .open_at(path, end.durable)?
            .read_to_end(&mut tail)
            .map_err(|error| Error::from_io(path, "read", error))?;
        tail.truncate((end.position - end.durable) as usize);
        if tail.len() as u64 != end.position - end.durable {
            let what = "the file became shorter while it was read";
            return Err(Error::corrupt(path, end.durable, what));
        }
        file.set_length(end.position)?;
        file.write_at(end.durable, &tail)?;
        file.sync()?;
        let writer = Self::new(file, end.salt, end.position);
        writer.mark_as_help();
        Ok(writer)
    }

    fn new(file: Arc<dyn LogFile>, salt: u32, end: u64) -> Self {
        Self {
            file,
            salt,
            tail: Mutex::new(Tail {
                end,
                buffer: Vec::new(),
            }),
            sync: Mutex::new(SyncState {
                is_syncing: false,
                failure: None,
                ended: None,
            }),
            synced: Condvar::new(),
            durable: AtomicU64::new(end),
            activity: Arc::default(),
        }
    }

    /// The same, counted there.
    #[must_use]
    pub(crate) fn counted_in(self, activity: &Arc<LogActivity>) -> Self {
        Self {
            activity: Arc::clone(activity),
            ..self
        }
    }

    /// Appends a record; it is on the disk only after [`wait`](Self::wait). Records stand in the
    /// order of the calls.
    ///
    /// Fails with [`Error::NoSpace`] when the disk is full: nothing was appended then, and a later
    /// call may succeed. Any other failure to write ends writing for good.
    pub fn append(&self, record: &LogRecord) -> Result<Appended> {
        let mut tail = self.tail.lock();
        self.check()?;
        let mut buffer = std::mem::take(&mut tail.buffer);
        let appended = self.append_encoded(&mut tail, &mut buffer, record);
        if buffer.capacity() <= BUFFER_BYTES_KEPT {
            tail.buffer = buffer;
        }
        appended
    }

    fn append_encoded(
        &self,
        tail: &mut Tail,
        buffer: &mut Vec<u8>,
        record: &LogRecord,
    ) -> Result<Appended> {
        let durable = self.durable();
        frame(self.salt, durable, KIND_COMMIT, buffer, |out| {
            record.encode(out);
        });
        let bytes = buffer.len() - FRAME_BYTES;
        if bytes > RECORD_BYTES_MAX {
            return Err(Error::TransactionTooLarge {
                path: self.path().to_path_buf(),
                bytes: bytes as u64,
                limit: RECORD_BYTES_MAX as u64,
            });
        }
        let start = tail.end;
        if let Err(error) = self.file.write_at(start, buffer) {
            return Err(self.take_back(start, error));
        }
        tail.end += buffer.len() as u64;
        self.activity.appended(buffer.len() as u64);
        Ok(Appended {
            start,
            end: tail.end,
        })
    }

    /// Cuts off what a failed append left.
    fn take_back(&self, end: u64, error: Error) -> Error {
        let is_cut = self.file.set_length(end);
        match (&error, is_cut) {
            (Error::NoSpace { .. }, Ok(())) => error,
            (_, Ok(())) => self.stop(&error),
            (_, Err(second)) => self.stop(&second),
        }
    }

    /// Waits until everything before a position (the `end` that [`append`](Self::append) gave) is
    /// on the disk.
    pub fn wait(&self, position: u64) -> Result<()> {
        let mut sync = self.sync.lock();
        loop {
            if self.durable() >= position {
                return Ok(());
            }
            if let Some(failure) = &sync.failure {
                return Err(self.stopped(failure));
            }
            if sync.is_syncing {
                self.synced.wait(&mut sync);
                continue;
            }
            sync.is_syncing = true;
            drop(sync);
            self.sync_for_all();
            sync = self.sync.lock();
        }
    }

    /// One fdatasync; its outcome is everybody's.
    fn sync_for_all(&self) {
        let end = self.end();
        let begun = Instant::now();
        let outcome = self.file.sync();
        self.activity.synced(begun, outcome.is_ok());
        let mut sync = self.sync.lock();
        sync.is_syncing = false;
        match &outcome {
            Ok(()) => self.durable.store(end, Ordering::Release),
            Err(error) => sync.failure = Some(error.to_string()),
        }
        self.synced.notify_all();
        drop(sync);
        if outcome.is_ok() {
            self.mark_as_help();
        }
    }

    /// Where nothing waits to be synced, says so at the end of the file.
    fn mark(&self) -> Result<()> {
        let tail = self.tail.lock();
        // Behind the end of a turn the file is another's.
        self.check()?;
        match tail.end == self.durable() {
            true => self
                .file
                .write_at(tail.end, &mark_bytes(self.salt, tail.end)),
            false => Ok(()),
        }
    }

    /// The same as a mere help for who looks for damage later: that it fails does no harm.
    fn mark_as_help(&self) {
        if self.check().is_ok()
            && let Err(error) = self.mark()
        {
            tracing::debug!("no mark at the end of the log: {error}");
        }
    }

    /// Syncs everything, with a closing mark behind it; called before the file is left.
    pub fn close(&self) -> Result<()> {
        self.wait(self.end())?;
        self.check()?;
        self.mark()?;
        self.file.sync().map_err(|error| self.stop(&error))
    }

    /// The byte after the last record.
    pub fn end(&self) -> u64 {
        self.tail.lock().end
    }

    /// Nothing more is written from now on. What was appended may still be waited for: it came
    /// before.
    pub(crate) fn end_turn(&self, reason: &Arc<str>) {
        // Nobody is appending while this is held.
        let _tail = self.tail.lock();
        let mut sync = self.sync.lock();
        sync.ended.get_or_insert_with(|| Arc::clone(reason));
    }

    /// Whether the file system wants the log to go on in another file, see [`LogFile::should_end`].
    pub(crate) fn should_end(&self) -> bool {
        self.file.should_end()
    }

    /// Everything before this byte is on the disk.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Tells the file from another of the same name.
    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    /// Fails with [`Error::WritingStopped`] when writing has ended by a failure, with
    /// [`Error::TurnEnded`] where it is another's now.
    pub fn check(&self) -> Result<()> {
        let sync = self.sync.lock();
        match (&sync.ended, &sync.failure) {
            (None, None) => Ok(()),
            (Some(reason), _) => Err(Error::TurnEnded {
                path: self.path().to_path_buf(),
                reason: reason.to_string(),
            }),
            (None, Some(failure)) => Err(self.stopped(failure)),
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Ends writing for good because of an error; gives the error that everybody gets from now on.
    pub(crate) fn stop(&self, error: &Error) -> Error {
        let mut sync = self.sync.lock();
        let failure = sync
            .failure
            .get_or_insert_with(|| error.to_string())
            .clone();
        self.synced.notify_all();
        self.stopped(&failure)
    }

    fn stopped(&self, failure: &str) -> Error {
        Error::WritingStopped {
            path: self.path().to_path_buf(),
            what: failure.to_owned(),
        }
    }
}

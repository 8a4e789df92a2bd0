//! A file system for tests that fails on demand.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::recording::RecordingFileSystem;
use crate::files::io::{FileBytes, FileLock, FileMetadata, FileSystem, FileWriter, LogFile};
use crate::{Error, Result};

/// The way in which a call fails. A call that reads fails with EIO whatever the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// EIO: the device has failed, nothing was done.
    Io,
    /// ENOSPC: the disk is full, nothing was done.
    NoSpace,
    /// EINTR: a signal came, nothing was done.
    Interrupted,
    /// The first half of the bytes was written, then the disk was full. Other calls fail as with
    /// `NoSpace`.
    ShortWrite,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Io, Self::NoSpace, Self::Interrupted, Self::ShortWrite];

    fn error(self, path: &Path, operation: &'static str) -> Error {
        let code = match self {
            Self::Io => rustix::io::Errno::IO,
            Self::NoSpace | Self::ShortWrite => rustix::io::Errno::NOSPC,
            Self::Interrupted => rustix::io::Errno::INTR,
        };
        Error::from_io(path, operation, io::Error::from(code))
    }
}

/// Passes all calls on to another file system, until one has to fail. Clones share count and plan.
#[derive(Debug, Clone)]
pub struct FailingFileSystem {
    inner: Arc<dyn FileSystem>,
    /// The same as `inner`, where it is one: it is told of failed syncs.
    recording: Option<RecordingFileSystem>,
    plan: Arc<Mutex<Plan>>,
    /// Where syncs of files have to wait, and locks that are given back.
    syncs: Arc<Gate>,
    releases: Arc<Gate>,
}

/// Where calls of a kind wait while it is held.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_held: bool,
    waiting: usize,
}

impl Gate {
    fn hold(self: &Arc<Self>) -> Held {
        self.state.lock().is_held = true;
        Held(Arc::clone(self))
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.waiting += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| state.is_held);
        state.waiting -= 1;
    }
}

/// A guard that blocks calls of a kind while it lives; see [`FailingFileSystem::hold_syncs`].
#[derive(Debug)]
#[must_use = "what waits goes on when it is dropped"]
pub struct Held(Arc<Gate>);

impl Held {
    /// Returns once a call waits.
    pub fn until_one_waits(&self) {
        let mut state = self.0.state.lock();
        self.0
            .changed
            .wait_while(&mut state, |state| state.waiting == 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state.lock().is_held = false;
        self.0.changed.notify_all();
    }
}

#[derive(Debug, Default)]
struct Plan {
    calls: u64,
    fault: Option<(Fault, std::ops::Range<u64>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
}

impl FailingFileSystem {
    /// Over any file system. For now it passes everything on.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self {
            inner,
            recording: None,
            plan: Arc::default(),
            syncs: Arc::default(),
            releases: Arc::default(),
        }
    }

    /// Over a recording one: what a failed sync of a file did not save, no later sync saves, as on
    /// Linux. Names can still be saved by another sync of their directory, for a file system keeps
    /// them in its journal.
    pub fn over(recording: &RecordingFileSystem) -> Self {
        Self {
            recording: Some(recording.clone()),
            ..Self::new(Arc::new(recording.clone()))
        }
    }

    /// Number of calls so far, reading or changing, those on open files included.
    pub fn calls(&self) -> u64 {
        self.plan.lock().calls
    }

    /// Fails the n-th call from now.
    pub fn fail_call(&self, number: u64, fault: Fault) {
        self.plan.lock().fault = Some((fault, number..number + 1));
    }

    /// Fails all changing calls from the n-th on, until [`heal`](Self::heal).
    pub fn fail_from(&self, number: u64, fault: Fault) {
        self.plan.lock().fault = Some((fault, number..u64::MAX));
    }

    /// A disk that is slow: lets all syncs of files wait, until what is returned is dropped.
    pub fn hold_syncs(&self) -> Held {
        self.syncs.hold()
    }

    /// A store that is slow to take a lock back: lets all locks that are given back wait, until
    /// what is returned is dropped.
    pub fn hold_releases(&self) -> Held {
        self.releases.hold()
    }

    /// Ends all failures.
    pub fn heal(&self) {
        self.plan.lock().fault = None;
    }

    /// The fault of the present call, if it has to fail.
    fn fault(&self, effect: Effect) -> Option<Fault> {
        let mut plan = self.plan.lock();
        let number = plan.calls;
        plan.calls += 1;
        let (fault, calls) = plan.fault.as_ref()?;
        let is_single = calls.end != u64::MAX;
        match effect {
            _ if !calls.contains(&number) => None,
            Effect::Changes => Some(*fault),
            Effect::Reads => is_single.then_some(Fault::Io),
        }
    }

    fn call(&self, effect: Effect, path: &Path, operation: &'static str) -> Result<()> {
        match self.fault(effect) {
            None => Ok(()),
            Some(fault) => Err(fault.error(path, operation)),
        }
    }

    /// A sync of a file.
    fn sync(&self, path: &Path, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        self.syncs.pass();
        let called = self.call(Effect::Changes, path, "sync");
        match (&called, &self.recording) {
            (Ok(()), _) => return sync(),
            (Err(_), Some(recording)) => recording.record_failed_sync(path),
            (Err(_), None) => {}
        }
        called
    }

    /// A write of bytes, of which perhaps only a part is done.
    fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(fault) = self.fault(Effect::Changes) else {
            return write(bytes);
        };
        if fault == Fault::ShortWrite {
            write(&bytes[..bytes.len() / 2])?;
        }
        Err(fault.error(path, "write"))
    }
}

impl FileSystem for FailingFileSystem {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        self.call(Effect::Changes, path, "create")?;
        Ok(Box::new(FailingWriter {
            inner: self.inner.create(path)?,
            file_system: self.clone(),
            path: path.to_path_buf(),
        }))
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        self.call(Effect::Reads, path, "open")?;
        self.inner.map(path)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.call(Effect::Reads, path, "read")?;
        self.inner.read(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        self.open_at(path, 0)
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.call(Effect::Reads, path, "open")?;
        Ok(Box::new(FailingReader {
            inner: match offset {
                0 => self.inner.open(path)?,
                _ => self.inner.open_at(path, offset)?,
            },
            file_system: self.clone(),
        }))
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        self.call(Effect::Changes, path, "create")?;
        Ok(self.wrap(self.inner.create_log(path)?))
    }

    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        self.call(Effect::Changes, path, "open")?;
        Ok(self.wrap(self.inner.open_log(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call(Effect::Changes, from, "rename")?;
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.call(Effect::Changes, path, "remove")?;
        self.inner.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Effect::Changes, path, "remove")?;
        self.inner.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Effect::Changes, path, "create")?;
        self.inner.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.call(Effect::Changes, path, "sync")?;
        self.inner.sync_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.call(Effect::Reads, path, "list")?;
        self.inner.list(path)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>> {
        self.call(Effect::Reads, path, "look at")?;
        self.inner.metadata(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.call(Effect::Changes, path, "lock")?;
        Ok(Box::new(FailingLock {
            inner: self.inner.lock(path)?,
            file_system: self.clone(),
            path: path.to_path_buf(),
        }))
    }
}

impl FailingFileSystem {
    fn wrap(&self, inner: Arc<dyn LogFile>) -> Arc<dyn LogFile> {
        Arc::new(FailingLogFile {
            inner,
            file_system: self.clone(),
        })
    }
}

#[derive(Debug)]
struct FailingLock {
    inner: Box<dyn FileLock>,
    file_system: FailingFileSystem,
    path: PathBuf,
}

impl FileLock for FailingLock {
    fn write(&self, content: &[u8]) -> Result<()> {
        let write = |part: &[u8]| self.inner.write(part);
        self.file_system.write(&self.path, content, write)
    }

    fn sync(&self) -> Result<()> {
        self.file_system.sync(&self.path, || self.inner.sync())
    }

    fn confirm(&self) -> Result<()> {
        self.inner.confirm()
    }
}

impl Drop for FailingLock {
    fn drop(&mut self) {
        self.file_system.releases.pass();
    }
}

#[derive(Debug)]
struct FailingLogFile {
    inner: Arc<dyn LogFile>,
    file_system: FailingFileSystem,
}

impl LogFile for FailingLogFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let write = |part: &[u8]| self.inner.write_at(offset, part);
        self.file_system.write(self.path(), bytes, write)
    }

    fn sync(&self) -> Result<()> {
        self.file_system.sync(self.path(), || self.inner.sync())
    }

    fn set_length(&self, bytes: u64) -> Result<()> {
        let path = self.path();
        self.file_system.call(Effect::Changes, path, "cut off")?;
        self.inner.set_length(bytes)
    }

    fn length(&self) -> Result<u64> {
        let path = self.path();
        self.file_system.call(Effect::Reads, path, "look at")?;
        self.inner.length()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

#[derive(Debug)]
struct FailingWriter {
    inner: Box<dyn FileWriter>,
    file_system: FailingFileSystem,
    path: PathBuf,
}

impl FileWriter for FailingWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let inner = &mut self.inner;
        let append = |part: &[u8]| inner.append(part);
        self.file_system.write(&self.path, bytes, append)
    }

    fn flush(&mut self) -> Result<()> {
        self.file_system
            .call(Effect::Changes, &self.path, "write")?;
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        let inner = &mut self.inner;
        self.file_system.sync(&self.path, || inner.sync())
    }

    fn bytes_written(&self) -> u64 {
        self.inner.bytes_written()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

struct FailingReader {
    inner: Box<dyn Read + Send>,
    file_system: FailingFileSystem,
}

impl Read for FailingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file_system.fault(Effect::Reads) {
            None => self.inner.read(buffer),
            Some(_) => Err(rustix::io::Errno::IO.into()),
        }
    }
}

//! The writer's file system, which refuses changes after the writer role is lost.
//!
//! A turn may end while the writer's work is still under way: a compaction, an upload, a
//! transaction of a client who says nothing. The process may follow another writer then, or begin a
//! turn anew, at once; what is left of the work is refused where it next changes a file, so that it
//! never mixes with what is written by then.
//!
//! Cost: a lock that nobody else holds, for each file that is created, renamed or removed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::{RwLock, RwLockReadGuard};

use crate::files::io::{FileBytes, FileLock, FileMetadata, FileSystem, FileWriter, LogFile};
use crate::{Error, Result};

/// Whether a turn is over, and why.
#[derive(Debug, Default)]
pub(super) struct TurnEnd {
    reason: OnceLock<Arc<str>>,
    /// Read while something is changed.
    changing: RwLock<()>,
}

impl TurnEnd {
    /// The turn, whose end waits while what is returned lives. It waits for nobody itself.
    pub(super) fn require(&self, path: &Path) -> Result<RwLockReadGuard<'_, ()>> {
        // Also where the end waits for others: what is refused below does not make it wait longer.
        let turn = self.changing.read_recursive();
        match self.reason.get() {
            None => Ok(turn),
            Some(reason) => Err(turn_ended(path, reason)),
        }
    }

    /// Ends it: nothing more begins. False if it is over already.
    pub(super) fn end(&self, reason: &Arc<str>) -> bool {
        self.reason.set(Arc::clone(reason)).is_ok()
    }

    /// Behind the end: waits until nothing is being changed any more.
    pub(super) fn settle(&self) {
        drop(self.changing.write());
    }

    /// Whether it is over, at once.
    pub(super) fn is_over(&self) -> bool {
        self.reason.get().is_some()
    }
}

/// What is told of whatever is done after it.
pub(super) fn turn_ended(path: &Path, reason: &str) -> Error {
    Error::TurnEnded {
        path: path.to_path_buf(),
        reason: reason.to_owned(),
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct TurnFiles {
    pub(super) files: Arc<dyn FileSystem>,
    pub(super) end: Arc<TurnEnd>,
}

impl FileSystem for TurnFiles {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let _turn = self.end.require(path)?;
        self.files.create(path)
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        self.files.map(path)
    }

    fn will_open(&self, paths: &[PathBuf]) {
        self.files.will_open(paths);
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.files.read(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        self.files.open(path)
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.files.open_at(path, offset)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let _turn = self.end.require(path)?;
        self.files.create_log(path)
    }

    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let _turn = self.end.require(path)?;
        self.files.open_log(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let _turn = self.end.require(to)?;
        self.files.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let _turn = self.end.require(path)?;
        self.files.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        let _turn = self.end.require(path)?;
        self.files.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let _turn = self.end.require(path)?;
        self.files.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let _turn = self.end.require(path)?;
        self.files.sync_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.files.list(path)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>> {
        self.files.metadata(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let _turn = self.end.require(path)?;
        self.files.lock(path)
    }

    fn wants_reopening(&self) -> bool {
        self.files.wants_reopening()
    }
}

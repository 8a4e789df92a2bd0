//! The local staging directory, for files before their upload and for temporary files.
//!
//! Each open file system has a directory of its own, `CACHE/staging/<random name>`, with a locked
//! file `alive` in it: what a killed process left is removed by the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FlockOperation;

use crate::error::{Asked, ObjectError};
use crate::random;

const ALIVE: &str = "alive";
const LOCAL: &str = "local";

/// The directory; removed when dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    directory: PathBuf,
    /// Locked as long as it is open.
    _alive: File,
    next: AtomicU64,
}

impl Staging {
    /// A new one below a cache's directory.
    pub(crate) fn create(cache: &Path) -> Asked<Self> {
        let all = cache.join("staging");
        let failed = |path: &Path, source: io::Error| ObjectError::Local {
            operation: "create",
            path: path.to_path_buf(),
            source,
        };
        fs::create_dir_all(&all).map_err(|error| failed(&all, error))?;
        remove_dead(&all);
        let directory = all.join(random::name());
        fs::create_dir(&directory).map_err(|error| failed(&directory, error))?;
        let alive = File::create(directory.join(ALIVE)).and_then(|alive| {
            rustix::fs::flock(&alive, FlockOperation::NonBlockingLockExclusive)?;
            fs::create_dir(directory.join(LOCAL))?;
            Ok(alive)
        });
        Ok(Self {
            _alive: alive.map_err(|error| failed(&directory, error))?,
            directory,
            next: AtomicU64::new(0),
        })
    }

    /// A path where no file is yet.
    pub(crate) fn path(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{number}"))
    }

    /// A file without a name.
    pub(crate) fn nameless(&self) -> Asked<File> {
        tempfile::tempfile_in(&self.directory).map_err(|source| ObjectError::Local {
            operation: "create",
            path: self.directory.clone(),
            source,
        })
    }

    /// Where a file that is never sent is kept.
    pub(crate) fn local(&self, relative: &str) -> PathBuf {
        self.directory.join(LOCAL).join(relative)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            tracing::debug!("{} stays: {error}", self.directory.display());
        }
    }
}

/// Removes the directories of processes that are gone. That one stays does no harm.
fn remove_dead(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else {
        return;
    };
    for entry in entries.flatten() {
        // One that has no such file is being made.
        let Ok(alive) = File::open(entry.path().join(ALIVE)) else {
            continue;
        };
        if rustix::fs::flock(&alive, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ignored = fs::remove_dir_all(entry.path());
        }
    }
}

//! The directory of a cache, locked by one process.
//!
//! ```text
//! LOCK                 held (flock) by the process that uses the directory
//! files/<number>.bytes the bytes of a file, with holes
//! files/<number>.sums  its side file
//! private-<random>/    the same once more for a process that came while the directory was taken; removed when it ends, or by the next
//!                      one that finds its lock free
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use orrery_storage::{Error, Result};
use rustix::fs::FlockOperation;

use crate::random;

const LOCK: &str = "LOCK";
const FILES: &str = "files";
const PRIVATE_PREFIX: &str = "private-";
/// How often a private directory is tried to be made; it takes a second time only if another
/// process removes it in the making.
const ATTEMPTS_MAX: usize = 4;

/// A directory that is ours for as long as this lives.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    is_private: bool,
    /// The lock lives as long as the open file.
    _lock: File,
}

impl Home {
    /// Takes the directory, or a private one in it.
    pub(super) fn take(directory: &Path) -> Result<Self> {
        let of_error = |error| Error::from_io(directory, "open the cache in", error);
        fs::create_dir_all(directory).map_err(of_error)?;
        if let Some(home) = Self::lock(directory, false).map_err(of_error)? {
            remove_abandoned(directory);
            return Ok(home);
        }
        tracing::debug!(path = %directory.display(), "another process uses the cache; this one has its own");
        for _ in 0..ATTEMPTS_MAX {
            let name = format!("{PRIVATE_PREFIX}{}", random::name());
            let path = directory.join(name);
            fs::create_dir(&path).map_err(of_error)?;
            match Self::lock(&path, true) {
                Ok(Some(home)) => return Ok(home),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(of_error(error)),
            }
        }
        Err(of_error(io::Error::from(io::ErrorKind::WouldBlock)))
    }

    /// Takes a directory, if nobody has it.
    fn lock(path: &Path, is_private: bool) -> io::Result<Option<Self>> {
        let lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // Fails if somebody removed the directory before it was locked.
        match fs::create_dir(path.join(FILES)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Ok(Some(Self {
            path: path.to_path_buf(),
            is_private,
            _lock: lock,
        }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn data_path(&self, number: u64) -> PathBuf {
        self.path.join(FILES).join(format!("{number}.bytes"))
    }

    pub(super) fn sums_path(&self, number: u64) -> PathBuf {
        self.path.join(FILES).join(format!("{number}.sums"))
    }

    /// The numbers of all local files, also of those of which only one half is there.
    pub(super) fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.path.join(FILES))? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.split_once('.'));
            numbers.extend(number.and_then(|(number, _)| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Removes local files that are of no use.
    pub(super) fn remove(&self, number: u64) {
        for path in [self.data_path(number), self.sums_path(number)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a cached file cannot be removed");
                }
                _ => {}
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.is_private
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "a private cache cannot be removed");
        }
    }
}

/// Removes the private directories of processes that are gone.
fn remove_abandoned(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let is_private = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PRIVATE_PREFIX));
        if is_private && let Ok(Some(abandoned)) = Home::lock(&entry.path(), true) {
            drop(abandoned);
        }
    }
}

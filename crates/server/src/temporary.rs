//! The directory of a server's temporary files: spilled rows, request bodies, shares of other
//! nodes' loads.
//!
//! ```text
//! TMPDIR/orrery-temporary-Xy12Zz/LOCK     locked for as long as its process lives
//!                                load-body-...  datafusion-.../
//! ```
//!
//! A server removes its directory when it stops. A killed server leaves it behind, without the
//! lock; the next server of the same user that starts with the same parent directory removes it.
//! The lock is the operating system's, so neither a reused process number nor another machine's can
//! be mistaken.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

/// Prefix of the names of such directories.
const PREFIX: &str = "orrery-temporary-";
const LOCK_FILE: &str = "LOCK";

/// A temporary directory, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFiles {
    directory: TempDir,
    _lock: File,
}

impl TemporaryFiles {
    /// Creates one below the server's directory, and points `temp_dir` to it. Without one, the
    /// server works until it needs temporary files.
    pub(crate) fn of_server(temp_dir: &mut PathBuf) -> Option<Self> {
        match Self::below(temp_dir) {
            Ok(temporary) => {
                temporary.path().clone_into(temp_dir);
                Some(temporary)
            }
            Err(error) => {
                tracing::warn!(
                    "no temporary files can be put into {}, so large queries and loads will fail: {error}; set TMPDIR to another directory",
                    temp_dir.display()
                );
                None
            }
        }
    }

    /// Creates a directory below `parent`, and removes those of killed processes.
    fn below(parent: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // The lock file gets its name once it is locked, for other servers look at it.
        let lock = NamedTempFile::new_in(directory.path())?;
        lock.as_file().try_lock()?;
        let lock = lock.persist(directory.path().join(LOCK_FILE))?;
        let user = fs::metadata(directory.path())?.uid();
        for path in left_behind(parent, user)? {
            // If the removal fails, the next server tries again.
            match fs::remove_dir_all(&path) {
                Ok(()) => tracing::info!(
                    "removed temporary files of a process that was killed: {}",
                    path.display()
                ),
                Err(error) => tracing::warn!(
                    "temporary files of a process that was killed stay in {}: {error}",
                    path.display()
                ),
            }
        }
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Directories of this user below `parent` whose processes are gone.
fn left_behind(parent: &Path, user: u32) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let is_named = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        if is_named && is_left_behind(&entry.path(), user) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Whether no process holds the lock of a directory. In a shared directory other users may create
/// anything; only this user's files are considered.
fn is_left_behind(directory: &Path, user: u32) -> bool {
    let lock = directory.join(LOCK_FILE);
    let is_ours = |path: &Path, is_kind: fn(&fs::Metadata) -> bool| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| is_kind(&found) && found.uid() == user)
    };
    is_ours(directory, fs::Metadata::is_dir)
        && is_ours(&lock, fs::Metadata::is_file)
        && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_a_living_one_has_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = TemporaryFiles::below(parent.path()).unwrap();
        fs::write(living.path().join("load-body-1"), "text").unwrap();
        // Left behind: its lock is free.
        let left = parent.path().join(format!("{PREFIX}left"));
        fs::create_dir_all(left.join("datafusion-1")).unwrap();
        fs::write(left.join("datafusion-1/spill"), "rows").unwrap();
        fs::write(left.join(LOCK_FILE), "").unwrap();
        // Not recognisable as a server's.
        let others = [format!("{PREFIX}other"), "datafusion-2".to_owned()];
        let others = others.map(|name| parent.path().join(name));
        for other in &others {
            fs::create_dir(other).unwrap();
        }
        std::os::unix::fs::symlink(&others[1], parent.path().join(format!("{PREFIX}link")))
            .unwrap();
        fs::write(others[1].join(LOCK_FILE), "").unwrap();
        let next = TemporaryFiles::below(parent.path()).unwrap();
        assert_ne!(next.path(), living.path());
        assert!(!left.exists());
        assert!(living.path().join("load-body-1").exists());
        assert!(others.iter().all(|other| other.exists()));
        let paths = [living.path().to_owned(), next.path().to_owned()];
        drop((living, next));
        assert!(paths.iter().all(|path| !path.exists()));
        let names = fs::read_dir(parent.path()).unwrap();
        assert_eq!(names.count(), others.len() + 1);
    }
}

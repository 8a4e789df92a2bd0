//! The lock of the one writer of a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Result;
use crate::io::{FileLock, FileSystem, LocalFileSystem};

pub(crate) const LOCK_FILE: &str = "LOCK";

/// Held by whoever changes a database; readers need none.
///
/// It is an advisory lock of the operating system on `DIR/LOCK`: it ends with the value or with the
/// process, so a killed load leaves nothing to clear up.
#[derive(Debug)]
pub struct WriterLock {
    directory: PathBuf,
    _lock: Box<dyn FileLock>,
}

impl WriterLock {
    /// Takes the lock of the database in a directory, without waiting.
    ///
    /// Fails with [`crate::Error::Locked`], naming the process, when another writer has it.
    pub fn acquire(directory: impl AsRef<Path>) -> Result<Self> {
        Self::acquire_with(&(Arc::new(LocalFileSystem) as _), directory)
    }

    /// Takes the lock through a given file system.
    pub fn acquire_with(
        file_system: &Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let lock = file_system.lock(&directory.join(LOCK_FILE))?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// The directory of the database that is locked.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_second_writer_is_told_who_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let lock = WriterLock::acquire(directory.path()).unwrap();
        let error = WriterLock::acquire(directory.path()).unwrap_err();
        assert!(
            matches!(error, Error::Locked { holder: Some(holder), .. } if holder == std::process::id())
        );
        drop(lock);
        WriterLock::acquire(directory.path()).unwrap();
    }
}

//! The files of an index part as tantivy reads them, by name from their owner's storage.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{DirectoryLock, FileHandle, Lock, WatchCallback, WatchHandle, WritePtr};

/// A file of a part.
#[derive(Debug, Clone)]
pub struct PartFile {
    /// Its name within the part.
    pub name: String,
    /// Its bytes.
    pub bytes: Arc<dyn FileHandle>,
}

/// Files that are only read.
#[derive(Debug, Clone)]
pub(crate) struct PartDirectory(Arc<BTreeMap<PathBuf, Arc<dyn FileHandle>>>);

impl PartDirectory {
    pub(crate) fn new(files: Vec<PartFile>) -> Self {
        let files = files.into_iter();
        Self(Arc::new(
            files
                .map(|file| (PathBuf::from(file.name), file.bytes))
                .collect(),
        ))
    }
}

fn read_only() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "a part of a text index is only read",
    )
}

impl Directory for PartDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let file = self.0.get(path).cloned();
        file.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_path_buf()))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError {
            io_error: Arc::new(read_only()),
            filepath: path.to_path_buf(),
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.0.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::IoError {
            io_error: Arc::new(read_only()),
            filepath: path.to_path_buf(),
        })
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = self.get_file_handle(path)?;
        let bytes = file.read_bytes(0..file.len());
        let bytes =
            bytes.map_err(|error| OpenReadError::wrap_io_error(error, path.to_path_buf()))?;
        Ok(bytes.as_slice().to_vec())
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        // Nothing ever changes.
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

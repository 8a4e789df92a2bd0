//! The file system interface, through which storage and loader read and write everything.
//!
//! Tests put another [`FileSystem`] in its place to inject faults: a full disk, a write that
//! is torn by a power cut, a rename that never reached the disk. So the trait promises
//! no more than a file system does:
//!
//! * a write is on the disk only after [`FileWriter::sync`] returned without error;
//! * a created, renamed or removed name is on the disk only after [`FileSystem::sync_dir`] of its
//!   directory returned without error;
//! * a rename replaces its target at once: a reader sees the old file or the new, never a mixture.
//!
//! Files of segments are never changed once written. Readers map them ([`FileSystem::map`]), so
//! that opening a database costs nothing and the operating system's page cache is the only cache.
//! The commit log alone is written while others read it: it goes through [`LogFile`] and is never
//! mapped.
//!
//! What it does not do: it knows no formats, retries nothing, and does not create missing
//! directories by itself.

use std::fmt::Debug;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Result;

mod clock;
mod file_bytes;
mod local;
pub mod testing;

pub use clock::{Clock, SystemClock};
pub use file_bytes::{ByteSource, FileBytes, ReadAheadWatcher};
pub use local::LocalFileSystem;

/// The operations on files that the storage needs; object safe, shared as `Arc<dyn FileSystem>`.
pub trait FileSystem: Debug + Send + Sync {
    /// Creates a file for sequential writing; one that is there already is emptied.
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>>;

    /// The bytes of a file for random reading, mapped where possible.
    ///
    /// The file must not be changed or shortened while the bytes are in use; segments are written
    /// once, and removed files stay readable until the last mapping is gone.
    fn map(&self, path: &Path) -> Result<FileBytes>;

    /// Files will be opened soon that are block files: what is read of each when it is opened can
    /// be asked for, of all at once.
    fn will_open(&self, _paths: &[PathBuf]) {}

    /// The whole content of a small file, copied: for files that are replaced by rename.
    fn read(&self, path: &Path) -> Result<Vec<u8>>;

    /// Opens a file for sequential reading, unbuffered; also pipes and devices.
    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>>;

    /// Opens a file for sequential reading from a byte on, unbuffered; past its end there is
    /// nothing to read.
    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>>;

    /// Creates an empty file for writing at any place, by several threads; one that is there
    /// already is emptied.
    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>>;

    /// Opens a file that is there for writing at any place, by several threads.
    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>>;

    /// Renames a file or directory; a file at `to` is replaced.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes a directory with all that is in it.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;

    /// Creates a directory, and its parents where they are missing; one that is there is fine.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Puts the names in a directory on the disk: call it after create, rename and remove.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// The entries of a directory as full paths, sorted by name.
    fn list(&self, path: &Path) -> Result<Vec<PathBuf>>;

    /// What a path is, or `None` when nothing is there.
    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>>;

    /// Takes the exclusive lock of a file, created if missing, without waiting.
    ///
    /// Fails with [`crate::Error::Locked`] when another process, or another handle of this one, has
    /// it, whose number the first line of the file tells, as `process 4711`. The lock is advisory
    /// and ends when the value is dropped or the process dies.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;

    /// Whether files that are open should be opened anew, so that those can go which nobody reads
    /// any more: what is fetched of a file takes up space for as long as it is open.
    fn wants_reopening(&self) -> bool {
        false
    }
}

/// A file being written from its start to its end, through a buffer.
///
/// Dropping a writer without [`sync`](FileWriter::sync) or [`flush`](FileWriter::flush) loses what
/// is in its buffer.
pub trait FileWriter: Debug + Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Hands the buffer to the operating system: readers see all bytes, a power cut may still lose
    /// them.
    fn flush(&mut self) -> Result<()>;

    /// Flushes, and waits until all bytes are on the disk.
    fn sync(&mut self) -> Result<()>;

    /// Number of bytes appended so far.
    fn bytes_written(&self) -> u64;

    /// The file's path, for messages.
    fn path(&self) -> &Path;
}

/// A file that grows while it is read: writes go to the operating system at once, without a buffer.
pub trait LogFile: Debug + Send + Sync {
    /// Writes all bytes at a place. After an error any part of them may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Waits until all that was written before the call, and the length, are on the disk
    /// (fdatasync).
    ///
    /// After an error nobody knows what is on the disk, and a second call that succeeds tells
    /// nothing.
    fn sync(&self) -> Result<()>;

    /// Cuts the file off, or lengthens it with zeros.
    fn set_length(&self, bytes: u64) -> Result<()>;

    /// The length in bytes.
    fn length(&self) -> Result<u64>;

    /// Whether it is time to go on in another file, as reading this one takes long, whatever its
    /// length is.
    fn should_end(&self) -> bool {
        false
    }

    /// The file's path, for messages.
    fn path(&self) -> &Path;
}

/// A lock that is held until the value is dropped, and the small file that is locked.
pub trait FileLock: Debug + Send + Sync {
    /// Replaces the file's content. A power cut may leave any mixture of old and new.
    fn write(&self, content: &[u8]) -> Result<()>;

    /// Waits until the content is on the disk.
    fn sync(&self) -> Result<()>;

    /// Fails if somebody else may have written since the lock was taken, with
    /// [`crate::Error::WritingStopped`] if somebody has.
    ///
    /// Locks of the operating system are held until they are dropped. Where another may take a lock
    /// away, what its holder knew when it called this was the newest state only if this succeeds.
    fn confirm(&self) -> Result<()> {
        Ok(())
    }
}

/// The metadata of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    /// Length in bytes; of no meaning for directories.
    pub bytes: u64,
    /// Whether it is a directory. What is neither that nor a file, such as a pipe, can be read once
    /// only.
    pub is_directory: bool,
    /// Whether it is an ordinary file.
    pub is_file: bool,
}

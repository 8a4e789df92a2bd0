//! The bytes of a file: mapped into memory, or owned.
//!
//! Where a page fault meets a page that is not in memory, the operating system reads what it has been set to around it: 128 KiB mostly,
//! 8 MiB on some machines. Who knows what will be read asks for that with [`FileBytes::will_need`] before, as block
//! files do (see `block_file`). `MADV_RANDOM` would do away with the former, but since Linux 6.3 also with the memory of which pages were used lately.
//!
//! Holds the only `unsafe` of the storage: mapping a file is unsafe because another process could
//! change or shorten it under the mapping.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::{Advice, Mmap};

/// Immutable bytes of a file; clones share them.
#[derive(Debug, Clone)]
pub struct FileBytes(Arc<Bytes>);

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Arc<Vec<u8>>),
    Watched {
        bytes: Arc<Vec<u8>>,
        watcher: Arc<dyn ReadAheadWatcher>,
    },
}

/// Hears what is asked for ahead, in place of the operating system: for tests.
pub trait ReadAheadWatcher: std::fmt::Debug + Send + Sync {
    /// These bytes will be read soon.
    fn will_need(&self, range: Range<usize>);
}

impl FileBytes {
    /// Maps the whole of an open file.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::from(Vec::new())); // mmap refuses a length of zero
        }
        // SAFETY: the mapping is private and read-only. Files that are mapped are never written again after
        // they were finished and are replaced only by rename, which leaves the mapped inode untouched.
        // A foreign process that shortens one breaks the database directory's contract.
        let mapping = unsafe { Mmap::map(file) }?;
        Ok(Self(Arc::new(Bytes::Mapped(mapping))))
    }

    /// Bytes in memory whose read-ahead somebody watches.
    pub fn watched(bytes: Arc<Vec<u8>>, watcher: Arc<dyn ReadAheadWatcher>) -> Self {
        Self(Arc::new(Bytes::Watched { bytes, watcher }))
    }

    /// Asks the operating system to read some bytes into its cache, without waiting for them; what lies beyond the
    /// end is ignored.
    pub fn will_need(&self, range: Range<usize>) {
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return;
        }
        match &*self.0 {
            Bytes::Mapped(mapping) => {
                // Only advice: an error means that it is not followed.
                let _ignored = mapping.advise_range(Advice::WillNeed, range.start, range.len());
            }
            Bytes::Owned(_) => {}
            Bytes::Watched { watcher, .. } => watcher.will_need(range),
        }
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Arc::new(bytes))
    }
}

impl From<Arc<Vec<u8>>> for FileBytes {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        Self(Arc::new(Bytes::Owned(bytes)))
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Bytes::Mapped(mapping) => mapping,
            Bytes::Owned(bytes) | Bytes::Watched { bytes, .. } => bytes,
        }
    }
}

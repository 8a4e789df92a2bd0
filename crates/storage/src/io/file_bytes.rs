//! The bytes of a file: mapped into memory, or owned.
//!
//! Holds the only `unsafe` of the storage: mapping a file is unsafe because another process could
//! change or shorten it under the mapping.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::Mmap;

/// Immutable bytes of a file; clones share them.
#[derive(Debug, Clone)]
pub struct FileBytes(Arc<Bytes>);

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Arc<Vec<u8>>),
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

    /// Asks the operating system to read the bytes into its cache soon; failing is harmless.
    pub fn prefetch(&self) {
        if let Bytes::Mapped(mapping) = &*self.0 {
            // Only advice: an error means that it is not followed.
            let _ignored = mapping.advise(memmap2::Advice::WillNeed);
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
            Bytes::Owned(bytes) => bytes,
        }
    }
}

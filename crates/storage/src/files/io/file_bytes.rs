//! The bytes of a file, memory-mapped or owned.
//!
//! Where a page fault meets a page that is not in memory, the operating system reads what it has
//! been set to around it: 128 KiB mostly, 8 MiB on some machines. Who knows what will be read asks
//! for that with [`FileBytes::will_need`] before, as block files do (see `block_file`).
//! `MADV_RANDOM` would do away with the former, but since Linux 6.3 also with the memory of which
//! pages were used lately.
//!
//! Bytes that come from elsewhere, an object store, are mapped too: into a file with holes, which a
//! [`ByteSource`] fills. Who reads such bytes has to [fetch](FileBytes::fetch) them first; block
//! files do that at the first touch of a block.
//!
//! Holds the only `unsafe` of the storage: mapping a file is unsafe because another process could
//! change or shorten it under the mapping.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::{Advice, Mmap};

use crate::Result;

/// Immutable bytes of a file; clones share them.
#[derive(Debug, Clone)]
pub struct FileBytes {
    bytes: Arc<Bytes>,
    /// Beside the bytes, not one more form of them: who reads what is there need not ask for it.
    source: Option<Arc<dyn ByteSource>>,
}

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

/// A source that fetches the bytes of a mapped file on demand. Bytes that are there once stay there
/// for as long as the [`FileBytes`] lives that was made with the source.
pub trait ByteSource: std::fmt::Debug + Send + Sync {
    /// Waits until the bytes of a range within the file are there.
    fn fetch(&self, range: Range<usize>) -> Result<()>;

    /// Asks for the bytes of a range within the file, without waiting for them.
    fn will_need(&self, range: Range<usize>);

    /// Fetches bytes anew that are there, and are wrong. False if there is nowhere else to get them
    /// from.
    fn refetch(&self, range: Range<usize>) -> Result<bool>;
}

impl FileBytes {
    /// Maps a file whose bytes come from elsewhere when they are needed.
    ///
    /// The file has its whole length, and stays as it is but for bytes that the source puts into
    /// its holes.
    pub fn fetched(file: &File, source: Arc<dyn ByteSource>) -> io::Result<Self> {
        let mapped = Self::map(file)?;
        Ok(Self {
            source: Some(source),
            ..mapped
        })
    }

    /// Waits until the bytes of a range are there; what lies beyond the end is ignored. Does
    /// nothing where all bytes are.
    pub fn fetch(&self, range: Range<usize>) -> Result<()> {
        match &self.source {
            Some(source) if range.start < range.end.min(self.len()) => {
                source.fetch(range.start..range.end.min(self.len()))
            }
            _ => Ok(()),
        }
    }

    /// Fetches bytes anew that are wrong; whether it did. False where there is nowhere to get them
    /// from.
    pub(crate) fn refetch(&self, range: Range<usize>) -> Result<bool> {
        match &self.source {
            Some(source) => source.refetch(range),
            None => Ok(false),
        }
    }

    /// Whether some of the bytes may have to be fetched first.
    pub(crate) fn is_fetched(&self) -> bool {
        self.source.is_some()
    }

    /// Maps the whole of an open file.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::from(Vec::new())); // mmap refuses a length of zero
        }
        // SAFETY: the mapping is private and read-only. Files that are mapped are never written
        // again after they were finished and are replaced only by rename, which leaves the mapped
        // inode untouched. A foreign process that shortens one breaks the database directory's
        // contract. Of a file with holes only bytes are read that its source has said to be there,
        // and these stay.
        let mapping = unsafe { Mmap::map(file) }?;
        Ok(Self::of(Bytes::Mapped(mapping)))
    }

    /// Bytes in memory whose read-ahead somebody watches.
    pub fn watched(bytes: Arc<Vec<u8>>, watcher: Arc<dyn ReadAheadWatcher>) -> Self {
        Self::of(Bytes::Watched { bytes, watcher })
    }

    fn of(bytes: Bytes) -> Self {
        let (bytes, source) = (Arc::new(bytes), None);
        Self { bytes, source }
    }

    /// Asks the operating system to read some bytes into its cache, without waiting for them; what
    /// lies beyond the end is ignored.
    pub fn will_need(&self, range: Range<usize>) {
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return;
        }
        if let Some(source) = &self.source {
            source.will_need(range);
            return;
        }
        match &*self.bytes {
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
        Self::of(Bytes::Owned(bytes))
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
        match &*self.bytes {
            Bytes::Mapped(mapping) => mapping,
            Bytes::Owned(bytes) | Bytes::Watched { bytes, .. } => bytes,
        }
    }
}

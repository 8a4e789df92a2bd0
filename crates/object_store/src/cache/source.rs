//! One mapping of a cached file, from which the storage reads bytes.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use orrery_storage::Result;
use orrery_storage::io::{ByteSource, FileBytes};

use super::file::CacheFile;
use super::pieces::{Pieces, pieces_of};

/// A file that is mapped, for as long as it is.
#[derive(Debug)]
pub(super) struct MappedFile(Arc<CacheFile>);

impl MappedFile {
    /// One use of a file, which has been [noted](CacheFile::note_mapped).
    pub(super) fn of(file: Arc<CacheFile>) -> Self {
        Self(file)
    }

    /// Its bytes, with this use.
    pub(super) fn into_bytes(self) -> io::Result<FileBytes> {
        let file = Arc::clone(&self.0);
        FileBytes::fetched(file.data(), Arc::new(self))
    }

    #[inline]
    fn pieces(&self, range: &Range<usize>) -> Pieces {
        pieces_of(range.start as u64..(range.end as u64).min(self.0.bytes))
    }
}

impl ByteSource for MappedFile {
    #[inline]
    fn fetch(&self, range: Range<usize>) -> Result<()> {
        let pieces = self.pieces(&range);
        let asked = &self.0.means.counters.asked;
        asked.fetch_add(pieces.end.saturating_sub(pieces.start), Ordering::Relaxed);
        if self.0.touch(&pieces) {
            return Ok(());
        }
        self.0.fetch(&pieces)
    }

    fn will_need(&self, range: Range<usize>) {
        let pieces = self.pieces(&range);
        if !pieces.is_empty() {
            self.0.fetch_ahead(&pieces);
        }
    }

    fn refetch(&self, range: Range<usize>) -> Result<bool> {
        let pieces = self.pieces(&range);
        self.0.touch(&pieces);
        self.0.distrust(&pieces);
        self.0.fetch(&pieces)?;
        Ok(true)
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        self.0.note_unmapped();
    }
}

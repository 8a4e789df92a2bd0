//! Bytes of a block file, lent to the full-text index without a copy.
//!
//! Holds an `unsafe`: the promise that bytes which an owner lends stay where they are. A search
//! reads the numbers and the lengths of all documents again; copying these would cost it a pass
//! over some megabytes.

use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use orrery_full_text::{FileHandle, HasLen, OwnedBytes};
use stable_deref_trait::StableDeref;

use crate::files::block_file::{BlockFile, BlockNumber};

/// Length of a block, but the last one of each file.
pub(super) const BLOCK_BYTES: usize = 64 * 1024;

/// A file within a block file: blocks one after the other.
#[derive(Debug)]
pub(super) struct StoredFile {
    pub(super) file: Arc<BlockFile>,
    pub(super) first_block: u32,
    pub(super) bytes: usize,
}

impl HasLen for StoredFile {
    fn len(&self) -> usize {
        self.bytes
    }
}

impl FileHandle for StoredFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.is_empty() {
            return Ok(OwnedBytes::empty());
        }
        if range.end > self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (first, last) = (range.start / BLOCK_BYTES, (range.end - 1) / BLOCK_BYTES);
        let first_block = BlockNumber(self.first_block + first as u32);
        let count = (last - first + 1) as u32;
        // Checks the blocks that were not touched yet.
        let run = self.file.block_run(first_block, count);
        let run = run.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let start = range.start - first * BLOCK_BYTES;
        let within = start..start + range.len();
        if within.end > run.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(OwnedBytes::new(Lent {
            file: Arc::clone(&self.file),
            first_block,
            count,
            within,
        }))
    }
}

/// Bytes of blocks that were checked.
struct Lent {
    file: Arc<BlockFile>,
    first_block: BlockNumber,
    count: u32,
    within: Range<usize>,
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // They were read, so they are there.
        let run = self.file.block_run(self.first_block, self.count);
        let run = run.unwrap_or_default();
        run.get(self.within.clone()).unwrap_or_default()
    }
}

// SAFETY: `deref` gives bytes of the block file's content, which the `Arc` keeps: a mapping, or
// bytes behind another `Arc`. Nothing changes or moves these while the file lives, wherever `Lent`
// itself is moved to; a block that was checked once is given out from then on.
unsafe impl StableDeref for Lent {}

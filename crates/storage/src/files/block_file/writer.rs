//! A sequential writer of block files.

use std::path::Path;

use super::{
    BLOCK_BYTES_MAX, BlockNumber, END_MARK, ENTRY_BYTES, FileKind, FileSummary, HEADER_BYTES,
    TRAILER_BYTES, header,
};
use crate::files::io::{FileSystem, FileWriter};
use crate::{Error, Result};

/// A block file being written. Without [`finish`](Self::finish) the file stays unreadable.
#[derive(Debug)]
pub struct BlockFileWriter {
    file: Box<dyn FileWriter>,
    header: [u8; HEADER_BYTES],
    /// The footer as far as it is known: one entry per block.
    footer: Vec<u8>,
}

impl BlockFileWriter {
    /// Creates the file and writes its header.
    pub fn create(file_system: &dyn FileSystem, path: &Path, kind: FileKind) -> Result<Self> {
        let mut file = file_system.create(path)?;
        let header = header(kind);
        file.append(&header)?;
        Ok(Self {
            file,
            header,
            footer: Vec::new(),
        })
    }

    /// Appends a block; it may be empty.
    pub fn append(&mut self, block: &[u8]) -> Result<BlockNumber> {
        let number = self.block_count();
        if block.len() > BLOCK_BYTES_MAX {
            return Err(Error::invalid_input(
                self.file.path(),
                format!(
                    "a block of {} bytes, more than {BLOCK_BYTES_MAX}",
                    block.len()
                ),
            ));
        }
        if number == u32::MAX {
            return Err(Error::invalid_input(self.file.path(), "too many blocks"));
        }
        self.footer
            .extend_from_slice(&self.file.bytes_written().to_le_bytes());
        self.footer
            .extend_from_slice(&crc32c::crc32c(block).to_le_bytes());
        self.file.append(block)?;
        Ok(BlockNumber(number))
    }

    /// Number of blocks appended so far.
    pub fn block_count(&self) -> u32 {
        (self.footer.len() / ENTRY_BYTES) as u32
    }

    /// Number of bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.file.bytes_written()
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes footer and trailer and syncs the file. Syncing the directory is left to the caller,
    /// who usually writes several files into it.
    pub fn finish(mut self, metadata: &[u8]) -> Result<FileSummary> {
        let Ok(metadata_bytes) = u32::try_from(metadata.len()) else {
            return Err(Error::invalid_input(
                self.file.path(),
                "metadata over 4 GiB",
            ));
        };
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(&self.file.bytes_written().to_le_bytes());
        trailer.extend_from_slice(&self.block_count().to_le_bytes());
        trailer.extend_from_slice(&metadata_bytes.to_le_bytes());
        let crc = [&self.footer[..], metadata, &trailer]
            .iter()
            .fold(crc32c::crc32c(&self.header), |crc, part| {
                crc32c::crc32c_append(crc, part)
            });
        trailer.extend_from_slice(&crc.to_le_bytes());
        trailer.extend_from_slice(END_MARK);
        debug_assert_eq!(trailer.len(), TRAILER_BYTES);
        self.file.append(&self.footer)?;
        self.file.append(metadata)?;
        self.file.append(&trailer)?;
        self.file.sync()?;
        Ok(FileSummary {
            bytes: self.file.bytes_written(),
            crc,
        })
    }
}

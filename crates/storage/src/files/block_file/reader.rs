//! Random access to a block file; a block's checksum is verified at its first read, and blocks
//! ahead are prefetched.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::bits::BlockBits;
use super::read_ahead::{Blocks, ReadAhead};
use super::{
    BlockNumber, END_MARK, ENTRY_BYTES, FORMAT_VERSION, FileKind, FileSummary, HEADER_BYTES, MAGIC,
    TRAILER_BYTES,
};
use crate::files::io::{FileBytes, FileSystem};
use crate::{Error, Result};

/// A finished block file, open for reading. Shared between threads behind an `Arc`.
#[derive(Debug)]
pub struct BlockFile {
    path: PathBuf,
    bytes: FileBytes,
    kind: FileKind,
    layout: Layout,
    /// The blocks whose checksum has been found right.
    verified: BlockBits,
    read_ahead: ReadAhead,
}

/// Asked for at the end of a file when it is opened: trailer, metadata, and the entries of some
/// 20,000 blocks.
pub const END_BYTES: usize = 256 << 10;

/// Where the parts of the file lie.
#[derive(Debug, Clone)]
struct Layout {
    block_count: u32,
    /// Start of the block entries, and end of the last block.
    footer_start: usize,
    metadata: Range<usize>,
    crc: u32,
}

impl BlockFile {
    /// Maps the file and checks header, footer and trailer; the blocks are checked when touched.
    pub fn open(file_system: &dyn FileSystem, path: &Path, kind: FileKind) -> Result<Self> {
        let bytes = file_system.map(path)?;
        bytes.will_need(0..HEADER_BYTES);
        bytes.will_need(bytes.len().saturating_sub(END_BYTES)..bytes.len());
        let layout = fetch_ends(&bytes).and_then(|()| Layout::read(&bytes, path, kind));
        let layout = match layout {
            Err(Error::Corrupt { .. }) if bytes.refetch(0..bytes.len().min(HEADER_BYTES))? => {
                bytes.refetch(ends_of(&bytes))?;
                fetch_ends(&bytes)?;
                bytes.refetch(footer_of(&bytes))?;
                Layout::read(&bytes, path, kind)?
            }
            layout => layout?,
        };
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
            kind,
            verified: BlockBits::new(layout.block_count),
            read_ahead: ReadAhead::new(layout.block_count),
            layout,
        })
    }

    /// The bytes of a block. Its checksum is verified the first time.
    #[inline]
    pub fn block(&self, number: BlockNumber) -> Result<&[u8]> {
        let file: &[u8] = &self.bytes;
        let bytes = match self.extent_before_last(file, number) {
            Some(extent) => &file[extent],
            None => &file[self.block_range(number)?],
        };
        if !self.verified.contains(number.0) {
            self.touch_first(number)?;
        }
        Ok(bytes)
    }

    /// The bytes of blocks that follow each other, which lie side by side in the file. Each block's
    /// checksum is verified the first time.
    pub fn block_run(&self, first: BlockNumber, count: u32) -> Result<&[u8]> {
        if count > 1 && self.bytes.is_fetched() {
            self.will_touch(&mut (first.0..).take(count as usize).map(BlockNumber).collect());
        }
        let mut run = 0..0;
        for number in (first.0..).take(count as usize).map(BlockNumber) {
            self.block(number)?;
            let range = self.block_range(number)?;
            run = match number == first {
                true => range,
                false => run.start..range.end,
            };
        }
        Ok(&self.bytes[run])
    }

    #[cold]
    fn touch_first(&self, number: BlockNumber) -> Result<()> {
        if let Some(range) = self.read_ahead.at_first_touch(number.0, &self.blocks()) {
            self.bytes.will_need(range);
        }
        self.verify_block(number)?;
        self.verified.insert(number.0);
        Ok(())
    }

    /// Where the blocks lie. One with an impossible extent lies nowhere; touching it is an error.
    fn blocks(&self) -> Blocks<'_, impl Fn(u32) -> Range<usize>> {
        Blocks {
            count: self.layout.block_count,
            extent: |block| self.block_range(BlockNumber(block)).unwrap_or(0..0),
            touched: &self.verified,
        }
    }

    /// Whether blocks were touched lately for the first time without having been asked for: then it
    /// is worth while to find out which will be touched next, and to [ask for](Self::will_touch)
    /// them.
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.read_ahead.is_cold()
    }

    /// Whether what was not touched yet has to be fetched from far away, and some was touched
    /// lately for the first time.
    pub(crate) fn is_far(&self) -> bool {
        self.bytes.is_fetched() && self.is_cold()
    }

    /// Asks the operating system for those of these blocks that were not touched yet, without
    /// waiting. Sorts them.
    pub fn will_touch(&self, blocks: &mut Vec<BlockNumber>) {
        for extent in self.read_ahead.extents(blocks, &self.blocks()) {
            self.bytes.will_need(extent);
        }
    }

    /// Number of blocks.
    pub fn block_count(&self) -> u32 {
        self.layout.block_count
    }

    /// Length of a block; 0 for one that is not there.
    pub(crate) fn block_bytes(&self, number: BlockNumber) -> usize {
        self.block_range(number).map_or(0, |range| range.len())
    }

    /// The offset of a block in the file, for error messages.
    pub fn block_offset(&self, number: BlockNumber) -> u64 {
        self.block_range(number)
            .map_or(0, |range| range.start as u64)
    }

    /// The bytes that the file's kind gave to `finish`.
    pub fn metadata(&self) -> &[u8] {
        &self.bytes[self.layout.metadata.clone()]
    }

    /// The offset of the metadata in the file, for error messages.
    pub fn metadata_offset(&self) -> u64 {
        self.layout.metadata.start as u64
    }

    /// Length and checksum, to be compared with what the writer returned.
    pub fn summary(&self) -> FileSummary {
        FileSummary {
            bytes: self.bytes.len() as u64,
            crc: self.layout.crc,
        }
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks every byte again, whether it was checked before or not, and returns all damage found.
    pub fn verify_all(&self) -> Vec<Error> {
        if let Err(error) = Layout::read(&self.bytes, &self.path, self.kind) {
            return vec![error];
        }
        (0..self.layout.block_count)
            .filter_map(|number| self.verify_block(BlockNumber(number)).err())
            .collect()
    }

    /// Compares a block with its checksum.
    pub fn verify_block(&self, number: BlockNumber) -> Result<()> {
        let range = self.block_range(number)?;
        self.bytes.fetch(range.clone())?;
        let verified = self.verify_there(number, range.clone());
        match verified {
            // What is kept here of another machine's file may be damaged, and whole there.
            Err(_) if self.bytes.refetch(range.clone())? => self.verify_there(number, range),
            verified => verified,
        }
    }

    fn verify_there(&self, number: BlockNumber, range: Range<usize>) -> Result<()> {
        let offset = range.start as u64;
        let (_, expected) = self.entry(number.0);
        let found = crc32c::crc32c(&self.bytes[range]);
        if found == expected {
            return Ok(());
        }
        Err(Error::corrupt(
            &self.path,
            offset,
            format!(
                "block {} has checksum {found:08x}, expected {expected:08x}",
                number.0
            ),
        ))
    }

    /// Offset and checksum of a block as the footer states them.
    fn entry(&self, number: u32) -> (u64, u32) {
        let start = self.layout.footer_start + number as usize * ENTRY_BYTES;
        (
            read_u64(&self.bytes, start),
            read_u32(&self.bytes, start + 8),
        )
    }

    /// Where a block lies, if it is not the last one and its extent is possible. Every look-up asks
    /// for some blocks: half the instructions of [`block_range`](Self::block_range), which also
    /// knows what is wrong.
    #[inline]
    fn extent_before_last(&self, file: &[u8], number: BlockNumber) -> Option<Range<usize>> {
        let footer_start = self.layout.footer_start;
        if number.0.checked_add(1)? >= self.layout.block_count {
            return None;
        }
        let entries = file.get(footer_start + number.0 as usize * ENTRY_BYTES..)?;
        let start = usize::try_from(u64::from_le_bytes(*entries.first_chunk()?)).ok()?;
        let next = entries.get(ENTRY_BYTES..)?;
        let end = usize::try_from(u64::from_le_bytes(*next.first_chunk()?)).ok()?;
        (HEADER_BYTES <= start && start <= end && end <= footer_start).then_some(start..end)
    }

    fn block_range(&self, number: BlockNumber) -> Result<Range<usize>> {
        let count = self.layout.block_count;
        if number.0 >= count {
            return Err(Error::corrupt(
                &self.path,
                self.layout.footer_start as u64,
                format!("block {} is referred to, but there are {count}", number.0),
            ));
        }
        let footer_start = self.layout.footer_start as u64;
        let start = self.entry(number.0).0;
        let end = if number.0 + 1 == count {
            footer_start
        } else {
            self.entry(number.0 + 1).0
        };
        if start < HEADER_BYTES as u64 || start > end || end > footer_start {
            return Err(Error::corrupt(
                &self.path,
                footer_start + u64::from(number.0) * ENTRY_BYTES as u64,
                format!("block {} has an impossible extent {start}..{end}", number.0),
            ));
        }
        Ok(start as usize..end as usize)
    }
}

/// The end of a file that is read when it is opened, whatever it holds.
fn ends_of(bytes: &FileBytes) -> Range<usize> {
    bytes.len().saturating_sub(END_BYTES)..bytes.len()
}

/// Where the trailer says that footer and metadata are.
fn footer_of(bytes: &FileBytes) -> Range<usize> {
    let trailer = bytes.len().saturating_sub(TRAILER_BYTES);
    match bytes.len() < TRAILER_BYTES {
        true => 0..0,
        false => (read_u64(bytes, trailer) as usize).min(trailer)..trailer,
    }
}

/// Waits for all that is read of a file but its blocks. Asks for the end as a whole, of which the
/// trailer is a part: most files have their footer there.
fn fetch_ends(bytes: &FileBytes) -> Result<()> {
    bytes.fetch(ends_of(bytes))?;
    bytes.fetch(0..HEADER_BYTES)?;
    let footer = footer_of(bytes);
    bytes.will_need(footer.clone());
    bytes.fetch(footer)
}

impl Layout {
    fn read(bytes: &[u8], path: &Path, kind: FileKind) -> Result<Self> {
        let corrupt = |offset: usize, what: &str| Err(Error::corrupt(path, offset as u64, what));
        if bytes.len() < HEADER_BYTES {
            return corrupt(bytes.len(), "the file ends within its header");
        }
        if bytes[..8] != *MAGIC {
            return corrupt(0, "it does not begin with the mark of a block file");
        }
        let found = read_u32(bytes, 8);
        if found != FORMAT_VERSION {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found,
                supported: FORMAT_VERSION,
            });
        }
        if bytes[12..HEADER_BYTES] != kind.0 {
            return corrupt(12, "it holds another kind of data than expected here");
        }
        if bytes.len() < HEADER_BYTES + TRAILER_BYTES {
            return corrupt(bytes.len(), "the file is cut off");
        }
        let trailer = bytes.len() - TRAILER_BYTES;
        if bytes[trailer + 20..] != *END_MARK {
            return corrupt(
                bytes.len() - END_MARK.len(),
                "the end mark is missing, the file is cut off or was never finished",
            );
        }
        let block_count = read_u32(bytes, trailer + 8);
        let footer_bytes = u128::from(block_count) * ENTRY_BYTES as u128
            + u128::from(read_u32(bytes, trailer + 12));
        let footer_start = u128::from(read_u64(bytes, trailer));
        if footer_start < HEADER_BYTES as u128 || footer_start + footer_bytes != trailer as u128 {
            return corrupt(trailer, "the trailer and the length of the file disagree");
        }
        let footer_start = footer_start as usize;
        let header_crc = crc32c::crc32c(&bytes[..HEADER_BYTES]);
        let crc = crc32c::crc32c_append(header_crc, &bytes[footer_start..trailer + 16]);
        if crc != read_u32(bytes, trailer + 16) {
            return corrupt(footer_start, "the footer does not match its checksum");
        }
        let metadata = footer_start + block_count as usize * ENTRY_BYTES..trailer;
        // Blocks fill the space between header and footer, so no byte is left unchecked.
        let first_block = match block_count {
            0 => footer_start,
            _ => read_u64(bytes, footer_start) as usize,
        };
        if first_block != HEADER_BYTES {
            return corrupt(HEADER_BYTES, "there are bytes that belong to no block");
        }
        Ok(Self {
            block_count,
            footer_start,
            metadata,
            crc,
        })
    }
}

/// Reads a little-endian number; the caller has checked that it lies within the bytes.
fn read_u32(bytes: &[u8], start: usize) -> u32 {
    let mut raw = [0; 4];
    raw.copy_from_slice(&bytes[start..start + 4]);
    u32::from_le_bytes(raw)
}

fn read_u64(bytes: &[u8], start: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[start..start + 8]);
    u64::from_le_bytes(raw)
}

//! Block files: the container format of all large files, with a checksum per block.
//!
//! A block file is written once, in order, and read at random through a mapping:
//!
//! ```text
//! header    magic "ORRERYBF" | format version u32 | kind, 4 ASCII bytes             16 bytes
//! blocks    block 0 | block 1 | ...                             back to back, no padding
//! footer    per block: offset u64 | CRC32C of the block u32             12 bytes a block
//!           metadata of the file's kind                              as many as it wants
//! trailer   footer offset u64 | block count u32 | metadata bytes u32
//!           CRC32C of header, footer and the 16 trailer bytes before u32
//!           end mark "ORRERYEF"                                                 28 bytes
//! ```
//!
//! All numbers are little endian. The length of a block is the distance to the next offset, or to
//! the footer.
//!
//! Every byte is covered: header and end mark are compared exactly, the footer's checksum covers
//! header, footer and trailer, each block's checksum covers the block, and there are no other
//! bytes. So one flipped bit anywhere is found: outside the blocks at open, in a block when it is
//! first touched or by [`BlockFile::verify_all`].
//!
//! Cost: open reads header and footer (12 bytes per block of some 64 KiB); the first touch of a
//! block costs its checksum (some 10 GB/s), each further one a bit test. What is not in memory is
//! asked for ahead, see `read_ahead`.

mod bits;
mod read_ahead;
mod reader;
mod writer;

pub use reader::{BlockFile, END_BYTES};
pub use writer::BlockFileWriter;

/// The format version that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// The greatest length of one block in bytes.
pub const BLOCK_BYTES_MAX: usize = 1 << 31;

const MAGIC: &[u8; 8] = b"ORRERYBF";
const END_MARK: &[u8; 8] = b"ORRERYEF";
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 12;
const TRAILER_BYTES: usize = 28;

/// The kind of a block file: four ASCII bytes in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind(pub [u8; 4]);

/// The position of a block in its file, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u32);

/// The identification of a finished block file, for the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSummary {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The footer's checksum; as the footer holds every block's checksum, it stands for the whole
    /// content.
    pub crc: u32,
}

fn header(kind: FileKind) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[12..].copy_from_slice(&kind.0);
    header
}

#[cfg(test)]
mod tests;

//! Streamed keys: keys of any length that neither writer nor reader holds in memory.
//!
//! Such a key stands in `terms.large` as it is, not compressed, so that a reader is given the
//! mapped bytes of the file. Its page refers to the block with the head, in slot 0; the parts
//! follow it.
//!
//! ```text
//! block   u8 'H' | u64 length of the key
//! block   the first 1 MiB of the key
//! block   the next ...
//! ```
//!
//! Cost: writing is copying; the first reader of a key pays for the checksums of all its parts, one
//! who compares only for those up to the first difference.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::Arc;

use super::fault::{Decoded, Fault};
use super::page::shared_prefix;
use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber};
use crate::{Error, Result};

/// Bytes of a part; the last one may have fewer. Tests have small ones, so that they have many.
const PART_BYTES: usize = if cfg!(test) { 8 << 10 } else { 1 << 20 };
/// First byte of the block with the head.
pub(super) const HEAD_KIND: u8 = b'H';
const HEAD_BYTES: usize = 9;

/// The bytes of a key, from wherever they are.
pub trait KeySource: Debug + Send + Sync {
    /// Number of bytes.
    fn bytes(&self) -> u64;

    /// Reads them from the first one on; as often as wanted.
    fn open(&self) -> Result<Box<dyn Read + Send + '_>>;
}

/// Number of blocks that a key takes, with its head; `None` if no file can hold them.
pub(super) fn blocks_of(bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(PART_BYTES as u64) + 1).ok()
}

/// Appends head and parts.
pub(super) fn write(source: &dyn KeySource, file: &mut BlockFileWriter) -> Result<()> {
    let mut head = [0; HEAD_BYTES];
    head[0] = HEAD_KIND;
    head[1..].copy_from_slice(&source.bytes().to_le_bytes());
    file.append(&head)?;
    let mut input = source.open()?;
    let mut left = source.bytes();
    let mut part = vec![0; PART_BYTES.min(usize::try_from(left).unwrap_or(PART_BYTES))];
    while left > 0 {
        let length = usize::try_from(left).map_or(PART_BYTES, |left| left.min(PART_BYTES));
        let part = &mut part[..length];
        input
            .read_exact(part)
            .map_err(|error| Error::from_io(file.path(), "copy a long literal into", error))?;
        file.append(part)?;
        left -= length as u64;
    }
    Ok(())
}

/// Where the parts of a key lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamedExtent {
    first: u32,
    parts: u32,
    bytes: u64,
}

impl StreamedExtent {
    /// Reads the head, if a block is one.
    pub(super) fn parse(number: BlockNumber, block: &[u8]) -> Decoded<Option<Self>> {
        let bad = || Fault::Malformed("the head of a streamed key makes no sense");
        let Some((&HEAD_KIND, length)) = block.split_first() else {
            return Ok(None);
        };
        let length: &[u8; 8] = length.try_into().map_err(|_| bad())?;
        let bytes = u64::from_le_bytes(*length);
        let blocks = blocks_of(bytes).ok_or_else(bad)?;
        number.0.checked_add(blocks).ok_or_else(bad)?;
        Ok(Some(Self {
            first: number.0 + 1,
            parts: blocks - 1,
            bytes,
        }))
    }

    /// The whole key, where it is mapped.
    pub(super) fn whole(self, file: &BlockFile) -> Decoded<&[u8]> {
        let key = file.block_run(BlockNumber(self.first), self.parts)?;
        match key.len() as u64 == self.bytes {
            true => Ok(key),
            false => Err(Fault::Malformed("a streamed key has not its length")),
        }
    }

    fn part(self, file: &BlockFile, number: u32) -> Result<&[u8]> {
        file.block(BlockNumber(self.first + number))
    }

    /// How the key compares with another one.
    pub(super) fn compare(self, file: &BlockFile, key: &[u8]) -> Decoded<Ordering> {
        let mut rest = key;
        for number in 0..self.parts {
            let part = self.part(file, number)?;
            let shared = shared_prefix(part, rest);
            if shared < part.len() {
                return Ok(part[shared..].cmp(&rest[shared..]));
            }
            rest = &rest[shared..];
        }
        Ok(match rest.is_empty() {
            true => Ordering::Equal,
            false => Ordering::Less,
        })
    }
}

/// A streamed key of a dictionary; keeps the file open.
#[derive(Debug, Clone)]
pub struct StreamedKey {
    file: Arc<BlockFile>,
    extent: StreamedExtent,
}

impl StreamedKey {
    pub(super) fn new(file: &Arc<BlockFile>, extent: StreamedExtent) -> Self {
        Self {
            file: Arc::clone(file),
            extent,
        }
    }

    /// The whole key, mapped; checks all of it at the first time.
    pub fn whole(&self) -> Result<&[u8]> {
        self.extent.whole(&self.file).map_err(|fault| match fault {
            Fault::Storage(error) => *error,
            Fault::Malformed(what) => {
                let head = BlockNumber(self.extent.first - 1);
                Error::corrupt(self.file.path(), self.file.block_offset(head), what)
            }
        })
    }
}

impl KeySource for StreamedKey {
    fn bytes(&self) -> u64 {
        self.extent.bytes
    }

    fn open(&self) -> Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(PartsReader {
            key: self,
            next: 0,
            rest: &[],
        }))
    }
}

struct PartsReader<'a> {
    key: &'a StreamedKey,
    next: u32,
    rest: &'a [u8],
}

impl Read for PartsReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let StreamedKey { file, extent } = self.key;
        if self.rest.is_empty() && self.next < extent.parts {
            self.rest = extent.part(file, self.next).map_err(io::Error::other)?;
            self.next += 1;
        }
        self.rest.read(buffer)
    }
}

//! Large keys: keys of several kilobytes, zstd-compressed in a file of their own. Those that are
//! pushed as streams stand there, too, see `streamed`.
//!
//! Keys that follow each other are compressed together until they have 32 KiB, for zstd finds
//! little in one of them alone; a longer key has its own block.
//!
//! ```text
//! u8  'B'
//! u32 keys
//! u32 end[keys]     of each key within the decompressed bytes
//! zstd frame
//! ```

use super::fault::{Decoded, Fault};
use super::page::LargeKey;
use super::streamed::{self, KeySource, StreamedExtent};
use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber};
use std::cmp::Ordering;
use std::sync::Arc;

/// Keys of at most this length can be stored otherwise than as a stream: 1 GiB.
pub(super) const KEY_BYTES_MAX: usize = 1 << 30;

const BUNDLE_BYTES: usize = 32 * 1024;
const BUNDLE_KEYS_MAX: usize = 1 << 15;
const BLOCK_KIND: u8 = b'B';
/// Level 3 compresses prose at some 250 MB/s; higher ones gain little on 32 KiB.
const ZSTD_LEVEL: i32 = 3;

/// What a chapter writes into the file of large keys.
pub(super) enum LargeBlock {
    /// A block of compressed keys.
    Compressed(Vec<u8>),
    /// The blocks of a streamed key.
    Streamed(Arc<dyn KeySource>),
}

impl LargeBlock {
    /// Appends it.
    pub(super) fn write(&self, file: &mut BlockFileWriter) -> crate::Result<()> {
        match self {
            Self::Compressed(block) => file.append(block).map(drop),
            Self::Streamed(source) => streamed::write(&**source, file),
        }
    }
}

/// Collects the large keys of a chapter into blocks.
#[derive(Default)]
pub(super) struct LargeBuilder {
    blocks: Vec<LargeBlock>,
    /// How many blocks of the file these are.
    block_count: u32,
    ends: Vec<u32>,
    plain: Vec<u8>,
}

impl LargeBuilder {
    /// Takes a key; its place is relative to the chapter's first block.
    pub(super) fn push(&mut self, key: &[u8]) -> std::io::Result<LargeKey> {
        if !self.ends.is_empty() && self.plain.len() + key.len() > BUNDLE_BYTES {
            self.close()?;
        }
        let place = LargeKey {
            block: self.block_count,
            slot: self.ends.len() as u16,
        };
        self.plain.extend_from_slice(key);
        self.ends.push(self.plain.len() as u32);
        if self.ends.len() == BUNDLE_KEYS_MAX {
            self.close()?;
        }
        Ok(place)
    }

    /// Takes a key as a stream.
    pub(super) fn push_streamed(
        &mut self,
        source: &Arc<dyn KeySource>,
    ) -> std::io::Result<LargeKey> {
        self.close()?;
        let place = LargeKey {
            block: self.block_count,
            slot: 0,
        };
        self.blocks.push(LargeBlock::Streamed(Arc::clone(source)));
        let next = streamed::blocks_of(source.bytes())
            .and_then(|blocks| self.block_count.checked_add(blocks));
        self.block_count = next.ok_or_else(|| std::io::Error::other("too many large keys"))?;
        Ok(place)
    }

    fn close(&mut self) -> std::io::Result<()> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let mut block = vec![BLOCK_KIND];
        block.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        block.extend(self.ends.drain(..).flat_map(u32::to_le_bytes));
        block.append(&mut zstd::bulk::compress(&self.plain, ZSTD_LEVEL)?);
        self.blocks.push(LargeBlock::Compressed(block));
        self.block_count += 1;
        self.plain.clear();
        Ok(())
    }

    /// The blocks to write, in order.
    pub(super) fn finish(mut self) -> std::io::Result<Vec<LargeBlock>> {
        self.close()?;
        Ok(self.blocks)
    }
}

/// Where the parts of a large key lie, if it is a streamed one.
pub(super) fn extent(file: &BlockFile, large: LargeKey) -> Decoded<Option<StreamedExtent>> {
    let number = BlockNumber(large.block);
    StreamedExtent::parse(number, file.block(number)?)
}

/// The decompressed block that was read last, for readers that go on to the next key.
#[derive(Debug, Default)]
pub(super) struct LargeCache {
    block: Option<u32>,
    ends: Vec<u32>,
    plain: Vec<u8>,
}

impl LargeCache {
    /// A large key; a streamed one where it is mapped.
    pub(super) fn key<'a>(&'a mut self, file: &'a BlockFile, large: LargeKey) -> Decoded<&'a [u8]> {
        match self.open(file, large)? {
            Some(extent) => extent.whole(file),
            None => self.compressed(large),
        }
    }

    /// How a large key compares with another.
    pub(super) fn compare(
        &mut self,
        file: &BlockFile,
        large: LargeKey,
        key: &[u8],
    ) -> Decoded<Ordering> {
        match self.open(file, large)? {
            Some(extent) => extent.compare(file, key),
            None => Ok(self.compressed(large)?.cmp(key)),
        }
    }

    /// Where the key is, if it is a streamed one; else its block is decompressed.
    fn open(&mut self, file: &BlockFile, large: LargeKey) -> Decoded<Option<StreamedExtent>> {
        if self.block == Some(large.block) {
            return Ok(None);
        }
        if let Some(extent) = extent(file, large)? {
            return Ok(Some(extent));
        }
        self.block = None;
        self.load(file.block(BlockNumber(large.block))?)?;
        self.block = Some(large.block);
        Ok(None)
    }

    fn compressed(&self, large: LargeKey) -> Decoded<&[u8]> {
        let slot = usize::from(large.slot);
        let end_of = |slot: usize| self.ends.get(slot).map(|&end| end as usize);
        let start = match slot {
            0 => Some(0),
            _ => end_of(slot - 1),
        };
        start
            .zip(end_of(slot))
            .and_then(|(start, end)| self.plain.get(start..end))
            .ok_or(Fault::Malformed("a large key is not in its block"))
    }

    fn load(&mut self, block: &[u8]) -> Decoded<()> {
        let bad = || Fault::Malformed("a block of large keys makes no sense");
        let (&[kind, count @ ..], rest) = block.split_first_chunk::<5>().ok_or_else(bad)?;
        let count = u32::from_le_bytes(count) as usize;
        if kind != BLOCK_KIND || rest.len() / 4 < count {
            return Err(bad());
        }
        let (ends, frame) = rest.split_at(4 * count);
        self.ends.clear();
        let ends = ends.as_chunks::<4>().0.iter();
        self.ends.extend(ends.map(|&end| u32::from_le_bytes(end)));
        let plain_bytes = self.ends.last().map_or(0, |&end| end as usize);
        if plain_bytes > KEY_BYTES_MAX + BUNDLE_BYTES {
            return Err(bad());
        }
        self.plain = zstd::bulk::decompress(frame, plain_bytes).map_err(|_| bad())?;
        Ok(())
    }
}

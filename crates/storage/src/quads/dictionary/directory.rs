//! The directory of pages: a static search tree from rank or key to page.
//!
//! The lowest level has an entry per page, each further level an entry per block of the level
//! below, up to one root. An entry names the first rank below it and a separator: a key prefix, as
//! short as possible, that is greater than every key before and not greater than the first key
//! below. Nothing is decoded at open; a look-up searches one block per level.
//!
//! ```text
//! u8  'D'
//! u8  level (0: entries are pages)
//! u16 0
//! u32 entries
//! u64 first rank[entries]
//! u32 block[entries]
//! u32 separator end[entries]   counted from the first separator
//! separators
//! ```
//!
//! A separator is cut at [`SEPARATOR_BYTES_MAX`] bytes; whoever searches a key that begins with
//! such a one has to look at the page's first key itself.

use super::fault::{Decoded, Fault};
use crate::files::block_file::{BlockFileWriter, BlockNumber};
use crate::{Error, Result};

/// The longest separator. One of this length may be cut.
pub(super) const SEPARATOR_BYTES_MAX: usize = 256;

/// A block is closed when it has so many bytes.
const BLOCK_BYTES: usize = 32 * 1024;
const ENTRY_BYTES: usize = 8 + 4 + 4;
const HEADER_BYTES: usize = 8;
const BLOCK_KIND: u8 = b'D';
/// Levels of at least 100 entries a block: more than 2^32 pages cannot be.
const LEVELS_MAX: usize = 8;

/// Collects the entries of one level.
#[derive(Default)]
struct DirectoryLevel {
    ranks: Vec<u64>,
    blocks: Vec<u32>,
    ends: Vec<u32>,
    separators: Vec<u8>,
}

impl DirectoryLevel {
    fn bytes(&self) -> usize {
        HEADER_BYTES + self.ranks.len() * ENTRY_BYTES + self.separators.len()
    }

    fn finish(&self, level: usize) -> Vec<u8> {
        let mut block = Vec::with_capacity(self.bytes());
        block.extend_from_slice(&[BLOCK_KIND, level as u8, 0, 0]);
        block.extend_from_slice(&(self.ranks.len() as u32).to_le_bytes());
        block.extend(self.ranks.iter().flat_map(|rank| rank.to_le_bytes()));
        block.extend(self.blocks.iter().flat_map(|child| child.to_le_bytes()));
        block.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        block.extend_from_slice(&self.separators);
        block
    }
}

/// Writes the tree while the pages are written.
#[derive(Default)]
pub(super) struct DirectoryBuilder {
    levels: Vec<DirectoryLevel>,
}

impl DirectoryBuilder {
    /// Enters a page.
    pub(super) fn push(
        &mut self,
        first_rank: u64,
        page: BlockNumber,
        separator: &[u8],
        file: &mut BlockFileWriter,
    ) -> Result<()> {
        self.push_at(0, first_rank, page, separator, file)
    }

    fn push_at(
        &mut self,
        level: usize,
        first_rank: u64,
        block: BlockNumber,
        separator: &[u8],
        file: &mut BlockFileWriter,
    ) -> Result<()> {
        if level >= LEVELS_MAX {
            return Err(Error::invalid_input(file.path(), "too many pages"));
        }
        if level == self.levels.len() {
            self.levels.push(DirectoryLevel::default());
        }
        if self.levels[level].bytes() + ENTRY_BYTES + separator.len() > BLOCK_BYTES {
            self.close(level, file)?;
        }
        let entries = &mut self.levels[level];
        entries.ranks.push(first_rank);
        entries.blocks.push(block.0);
        entries.separators.extend_from_slice(separator);
        entries.ends.push(entries.separators.len() as u32);
        Ok(())
    }

    /// Writes the open block of a level and enters it above.
    fn close(&mut self, level: usize, file: &mut BlockFileWriter) -> Result<()> {
        let entries = std::mem::take(&mut self.levels[level]);
        let (Some(&first_rank), Some(&first_end)) = (entries.ranks.first(), entries.ends.first())
        else {
            return Ok(());
        };
        let block = file.append(&entries.finish(level))?;
        let separator = &entries.separators[..first_end as usize];
        self.push_at(level + 1, first_rank, block, separator, file)
    }

    /// Writes what is open; gives the root, or `None` if there are no pages.
    pub(super) fn finish(mut self, file: &mut BlockFileWriter) -> Result<Option<BlockNumber>> {
        let mut level = 0;
        while level < self.levels.len() {
            let is_top = level + 1 == self.levels.len();
            if is_top {
                let root = file.append(&self.levels[level].finish(level))?;
                return Ok(Some(root));
            }
            self.close(level, file)?;
            level += 1;
        }
        Ok(None)
    }
}

/// A block of the directory.
#[derive(Clone, Copy)]
pub(super) struct DirectoryBlock<'a> {
    /// 0: the entries are pages.
    pub(super) level: u8,
    ranks: &'a [[u8; 8]],
    blocks: &'a [[u8; 4]],
    ends: &'a [[u8; 4]],
    separators: &'a [u8],
}

/// What an entry points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryEntry {
    pub(super) first_rank: u64,
    pub(super) block: BlockNumber,
}

impl<'a> DirectoryBlock<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Decoded<Self> {
        let bad = || Fault::Malformed("a block of the page directory makes no sense");
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(bad)?;
        let [kind, level, _, _, count @ ..] = *header;
        let count = u32::from_le_bytes(count) as usize;
        if kind != BLOCK_KIND || count == 0 || rest.len() / ENTRY_BYTES < count {
            return Err(bad());
        }
        let (ranks, rest) = rest.split_at(8 * count);
        let (blocks, rest) = rest.split_at(4 * count);
        let (ends, separators) = rest.split_at(4 * count);
        Ok(Self {
            level,
            ranks: ranks.as_chunks().0,
            blocks: blocks.as_chunks().0,
            ends: ends.as_chunks().0,
            separators,
        })
    }

    /// An entry, by its number.
    pub(super) fn entry(&self, index: usize) -> DirectoryEntry {
        DirectoryEntry {
            first_rank: u64::from_le_bytes(self.ranks[index]),
            block: BlockNumber(u32::from_le_bytes(self.blocks[index])),
        }
    }

    fn separator(&self, index: usize) -> Decoded<&'a [u8]> {
        let end_of = |index: usize| u32::from_le_bytes(self.ends[index]) as usize;
        let start = match index {
            0 => 0,
            _ => end_of(index - 1),
        };
        self.separators
            .get(start..end_of(index))
            .ok_or(Fault::Malformed("a separator makes no sense"))
    }

    /// The block before the run of blocks that an entry's ends, as far as this block knows of the
    /// run: of a page mostly the symbol table of its chapter.
    pub(super) fn block_before_run(&self, index: usize) -> Option<BlockNumber> {
        let number = |index: usize| u32::from_le_bytes(self.blocks[index]);
        let begins_run = |&at: &usize| number(at - 1).checked_add(1) != Some(number(at));
        let first = (1..=index).rev().find(begins_run).unwrap_or(0);
        number(first).checked_sub(1).map(BlockNumber)
    }

    /// The first rank of an entry, if there is one of this number.
    pub(super) fn first_rank(&self, index: usize) -> Option<u64> {
        self.ranks.get(index).copied().map(u64::from_le_bytes)
    }

    /// The number of the entry that holds a rank.
    pub(super) fn find_rank(&self, rank: u64) -> usize {
        self.ranks
            .partition_point(|&first| u64::from_le_bytes(first) <= rank)
            .saturating_sub(1)
    }

    /// As [`find_rank`](Self::find_rank), for a rank behind the entry `from`; `None` if it is not
    /// sure to be in this block.
    pub(super) fn find_rank_after(&self, from: usize, rank: u64) -> Option<usize> {
        let (mut low, mut step) = (from, 1);
        while self
            .first_rank(low + step)
            .is_some_and(|first| first <= rank)
        {
            low += step;
            step *= 2;
        }
        let high = self.ranks.len().min(low + step);
        let at = low
            + self.ranks[low..high].partition_point(|&first| u64::from_le_bytes(first) <= rank)
            - 1;
        (at + 1 < self.ranks.len()).then_some(at)
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = DirectoryEntry> {
        (0..self.ranks.len()).map(|index| self.entry(index))
    }

    /// The number of the last entry that begins at or before a key; the first one if none does.
    ///
    /// `begins_after` decides for an entry whose separator may be cut whether its first key is
    /// greater than the one sought.
    pub(super) fn find_key(
        &self,
        key: &[u8],
        mut begins_after: impl FnMut(DirectoryEntry) -> Decoded<bool>,
    ) -> Decoded<usize> {
        let (mut low, mut high) = (0, self.ranks.len());
        while low < high {
            let middle = low.midpoint(high);
            let separator = self.separator(middle)?;
            let is_after = if separator.len() >= SEPARATOR_BYTES_MAX && key.starts_with(separator) {
                begins_after(self.entry(middle))?
            } else {
                separator > key
            };
            if is_after {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low.saturating_sub(1))
    }
}

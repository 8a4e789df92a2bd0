//! Prefetching of the bytes of keys, while these may still be on disk or in a remote store.
//!
//! ```text
//! ranks, or keys -> blocks of the directory, a level at a time -> pages -> symbol tables of their chapters
//! ```
//!
//! Where each step is a request to a store, two of them are made at once: with a page comes the
//! block that is its chapter's symbol table most likely, and who opens the dictionary asks for the
//! upper blocks of the directory, and for the vocabularies. The blocks of each step are asked for
//! together, so that however many ranks there are, there is one wait a step, not one a block. Of a
//! file whose blocks were all touched nothing is asked for.

use super::Dictionary;
use super::directory::DirectoryBlock;
use super::fault::Fault;
use super::page::Page;
use crate::Result;
use crate::files::block_file::BlockNumber;

/// Of the blocks below the directory's root so many are asked for when the dictionary is opened.
const OPENED_BLOCKS_MAX: usize = 16;
/// A longer block is a vocabulary: pages end with the key that makes them longer than 16 KiB,
/// blocks of the directory are shorter than 32 KiB.
const VOCABULARY_BYTES_MIN: usize = 128 << 10;
/// So much of vocabularies is asked for when the dictionary is opened.
const OPENED_VOCABULARY_BYTES_MAX: usize = 4 << 20;

impl Dictionary {
    /// Asks for what the first look-ups will pass, where it is far away: the blocks below the root,
    /// and the vocabularies. The root is next to the footer, and came with it.
    pub(super) fn will_look_up(&self) -> Result<()> {
        let Some(root) = self.root.filter(|_| self.terms.is_far()) else {
            return Ok(());
        };
        let of_block = |fault| self.error(root, fault);
        let directory = DirectoryBlock::parse(self.terms.block(root)?).map_err(of_block)?;
        let mut wanted = Vec::new();
        if directory.level > 0 {
            let below = directory.entries().map(|entry| entry.block);
            wanted.extend(below.take(OPENED_BLOCKS_MAX));
        }
        let mut left = OPENED_VOCABULARY_BYTES_MAX;
        for block in (0..self.terms.block_count()).map(BlockNumber) {
            let bytes = self.terms.block_bytes(block);
            if bytes >= VOCABULARY_BYTES_MIN
                && let Some(after) = left.checked_sub(bytes)
            {
                left = after;
                wanted.push(block);
            }
        }
        self.terms.will_touch(&mut wanted);
        Ok(())
    }

    /// Asks for a page that will be opened, and for its symbol table, where they are far away.
    pub(super) fn will_open_page(&self, leaf: &DirectoryBlock<'_>, at: usize) {
        if self.terms.is_far() {
            let mut wanted = vec![leaf.entry(at).block];
            wanted.extend(leaf.block_before_run(at));
            self.terms.will_touch(&mut wanted);
        }
    }

    /// Asks for the pages where keys stand, or would, while they may be far away: all at once,
    /// before they are searched for one after the other.
    pub fn will_find(&self, keys: &[&[u8]]) -> Result<()> {
        let Some(root) = self.root.filter(|_| self.terms.is_far()) else {
            return Ok(());
        };
        let mut places: Vec<(&[u8], BlockNumber)> = keys.iter().map(|&key| (key, root)).collect();
        let mut level_above = None;
        while !places.is_empty() {
            let mut level = 0;
            let mut wanted = Vec::new();
            for (key, block) in &mut places {
                let of_block = |fault| self.error(*block, fault);
                let bytes = self.terms.block(*block)?;
                let directory = DirectoryBlock::parse(bytes).map_err(of_block)?;
                if level_above.is_some_and(|above| directory.level + 1 != above) {
                    return Err(of_block(Fault::Malformed("a level is out of order")));
                }
                level = directory.level;
                // Where a separator does not decide, the page before is as good a guess as the one
                // behind.
                let at = directory.find_key(key, |_| Ok(true)).map_err(of_block)?;
                *block = directory.entry(at).block;
                wanted.push(*block);
                if level == 0 {
                    wanted.extend(directory.block_before_run(at));
                }
            }
            self.terms.will_touch(&mut wanted);
            if level == 0 {
                break;
            }
            level_above = Some(level);
        }
        Ok(())
    }

    /// Asks the disk for the pages of ranks while they may be there: all at once, rather than one
    /// after the other. The ranks should ascend; those that do not exist are left to who reads
    /// them.
    pub fn will_read(&self, ranks: &[u64]) -> Result<()> {
        let Some(root) = self
            .root
            .filter(|_| ranks.len() > 1 && self.terms.is_cold())
        else {
            return Ok(());
        };
        let mut blocks = vec![root];
        let mut level_above = None;
        let mut tables = Vec::new();
        loop {
            let (level, below) = self.blocks_below(&blocks, level_above, ranks, &mut tables)?;
            blocks = below;
            tables.extend_from_slice(&blocks);
            self.terms.will_touch(&mut tables);
            tables.clear();
            if level == 0 {
                break;
            }
            level_above = Some(level);
        }
        self.will_decode(&blocks)
    }

    /// Of blocks of the directory, all of one level, the level and the blocks below that lead to
    /// ranks, each once. Both ascend by rank. What the symbol tables of pages may be is put into
    /// `tables`, if the file is far away.
    fn blocks_below(
        &self,
        blocks: &[BlockNumber],
        level_above: Option<u8>,
        ranks: &[u64],
        tables: &mut Vec<BlockNumber>,
    ) -> Result<(u8, Vec<BlockNumber>)> {
        let mut below = Vec::with_capacity(blocks.len());
        let mut level = 0;
        let is_far = self.terms.is_far();
        let mut left = ranks
            .iter()
            .take_while(|&&rank| rank < self.length)
            .peekable();
        for (number, &block) in blocks.iter().enumerate() {
            let of_block = |fault| self.error(block, fault);
            let directory = DirectoryBlock::parse(self.terms.block(block)?).map_err(of_block)?;
            if level_above.is_some_and(|above| directory.level + 1 != above) {
                return Err(of_block(Fault::Malformed("a level is out of order")));
            }
            level = directory.level;
            // The last entry ends where the next block begins, of which only its first rank tells.
            let end = match blocks.get(number + 1) {
                Some(&next) => {
                    let next = DirectoryBlock::parse(self.terms.block(next)?).map_err(of_block)?;
                    next.first_rank(0)
                }
                None => None,
            };
            let mut entry_end = Some(0);
            while let Some(&&rank) = left.peek()
                && end.is_none_or(|end| rank < end)
            {
                left.next();
                if entry_end.is_some_and(|end| rank >= end) {
                    let at = directory.find_rank(rank);
                    entry_end = directory.first_rank(at + 1);
                    below.push(directory.entry(at).block);
                    if is_far && level == 0 {
                        tables.extend(directory.block_before_run(at));
                    }
                }
            }
        }
        Ok((level, below))
    }

    /// Asks for the symbol tables of pages, and for the vocabularies that these name, where there
    /// is more than one table.
    fn will_decode(&self, pages: &[BlockNumber]) -> Result<()> {
        let mut tables = Vec::new();
        for &block in pages {
            let page = Page::parse(self.terms.block(block)?);
            let table = page.map_err(|fault| self.error(block, fault))?.symbol_table;
            if tables.last() != Some(&table) {
                tables.push(table);
            }
        }
        if tables.len() > 1 {
            self.terms.will_touch(&mut tables);
        }
        Ok(())
    }
}

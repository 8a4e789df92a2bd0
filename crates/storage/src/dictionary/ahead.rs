//! Asking ahead for what keys are read from, as long as some of it may still be on the disk, or in a store that is far away.
//!
//! ```text
//! ranks -> blocks of the directory, a level at a time -> pages -> symbol tables of their chapters
//! ```
//!
//! The blocks of each step are asked for together, so that however many ranks there are, there is one wait a step, not one a
//! block. Of a file whose blocks were all touched nothing is asked for.

use super::Dictionary;
use super::directory::DirectoryBlock;
use super::fault::Fault;
use super::page::Page;
use crate::Result;
use crate::block_file::BlockNumber;

impl Dictionary {
    /// Asks the disk for the pages of ranks while they may be there: all at once, rather than one after the other. The
    /// ranks should ascend; those that do not exist are left to who reads them.
    pub fn will_read(&self, ranks: &[u64]) -> Result<()> {
        let Some(root) = self
            .root
            .filter(|_| ranks.len() > 1 && self.terms.is_cold())
        else {
            return Ok(());
        };
        let mut blocks = vec![root];
        let mut level_above = None;
        loop {
            let (level, below) = self.blocks_below(&blocks, level_above, ranks)?;
            blocks = below;
            self.terms.will_touch(&mut blocks.clone());
            if level == 0 {
                break;
            }
            level_above = Some(level);
        }
        self.will_decode(&blocks)
    }

    /// Of blocks of the directory, all of one level, the level and the blocks below that lead to ranks, each once. Both ascend by rank.
    fn blocks_below(
        &self,
        blocks: &[BlockNumber],
        level_above: Option<u8>,
        ranks: &[u64],
    ) -> Result<(u8, Vec<BlockNumber>)> {
        let mut below = Vec::with_capacity(blocks.len());
        let mut level = 0;
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
                }
            }
        }
        Ok((level, below))
    }

    /// Asks for the symbol tables of pages, and for the vocabularies that these name, where there is more than one table.
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

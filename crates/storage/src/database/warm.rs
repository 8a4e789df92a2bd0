//! Warming: reading a database from disk into memory ahead of queries.
//!
//! All blocks are touched in the order in which queries miss them most: what leads to the rest
//! first (fences, the dictionary's directory, symbol tables), then the permutations by predicate
//! and subject, the dictionary's pages, and what is asked for seldom. Reading is sequential and
//! ahead of the checksums that are checked on the way, so it goes at the speed of the disk. The
//! memory is the operating system's file cache: nothing is held here, and who has less of it than
//! the database is large sets a limit.
//!
//! Changes since the base was written are not read: they are in memory, or small.

use std::ops::{ControlFlow, Range};

use crate::Result;
use crate::files::block_file::{BlockFile, BlockNumber};
use crate::quads::index::Permutation;
use crate::snapshots::snapshot::Snapshot;

/// The extent of warming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmExtent {
    /// What leads to rows and terms: some hundredths of the whole.
    Directories,
    /// Everything, as far as it goes into so many bytes.
    Everything {
        /// Stop after this.
        bytes_max: u64,
    },
}

/// The result of warming.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Bytes of the blocks that were touched, whether they came from the disk or were in memory.
    pub bytes: u64,
    /// Whether that was all that was to be read.
    pub is_whole: bool,
}

impl Snapshot {
    /// Reads the files of the base. `progress` hears the bytes so far and may end it.
    ///
    /// # Errors
    /// Damage, as any reader would meet it; what was read until then stays in memory.
    pub fn warm(
        &self,
        extent: WarmExtent,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Warmed> {
        let mut reader = Reader {
            bytes: 0,
            bytes_max: match extent {
                WarmExtent::Directories => u64::MAX,
                WarmExtent::Everything { bytes_max } => bytes_max,
            },
            progress,
        };
        let is_whole = self.read_all(extent, &mut reader)?.is_continue();
        Ok(Warmed {
            bytes: reader.bytes,
            is_whole,
        })
    }

    fn read_all(&self, extent: WarmExtent, reader: &mut Reader<'_>) -> Result<ControlFlow<()>> {
        let terms = self.dictionary().terms_file();
        let (directory, pages) = self.dictionary().blocks_by_use()?;
        let fences = |permutation| self.blocks_of(permutation, |data, all| data..all);
        let rows = |permutation| self.blocks_of(permutation, |data, _| 0..data);
        let mut parts: Vec<_> = Permutation::ALL.into_iter().filter_map(fences).collect();
        parts.push((terms, directory));
        for (file, blocks) in &parts {
            // They lie apart from each other and are few.
            file.will_touch(&mut blocks.clone());
        }
        if extent != WarmExtent::Directories {
            let early = [Permutation::Psog, Permutation::Posg, Permutation::Spog];
            parts.extend(early.into_iter().filter_map(rows));
            parts.push((terms, pages));
            let late = [Permutation::Ospg, Permutation::Gspo];
            parts.extend(late.into_iter().filter_map(rows));
            let large = self.dictionary().large_file();
            let all = 0..large.block_count();
            parts.push((large, all.map(BlockNumber).collect()));
        }
        for (file, blocks) in parts {
            if reader.touch(file, &blocks)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The file of a permutation, and those of its blocks that `choose` takes, given the number of
    /// those with rows and of all.
    fn blocks_of(
        &self,
        permutation: Permutation,
        choose: impl Fn(u32, u32) -> Range<u32>,
    ) -> Option<(&BlockFile, Vec<BlockNumber>)> {
        // A GSPO without a file of its own is SPOG's.
        let index = self.index(permutation)?;
        let (file, data_blocks) = index.has_own_file().then(|| index.block_file())?;
        let blocks = choose(data_blocks, file.block_count());
        Some((file, blocks.map(BlockNumber).collect()))
    }
}

/// Touches blocks, and counts.
struct Reader<'a> {
    bytes: u64,
    bytes_max: u64,
    progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

/// Bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 1 << 20;

impl Reader<'_> {
    /// Touches blocks in their order.
    fn touch(&mut self, file: &BlockFile, blocks: &[BlockNumber]) -> Result<ControlFlow<()>> {
        for &block in blocks {
            let bytes = file.block(block)?.len() as u64;
            if self.bytes + bytes > self.bytes_max {
                return Ok(ControlFlow::Break(()));
            }
            let before = self.bytes / PROGRESS_BYTES;
            self.bytes += bytes;
            if self.bytes / PROGRESS_BYTES > before && (self.progress)(self.bytes).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

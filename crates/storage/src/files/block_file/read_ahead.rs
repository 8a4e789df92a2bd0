//! Read-ahead: requests to the disk for blocks before they are read.
//!
//! A block that was never touched in this process may still be on the disk. Three things ask ahead,
//! all only for blocks that nobody touched or asked for:
//!
//! ```text
//! first touch alone            the window of 32 KiB around the block: what costs the disk no more than one block
//! first touch after others     a scan: the next blocks, doubled from 256 KiB up to 2 MiB while it goes on
//! keys of a look-up step       all blocks that they lead to, sorted and merged to extents
//! ```
//!
//! For the third one, finding the blocks costs some nanoseconds a key, so it is done only while the
//! file is *cold*: for [`LOOKS_WHILE_COLD`] times after the last block that had not been asked for.
//! In a file whose blocks were all touched, nothing of this happens: a touched block is one bit
//! test.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::BlockNumber;
use super::bits::BlockBits;

/// What is read around a single block: about as long as the disk takes to begin with it.
const WINDOW_BYTES: usize = 32 << 10;
/// What a scan asks for, at first and at most.
const SCAN_BYTES_MIN: usize = 256 << 10;
const SCAN_BYTES_MAX: usize = 2 << 20;
/// Blocks before a touched one that tell whether it is part of a scan.
const BLOCKS_BEHIND: u32 = 16;
/// Extents with a gap up to this are read as one.
const GAP_BYTES_MAX: usize = 32 << 10;
/// How often keys are looked through in vain before the file counts as warm.
const LOOKS_WHILE_COLD: u32 = 16;

/// What was asked for of a file.
#[derive(Debug)]
pub(super) struct ReadAhead {
    requested: BlockBits,
    /// Those of them that somebody said will be touched: who knows that much needs no guesses about
    /// what follows.
    announced: BlockBits,
    /// Looks left before the file counts as warm.
    looks_left: AtomicU32,
}

/// Where blocks lie, and which were touched.
pub(super) struct Blocks<'a, E: Fn(u32) -> Range<usize>> {
    pub(super) count: u32,
    pub(super) extent: E,
    pub(super) touched: &'a BlockBits,
}

impl ReadAhead {
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            requested: BlockBits::new(blocks),
            announced: BlockBits::new(blocks),
            looks_left: AtomicU32::new(LOOKS_WHILE_COLD),
        }
    }

    /// Whether it is worth while to find out which blocks will be touched.
    #[inline]
    pub(super) fn is_cold(&self) -> bool {
        self.looks_left.load(Ordering::Relaxed) > 0
    }

    /// What to ask for when a block is touched for the first time.
    pub(super) fn at_first_touch<E: Fn(u32) -> Range<usize>>(
        &self,
        block: u32,
        blocks: &Blocks<'_, E>,
    ) -> Option<Range<usize>> {
        if self.announced.contains(block) {
            return None;
        }
        let is_new = self.requested.insert(block);
        if is_new {
            self.looks_left.store(LOOKS_WHILE_COLD, Ordering::Relaxed);
        }
        let behind = (block.saturating_sub(BLOCKS_BEHIND)..block)
            .rev()
            .take_while(|&before| blocks.touched.contains(before));
        let behind_bytes: usize = behind.map(|before| (blocks.extent)(before).len()).sum();
        let extent = (blocks.extent)(block);
        if behind_bytes == 0 || behind_bytes < extent.len() {
            return is_new.then(|| self.window(block, extent, blocks));
        }
        let ahead_bytes = (2 * behind_bytes).clamp(SCAN_BYTES_MIN, SCAN_BYTES_MAX);
        self.scan((block, is_new), &extent, ahead_bytes, blocks)
    }

    /// The window around a block, cut off at blocks that were asked for.
    fn window<E: Fn(u32) -> Range<usize>>(
        &self,
        block: u32,
        extent: Range<usize>,
        blocks: &Blocks<'_, E>,
    ) -> Range<usize> {
        let window_start = extent.start - extent.start % WINDOW_BYTES;
        let window_end = extent.end.max(window_start + WINDOW_BYTES);
        let mut window = extent;
        let fits = |extent: &Range<usize>| window_start <= extent.start && extent.end <= window_end;
        for neighbour in (0..block).rev() {
            let extent = (blocks.extent)(neighbour);
            if !fits(&extent) || !self.requested.insert(neighbour) {
                break;
            }
            window.start = extent.start;
        }
        for neighbour in block + 1..blocks.count {
            let extent = (blocks.extent)(neighbour);
            if !fits(&extent) || !self.requested.insert(neighbour) {
                break;
            }
            window.end = extent.end;
        }
        window
    }

    /// The next bytes of a scan, if half of them were not asked for yet: so the disk reads while
    /// the first half is used.
    fn scan<E: Fn(u32) -> Range<usize>>(
        &self,
        (block, is_new): (u32, bool),
        extent: &Range<usize>,
        ahead_bytes: usize,
        blocks: &Blocks<'_, E>,
    ) -> Option<Range<usize>> {
        let mut next = block + 1;
        while next < blocks.count && self.requested.contains(next) {
            if (blocks.extent)(next).end.saturating_sub(extent.end) >= ahead_bytes / 2 {
                return None;
            }
            next += 1;
        }
        let start = match is_new {
            true => extent.start,
            false => (blocks.extent)(next - 1).end,
        };
        let mut end = extent.end;
        while next < blocks.count && end.saturating_sub(extent.start) < ahead_bytes {
            self.requested.insert(next);
            end = (blocks.extent)(next).end;
            next += 1;
        }
        (start < end).then_some(start..end)
    }

    /// The extents of those of the blocks that nobody touched or asked for. `wanted` is sorted
    /// here.
    pub(super) fn extents<E: Fn(u32) -> Range<usize>>(
        &self,
        wanted: &mut Vec<BlockNumber>,
        blocks: &Blocks<'_, E>,
    ) -> Vec<Range<usize>> {
        wanted.sort_unstable();
        wanted.dedup();
        let mut extents: Vec<Range<usize>> = Vec::new();
        for &BlockNumber(block) in wanted.iter() {
            let is_new = block < blocks.count
                && !blocks.touched.contains(block)
                && self.requested.insert(block);
            if !is_new {
                continue;
            }
            self.announced.insert(block);
            let extent = (blocks.extent)(block);
            match extents.last_mut() {
                Some(last) if extent.start <= last.end + GAP_BYTES_MAX => last.end = extent.end,
                _ => extents.push(extent),
            }
        }
        if !extents.is_empty() {
            self.looks_left.store(LOOKS_WHILE_COLD, Ordering::Relaxed);
        } else {
            // Two threads may count one look: it is a guess anyway.
            let left = self.looks_left.load(Ordering::Relaxed);
            self.looks_left
                .store(left.saturating_sub(1), Ordering::Relaxed);
        }
        extents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 16 << 10;
    const COUNT: u32 = 1000;

    fn extent(block: u32) -> Range<usize> {
        block as usize * BLOCK_BYTES..(block as usize + 1) * BLOCK_BYTES
    }

    fn blocks(touched: &BlockBits) -> Blocks<'_, impl Fn(u32) -> Range<usize>> {
        Blocks {
            count: COUNT,
            extent,
            touched,
        }
    }

    #[test]
    fn a_single_block_brings_its_window_and_only_once() {
        let (ahead, touched) = (ReadAhead::new(COUNT), BlockBits::new(COUNT));
        let window = ahead.at_first_touch(101, &blocks(&touched));
        assert_eq!(window, Some(extent(100).start..extent(101).end));
        touched.insert(101);
        assert_eq!(ahead.at_first_touch(100, &blocks(&touched)), None);
    }

    #[test]
    fn a_scan_asks_for_each_byte_once_ahead_of_itself_and_for_more_each_time() {
        let (ahead, touched) = (ReadAhead::new(COUNT), BlockBits::new(COUNT));
        let mut asked_to = 0;
        let mut requests = 0;
        for block in 0..COUNT {
            if let Some(range) = ahead.at_first_touch(block, &blocks(&touched)) {
                assert_eq!(range.start, asked_to);
                asked_to = range.end;
                requests += 1;
            }
            assert!(asked_to >= extent(block).end, "{block}");
            touched.insert(block);
        }
        assert_eq!(asked_to, extent(COUNT - 1).end);
        assert!(requests < 80, "{requests}");
    }

    #[test]
    fn wanted_blocks_are_sorted_and_merged_and_none_is_asked_for_twice() {
        let (ahead, touched) = (ReadAhead::new(COUNT), BlockBits::new(COUNT));
        touched.insert(5);
        let mut wanted = [900, 4, 7, 5, 4, 500, 2000].map(BlockNumber).to_vec();
        let extents = ahead.extents(&mut wanted, &blocks(&touched));
        let expected = [extent(4).start..extent(7).end, extent(500), extent(900)];
        assert_eq!(extents, expected);
        assert!(ahead.extents(&mut wanted, &blocks(&touched)).is_empty());
        assert_eq!(ahead.at_first_touch(7, &blocks(&touched)), None);
    }

    #[test]
    fn a_file_is_cold_until_looks_were_in_vain_and_again_after_a_surprise() {
        let (ahead, touched) = (ReadAhead::new(COUNT), BlockBits::new(COUNT));
        touched.insert(5);
        for _ in 0..LOOKS_WHILE_COLD {
            assert!(ahead.is_cold());
            let mut wanted = vec![BlockNumber(5)];
            assert!(ahead.extents(&mut wanted, &blocks(&touched)).is_empty());
        }
        assert!(!ahead.is_cold());
        ahead.at_first_touch(300, &blocks(&touched));
        assert!(ahead.is_cold());
    }
}

//! An atomic bit set with one bit per block.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that only ever become set. They publish nothing but themselves: the bytes of a block never
/// change, so all accesses are relaxed.
#[derive(Debug)]
pub(super) struct BlockBits(Box<[AtomicU64]>);

impl BlockBits {
    pub(super) fn new(blocks: u32) -> Self {
        let words = (blocks as usize).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(super) fn contains(&self, block: u32) -> bool {
        self.0[block as usize / 64].load(Ordering::Relaxed) & (1 << (block % 64)) != 0
    }

    /// Sets the bit; whether it was not set before.
    pub(super) fn insert(&self, block: u32) -> bool {
        let bit = 1 << (block % 64);
        self.0[block as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

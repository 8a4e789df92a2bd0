//! Bit sets of reached nodes per seed.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;

use super::compile::Path;

/// Bits of a word.
pub(super) const SEEDS_PER_WORD: usize = u64::BITS as usize;
/// Seeds walked from at a time, at most.
pub(super) const SEEDS_PER_CALL_MAX: usize = 8 * SEEDS_PER_WORD;

/// What is repeated, and how often.
#[derive(Clone, Copy)]
pub(super) struct Repetition<'p> {
    pub(super) inner: &'p Path,
    pub(super) from_zero: bool,
    pub(super) many: bool,
}

impl<'p> Repetition<'p> {
    /// The repetition that a path is, if it is one.
    pub(super) fn of(path: &'p Path) -> Option<Self> {
        match path {
            Path::Repeat {
                inner,
                from_zero,
                many,
            } => Some(Self {
                inner,
                from_zero: *from_zero,
                many: *many,
            }),
            Path::Link(..) | Path::Negated(..) | Path::Sequence(_) | Path::Alternative(_) => None,
        }
    }
}

/// Nodes, each once, and the seeds that have reached them.
pub(super) struct Reached {
    pub(super) words: usize,
    pub(super) nodes: Vec<u64>,
    /// Some words for each node.
    pub(super) seeds: Vec<u64>,
    pub(super) reservation: MemoryReservation,
}

impl Reached {
    /// Distinct nodes that are seeds, numbered in this order.
    pub(super) fn of_seeds(
        nodes: impl Iterator<Item = u64>,
        like: &MemoryReservation,
    ) -> Result<Self> {
        let nodes: Vec<u64> = nodes.collect();
        let words = nodes.len().div_ceil(SEEDS_PER_WORD).max(1);
        let mut seeds = vec![0; words * nodes.len()];
        for seed in 0..nodes.len() {
            seeds[seed * words + seed / SEEDS_PER_WORD] = 1 << (seed % SEEDS_PER_WORD);
        }
        Self::counted(words, nodes, seeds, like)
    }

    /// Distinct nodes that one seed has reached.
    pub(super) fn of_one_seed(nodes: Vec<u64>, like: &MemoryReservation) -> Result<Self> {
        let seeds = vec![1; nodes.len()];
        Self::counted(1, nodes, seeds, like)
    }

    pub(super) fn counted(
        words: usize,
        nodes: Vec<u64>,
        seeds: Vec<u64>,
        like: &MemoryReservation,
    ) -> Result<Self> {
        let reservation = like.new_empty();
        reservation.try_grow((nodes.capacity() + seeds.capacity()) * size_of::<u64>())?;
        Ok(Self {
            words,
            nodes,
            seeds,
            reservation,
        })
    }

    /// A copy.
    pub(super) fn to_owned(&self) -> Result<Self> {
        let (nodes, seeds) = (self.nodes.clone(), self.seeds.clone());
        Self::counted(self.words, nodes, seeds, &self.reservation)
    }

    /// Words of bits that each node has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The nodes.
    pub(super) fn nodes(&self) -> &[u64] {
        &self.nodes
    }
}

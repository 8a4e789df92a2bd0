//! A chunk: some hundred entries of a delta, as one array per part.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::quads::index::QuadRow;

/// The position of an entry that was not looked up yet.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// An entry with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedEntry {
    pub(crate) entry: DeltaEntry,
    pub(crate) position: u64,
}

/// Consecutive entries of a delta; never empty.
#[derive(Debug)]
pub(crate) struct Chunk {
    rows: Box<[QuadRow]>,
    /// Insertions minus tombstones before each entry of the chunk; one longer than the rows.
    nets: Box<[i16]>,
    /// Rows of the index below that stand before each entry, or [`UNKNOWN`]. Whoever looks one up
    /// writes the same number, so the order of the writes does not matter.
    positions: Box<[AtomicU64]>,
}

impl Chunk {
    /// # Panics
    ///
    /// If there are no entries or more than a chunk may have.
    pub(crate) fn new(entries: &[PlacedEntry]) -> Self {
        assert!((1..=CHUNK_ENTRIES_MAX).contains(&entries.len()));
        let mut nets = Vec::with_capacity(entries.len() + 1);
        let mut net = 0;
        nets.push(net);
        for placed in entries {
            net += if placed.entry.is_insertion { 1 } else { -1 };
            nets.push(net);
        }
        Self {
            rows: entries.iter().map(|placed| placed.entry.row).collect(),
            nets: nets.into_boxed_slice(),
            positions: entries
                .iter()
                .map(|placed| AtomicU64::new(placed.position))
                .collect(),
        }
    }

    /// A chunk of entries that are in arrays already.
    ///
    /// # Panics
    ///
    /// If there are no entries or more than a chunk may have, or the arrays are not of one length.
    pub(super) fn from_parts(rows: &[QuadRow], nets: Box<[i16]>, positions: &[u64]) -> Self {
        assert!((1..=CHUNK_ENTRIES_MAX).contains(&rows.len()));
        assert!(nets.len() == rows.len() + 1 && positions.len() == rows.len());
        Self {
            rows: rows.into(),
            nets,
            positions: positions.iter().copied().map(AtomicU64::new).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rows(&self) -> &[QuadRow] {
        &self.rows
    }

    /// Insertions minus tombstones before each entry of the chunk, and of all at the end.
    pub(crate) fn nets(&self) -> &[i16] {
        &self.nets
    }

    pub(crate) fn positions(&self) -> &[AtomicU64] {
        &self.positions
    }

    /// Insertions minus tombstones.
    pub(crate) fn net(&self) -> i64 {
        i64::from(self.nets[self.len()])
    }

    #[inline]
    pub(crate) fn is_insertion(&self, entry: usize) -> bool {
        self.nets[entry + 1] > self.nets[entry]
    }

    pub(crate) fn entry(&self, entry: usize) -> DeltaEntry {
        DeltaEntry {
            row: self.rows[entry],
            is_insertion: self.is_insertion(entry),
        }
    }

    pub(crate) fn placed(&self, entry: usize) -> PlacedEntry {
        PlacedEntry {
            entry: self.entry(entry),
            position: self.positions[entry].load(Ordering::Relaxed),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let entry = size_of::<QuadRow>() + size_of::<i16>() + size_of::<AtomicU64>();
        size_of::<Self>() + self.len() * entry
    }
}

/// The most entries of a chunk.
pub(crate) const CHUNK_ENTRIES_MAX: usize = 512;

/// A row that became visible or invisible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeltaEntry {
    /// The quad, in the permutation's order.
    pub row: QuadRow,
    /// Whether it became visible; a tombstone otherwise.
    pub is_insertion: bool,
}

//! What changed in a permutation since the index below it was written: insertions and tombstones, sorted by row.
//!
//! A [`DeltaIndex`] never changes. Applying a sorted batch of changes makes a new one that shares all chunks which
//! the batch does not touch, so a commit costs what it changes and a copy of the root array.
//!
//! ```text
//! root     per chunk: first row, entries before it, their net count, position of the first entry
//! chunk    up to 512 entries: row, insertion or tombstone, position
//! ```
//!
//! The *position* of an entry is the number of rows of the index below that stand before the entry's row. It is looked up when
//! it is first needed ([`UNKNOWN`] until then) and kept when chunks are copied. With it a row number of
//! the whole becomes a row number below, which is how [`QuadIndex::view`](crate::index::QuadIndex::view) reads. So a delta
//! belongs to the index that it was made for, and must not be put over another.
//!
//! Invariants: rows ascend strictly; an insertion is of a row that the index below does not have, a tombstone of one that it has.
//! So the number of visible rows is that of the rows below plus the net count, exactly, in every range.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::Result;
use crate::index::{Permutation, QuadRow};

mod apply;
mod chunk;
mod entries;

pub(crate) use chunk::{Chunk, UNKNOWN};
pub use entries::Entries;

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

/// Insertions and tombstones over an index, sorted by row. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DeltaIndex {
    permutation: Permutation,
    root: Arc<Root>,
}

/// What is known about each chunk without reading it, and where it is.
#[derive(Debug, Default)]
struct Root {
    firsts: Vec<QuadRow>,
    /// Entries before each chunk; one longer than the chunks.
    starts: Vec<u64>,
    /// Insertions minus tombstones before each chunk; one longer than the chunks.
    nets: Vec<i64>,
    chunks: Vec<Arc<Chunk>>,
}

impl DeltaIndex {
    /// A delta without entries.
    pub fn new(permutation: Permutation) -> Self {
        let root = Root::with_capacity(0);
        Self {
            permutation,
            root: Arc::new(root),
        }
    }

    /// The order of the columns.
    pub fn permutation(&self) -> Permutation {
        self.permutation
    }

    /// Number of insertions and tombstones.
    pub fn len(&self) -> u64 {
        self.root.starts.last().copied().unwrap_or(0)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Insertions minus tombstones.
    pub fn net(&self) -> i64 {
        self.root.nets.last().copied().unwrap_or(0)
    }

    /// Number of insertions.
    pub fn insertions(&self) -> u64 {
        // Both are at most len(), so neither sum nor difference leaves the range.
        (self.len() as i64 + self.net()) as u64 / 2
    }

    /// Number of tombstones.
    pub fn tombstones(&self) -> u64 {
        self.len() - self.insertions()
    }

    /// Bytes of memory, of chunks shared with other deltas too.
    pub fn memory_bytes(&self) -> u64 {
        let root = self.root.chunks.len() * (size_of::<QuadRow>() + 3 * size_of::<u64>());
        let chunks: usize = self
            .root
            .chunks
            .iter()
            .map(|chunk| chunk.memory_bytes())
            .sum();
        (root + chunks) as u64
    }

    /// All entries, ascending by row.
    pub fn entries(&self) -> Entries {
        Entries::new(self.clone())
    }

    /// The entry of a row, if there is one.
    pub fn find(&self, row: &QuadRow) -> Result<Option<DeltaEntry>> {
        let after = self.root.firsts.partition_point(|first| first <= row);
        let Some(number) = after.checked_sub(1) else {
            return Ok(None);
        };
        let chunk = self.chunk(number)?;
        let found = chunk.rows().binary_search(row);
        Ok(found.ok().map(|entry| chunk.entry(entry)))
    }

    pub(crate) fn chunk_count(&self) -> usize {
        self.root.chunks.len()
    }

    /// First row of each chunk.
    pub(crate) fn firsts(&self) -> &[QuadRow] {
        &self.root.firsts
    }

    /// Net count before each chunk, and of all at the end.
    pub(crate) fn nets(&self) -> &[i64] {
        &self.root.nets
    }

    /// A chunk, read now if it is not in memory.
    pub(crate) fn chunk(&self, number: usize) -> Result<Arc<Chunk>> {
        Ok(Arc::clone(&self.root.chunks[number]))
    }

    /// Where the position of a chunk's first entry is kept.
    pub(crate) fn first_position(&self, number: usize) -> Result<&AtomicU64> {
        Ok(&self.root.chunks[number].positions()[0])
    }
}

impl Root {
    fn with_capacity(chunks: usize) -> Self {
        let mut root = Self {
            firsts: Vec::with_capacity(chunks),
            starts: Vec::with_capacity(chunks + 1),
            nets: Vec::with_capacity(chunks + 1),
            chunks: Vec::with_capacity(chunks),
        };
        root.starts.push(0);
        root.nets.push(0);
        root
    }

    fn push(&mut self, chunk: Arc<Chunk>) {
        debug_assert!(
            self.chunks
                .last()
                .is_none_or(|last| { last.rows().last() < chunk.rows().first() })
        );
        self.firsts.push(chunk.rows()[0]);
        self.starts
            .push(self.starts[self.chunks.len()] + chunk.len() as u64);
        self.nets.push(self.nets[self.chunks.len()] + chunk.net());
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests;

//! What changed in a permutation since the index below it was written: insertions and tombstones, sorted by row.
//!
//! A [`DeltaIndex`] never changes. Applying a sorted batch of changes makes a new one that shares all chunks which
//! the batch does not touch, so a commit costs what it changes and a copy of the root array.
//!
//! ```text
//! root     per chunk: first row, entries before it, their net count, position of the first entry
//! chunk    up to 512 entries, fewer in small deltas: row, insertion or tombstone, position
//! ```
//!
//! The *position* of an entry is the number of rows of the index below that stand before the entry's row. It is looked up when
//! it is first needed (`UNKNOWN` until then) and kept when chunks are copied. With it a row number of
//! the whole becomes a row number below, which is how `QuadIndex::view` reads. So a delta
//! belongs to the index that it was made for, and must not be put over another.
//!
//! Invariants: rows ascend strictly; an insertion is of a row that the index below does not have, a tombstone of one that it has.
//! So the number of visible rows is that of the rows below plus the net count, exactly, in every range.

use std::sync::Arc;

use self::file_chunks::DeltaFile;
use crate::Result;
use crate::index::{Permutation, QuadRow};

mod apply;
mod between;
mod changes;
mod chunk;
mod entries;
mod file;
mod file_chunks;
mod touched_sets;

pub use changes::Changes;
pub use chunk::DeltaEntry;
pub(crate) use chunk::{Chunk, UNKNOWN};
pub use entries::Entries;
pub(crate) use file::write_delta;
pub(crate) use touched_sets::{KeySet, TouchedSets};

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
    chunks: Vec<Slot>,
    /// Where the chunks are that are not in memory.
    file: Option<Arc<DeltaFile>>,
    touched: TouchedSets,
}

/// Where a chunk is.
#[derive(Debug, Clone)]
enum Slot {
    Memory(Arc<Chunk>),
    /// In the file, under this number.
    File {
        number: u32,
        entries: u32,
        net: i32,
        first_position: u64,
    },
}

impl Slot {
    /// Whether both are one chunk of the same delta or of two that share it.
    fn is_shared_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Memory(one), Self::Memory(other)) => Arc::ptr_eq(one, other),
            (Self::File { number: one, .. }, Self::File { number: other, .. }) => one == other,
            (Self::Memory(_), Self::File { .. }) | (Self::File { .. }, Self::Memory(_)) => false,
        }
    }
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

    /// Bytes of memory, of chunks shared with other deltas too; without those of a file.
    pub fn memory_bytes(&self) -> u64 {
        let root = self.root.chunks.len()
            * (size_of::<QuadRow>() + 2 * size_of::<u64>() + size_of::<Slot>());
        let chunks = self.root.chunks.iter().map(|slot| match slot {
            Slot::Memory(chunk) => chunk.memory_bytes(),
            Slot::File { .. } => 0,
        });
        (root + chunks.sum::<usize>()) as u64
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
        self.root.chunk(number)
    }

    /// The position of a chunk's first entry, or [`UNKNOWN`].
    pub(crate) fn first_position(&self, number: usize) -> u64 {
        match &self.root.chunks[number] {
            Slot::Memory(chunk) => chunk.placed(0).position,
            Slot::File { first_position, .. } => *first_position,
        }
    }
}

impl Root {
    fn with_capacity(chunks: usize) -> Self {
        let mut root = Self {
            file: None,
            touched: TouchedSets::default(),
            firsts: Vec::with_capacity(chunks),
            starts: Vec::with_capacity(chunks + 1),
            nets: Vec::with_capacity(chunks + 1),
            chunks: Vec::with_capacity(chunks),
        };
        root.starts.push(0);
        root.nets.push(0);
        root
    }

    fn chunk(&self, number: usize) -> Result<Arc<Chunk>> {
        match (&self.chunks[number], &self.file) {
            (Slot::Memory(chunk), _) => Ok(Arc::clone(chunk)),
            (Slot::File { number, .. }, Some(file)) => file.chunk(*number),
            (Slot::File { .. }, None) => unreachable!("a root with chunks in a file has the file"),
        }
    }

    fn push(&mut self, chunk: Chunk) {
        let (first, entries, net) = (chunk.rows()[0], chunk.len() as u64, chunk.net());
        self.push_slot(first, entries, net, Slot::Memory(Arc::new(chunk)));
    }

    /// Appends the next chunk of the file.
    fn push_stored(&mut self, first: QuadRow, first_position: u64, entries: u32, net: i32) {
        let slot = Slot::File {
            number: self.chunks.len() as u32,
            entries,
            net,
            first_position,
        };
        self.push_slot(first, u64::from(entries), i64::from(net), slot);
    }

    /// Appends a chunk of an older delta.
    fn push_shared(&mut self, first: QuadRow, slot: &Slot) {
        let (entries, net) = match slot {
            Slot::Memory(chunk) => (chunk.len() as u64, chunk.net()),
            Slot::File { entries, net, .. } => (u64::from(*entries), i64::from(*net)),
        };
        self.push_slot(first, entries, net, slot.clone());
    }

    fn push_slot(&mut self, first: QuadRow, entries: u64, net: i64, slot: Slot) {
        let number = self.chunks.len();
        self.firsts.push(first);
        self.starts.push(self.starts[number] + entries);
        self.nets.push(self.nets[number] + net);
        self.chunks.push(slot);
    }
}

#[cfg(test)]
mod tests;

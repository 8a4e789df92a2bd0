//! Deltas: insertions and tombstones over a permutation's base, sorted by row.
//!
//! A [`DeltaIndex`] never changes. Applying a sorted batch of changes makes a new one that shares
//! all chunks which the batch does not touch, so a commit costs what it changes and a copy of the
//! root array.
//!
//! ```text
//! root     per chunk: first row, entries before it, their net count, and where it is
//! chunk    up to 512 entries, fewer in small deltas: row, insertion or tombstone, position
//! ```
//!
//! The *position* of an entry is the number of rows of the index below that stand before the
//! entry's row. It is looked up when it is first needed (`UNKNOWN` until then) and kept when chunks
//! are copied. With it a row number of the whole becomes a row number below, which is how
//! `QuadIndex::view` reads. So a delta belongs to the index that it was made for, and must not be
//! put over another.
//!
//! Invariants: rows ascend strictly; an insertion is of a row that the index below does not have, a
//! tombstone of one that it has. So the number of visible rows is that of the rows below plus the
//! net count, exactly, in every range.

use std::ops::Range;
use std::sync::Arc;

use self::file_chunks::DeltaFile;
use self::slots::{Slot, Slots};
use crate::Result;
use crate::quads::index::{Permutation, QuadRow};

mod apply;
mod between;
mod changes;
mod chunk;
mod entries;
mod file;
mod file_chunks;
mod slots;
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
    chunks: Slots,
    /// Where the chunks are that are not in memory.
    file: Option<Arc<DeltaFile>>,
    touched: TouchedSets,
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
        match self.root.chunks.get(number) {
            Some(Slot::Memory(chunk)) => chunk.placed(0).position,
            Some(Slot::File { first_position, .. }) => *first_position,
            None => UNKNOWN,
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
            chunks: Slots::default(),
        };
        root.starts.push(0);
        root.nets.push(0);
        root
    }

    fn chunk(&self, number: usize) -> Result<Arc<Chunk>> {
        match (self.chunks.get(number), &self.file) {
            (Some(Slot::Memory(chunk)), _) => Ok(Arc::clone(chunk)),
            (Some(Slot::File { number, .. }), Some(file)) => file.chunk(*number),
            (Some(Slot::File { .. }), None) => {
                unreachable!("a root with chunks in a file has the file")
            }
            (None, _) => unreachable!("chunks are counted by the root"),
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
            first_position,
        };
        self.push_slot(first, u64::from(entries), i64::from(net), slot);
    }

    /// Appends a chunk of an older delta.
    fn push_shared(&mut self, old: &Self, number: usize) {
        let Some(slot) = old.chunks.get(number) else {
            return;
        };
        self.append_counts(old, number..number + 1);
        self.chunks.push(slot.clone());
    }

    /// Appends a whole group of chunks of an older delta, which have these numbers.
    fn push_shared_group(&mut self, old: &Self, numbers: Range<usize>) {
        let number = numbers.start;
        self.append_counts(old, numbers);
        self.chunks.push_group(&old.chunks, number);
    }

    /// What is known about chunks of an older delta without looking at them.
    fn append_counts(&mut self, old: &Self, numbers: Range<usize>) {
        let count = self.chunks.len();
        let (start, net) = (self.starts[count], self.nets[count]);
        let (old_start, old_net) = (old.starts[numbers.start], old.nets[numbers.start]);
        let ends = numbers.start + 1..numbers.end + 1;
        let starts = old.starts[ends.clone()].iter();
        self.starts
            .extend(starts.map(|end| end - old_start + start));
        let nets = old.nets[ends].iter();
        self.nets.extend(nets.map(|end| end - old_net + net));
        self.firsts.extend_from_slice(&old.firsts[numbers]);
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

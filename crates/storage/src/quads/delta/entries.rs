//! An iterator over all entries of a delta.

use std::sync::Arc;

use super::chunk::DeltaEntry;
use super::chunk::PlacedEntry;
use super::{Chunk, DeltaIndex};
use crate::Result;

/// The entries of a delta, ascending by row. Ends after the first error.
#[derive(Debug)]
pub struct Entries {
    delta: DeltaIndex,
    /// The chunk to go on with once the one in hand is done.
    next_chunk: usize,
    chunk: Option<Arc<Chunk>>,
    next_entry: usize,
}

impl Entries {
    pub(super) fn new(delta: DeltaIndex) -> Self {
        Self {
            delta,
            next_chunk: 0,
            chunk: None,
            next_entry: 0,
        }
    }

    pub(crate) fn next_placed(&mut self) -> Result<Option<PlacedEntry>> {
        loop {
            if let Some(chunk) = &self.chunk {
                if self.next_entry < chunk.len() {
                    self.next_entry += 1;
                    return Ok(Some(chunk.placed(self.next_entry - 1)));
                }
                self.chunk = None;
            }
            if self.next_chunk == self.delta.chunk_count() {
                return Ok(None);
            }
            self.next_chunk += 1;
            self.chunk = Some(self.delta.chunk(self.next_chunk - 1)?);
            self.next_entry = 0;
        }
    }
}

impl Iterator for Entries {
    type Item = Result<DeltaEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_placed();
        if next.is_err() {
            self.chunk = None;
            self.next_chunk = self.delta.chunk_count();
        }
        next.map(|placed| placed.map(|placed| placed.entry))
            .transpose()
    }
}

impl DeltaIndex {
    /// All entries, ascending by row.
    pub fn entries(&self) -> Entries {
        Entries::new(self.clone())
    }
}

//! Making a new delta from an old one and a batch of changes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::chunk::PlacedEntry;
use super::{CHUNK_ENTRIES_MAX, Chunk, DeltaEntry, DeltaIndex, Root, UNKNOWN};
use crate::{Error, Result};

/// A changed chunk with fewer entries takes up its right neighbour.
const CHUNK_ENTRIES_MIN: usize = 64;
/// Entries that wait to become chunks, at most; a few chunks, so that they can be cut evenly.
const PENDING_MAX: usize = 8 * CHUNK_ENTRIES_MAX;

impl DeltaIndex {
    /// The delta after further changes, which ascend strictly by row. Costs what the chunks that are touched cost, and a copy of the
    /// root array.
    ///
    /// Each change has to change what is visible: an insertion of a row with a tombstone removes the tombstone, and the
    /// reverse. One that repeats an entry is an error, for then the caller's counts are wrong.
    pub fn apply(&self, changes: &[DeltaEntry]) -> Result<Self> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        if !changes.is_sorted_by(|a, b| a.row < b.row) {
            return Err(misuse("the changes do not ascend"));
        }
        let old = &*self.root;
        let chunks = old.chunks.len();
        let mut builder = Builder {
            root: Root::with_capacity(chunks + changes.len() / CHUNK_ENTRIES_MAX + 1),
            pending: Vec::new(),
        };
        let mut rest = changes;
        // What stands before the first chunk's first row goes into the first chunk.
        for number in 0..chunks.max(1) {
            let end = match old.firsts.get(number + 1) {
                Some(next) => rest.partition_point(|change| change.row < *next),
                None => rest.len(),
            };
            let (batch, after) = rest.split_at(end);
            rest = after;
            if batch.is_empty() && !builder.wants_neighbour() {
                builder.finish_pending(true);
                builder
                    .root
                    .push_shared(old.firsts[number], &old.chunks[number]);
                continue;
            }
            let chunk = match number < chunks {
                true => Some(old.chunk(number)?),
                false => None,
            };
            builder.merge(chunk.as_deref(), batch)?;
        }
        builder.finish_pending(true);
        builder.root.file.clone_from(&old.file);
        Ok(Self {
            permutation: self.permutation,
            root: Arc::new(builder.root),
        })
    }

    /// What changed since `earlier`, a delta over the same index, in ascending order: applied to `earlier` it makes this delta.
    /// Chunks that both share are not looked at.
    pub fn changes_since(&self, earlier: &Self) -> Result<Vec<DeltaEntry>> {
        let mut changes = Vec::new();
        let (new, old) = (&*self.root, &*earlier.root);
        let (mut new_chunk, mut old_chunk) = (0, 0);
        let mut new_entries: Vec<DeltaEntry> = Vec::new();
        let mut old_entries: Vec<DeltaEntry> = Vec::new();
        loop {
            let (a, b) = (new.chunks.get(new_chunk), old.chunks.get(old_chunk));
            let firsts = (new.firsts.get(new_chunk), old.firsts.get(old_chunk));
            if let (Some(a), Some(b)) = (a, b)
                && a.is_shared_with(b)
            {
                difference(&new_entries, &old_entries, &mut changes);
                new_entries.clear();
                old_entries.clear();
                new_chunk += 1;
                old_chunk += 1;
                continue;
            }
            // Of two different chunks the one that begins first; so shared chunks come up together.
            let takes_new = match firsts {
                (None, None) => break,
                (Some(a), Some(b)) => a <= b,
                (a, _) => a.is_some(),
            };
            let (root, entries, number) = match takes_new {
                true => (new, &mut new_entries, &mut new_chunk),
                false => (old, &mut old_entries, &mut old_chunk),
            };
            let chunk = root.chunk(*number)?;
            entries.extend((0..chunk.len()).map(|entry| chunk.entry(entry)));
            *number += 1;
        }
        difference(&new_entries, &old_entries, &mut changes);
        Ok(changes)
    }
}

/// Entries only in `new` happened; of entries only in `old` the opposite did.
fn difference(new: &[DeltaEntry], old: &[DeltaEntry], changes: &mut Vec<DeltaEntry>) {
    let (mut new, mut old) = (new.iter().peekable(), old.iter().peekable());
    let reversed = |entry: &DeltaEntry| DeltaEntry {
        is_insertion: !entry.is_insertion,
        ..*entry
    };
    loop {
        let order = match (new.peek(), old.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(new), Some(old)) => new.row.cmp(&old.row),
        };
        match order {
            Ordering::Less => changes.extend(new.next()),
            Ordering::Greater => changes.extend(old.next().map(reversed)),
            // A row is either in the index below or not, so its two entries are of one kind.
            Ordering::Equal => drop((new.next(), old.next())),
        }
    }
}

struct Builder {
    root: Root,
    pending: Vec<PlacedEntry>,
}

impl Builder {
    /// Whether what is pending is too little for a chunk of its own.
    fn wants_neighbour(&self) -> bool {
        (1..CHUNK_ENTRIES_MIN).contains(&self.pending.len())
    }

    /// Appends a chunk with the changes that fall into it.
    fn merge(&mut self, chunk: Option<&Chunk>, changes: &[DeltaEntry]) -> Result<()> {
        let mut changes = changes.iter().peekable();
        let entries = chunk.map_or(0, Chunk::len);
        for entry in 0..entries {
            let Some(chunk) = chunk else { break };
            let placed = chunk.placed(entry);
            while let Some(change) = changes.next_if(|change| change.row < placed.entry.row) {
                self.push(new_entry(change));
            }
            match changes.next_if(|change| change.row == placed.entry.row) {
                Some(change) if change.is_insertion == placed.entry.is_insertion => {
                    return Err(misuse("a change repeats an entry"));
                }
                Some(_) => {}
                None => self.push(placed),
            }
        }
        for change in changes {
            self.push(new_entry(change));
        }
        Ok(())
    }

    fn push(&mut self, placed: PlacedEntry) {
        self.pending.push(placed);
        if self.pending.len() >= PENDING_MAX {
            self.finish_pending(false);
        }
    }

    /// Makes chunks of equal size of what is pending; keeps back the last one unless all is wanted.
    fn finish_pending(&mut self, is_all: bool) {
        let count = self.pending.len().div_ceil(CHUNK_ENTRIES_MAX);
        if count == 0 {
            return;
        }
        let size = self.pending.len().div_ceil(count);
        let chunks = self.pending.chunks(size).count();
        let finished = if is_all { chunks } else { chunks - 1 };
        for entries in self.pending.chunks(size).take(finished) {
            self.root.push(Chunk::new(entries));
        }
        let done = (finished * size).min(self.pending.len());
        self.pending.drain(..done);
    }
}

fn new_entry(change: &DeltaEntry) -> PlacedEntry {
    PlacedEntry {
        entry: *change,
        position: UNKNOWN,
    }
}

fn misuse(what: &str) -> Error {
    Error::invalid_input(std::path::Path::new("delta"), what)
}

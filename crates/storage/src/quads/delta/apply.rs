//! Application of a batch of changes to a delta, which makes a new delta.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::chunk::{CHUNK_ENTRIES_MAX, DeltaEntry};
use super::{Chunk, DeltaIndex, Root, UNKNOWN};
use crate::quads::index::QuadRow;
use crate::{Error, Result};

/// Chunks of small deltas have so many entries.
const CHUNK_ENTRIES_LEAST: usize = 64;
/// A changed chunk with a smaller share of the entries that it may have takes up its right
/// neighbour.
const SMALL_SHARE: usize = 8;
/// Chunks that wait to be cut, at most; a few, so that they can be cut evenly.
const PENDING_CHUNKS: usize = 8;

/// How many entries a chunk of a delta with so many entries may have: about the square root, for a
/// commit copies the root, with one entry a chunk, and the chunks it touches.
fn chunk_entries(entries: u64) -> usize {
    let root = 1 << ((u64::BITS - entries.leading_zeros()) / 2);
    usize::clamp(root, CHUNK_ENTRIES_LEAST, CHUNK_ENTRIES_MAX)
}

impl DeltaIndex {
    /// The delta after further changes, which ascend strictly by row. Costs what the chunks that
    /// are touched cost, and a copy of the root array.
    ///
    /// Each change has to change what is visible: an insertion of a row with a tombstone removes
    /// the tombstone, and the reverse. One that repeats an entry is an error, for then the caller's
    /// counts are wrong.
    pub fn apply(&self, changes: &[DeltaEntry]) -> Result<Self> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        if !changes.is_sorted_by(|a, b| a.row < b.row) {
            return Err(misuse("the changes do not ascend"));
        }
        let old = &*self.root;
        let chunks = old.chunks.len();
        let chunk_entries = chunk_entries(self.len() + changes.len() as u64);
        let mut builder = Builder {
            root: Root::with_capacity(chunks + changes.len() / chunk_entries + 1),
            pending: Pending::new(),
            chunk_entries,
        };
        let mut rest = changes;
        // What stands before the first chunk's first row goes into the first chunk.
        let mut number = 0;
        while number < chunks.max(1) {
            // Most chunks of a large delta have no change in them, and most groups neither: a look
            // at each was most of a small update.
            let is_touched = |behind: usize| {
                let first = rest.first();
                first.is_some_and(|change| {
                    old.firsts.get(behind).is_none_or(|next| change.row < *next)
                })
            };
            if !builder.wants_neighbour() {
                let group = old.chunks.group_at(number);
                if let Some(group) = group.filter(|group| !is_touched(group.end)) {
                    builder.finish_pending(true);
                    number = group.end;
                    builder.root.push_shared_group(old, group);
                    continue;
                }
                if !is_touched(number + 1) {
                    builder.finish_pending(true);
                    builder.root.push_shared(old, number);
                    number += 1;
                    continue;
                }
            }
            let next = old.firsts.get(number + 1);
            let end = match next {
                Some(next) => rest.partition_point(|change| change.row < *next),
                None => rest.len(),
            };
            let (batch, after) = rest.split_at(end);
            rest = after;
            let chunk = match number < chunks {
                true => Some(old.chunk(number)?),
                false => None,
            };
            builder.merge(chunk.as_deref(), batch)?;
            number += 1;
        }
        builder.finish_pending(true);
        builder.root.chunks.close();
        builder.root.file.clone_from(&old.file);
        Ok(Self {
            permutation: self.permutation,
            root: Arc::new(builder.root),
        })
    }

    /// The difference from `earlier`, a delta over the same index, in ascending order. Chunks that
    /// both share are not looked at.
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
    pending: Pending,
    /// The most entries of a chunk.
    chunk_entries: usize,
}

/// Entries that wait to become chunks, in arrays as chunks have them.
struct Pending {
    rows: Vec<QuadRow>,
    /// Insertions minus tombstones before each entry, and of all at the end. There are a few
    /// thousand entries at most.
    nets: Vec<i16>,
    positions: Vec<u64>,
}

impl Builder {
    /// Whether what is pending is too little for a chunk of its own.
    fn wants_neighbour(&self) -> bool {
        (1..self.chunk_entries / SMALL_SHARE).contains(&self.pending.rows.len())
    }

    /// Appends a chunk with the changes that fall into it. The entries between two changes are
    /// copied at once.
    fn merge(&mut self, chunk: Option<&Chunk>, changes: &[DeltaEntry]) -> Result<()> {
        let Some(chunk) = chunk else {
            changes.iter().for_each(|change| self.push(change));
            return Ok(());
        };
        let mut at = 0;
        for change in changes {
            let rows = &chunk.rows()[at..];
            let run = rows.partition_point(|row| *row < change.row);
            self.extend(chunk, at..at + run);
            at += run;
            if rows.get(run) != Some(&change.row) {
                self.push(change);
                continue;
            }
            if chunk.is_insertion(at) == change.is_insertion {
                return Err(misuse("a change repeats an entry"));
            }
            at += 1;
        }
        self.extend(chunk, at..chunk.len());
        Ok(())
    }

    fn push(&mut self, change: &DeltaEntry) {
        self.pending.push(change);
        self.cut_if_full();
    }

    fn extend(&mut self, chunk: &Chunk, entries: Range<usize>) {
        self.pending.extend(chunk, entries);
        self.cut_if_full();
    }

    fn cut_if_full(&mut self) {
        if self.pending.rows.len() >= PENDING_CHUNKS * self.chunk_entries {
            self.finish_pending(false);
        }
    }

    /// Makes chunks of equal size of what is pending; keeps back the last one unless all is wanted.
    fn finish_pending(&mut self, is_all: bool) {
        let entries = self.pending.rows.len();
        if entries == 0 {
            return;
        }
        let count = entries.div_ceil(self.chunk_entries);
        let size = entries.div_ceil(count);
        let chunks = entries.div_ceil(size);
        let finished = if is_all { chunks } else { chunks - 1 };
        for number in 0..finished {
            let part = number * size..entries.min((number + 1) * size);
            self.root.push(self.pending.chunk(part));
        }
        self.pending.drop_first(entries.min(finished * size));
    }
}

impl Pending {
    fn new() -> Self {
        Self {
            rows: Vec::new(),
            nets: vec![0],
            positions: Vec::new(),
        }
    }

    fn net(&self) -> i16 {
        self.nets[self.rows.len()]
    }

    fn push(&mut self, change: &DeltaEntry) {
        let net = self.net() + if change.is_insertion { 1 } else { -1 };
        self.rows.push(change.row);
        self.nets.push(net);
        self.positions.push(UNKNOWN);
    }

    fn extend(&mut self, chunk: &Chunk, entries: Range<usize>) {
        let more = self.net() - chunk.nets()[entries.start];
        let nets = &chunk.nets()[entries.start + 1..=entries.end];
        self.nets.extend(nets.iter().map(|net| net + more));
        self.rows.extend_from_slice(&chunk.rows()[entries.clone()]);
        let positions = chunk.positions()[entries].iter();
        self.positions
            .extend(positions.map(|position| position.load(Relaxed)));
    }

    fn chunk(&self, entries: Range<usize>) -> Chunk {
        let first = self.nets[entries.start];
        let nets = self.nets[entries.start..=entries.end].iter();
        Chunk::from_parts(
            &self.rows[entries.clone()],
            nets.map(|net| net - first).collect(),
            &self.positions[entries],
        )
    }

    fn drop_first(&mut self, entries: usize) {
        self.rows.drain(..entries);
        self.positions.drain(..entries);
        self.nets.drain(..entries);
        let first = self.nets[0];
        self.nets.iter_mut().for_each(|net| *net -= first);
    }
}

fn misuse(what: &str) -> Error {
    Error::invalid_input(std::path::Path::new("delta"), what)
}

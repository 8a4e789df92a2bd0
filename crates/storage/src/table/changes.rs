//! The delta of a projection: new rows, and tombstones for rows of its file.
//!
//! A [`ProjectionChanges`] never changes. Applying sorted changes makes a new one that shares all
//! chunks which these do not touch, so snapshots share most of what is in memory, and a commit
//! costs what it changes and a copy of the list of chunks.
//!
//! ```text
//! chunks     up to 512 entries each, sorted
//! entry      position u64 | the new row, or nothing where the row of the file is gone
//! ```
//!
//! The *position* of a new row is the number of rows of the file that come before it, whether they
//! are gone or not. A scan of the file's rows `a..b` lays the entries with positions `a..b` over
//! them and never compares a key. New rows of one position ascend by their keys and stand before
//! the entry that says that the file's row there is gone. A new row may have the key of a row that
//! is gone, never that of one that is there.
//!
//! New rows are bytes ([`RowBytes`]) in batches, one a statement; a batch lives as long as one of
//! its rows.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, Weak};

use super::key::KeyRows;
use super::rows::RowBytes;

/// Entries of a full chunk.
const CHUNK_ENTRIES_MAX: usize = 512;

/// New rows that came together, sorted by their keys.
#[derive(Debug, Default)]
pub struct RowBatch {
    keys: KeyRows,
    rows: RowBytes,
}

/// A new row.
#[derive(Debug, Clone)]
pub struct NewRow {
    batch: Arc<RowBatch>,
    index: u32,
}

/// A new row, or a row of the file that is gone.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Rows of the file before it, or the number of the file's row that is gone.
    pub position: u64,
    /// `None` where the file's row is gone.
    pub row: Option<NewRow>,
}

/// A change of a projection.
#[derive(Debug, Clone)]
pub enum Change {
    /// A row comes.
    Insert(u64, NewRow),
    /// A row of the file goes.
    Delete(u64),
    /// A row that is new goes again.
    Withdraw(u64, NewRow),
}

/// New rows and gone ones over a projection's file. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProjectionChanges {
    root: Arc<Root>,
}

/// Tells changes from others without keeping them in memory.
#[derive(Debug, Clone)]
pub(crate) struct ChangesIdentity(Weak<Root>);

impl ChangesIdentity {
    /// Whether it is theirs. While it is there, no others can be where they were.
    pub(crate) fn is_of(&self, changes: &ProjectionChanges) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&changes.root))
    }
}

#[derive(Debug, Default)]
struct Root {
    chunks: Vec<Arc<[Entry]>>,
    inserted: u64,
    deleted: u64,
}

impl RowBatch {
    /// Rows and their keys, sorted by these.
    pub fn new(mut keys: KeyRows, rows: RowBytes) -> Arc<Self> {
        debug_assert_eq!(keys.len(), rows.len());
        keys.shrink_to_fit();
        Arc::new(Self { keys, rows })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows in their order.
    pub fn iter(self: &Arc<Self>) -> impl Iterator<Item = NewRow> {
        (0..self.len() as u32).map(|index| NewRow {
            batch: Arc::clone(self),
            index,
        })
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.rows.memory_bytes()
    }
}

impl NewRow {
    /// Its key.
    pub fn key(&self) -> &[u8] {
        self.batch.keys.get(self.index as usize)
    }

    /// The bytes it takes in total.
    pub fn bytes(&self) -> &[u8] {
        self.batch.rows.get(self.index as usize)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.batch, &other.batch)
    }
}

impl Entry {
    /// Where the row of a key would stand, seen from the entry.
    fn compare(&self, position: u64, key: &[u8]) -> Ordering {
        self.position.cmp(&position).then_with(|| match &self.row {
            Some(row) => row.key().cmp(key),
            None => Ordering::Greater,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_same_row = match (&self.row, &other.row) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            _ => false,
        };
        self.position == other.position && is_same_row
    }
}

impl Change {
    fn order(&self) -> (u64, Option<&[u8]>) {
        match self {
            Self::Insert(position, row) | Self::Withdraw(position, row) => {
                (*position, Some(row.key()))
            }
            Self::Delete(position) => (*position, None),
        }
    }

    /// Where it stands, seen from an entry.
    fn seen_from(&self, entry: &Entry) -> Ordering {
        match self.order() {
            (position, Some(key)) => entry.compare(position, key),
            (position, None) => entry.position.cmp(&position).then_with(|| match entry.row {
                Some(_) => Ordering::Less,
                None => Ordering::Equal,
            }),
        }
    }

    /// The order in which [`ProjectionChanges::apply`] takes changes.
    pub fn compare(&self, other: &Self) -> Ordering {
        let ((position, key), (other_position, other_key)) = (self.order(), other.order());
        position
            .cmp(&other_position)
            .then_with(|| match (key, other_key) {
                (Some(key), Some(other_key)) => key.cmp(other_key),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => Ordering::Equal,
            })
    }
}

impl ProjectionChanges {
    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.root.inserted + self.root.deleted
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.root.chunks.is_empty()
    }

    /// Number of new rows.
    pub fn inserted(&self) -> u64 {
        self.root.inserted
    }

    /// Number of rows of the file that are gone.
    pub fn deleted(&self) -> u64 {
        self.root.deleted
    }

    /// Whether both are one and the same.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// What tells them from others.
    pub(crate) fn identity(&self) -> ChangesIdentity {
        ChangesIdentity(Arc::downgrade(&self.root))
    }

    /// All entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.root.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The entries whose positions are in a range.
    pub fn within(&self, positions: Range<u64>) -> impl Iterator<Item = &Entry> {
        self.from(positions.start)
            .take_while(move |entry| entry.position < positions.end)
    }

    /// The entries from a position on.
    fn from(&self, position: u64) -> impl Iterator<Item = &Entry> {
        let is_before = move |entry: &Entry| entry.position < position;
        let chunks = &self.root.chunks;
        let first = chunks.partition_point(|chunk| chunk.last().is_some_and(is_before));
        let rest = chunks[first..].iter().flat_map(|chunk| chunk.iter());
        rest.skip_while(move |entry| is_before(entry))
    }

    /// Whether a row of the file is gone.
    pub fn is_deleted(&self, row: u64) -> bool {
        // It stands behind the new rows of its position, of which there may be many.
        let is_until = |entry: &Entry| entry.position <= row;
        let chunks = &self.root.chunks;
        let until = chunks.partition_point(|chunk| chunk.first().is_some_and(is_until));
        let last = chunks[..until].last().and_then(|chunk| {
            let until = chunk.partition_point(is_until);
            chunk[..until].last()
        });
        last.is_some_and(|last| last.position == row && last.row.is_none())
    }

    /// The entries from where the new row with a key would stand, of which `position` rows of the
    /// file come before.
    pub fn from_key<'a>(
        &'a self,
        position: u64,
        key: &[u8],
    ) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let is_before = |entry: &Entry| entry.compare(position, key).is_lt();
        let chunks = &self.root.chunks;
        let first = chunks.partition_point(|chunk| chunk.last().is_some_and(is_before));
        let within = chunks
            .get(first)
            .map_or(0, |chunk| chunk.partition_point(is_before));
        let rest = chunks[first..].iter().flat_map(|chunk| chunk.iter());
        rest.skip(within)
    }

    /// The new rows whose keys are not less than one and less than another, ascending, each with
    /// its position. At least `position` rows of the file come before them. To find the first costs
    /// a binary search.
    pub fn new_between<'a>(
        &'a self,
        position: u64,
        least: &[u8],
        end: Option<&'a [u8]>,
    ) -> impl Iterator<Item = (u64, &'a NewRow)> + use<'a> {
        let new = self.from_key(position, least);
        let new = new.filter_map(|entry| Some((entry.position, entry.row.as_ref()?)));
        new.take_while(move |(_, row)| end.is_none_or(|end| row.key() < end))
    }

    /// The new row with a key, of which `position` rows of the file come before.
    pub fn find(&self, position: u64, key: &[u8]) -> Option<&NewRow> {
        let chunks = &self.root.chunks;
        let is_before = |entry: &Entry| entry.compare(position, key).is_lt();
        let chunk =
            chunks.get(chunks.partition_point(|chunk| chunk.last().is_some_and(is_before)))?;
        let entry = &chunk[chunk.partition_point(is_before)];
        match entry.compare(position, key) {
            Ordering::Equal => entry.row.as_ref(),
            _ => None,
        }
    }

    /// Applies changes sorted by [`Change::compare`], no two of them equal; returns the result.
    /// What goes must be there.
    pub fn apply(&self, changes: &[Change]) -> Self {
        debug_assert!(changes.is_sorted_by(|one, other| one.compare(other).is_lt()));
        let mut chunks = Vec::with_capacity(self.root.chunks.len() + 1);
        let (mut inserted, mut deleted) = (self.root.inserted, self.root.deleted);
        for change in changes {
            match change {
                Change::Insert(..) => inserted += 1,
                Change::Delete(_) => deleted += 1,
                Change::Withdraw(..) => inserted -= 1,
            }
        }
        let mut rest = changes;
        let mut old = self.root.chunks.iter().peekable();
        while let Some(chunk) = old.next() {
            let own = match old.peek().and_then(|next| next.first()) {
                Some(next) => rest.partition_point(|change| change.seen_from(next).is_gt()),
                None => rest.len(),
            };
            let (own, behind) = rest.split_at(own);
            rest = behind;
            match own.is_empty() {
                true => chunks.push(Arc::clone(chunk)),
                false => push_chunks(merge(chunk, own), &mut chunks),
            }
        }
        if !rest.is_empty() {
            push_chunks(merge(&[], rest), &mut chunks);
        }
        let root = Root {
            chunks,
            inserted,
            deleted,
        };
        Self {
            root: Arc::new(root),
        }
    }

    /// The entries that came since an earlier state over the same file, and the new rows that went.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> (Vec<&'a Entry>, Vec<&'a NewRow>) {
        let (mut came, mut went) = (Vec::new(), Vec::new());
        let (now, before) = (&self.root.chunks, &earlier.root.chunks);
        let (mut now, mut before) = (Walk::of(now), Walk::of(before));
        loop {
            if now.skip_shared(&mut before) {
                continue;
            }
            match (now.entry(), before.entry()) {
                (Some(new), Some(old)) if new.is_same(old) => {
                    now.step();
                    before.step();
                }
                (Some(new), Some(old)) => match is_before(old, new) {
                    true => {
                        went.extend(old.row.as_ref());
                        before.step();
                    }
                    false => {
                        came.push(new);
                        now.step();
                    }
                },
                (Some(new), None) => {
                    came.push(new);
                    now.step();
                }
                (None, Some(old)) => {
                    went.extend(old.row.as_ref());
                    before.step();
                }
                (None, None) => return (came, went),
            }
        }
    }
}

/// Whether the first entry comes first. One with the key of another that took its place is before
/// it.
fn is_before(one: &Entry, other: &Entry) -> bool {
    match &one.row {
        Some(row) => other.compare(one.position, row.key()).is_ge(),
        None => one.position < other.position,
    }
}

/// A place in a list of chunks.
struct Walk<'a> {
    chunks: &'a [Arc<[Entry]>],
    within: usize,
}

impl<'a> Walk<'a> {
    fn of(chunks: &'a [Arc<[Entry]>]) -> Self {
        Self { chunks, within: 0 }
    }

    fn entry(&self) -> Option<&'a Entry> {
        self.chunks.first().and_then(|chunk| chunk.get(self.within))
    }

    fn step(&mut self) {
        self.within += 1;
        if self
            .chunks
            .first()
            .is_some_and(|chunk| chunk.len() == self.within)
        {
            self.chunks = &self.chunks[1..];
            self.within = 0;
        }
    }

    /// Passes over a chunk that both have.
    fn skip_shared(&mut self, other: &mut Self) -> bool {
        match (self.chunks.split_first(), other.chunks.split_first()) {
            (Some((one, rest)), Some((two, other_rest)))
                if self.within == 0 && other.within == 0 && Arc::ptr_eq(one, two) =>
            {
                self.chunks = rest;
                other.chunks = other_rest;
                true
            }
            _ => false,
        }
    }
}

/// A chunk after changes that all stand in it.
fn merge(chunk: &[Entry], changes: &[Change]) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(chunk.len() + changes.len());
    let mut rest = chunk;
    for change in changes {
        let before = rest.partition_point(|entry| change.seen_from(entry).is_lt());
        let (kept, behind) = rest.split_at(before);
        merged.extend_from_slice(kept);
        rest = behind;
        match change {
            Change::Insert(position, row) => merged.push(Entry {
                position: *position,
                row: Some(row.clone()),
            }),
            Change::Delete(position) => merged.push(Entry {
                position: *position,
                row: None,
            }),
            Change::Withdraw(..) => {
                debug_assert!(
                    rest.first()
                        .is_some_and(|entry| change.seen_from(entry).is_eq())
                );
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    merged.extend_from_slice(rest);
    merged
}

/// Appends entries as chunks of even lengths.
fn push_chunks(entries: Vec<Entry>, chunks: &mut Vec<Arc<[Entry]>>) {
    if entries.is_empty() {
        return;
    }
    let pieces = entries.len().div_ceil(CHUNK_ENTRIES_MAX);
    let length = entries.len().div_ceil(pieces);
    let mut entries = entries.into_iter();
    for _ in 0..pieces {
        let chunk: Arc<[Entry]> = entries.by_ref().take(length).collect();
        if !chunk.is_empty() {
            chunks.push(chunk);
        }
    }
}

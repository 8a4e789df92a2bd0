//! Counts of a pattern's rows by key, from the list lengths of an adjacency.
//!
//! Against runs that are merged this is for few keys that lie far apart among many rows: a leap
//! searches the permutation and decodes a window of rows, a look-up touches one line of memory.
//! Keys that changes touch are counted in the permutation.
//!
//! After a key without values comes the next one that has some, so keys that lie between two of the
//! adjacency's are not looked at. Where changes touch keys, the adjacency does not know which that
//! is: then, after some misses, the permutation is searched.

use std::ops::Bound;
use std::sync::Arc;

use orrery_storage::adjacency::Touched;
use orrery_storage::{Adjacency, Cursor, Result, RowRange};
use orrery_term::TermId;

use super::source::{CountedRows, RunSource};
use crate::context::QueryContext;

/// From so many rows a key on keys count as look-ups that miss an adjacency; with fewer, merging
/// reads about what building it would read.
const ROWS_PER_KEY_MIN: u64 = if cfg!(test) { 0 } else { 8 };

/// After so many keys without values the next one that has some is searched in the permutation; a
/// search costs about as much as so many look-ups.
const MISSES_MAX: u32 = 16;

/// How many values each key has; see the module's documentation.
pub(super) struct Lists {
    adjacency: Arc<Adjacency>,
    touched: Touched,
    cursor: Cursor,
    predicate: TermId,
    /// The values of the last key that was leapt to.
    rows: u64,
    /// The key that was found last in the permutation.
    found: Vec<u64>,
    /// Keys without values since the last that has some, or the last search.
    misses: u32,
    /// Keys that were looked up in memory.
    looked_up: usize,
}

impl Lists {
    /// The lists of a pattern, if they are in memory by now and it is of one predicate; up to
    /// `keys` will be looked up, and it has so many rows.
    pub(super) fn find(
        context: &QueryContext,
        source: &RunSource,
        keys: u64,
        rows: u64,
    ) -> Result<Option<Self>> {
        let (index, &[predicate], CountedRows::All) =
            (&source.index, source.prefix.as_slice(), source.counted)
        else {
            return Ok(None);
        };
        let Some(slot) = index.adjacency_slot(predicate)? else {
            return Ok(None);
        };
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let missed = match (keys as u64).saturating_mul(ROWS_PER_KEY_MIN) <= rows {
            true => keys,
            false => 0,
        };
        let adjacencies = context.adjacencies();
        let found = adjacencies.find(&slot, (index, predicate), missed, context.workers());
        let Some(adjacency) = found else {
            return Ok(None);
        };
        Ok(Some(Self {
            adjacency,
            touched: index.touched(predicate, keys)?,
            cursor: index.cursor(),
            predicate,
            rows: 0,
            found: Vec::new(),
            misses: 0,
            looked_up: 0,
        }))
    }

    /// The rows of the key that was leapt to.
    #[inline]
    pub(super) fn run_rows(&self) -> u64 {
        self.rows
    }

    /// Keys that were looked up in memory so far.
    pub(super) fn looked_up(&self) -> usize {
        self.looked_up
    }

    /// The key, if it has values; else one after it, not behind the next that has some. Nothing
    /// behind the last id.
    #[inline]
    pub(super) fn leap_to(&mut self, key: u64) -> Result<Option<u64>> {
        self.rows = match self.touched.is_empty() || !self.touched.contains(key)? {
            true => {
                self.looked_up += 1;
                let rank = self.adjacency.rank(key);
                rank.map_or(0, |rank| self.adjacency.positions(rank).len() as u64)
            }
            false => {
                let row = [self.predicate, TermId::from_bits(key)];
                self.cursor.seek(&row)?.len()
            }
        };
        if self.rows > 0 {
            self.misses = 0;
            return Ok(Some(key));
        }
        match key.checked_add(1) {
            Some(after) => self.key_from(after),
            None => Ok(None),
        }
    }

    /// From where on there may be values, none before.
    fn key_from(&mut self, key: u64) -> Result<Option<u64>> {
        if self.touched.is_empty() {
            return Ok(self.adjacency.key_from(key));
        }
        self.misses += 1;
        if self.misses < MISSES_MAX {
            return Ok(Some(key));
        }
        self.misses = 0;
        let low = Bound::Included(TermId::from_bits(key));
        let rows = self
            .cursor
            .seek_between(&[self.predicate], low, Bound::Unbounded)?;
        if rows.is_empty() {
            return Ok(None);
        }
        self.found.clear();
        let first = RowRange::new(rows.start, rows.start + 1);
        self.cursor.read(first, 1, &mut self.found)?;
        Ok(self.found.first().copied())
    }
}

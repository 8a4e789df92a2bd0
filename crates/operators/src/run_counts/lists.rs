//! The rows of a pattern by its key, where the adjacency of its predicate is in memory: lengths of lists, two or three loads each.
//!
//! Against runs that are merged this is for few keys that lie far apart among many rows: a leap searches the permutation and decodes a
//! window of rows, a look-up touches one line of memory. Keys that changes touch are counted in the permutation.

use std::sync::Arc;

use orrery_storage::adjacency::Touched;
use orrery_storage::{Adjacency, Cursor, IndexView, Result};
use orrery_term::TermId;

use crate::context::QueryContext;

/// From so many rows a key on keys count as look-ups that miss an adjacency; with fewer, merging reads about what building it would read.
const ROWS_PER_KEY_MIN: u64 = if cfg!(test) { 0 } else { 8 };

/// How many values each key has; see the module's documentation.
pub(super) struct Lists {
    adjacency: Arc<Adjacency>,
    touched: Touched,
    cursor: Cursor,
    predicate: TermId,
    /// The values of the last key that was leapt to.
    rows: u64,
    /// Keys that were looked up in memory.
    looked_up: usize,
}

impl Lists {
    /// The lists of a pattern, if they are in memory by now and it is of one predicate; up to `keys` will be looked up, and it has so many rows.
    pub(super) fn find(
        context: &QueryContext,
        (index, prefix): &(IndexView, Vec<TermId>),
        keys: u64,
        rows: u64,
    ) -> Result<Option<Self>> {
        let &[predicate] = prefix.as_slice() else {
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

    /// The key, if it has values; else the one after it, which may be the next that has some. Nothing behind the last id.
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
        match self.rows {
            0 => Ok(key.checked_add(1)),
            _ => Ok(Some(key)),
        }
    }
}

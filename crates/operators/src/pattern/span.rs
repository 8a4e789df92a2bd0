//! Dense keys: one stretch of the permutation, read as a whole and merged with the keys.
//!
//! A look-up costs some tens of nanoseconds, decoding a row about one. So when the sorted keys
//! of a chunk lie close together, everything between the first and the last is read once, and
//! look-ups become steps through an array. On BSBM (284,820 reviews joined with their types) a row costs
//! 12 ns this way.

use std::ops::Bound;

use datafusion_common::Result;
use orrery_term::TermId;

use super::expansion::Cursors;
use super::program::{Key, StepProgram};
use crate::solutions::storage_error;

/// Fewer keys are looked up one by one. (The random databases of the tests are small.)
const KEYS_MIN: usize = if cfg!(test) { 2 } else { 32 };
/// Up to so many rows per key the stretch is read as a whole.
const ROWS_PER_KEY_MAX: u64 = 40;
/// The longest stretch: 8 MB a column.
const ROWS_MAX: u64 = 1 << 20;

/// A stretch of the permutation that holds the matches of all keys of a chunk.
pub(super) struct Span {
    /// The key column.
    keys: Vec<u64>,
    /// The columns that the step reads.
    columns: Vec<Vec<u64>>,
    /// The key to go on with, and how many of its matches were given out.
    next_key: usize,
    offset: usize,
    /// The rows that the last key found has.
    current_key: Option<u64>,
    start: usize,
    end: usize,
}

impl Span {
    /// Reads the stretch for these ascending keys, if it is short enough. The key must be the last column of
    /// the prefix, with constants before it.
    pub(super) fn read(
        program: &StepProgram,
        cursors: &mut Cursors,
        keys: &[u64],
    ) -> Result<Option<Self>> {
        let (Some((Key::Column(_), constants)), None) =
            (program.prefix.split_last(), &program.between)
        else {
            return Ok(None);
        };
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
            return Ok(None);
        };
        if keys.len() < KEYS_MIN || constants.len() == 3 {
            return Ok(None);
        }
        let mut prefix = [TermId::MIN; 4];
        for (slot, key) in prefix.iter_mut().zip(constants) {
            match key {
                Key::Constant(term) => *slot = *term,
                Key::Column(_) => return Ok(None),
            }
        }
        let low = Bound::Included(TermId::from_bits(first));
        let high = Bound::Included(TermId::from_bits(last));
        let rows = cursors
            .seeker
            .seek_between(&prefix[..constants.len()], low, high)
            .map_err(storage_error)?;
        if rows.len() > ROWS_MAX.min(keys.len() as u64 * ROWS_PER_KEY_MAX) {
            return Ok(None);
        }
        let mut read = |column: usize| -> Result<Vec<u64>> {
            let mut values = Vec::new();
            let reader = &mut cursors.reader;
            reader
                .read(rows, column, &mut values)
                .map_err(storage_error)?;
            Ok(values)
        };
        Ok(Some(Self {
            keys: read(constants.len())?,
            columns: program
                .reads
                .iter()
                .map(|&column| read(column))
                .collect::<Result<_>>()?,
            next_key: 0,
            offset: 0,
            current_key: None,
            start: 0,
            end: 0,
        }))
    }

    /// Merges further keys with the stretch: for each match the number of the key and the row in the stretch,
    /// until there are about `limit`. Whether all keys are done.
    pub(super) fn merge(
        &mut self,
        keys: &[u64],
        limit: usize,
        first_match_only: bool,
        mut is_skipped: impl FnMut(usize) -> bool,
        matches: &mut Matches,
    ) -> bool {
        while let Some(&key) = keys.get(self.next_key) {
            if matches.keys.len() >= limit {
                return false;
            }
            if self.current_key != Some(key) {
                self.current_key = Some(key);
                self.find(key);
            }
            if !is_skipped(self.next_key) {
                let mut rows = self.start + self.offset..self.end;
                if first_match_only {
                    rows.end = rows.end.min(rows.start + 1);
                }
                let room = limit - matches.keys.len();
                let taken = rows.len().min(room);
                if taken == 1 {
                    // By far the most frequent case, and worth a push without a loop.
                    matches.keys.push(self.next_key as u32);
                    matches.rows.push(rows.start as u32);
                } else {
                    matches
                        .keys
                        .extend(std::iter::repeat_n(self.next_key as u32, taken));
                    matches
                        .rows
                        .extend((rows.start..rows.start + taken).map(|row| row as u32));
                }
                if taken < rows.len() {
                    self.offset += taken;
                    return false;
                }
            }
            self.offset = 0;
            self.next_key += 1;
        }
        true
    }

    /// The rows with this key, which is above all keys before.
    #[inline]
    fn find(&mut self, key: u64) {
        let mut row = self.end;
        while row < self.keys.len() && self.keys[row] < key {
            row += 1;
        }
        self.start = row;
        while row < self.keys.len() && self.keys[row] == key {
            row += 1;
        }
        self.end = row;
    }

    /// A column that the step reads, at these rows of the stretch.
    pub(super) fn column(&self, read: usize, rows: &[u32]) -> Vec<u64> {
        let column = &self.columns[read];
        rows.iter().map(|&row| column[row as usize]).collect()
    }
}

/// Matches found in a stretch.
#[derive(Default)]
pub(super) struct Matches {
    /// Positions of keys.
    pub(super) keys: Vec<u32>,
    /// Rows of the stretch.
    pub(super) rows: Vec<u32>,
}

//! The runs of one pattern: where equal values stand together in the column after its constants, and how many rows each has.
//!
//! The column is read in windows, which grow as long as it is read in sequence; a run longer than a window is jumped over by one search, and so
//! are the values below the one that is leapt to.

use std::ops::Bound;

use orrery_storage::{Cursor, IndexView, Permutation, RowRange};
use orrery_term::TermId;

/// Rows of the column that are read at a time; a run that fills them is jumped over.
const WINDOW_ROWS: u64 = 4_096;
/// Rows that are read first after a leap to another value.
const FIRST_WINDOW_ROWS: u64 = 64;

/// The runs of equal values in the column after a prefix.
pub(super) struct Runs {
    cursor: Cursor,
    prefix: Vec<TermId>,
    /// Rows that are in no known run yet; they begin with a run.
    rest: RowRange,
    window: Vec<u64>,
    window_rows: u64,
    /// Known runs: values and numbers of rows.
    known: Vec<(u64, u64)>,
    /// The one of them at which it stands.
    at: usize,
}

impl Runs {
    pub(super) fn new(index: &IndexView, prefix: Vec<TermId>) -> orrery_storage::Result<Self> {
        let mut rest = index.range(&prefix)?;
        if index.permutation() == Permutation::Gspo {
            // The default graph, which has no name, comes first.
            let unnamed = index.range(&[TermId::DEFAULT_GRAPH])?;
            rest.start = rest.start.max(unnamed.end);
        }
        Ok(Self {
            rest,
            cursor: index.cursor(),
            prefix,
            window: Vec::new(),
            window_rows: FIRST_WINDOW_ROWS,
            known: Vec::new(),
            at: 0,
        })
    }

    /// Rows that are in no known run yet; before it begins, all.
    pub(super) fn rows(&self) -> u64 {
        self.rest.len()
    }

    /// The value of the run at which it stands, `None` behind the last.
    #[inline]
    pub(super) fn key(&mut self) -> orrery_storage::Result<Option<u64>> {
        if self.at == self.known.len() && !self.read_window()? {
            return Ok(None);
        }
        Ok(Some(self.known[self.at].0))
    }

    /// The rows of the run at which it stands.
    #[inline]
    pub(super) fn run_rows(&self) -> u64 {
        self.known.get(self.at).map_or(0, |(_, rows)| *rows)
    }

    /// Goes on to the next run.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.at += 1;
    }

    /// Goes on to the first run whose value is not below `key`; gives its value.
    #[inline]
    pub(super) fn leap_to(&mut self, key: u64) -> orrery_storage::Result<Option<u64>> {
        while let Some((found, _)) = self.known.get(self.at) {
            if *found >= key {
                return Ok(Some(*found));
            }
            self.at += 1;
        }
        if !self.read_window()? {
            return Ok(None);
        }
        if self.known.last().is_some_and(|(last, _)| *last < key) {
            self.seek(key)?;
            if !self.read_window()? {
                return Ok(None);
            }
        }
        let from_here = &self.known[self.at..];
        self.at += from_here.partition_point(|(found, _)| *found < key);
        // The window was long enough, or begins at the key.
        self.key()
    }

    /// Leaves out the rows with values below `key`.
    fn seek(&mut self, key: u64) -> orrery_storage::Result<()> {
        let key = Bound::Included(TermId::from_bits(key));
        let rows = self
            .cursor
            .seek_between(&self.prefix, key, Bound::Unbounded)?;
        self.rest.start = self.rest.start.max(rows.start).min(self.rest.end);
        self.at = self.known.len();
        self.window_rows = FIRST_WINDOW_ROWS;
        Ok(())
    }

    /// Makes further runs known, unless there are none.
    fn read_window(&mut self) -> orrery_storage::Result<bool> {
        self.known.clear();
        self.at = 0;
        if self.rest.is_empty() {
            return Ok(false);
        }
        let start = self.rest.start;
        let end = self.rest.end.min(start + self.window_rows);
        self.window_rows = (self.window_rows * 2).min(WINDOW_ROWS);
        self.window.clear();
        let column = self.prefix.len();
        self.cursor
            .read(RowRange::new(start, end), column, &mut self.window)?;
        let mut run_start = 0;
        for row in 1..self.window.len() {
            if self.window[row] != self.window[row - 1] {
                let rows = (row - run_start) as u64;
                self.known.push((self.window[run_start], rows));
                run_start = row;
            }
        }
        let last = self.window[run_start];
        self.rest.start = start + run_start as u64;
        if end == self.rest.end {
            self.known.push((last, end - self.rest.start));
            self.rest.start = end;
        } else if run_start == 0 {
            self.prefix.push(TermId::from_bits(last));
            let run = self.cursor.seek(&self.prefix);
            self.prefix.pop();
            let run_end = run?.end.clamp(end, self.rest.end);
            self.known.push((last, run_end - start));
            self.rest.start = run_end;
        }
        Ok(true)
    }
}

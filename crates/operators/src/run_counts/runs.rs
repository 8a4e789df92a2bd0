//! The runs of one pattern: equal values of the column after its constants, and their lengths.
//!
//! The column is read in windows, which grow as long as it is read in sequence; a run longer than a
//! window is jumped over by one search, and so are the values below the one that is leapt to. Where
//! not all rows count, the columns behind are read beside it, also those of a long run, and a value
//! without a row that counts is none. No call reads more than the [`Turn`] allows, whatever it
//! finds: it says [`Reached::Later`], and goes on where it was when it is asked again.

use std::ops::Bound;

use orrery_storage::{Cursor, Permutation, RowRange};
use orrery_term::TermId;

use super::source::{CountedRows, RunSource};

/// Rows of the column that are read at a time; a run that fills them is jumped over.
const WINDOW_ROWS: u64 = 4_096;
/// Where permutations that do not begin with the graph have it.
const GRAPH_COLUMN: usize = 3;
/// Rows that are read first after a leap to another value.
const FIRST_WINDOW_ROWS: u64 = 64;
/// Rows that are read in one turn: a millisecond or two of reading in sequence, some thousand
/// leaps.
const ROWS_PER_TURN: u64 = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// What may still be read before others get their turn.
#[derive(Debug)]
pub(super) struct Turn {
    rows_left: u64,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self {
            rows_left: ROWS_PER_TURN,
        }
    }

    /// Whether there is none left.
    fn is_over(&self) -> bool {
        self.rows_left == 0
    }

    fn take(&mut self, rows: u64) {
        self.rows_left = self.rows_left.saturating_sub(rows.max(FIRST_WINDOW_ROWS));
    }
}

/// How far one came in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Key(u64),
    /// The turn is over.
    Later,
    End,
}

/// A run longer than a window of which the rows that count are being counted.
#[derive(Debug)]
struct LongRun {
    key: u64,
    /// Rows that are not counted yet.
    rest: RowRange,
    counted: u64,
}

/// The runs of equal values in the column after a prefix.
pub(super) struct Runs {
    cursor: Cursor,
    prefix: Vec<TermId>,
    /// Rows that are in no known run yet; they begin with a run.
    rest: RowRange,
    window: Vec<u64>,
    window_rows: u64,
    counted: CountedRows,
    /// The columns of the window by which it is told which rows count.
    beside: Vec<Vec<u64>>,
    /// The run at the beginning of the rest, if it is one to be counted row by row.
    long: Option<LongRun>,
    /// Known runs: values and numbers of rows.
    known: Vec<(u64, u64)>,
    /// The one of them at which it stands.
    at: usize,
}

impl Runs {
    pub(super) fn new(source: &RunSource) -> orrery_storage::Result<Self> {
        let RunSource {
            index,
            prefix,
            counted,
        } = source;
        let mut rest = index.range(prefix)?;
        if index.permutation() == Permutation::Gspo {
            // The default graph, which has no name, comes first.
            let unnamed = index.range(&[TermId::DEFAULT_GRAPH])?;
            rest.start = rest.start.max(unnamed.end);
        }
        Ok(Self {
            rest,
            cursor: index.cursor(),
            prefix: prefix.clone(),
            window: Vec::new(),
            window_rows: FIRST_WINDOW_ROWS,
            counted: *counted,
            beside: Vec::new(),
            long: None,
            known: Vec::new(),
            at: 0,
        })
    }

    /// Rows that are in no known run yet; before it begins, all.
    pub(super) fn rows(&self) -> u64 {
        self.rest.len()
    }

    /// The value of the run at which it stands.
    #[inline]
    pub(super) fn key(&mut self, turn: &mut Turn) -> orrery_storage::Result<Reached> {
        if self.at == self.known.len() {
            return self.read_window(0, turn);
        }
        Ok(Reached::Key(self.known[self.at].0))
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
    pub(super) fn leap_to(&mut self, key: u64, turn: &mut Turn) -> orrery_storage::Result<Reached> {
        while let Some((found, _)) = self.known.get(self.at) {
            if *found >= key {
                return Ok(Reached::Key(*found));
            }
            self.at += 1;
        }
        self.read_to(key, turn)
    }

    /// Makes the first run whose value is not below `key` known.
    fn read_to(&mut self, key: u64, turn: &mut Turn) -> orrery_storage::Result<Reached> {
        let reached = self.read_window(key, turn)?;
        let Reached::Key(_) = reached else {
            return Ok(reached);
        };
        if self.known.last().is_some_and(|(last, _)| *last < key) {
            self.seek(key)?;
            // From here on the values are not below the key.
            return self.read_window(key, turn);
        }
        let from_here = &self.known[self.at..];
        self.at += from_here.partition_point(|(found, _)| *found < key);
        self.key(turn)
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

    /// Makes further runs known, and gives the value of the first; long ones with values below
    /// `wanted` need not be.
    fn read_window(&mut self, wanted: u64, turn: &mut Turn) -> orrery_storage::Result<Reached> {
        self.known.clear();
        self.at = 0;
        loop {
            if let Some((first, _)) = self.known.first() {
                return Ok(Reached::Key(*first));
            }
            if self.long.is_none() && self.rest.is_empty() {
                return Ok(Reached::End);
            }
            if turn.is_over() {
                return Ok(Reached::Later);
            }
            match self.long.take() {
                Some(long) if long.key >= wanted => self.count_on(long, turn)?,
                Some(_) => {}
                None => {
                    self.read_runs(wanted, turn)?;
                    let is_below = self.window.last().is_some_and(|last| *last < wanted);
                    if self.known.is_empty() && is_below {
                        self.seek(wanted)?;
                    }
                }
            }
        }
    }

    /// Reads a window, and makes those of its runs known that have rows which count.
    fn read_runs(&mut self, wanted: u64, turn: &mut Turn) -> orrery_storage::Result<()> {
        let start = self.rest.start;
        let end = self.rest.end.min(start + self.window_rows);
        self.window_rows = (self.window_rows * 2).min(WINDOW_ROWS);
        self.window.clear();
        let column = self.prefix.len();
        self.cursor
            .read(RowRange::new(start, end), column, &mut self.window)?;
        self.read_beside(RowRange::new(start, end))?;
        turn.take(end - start);
        let mut run_start = 0;
        for row in 1..self.window.len() {
            if self.window[row] != self.window[row - 1] {
                self.know(self.window[run_start], self.counted_among(run_start, row));
                run_start = row;
            }
        }
        let last = self.window[run_start];
        self.rest.start = start + run_start as u64;
        if end == self.rest.end {
            self.know(last, self.counted_among(run_start, self.window.len()));
            self.rest.start = end;
        } else if run_start == 0 {
            self.prefix.push(TermId::from_bits(last));
            let run = self.cursor.seek(&self.prefix);
            self.prefix.pop();
            let run_end = run?.end.clamp(end, self.rest.end);
            self.rest.start = run_end;
            if self.counted == CountedRows::All {
                self.know(last, run_end - start);
            } else if last >= wanted {
                self.long = Some(LongRun {
                    key: last,
                    rest: RowRange::new(start, run_end),
                    counted: 0,
                });
            }
        }
        Ok(())
    }

    fn know(&mut self, key: u64, rows: u64) {
        if rows > 0 {
            self.known.push((key, rows));
        }
    }

    /// Reads what tells which rows of a range count.
    fn read_beside(&mut self, rows: RowRange) -> orrery_storage::Result<()> {
        let columns = match self.counted {
            CountedRows::All => return Ok(()),
            CountedRows::Triples => self.prefix.len() + 1..GRAPH_COLUMN,
            CountedRows::InGraph(_) | CountedRows::InNamedGraphs => GRAPH_COLUMN..GRAPH_COLUMN + 1,
        };
        self.beside.resize(columns.len(), Vec::new());
        for (column, values) in columns.zip(&mut self.beside) {
            values.clear();
            self.cursor.read(rows, column, values)?;
        }
        Ok(())
    }

    /// How many rows of a run in the window count, the first and the one after the last given.
    fn counted_among(&self, start: usize, end: usize) -> u64 {
        let counted = match self.counted {
            CountedRows::All => end - start,
            CountedRows::Triples => {
                let is_new = |row: &usize| self.beside.iter().any(|it| it[*row] != it[*row - 1]);
                1 + (start + 1..end).filter(is_new).count()
            }
            CountedRows::InGraph(graph) => self.graphs_that(start, end, |it| it == graph.bits()),
            CountedRows::InNamedGraphs => {
                let unnamed = TermId::DEFAULT_GRAPH.bits();
                self.graphs_that(start, end, |it| it != unnamed)
            }
        };
        counted as u64
    }

    fn graphs_that(&self, start: usize, end: usize, is_counted: impl Fn(u64) -> bool) -> usize {
        let graphs = self.beside.first();
        let graphs = graphs.and_then(|graphs| graphs.get(start..end));
        let graphs = graphs.unwrap_or_default().iter();
        graphs.filter(|graph| is_counted(**graph)).count()
    }

    /// Counts a window's rows of a run that is longer; it is known when it is counted.
    fn count_on(&mut self, mut long: LongRun, turn: &mut Turn) -> orrery_storage::Result<()> {
        let RowRange { start, end } = long.rest;
        let to = end.min(start + WINDOW_ROWS);
        // Whether a row is a triple's first is told by the row before; the first of all is one.
        let before = u64::from(self.counted == CountedRows::Triples && long.counted > 0);
        self.read_beside(RowRange::new(start - before, to))?;
        turn.take(to - start);
        let rows = usize::try_from(to - start + before).unwrap_or(usize::MAX);
        long.counted += self.counted_among(0, rows) - before;
        long.rest.start = to;
        match to < end {
            true => self.long = Some(long),
            false => self.know(long.key, long.counted),
        }
        Ok(())
    }
}

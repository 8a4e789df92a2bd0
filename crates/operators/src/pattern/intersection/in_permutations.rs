//! An intersection over permutations: blocks of rows, whose ranges are read or probed.

use datafusion_common::{DataFusionError, Result};
use orrery_storage::RowRange;

use super::super::chunk::Chunk;
use super::super::program::{IntersectionProgram, StepProgram};
use super::super::steps::cursors::Cursors;
use super::lists::{SideKeys, retain_common};
use super::matches::{IntersectionMatches, chunk_of, retain_within};
use super::probes::Probes;

/// Candidates of a block, at least: with tiny chunks a call must still get somewhere.
const CANDIDATES_MIN: usize = if cfg!(test) { 4 } else { 256 };

/// The work of an intersection on one chunk.
pub(in super::super) struct Intersection {
    input: Chunk,
    /// By the number of the side; empty before the first call.
    sides: Vec<SideKeys>,
    /// The rows in the order in which they are done, so that one side's keys ascend.
    order: Option<Vec<u32>>,
    /// How many rows of that order are done.
    next: usize,
    /// Rows of the smallest range that are done, of a row that is done piece by piece.
    offset: u64,
}

/// A row and where its candidates come from.
#[derive(Clone, Copy)]
struct DrivenRow {
    row: u32,
    /// The side with the smallest range.
    driver: usize,
}

/// What is done at once.
enum RowBlock {
    /// Rows with the whole of their smallest ranges.
    Rows(Vec<DrivenRow>),
    /// A part of the smallest range of one row.
    Piece(DrivenRow, RowRange),
}

impl Intersection {
    pub(in super::super) fn new(input: Chunk) -> Self {
        Self {
            input,
            sides: Vec::new(),
            order: None,
            next: 0,
            offset: 0,
        }
    }

    /// Further matches of about `limit` candidates, before the step's filters. The flag says that
    /// there are no more.
    ///
    /// `cursors` has a pair for each side.
    pub(in super::super) fn advance(
        &mut self,
        program: &StepProgram,
        cursors: &mut [Cursors],
        limit: usize,
        matched: Option<&[bool]>,
        seeks: &mut usize,
    ) -> Result<(Chunk, bool)> {
        let Some(intersection) = &program.intersection else {
            return Err(DataFusionError::Internal(
                "a step of one pattern is no intersection".to_owned(),
            ));
        };
        if self.sides.is_empty() {
            self.look_up_keys(intersection, cursors, seeks)?;
        }
        let numbers = program
            .existence_of
            .map(|column| self.input.columns[column].values().clone());
        let is_skipped = |row: usize| match (&numbers, matched) {
            (Some(numbers), Some(matched)) => matched[numbers[row] as usize],
            _ => false,
        };
        let block = self.take_block(limit.max(CANDIDATES_MIN) as u64, is_skipped);
        let mut work = BlockWork::new(intersection, &mut self.sides, cursors);
        let (matches, part_done) = match block {
            RowBlock::Rows(entries) => (work.rows(&entries)?, None),
            RowBlock::Piece(entry, range) => {
                let (matches, end) = work.piece(entry, range)?;
                (matches, Some((entry, end)))
            }
        };
        *seeks += work.seeks;
        if let Some((entry, end)) = part_done {
            self.advance_in_row(entry, end);
        }
        let is_exhausted = self.next == self.input.rows;
        Ok((chunk_of(&self.input, program, matches)?, is_exhausted))
    }

    /// Finds the ranges of all keys of the chunk.
    fn look_up_keys(
        &mut self,
        program: &IntersectionProgram,
        cursors: &mut [Cursors],
        seeks: &mut usize,
    ) -> Result<()> {
        for (side, cursors) in program.sides.iter().zip(cursors) {
            let (keys, order) = SideKeys::look_up(side, &self.input, &mut cursors.seeker)?;
            *seeks += keys.len();
            self.sides.push(keys);
            if self.order.is_none() {
                self.order = order;
            }
        }
        Ok(())
    }

    /// The next rows whose smallest ranges together have about so many values.
    fn take_block(&mut self, candidates: u64, is_skipped: impl Fn(usize) -> bool) -> RowBlock {
        let mut entries = Vec::new();
        let mut taken = 0;
        while self.next < self.input.rows && taken < candidates {
            let row = match &self.order {
                Some(order) => order[self.next],
                None => self.next as u32,
            };
            let ranges = self.sides.iter().map(|side| side.range(row as usize));
            let smallest = ranges.enumerate().min_by_key(|(_, range)| range.len());
            let Some((driver, range)) = smallest.filter(|(_, range)| !range.is_empty()) else {
                self.next += 1;
                continue;
            };
            if is_skipped(row as usize) {
                self.next += 1;
                self.offset = 0;
                continue;
            }
            let entry = DrivenRow { row, driver };
            if range.len() > candidates || self.offset > 0 {
                if !entries.is_empty() {
                    break;
                }
                let start = range.start + self.offset;
                return RowBlock::Piece(
                    entry,
                    RowRange::new(start, range.end.min(start + candidates)),
                );
            }
            entries.push(entry);
            taken += range.len();
            self.next += 1;
        }
        RowBlock::Rows(entries)
    }

    /// Notes that a row was done up to this row of its smallest range.
    fn advance_in_row(&mut self, entry: DrivenRow, end: u64) {
        let range = self.sides[entry.driver].range(entry.row as usize);
        if end < range.end {
            self.offset = end - range.start;
        } else {
            self.offset = 0;
            self.next += 1;
        }
    }
}

/// The work on one block.
struct BlockWork<'a> {
    program: &'a IntersectionProgram,
    sides: &'a mut [SideKeys],
    cursors: &'a mut [Cursors],
    /// What is to be found in ranges that were not read, by side.
    probes: Vec<Probes>,
    matches: IntersectionMatches,
    seeks: usize,
}

impl<'a> BlockWork<'a> {
    fn new(
        program: &'a IntersectionProgram,
        sides: &'a mut [SideKeys],
        cursors: &'a mut [Cursors],
    ) -> Self {
        Self {
            probes: program.sides.iter().map(|_| Probes::default()).collect(),
            program,
            sides,
            cursors,
            matches: IntersectionMatches::default(),
            seeks: 0,
        }
    }

    /// Rows with the whole of their smallest ranges.
    fn rows(&mut self, entries: &[DrivenRow]) -> Result<IntersectionMatches> {
        for &DrivenRow { row, driver } in entries {
            let candidates = self.sides[driver].range(row as usize).len();
            for (number, side) in self.sides.iter_mut().enumerate() {
                side.want(row as usize, candidates, number == driver);
            }
        }
        for ((side, keys), cursors) in self
            .program
            .sides
            .iter()
            .zip(&mut *self.sides)
            .zip(&mut *self.cursors)
        {
            keys.read_lists(side, &mut cursors.reader)?;
        }
        let mut values = Vec::new();
        for &entry in entries {
            values.clear();
            let list = self.sides[entry.driver].list(entry.row as usize);
            values.extend_from_slice(list.unwrap_or_default());
            self.narrow(entry, &mut values);
        }
        for side in &mut *self.sides {
            side.forget_lists();
        }
        self.settle_probes()
    }

    /// A part of the smallest range of one row, and up to which row of the permutation it was.
    fn piece(&mut self, entry: DrivenRow, range: RowRange) -> Result<(IntersectionMatches, u64)> {
        let side = &self.program.sides[entry.driver];
        let cursors = &mut self.cursors[entry.driver];
        let keys = &self.sides[entry.driver];
        let mut values = Vec::new();
        let end = keys.read_piece(side, entry.row as usize, range, cursors, &mut values)?;
        self.narrow(entry, &mut values);
        Ok((self.settle_probes()?, end))
    }

    /// Keeps the candidates of a row that the lists at hand have; what is left are matches if the
    /// probes find them.
    fn narrow(&mut self, entry: DrivenRow, values: &mut Vec<u64>) {
        if let Some(ranges) = &self.program.ranges {
            retain_within(values, 0, ranges);
        }
        let row = entry.row as usize;
        let others = (0..self.sides.len()).filter(|&side| side != entry.driver);
        for side in others.clone() {
            if let Some(list) = self.sides[side].list(row) {
                retain_common(values, list);
            }
        }
        if values.is_empty() {
            return;
        }
        for side in others {
            let keys = &self.sides[side];
            if keys.list(row).is_none() {
                let first = self.matches.values.len() as u32;
                self.probes[side].add(keys.number(row), first, values);
            }
        }
        self.matches
            .rows
            .extend(std::iter::repeat_n(entry.row, values.len()));
        self.matches.values.extend_from_slice(values);
    }

    /// Drops the matches that some side does not have.
    fn settle_probes(&mut self) -> Result<IntersectionMatches> {
        let mut matches = std::mem::take(&mut self.matches);
        let mut is_missing = Vec::new();
        for (number, probes) in self.probes.iter_mut().enumerate() {
            if !probes.is_empty() {
                is_missing.resize(matches.values.len(), false);
                let (side, keys) = (&self.program.sides[number], &self.sides[number]);
                let cursors = &mut self.cursors[number];
                self.seeks += probes.settle(side, keys, cursors, &mut is_missing)?;
            }
        }
        if is_missing.contains(&true) {
            let mut missing = is_missing.iter();
            matches.rows.retain(|_| missing.next() == Some(&false));
            let mut missing = is_missing.iter();
            matches.values.retain(|_| missing.next() == Some(&false));
        }
        Ok(matches)
    }
}

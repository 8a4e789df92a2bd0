//! An intersection over adjacencies, row by row in the order of the chunk.
//!
//! The smallest list of a row gives the candidates, the others are searched for them. No keys are
//! sorted, no ranges sought, no lists decoded, so it is right for few rows and for many. Rows with
//! a key that changes touch are set aside for the permutations.

use std::ops::Range;

use datafusion_common::Result;

use super::super::chunk::Chunk;
use super::super::program::{AdjacentStep, IntersectionProgram, StepProgram};
use super::super::steps::adjacent::{ColumnOrConstant, WithTouched, aside_of};
use super::matches::{IntersectionMatches, chunk_of, retain_within};
use crate::solutions::storage_error;

/// Candidates of one call, at least.
const CANDIDATES_MIN: usize = 4_096;

/// The work of an intersection on one chunk.
pub(in super::super) struct InMemoryIntersection {
    input: Chunk,
    /// By the number of the side.
    sides: Vec<WithTouched>,
    /// The row to go on with, and how many of its candidates are done.
    next: usize,
    offset: usize,
    /// Rows with touched keys.
    aside: Vec<u32>,
}

impl InMemoryIntersection {
    pub(in super::super) fn new(input: Chunk, sides: Vec<WithTouched>) -> Self {
        Self {
            input,
            sides,
            next: 0,
            offset: 0,
            aside: Vec::new(),
        }
    }

    /// Further matches of about `limit` candidates, before the step's filters. The flag says that
    /// there are no more.
    pub(in super::super) fn advance(
        &mut self,
        program: &StepProgram,
        intersection: &IntersectionProgram,
        limit: usize,
        matched: Option<&[bool]>,
        looked_up: &mut usize,
    ) -> Result<(Chunk, bool)> {
        let keys = intersection.adjacent.iter();
        let keys: Vec<ColumnOrConstant<'_>> = keys.map(|side| side.key_of(&self.input)).collect();
        let numbers = program
            .existence_of
            .map(|column| self.input.columns[column].values());
        let mut matches = IntersectionMatches::default();
        let mut aside = Vec::new();
        let (mut next, mut offset) = (self.next, self.offset);
        let mut lists: Vec<Range<usize>> = Vec::with_capacity(self.sides.len());
        let mut work_left = limit.max(CANDIDATES_MIN);
        while next < self.input.rows && work_left > 0 {
            let row = next;
            work_left -= 1;
            let is_done = match (numbers, matched) {
                (Some(numbers), Some(matched)) => matched[numbers[row] as usize],
                _ => false,
            };
            let of_row = keys.iter().map(|key| key.at(row));
            let is_candidate = !is_done
                && match self.find_lists(of_row, &mut lists)? {
                    ListsOfRow::Found => true,
                    ListsOfRow::Missing => false,
                    ListsOfRow::Touched => {
                        aside.push(row as u32);
                        false
                    }
                };
            *looked_up += keys.len();
            if !is_candidate {
                next += 1;
                offset = 0;
                continue;
            }
            let smallest = lists.iter().enumerate().min_by_key(|(_, list)| list.len());
            let Some((driver, list)) = smallest else {
                next += 1;
                continue;
            };
            let start = list.start + offset;
            let end = list.end.min(start + work_left.max(1));
            let is_row_done = end == list.end;
            work_left = work_left.saturating_sub(end - start);
            let before = matches.values.len();
            self.sides[driver].0.extend(start..end, &mut matches.values);
            self.narrow(intersection, driver, &lists, before, &mut matches.values);
            let found = matches.values.len() - before;
            matches.rows.extend(std::iter::repeat_n(row as u32, found));
            match is_row_done {
                true => {
                    next += 1;
                    offset = 0;
                }
                false => offset += end - start,
            }
        }
        let chunk = chunk_of(&self.input, program, matches)?;
        self.aside.append(&mut aside);
        (self.next, self.offset) = (next, offset);
        let is_exhausted = next == self.input.rows;
        Ok((chunk, is_exhausted))
    }

    /// The rows whose keys are touched.
    pub(in super::super) fn into_aside(self) -> Result<Option<Chunk>> {
        aside_of(&self.input, &self.aside)
    }

    /// Puts the places of the values of each side into `lists`.
    fn find_lists(
        &self,
        keys: impl Iterator<Item = u64>,
        lists: &mut Vec<Range<usize>>,
    ) -> Result<ListsOfRow> {
        lists.clear();
        for ((adjacency, touched), key) in self.sides.iter().zip(keys) {
            if !touched.is_empty() && touched.contains(key).map_err(storage_error)? {
                return Ok(ListsOfRow::Touched);
            }
            match adjacency.rank(key) {
                Some(rank) => lists.push(adjacency.positions(rank)),
                None => return Ok(ListsOfRow::Missing),
            }
        }
        Ok(ListsOfRow::Found)
    }

    /// Keeps the candidates from `before` on that all sides have.
    fn narrow(
        &self,
        intersection: &IntersectionProgram,
        driver: usize,
        lists: &[Range<usize>],
        before: usize,
        values: &mut Vec<u64>,
    ) {
        if let Some(ranges) = &intersection.ranges {
            retain_within(values, before, ranges);
        }
        for (number, ((adjacency, _), list)) in self.sides.iter().zip(lists).enumerate() {
            if number != driver {
                adjacency.retain(list.clone(), before, values);
            }
        }
    }
}

/// What the sides have for the keys of a row.
enum ListsOfRow {
    /// Each has values.
    Found,
    /// One has none.
    Missing,
    /// The key of one is touched.
    Touched,
}

/// The adjacencies of all sides for a chunk; none if one is missing.
pub(in super::super) fn find_sides(
    steps: &[AdjacentStep],
    mut find: impl FnMut(usize, &AdjacentStep) -> Result<Option<WithTouched>>,
) -> Result<Option<Vec<WithTouched>>> {
    let mut sides = Vec::with_capacity(steps.len());
    let mut is_missing = false;
    for (number, step) in steps.iter().enumerate() {
        // All of them are asked for, so that all that are missing are counted.
        match find(number, step)? {
            Some(side) => sides.push(side),
            None => is_missing = true,
        }
    }
    Ok((!is_missing && !sides.is_empty()).then_some(sides))
}

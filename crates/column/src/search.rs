//! Searches and reads of single rows in an encoded vector, without decoding it.
//!
//! A look-up of one key needs a place in the sorted column and a few rows of the others. Frames,
//! dictionaries and constants are read at any row. Differences are added up 64 at a time (in one go
//! where all but the exceptions are equal), runs are searched as runs, and in groups only the group
//! numbers before the row are counted. That takes a few hundred instructions where decoding takes
//! some 8,000, so it pays for the first look-ups in a vector; who has many of them decodes.

use std::ops::Range;

use crate::decode::{Body, Delta, EncodedVector, List, read_groups};
use crate::piece::{Piece, Stretch};
use crate::plan::GROUPS_MAX;

impl EncodedVector<'_> {
    /// The rows of `range`, which lies within the vector, that have the key, where the values
    /// ascend within it; an empty range where it would stand. `None` for a codec that cannot be
    /// searched ([`Codec::Groups`](crate::Codec::Groups)). If the values do not ascend, any rows of
    /// the range.
    pub fn search(&self, range: Range<usize>, key: u64) -> Option<Range<usize>> {
        if range.is_empty() {
            return Some(range);
        }
        match self.body() {
            Body::Constant(_) | Body::Frame(_) | Body::Dictionary { .. } => {
                let is_behind = |row| self.get(range.start + row).is_some_and(|v| v < key);
                let start = range.start + partition_point(range.len(), is_behind);
                Some(start..self.end_of(key, start, range.end))
            }
            Body::Delta(delta) => {
                let (start, value) = delta.lower_bound(&range, key);
                Some(match value == Some(key) {
                    true => start..delta.end_of(start).min(range.end),
                    false => start..start,
                })
            }
            Body::Runs { values, lengths } => {
                let runs = match range.len() == self.rows() {
                    true => 0..lengths.count(),
                    false => {
                        run_of_row(lengths, range.start).0..run_of_row(lengths, range.end - 1).0 + 1
                    }
                };
                let (run, value) = values.lower_bound(&runs, key);
                let start = row_of_run(lengths, run);
                let length = match value == Some(key) {
                    true => (lengths.get(run).unwrap_or(0) as usize).saturating_add(1),
                    false => 0,
                };
                let end = start.saturating_add(length);
                Some(start.clamp(range.start, range.end)..end.clamp(range.start, range.end))
            }
            Body::Groups(_) => None,
        }
    }

    /// The end of the rows with the key that begin at `start`: most are few.
    fn end_of(&self, key: u64, start: usize, rows_end: usize) -> usize {
        let is_equal = |row: usize| row < rows_end && self.get(row) == Some(key);
        let mut step = 1;
        let mut end = start;
        while is_equal(end + step - 1) {
            end += step;
            step *= 2;
        }
        // All up to `end` are equal, the row `step` further on is not.
        let rest = (rows_end.saturating_sub(end)).min(step - 1);
        end + partition_point(rest, |row| is_equal(end + row))
    }

    /// Appends the values of a few rows within the vector, each read by itself; whether the bytes
    /// allowed it. Nothing is appended if not.
    pub fn read_few(&self, range: Range<usize>, out: &mut Vec<u64>) -> bool {
        let length = out.len();
        let is_read = match self.body() {
            Body::Constant(_) | Body::Frame(_) | Body::Dictionary { .. } => {
                out.extend(range.clone().map_while(|row| self.get(row)));
                true
            }
            Body::Delta(delta) => {
                let mut value = delta.value_at(range.start);
                for row in range.clone() {
                    out.push(value);
                    value = value.wrapping_add(delta.deltas.get(row).unwrap_or(0));
                }
                true
            }
            Body::Runs { values, lengths } => {
                let (mut run, mut end) = run_of_row(lengths, range.start);
                let mut value = values.value_at(run);
                for row in range.clone() {
                    if row >= end {
                        run += 1;
                        let length = lengths.get(run).unwrap_or(0) as usize;
                        end = end.saturating_add(length).saturating_add(1);
                        value = values.value_at(run);
                    }
                    out.extend(value);
                }
                true
            }
            Body::Groups(body) => read_few_of_groups(body, self.rows(), range.clone(), out),
        };
        let is_whole = is_read && out.len() - length == range.len();
        if !is_whole {
            out.truncate(length);
        }
        is_whole
    }
}

impl Delta<'_> {
    /// The first row of the range whose value is not below the key, and its value; the row behind
    /// the last, and none, if all are below.
    fn lower_bound(&self, range: &Range<usize>, key: u64) -> (usize, Option<u64>) {
        let within = |row, value| match row < range.end {
            true => (row, Some(value)),
            false => (range.end, None),
        };
        let mut row = range.start;
        let mut value = self.value_at(row);
        if value >= key {
            return within(row, value);
        }
        let mut stretches = self.deltas.stretches_from(row);
        // The value of row `row` is `value`, and below the key.
        while row + 1 < range.end
            && let Some(stretch) = stretches.next_stretch()
        {
            // Behind the range the values may descend, so a stretch that goes beyond it is not
            // passed over.
            let after = value.wrapping_add(stretch.sum());
            if after < key && row + stretch.len() < range.end {
                value = after;
                row += stretch.len();
                continue;
            }
            match stretch {
                Stretch::Equal { value: 0, count } => row += count,
                Stretch::Equal { value: step, count } => {
                    let steps = (key - value).div_ceil(step).min(count as u64);
                    value = value.wrapping_add(steps.wrapping_mul(step));
                    row += steps as usize;
                    if value >= key {
                        return within(row, value);
                    }
                }
                Stretch::Values(steps) => {
                    for step in steps {
                        value = value.wrapping_add(*step);
                        row += 1;
                        if value >= key {
                            return within(row, value);
                        }
                    }
                }
            }
        }
        (range.end, None)
    }

    /// The row behind those that have the value of a row and follow it.
    fn end_of(&self, row: usize) -> usize {
        let mut end = row + 1;
        let mut stretches = self.deltas.stretches_from(row);
        while let Some(stretch) = stretches.next_stretch() {
            let same = stretch.leading_zeros();
            end += same;
            if same < stretch.len() {
                break;
            }
        }
        end
    }

    fn value_at(&self, row: usize) -> u64 {
        self.first.wrapping_add(self.deltas.sum_before(row))
    }
}

impl List<'_> {
    /// As that of [`Delta`].
    fn lower_bound(&self, range: &Range<usize>, key: u64) -> (usize, Option<u64>) {
        match self {
            Self::Plain(piece) => {
                let is_behind = |row| {
                    piece
                        .get(range.start + row)
                        .is_some_and(|value| value < key)
                };
                let row = range.start + partition_point(range.len(), is_behind);
                match row < range.end {
                    true => (row, piece.get(row)),
                    false => (range.end, None),
                }
            }
            Self::Delta(delta) => delta.lower_bound(range, key),
        }
    }

    fn value_at(&self, row: usize) -> Option<u64> {
        match self {
            Self::Plain(piece) => piece.get(row),
            Self::Delta(delta) => Some(delta.value_at(row)),
        }
    }
}

/// Where a run begins.
fn row_of_run(lengths: &Piece<'_>, run: usize) -> usize {
    (lengths.sum_before(run) as usize).saturating_add(run)
}

/// The run in which a row stands, and the row behind that run.
fn run_of_row(lengths: &Piece<'_>, row: usize) -> (usize, usize) {
    let (mut run, mut start) = (0, 0usize);
    let mut stretches = lengths.stretches();
    while let Some(stretch) = stretches.next_stretch() {
        let after = start
            .saturating_add(stretch.sum() as usize)
            .saturating_add(stretch.len());
        if after <= row {
            start = after;
            run += stretch.len();
            continue;
        }
        for position in 0..stretch.len() {
            let end = start
                .saturating_add(stretch.at(position) as usize)
                .saturating_add(1);
            if end > row {
                return (run, end);
            }
            start = end;
            run += 1;
        }
    }
    (run, usize::MAX)
}

/// Counts how many rows of each group stand before the range, then reads its rows from their
/// groups.
fn read_few_of_groups(body: &[u8], rows: usize, range: Range<usize>, out: &mut Vec<u64>) -> bool {
    let Ok((counts, mut bytes)) = read_groups(body) else {
        return false;
    };
    let Ok(numbers) = Piece::read(&mut bytes, rows) else {
        return false;
    };
    let mut values: [Option<Piece<'_>>; GROUPS_MAX] = [None; GROUPS_MAX];
    for (&count, values) in counts.iter().zip(&mut values) {
        if count > 0 {
            *values = Piece::read(&mut bytes, count).ok();
        }
    }
    let mut positions = [0usize; GROUPS_MAX];
    let mut before = range.start;
    let mut stretches = numbers.stretches();
    while before > 0
        && let Some(stretch) = stretches.next_stretch()
    {
        let taken = before.min(stretch.len());
        for position in 0..taken {
            positions[stretch.at(position) as usize % GROUPS_MAX] += 1;
        }
        before -= taken;
    }
    for row in range {
        let group = numbers.get(row).unwrap_or(0) as usize % GROUPS_MAX;
        let value = values[group].and_then(|values| values.get(positions[group]));
        out.extend(value);
        positions[group] += 1;
    }
    true
}

/// The number of rows at the start of `0..rows` that are behind.
fn partition_point(rows: usize, is_behind: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, rows);
    while from < to {
        let middle = from.midpoint(to);
        match is_behind(middle) {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    from
}

//! Vectors of rows in a plan, and their buffering.

use std::time::Instant;

use serde::{Serialize, Serializer};

use super::store::BLOCK_ROWS;
use crate::drivers::BenchError;

/// What a vector has at the beginning, where its size is dynamic.
const DYNAMIC_ROWS: usize = 10_000;
/// Where it stops growing.
const DYNAMIC_ROWS_MAX: usize = 1_000_000;
/// By so much it grows at once.
const GROWTH: usize = 10;
/// Look-ups that find fewer rows than this for each block that they touch are sparse.
const SPARSE_ROWS: usize = 32;

/// How many rows go through a step of a plan at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum VectorSize {
    /// 10,000; ten times as many, up to 1,000,000, each time when the look-ups of a full vector
    /// turn out sparse.
    Dynamic,
    /// So many.
    Fixed(usize),
}

impl VectorSize {
    /// Those of the study.
    pub const ALL: [Self; 3] = [Self::Dynamic, Self::Fixed(10_000), Self::Fixed(1)];

    /// As reports call it.
    pub fn name(self) -> String {
        match self {
            Self::Dynamic => "dynamic".to_owned(),
            Self::Fixed(rows) => rows.to_string(),
        }
    }
}

impl Serialize for VectorSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// What the look-ups of a vector came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    /// Different rows that were found.
    pub(super) rows: usize,
    /// Blocks that they lie in.
    pub(super) blocks: usize,
}

impl Reach {
    /// Of the numbers of rows, which ascend.
    pub(super) fn of(rows: &[u64]) -> Self {
        let block = |row: &u64| row / BLOCK_ROWS as u64;
        let blocks = rows.chunk_by(|one, other| block(one) == block(other));
        Self {
            rows: rows.len(),
            blocks: blocks.count(),
        }
    }

    fn is_sparse(self) -> bool {
        self.rows < SPARSE_ROWS * self.blocks
    }
}

/// The size of vectors as it is now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    of: VectorSize,
    rows: usize,
}

impl Size {
    pub(super) fn new(of: VectorSize) -> Self {
        let rows = match of {
            VectorSize::Dynamic => DYNAMIC_ROWS,
            VectorSize::Fixed(rows) => rows,
        };
        Self { of, rows }
    }

    pub(super) fn rows(self) -> usize {
        self.rows
    }

    /// A vector of so many rows was looked up.
    pub(super) fn looked_up(&mut self, rows: usize, reach: Reach) {
        let is_full = rows >= self.rows;
        if self.of == VectorSize::Dynamic && is_full && reach.is_sparse() {
            self.rows = (self.rows * GROWTH).min(DYNAMIC_ROWS_MAX);
        }
    }
}

/// Rows that wait for a step: a column of numbers for each slot.
#[derive(Debug)]
pub(super) struct Waiting {
    columns: Vec<Vec<i64>>,
    /// Those before it are gone.
    start: usize,
}

impl Waiting {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            columns: vec![Vec::new(); slots],
            start: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len) - self.start
    }

    pub(super) fn append(&mut self, vector: Vec<Vec<i64>>) {
        if self.len() == 0 {
            self.columns = vector;
            self.start = 0;
            return;
        }
        for (column, more) in self.columns.iter_mut().zip(vector) {
            column.extend_from_slice(&more);
        }
    }

    /// The first rows, at most so many.
    pub(super) fn take(&mut self, rows: usize) -> Vec<Vec<i64>> {
        if self.start == 0 && self.len() <= rows {
            let slots = self.columns.len();
            return std::mem::replace(&mut self.columns, vec![Vec::new(); slots]);
        }
        let end = self.start + rows.min(self.len());
        let taken = self.columns.iter().map(|it| it[self.start..end].to_vec());
        let taken = taken.collect();
        self.start = end;
        taken
    }
}

/// When a run is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit(pub(super) Instant);

impl Limit {
    pub(super) fn check(self) -> Result<(), Stop> {
        match Instant::now() < self.0 {
            true => Ok(()),
            false => Err(Stop::Late),
        }
    }
}

/// Why a run ended without an answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its time was up.
    Late,
    Failed(BenchError),
}

impl From<BenchError> for Stop {
    fn from(error: BenchError) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_order_and_none_is_lost() {
        let mut waiting = Waiting::new(2);
        let mut taken = Vec::new();
        for start in [0, 10, 20] {
            let numbers: Vec<i64> = (start..start + 10).collect();
            waiting.append(vec![numbers.clone(), numbers]);
            while waiting.len() >= 7 {
                taken.extend(waiting.take(7).swap_remove(1));
            }
        }
        assert_eq!(waiting.len(), 2);
        taken.extend(waiting.take(7).swap_remove(0));
        assert_eq!(taken, (0..30).collect::<Vec<i64>>());
        assert_eq!(waiting.len(), 0);
    }

    #[test]
    fn a_dynamic_vector_grows_when_it_is_full_and_finds_few_rows_a_block() {
        let far_apart: Vec<u64> = (0..10_000).map(|row| row * 2048).collect();
        let dense: Vec<u64> = (0..10_000).collect();
        assert_eq!(Reach::of(&dense).blocks, 10);
        let mut size = Size::new(VectorSize::Dynamic);
        size.looked_up(10_000, Reach::of(&dense));
        size.looked_up(9_999, Reach::of(&far_apart));
        assert_eq!(size.rows(), 10_000);
        for expected in [100_000, 1_000_000, 1_000_000] {
            size.looked_up(size.rows(), Reach::of(&far_apart));
            assert_eq!(size.rows(), expected);
        }
        let mut fixed = Size::new(VectorSize::Fixed(1));
        fixed.looked_up(1, Reach::of(&[5]));
        assert_eq!(fixed.rows(), 1);
    }
}

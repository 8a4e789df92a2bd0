//! `COUNT`: of solutions, of bound values, of distinct solutions.

use arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion_common::Result;
use hashbrown::HashSet;
use orrery_term::TermId;

use super::groups::{Aggregate, ids_of, split_u64};

/// `COUNT(*)` over a column that is never null, `COUNT(?x)` otherwise: errors do not count.
#[derive(Clone)]
pub(super) struct Count;

impl Aggregate for Count {
    type State = u64;
    type Rows = UInt64Array;

    fn read(&self, columns: &[ArrayRef]) -> Result<UInt64Array> {
        ids_of(columns, 0)
    }

    #[inline]
    fn update(&self, state: &mut u64, rows: &UInt64Array, row: usize) {
        *state += u64::from(rows.is_valid(row));
    }

    fn merge(&self, state: &mut u64, other: u64) {
        *state += other;
    }

    fn result(&self, state: &u64) -> Result<Option<TermId>> {
        Ok(count_id(*state))
    }

    fn write(&self, state: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&state.to_le_bytes());
    }

    fn parse(&self, bytes: &[u8]) -> Option<u64> {
        split_u64(bytes).map(|(count, _)| count)
    }

    fn heap_bytes(&self, _: &u64) -> usize {
        0
    }
}

/// A count as a term. Counts beyond 2^55 cannot happen: that many ids fill 256 PiB.
fn count_id(count: u64) -> Option<TermId> {
    i64::try_from(count).ok().and_then(TermId::integer)
}

/// `COUNT(DISTINCT *)`: the arguments are all the variables.
#[derive(Clone)]
pub(super) struct CountDistinctSolutions {
    /// Number of variables.
    pub(super) width: usize,
}

/// The solutions that a group has seen, unbound as 0, which is no term.
#[derive(Default)]
pub(super) struct Solutions {
    seen: HashSet<Box<[u64]>>,
}

impl Aggregate for CountDistinctSolutions {
    type State = Solutions;
    type Rows = Vec<UInt64Array>;

    fn read(&self, columns: &[ArrayRef]) -> Result<Vec<UInt64Array>> {
        (0..self.width)
            .map(|place| ids_of(columns, place))
            .collect()
    }

    fn update(&self, state: &mut Solutions, rows: &Vec<UInt64Array>, row: usize) {
        let solution: Box<[u64]> = rows
            .iter()
            .map(|ids| if ids.is_valid(row) { ids.value(row) } else { 0 })
            .collect();
        state.seen.insert(solution);
    }

    fn merge(&self, state: &mut Solutions, other: Solutions) {
        state.seen.extend(other.seen);
    }

    fn result(&self, state: &Solutions) -> Result<Option<TermId>> {
        Ok(count_id(state.seen.len() as u64))
    }

    fn write(&self, state: &Solutions, out: &mut Vec<u8>) {
        for id in state.seen.iter().flat_map(|solution| solution.iter()) {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Solutions> {
        let ids: Vec<u64> = bytes
            .chunks_exact(8)
            .filter_map(|chunk| split_u64(chunk).map(|(id, _)| id))
            .collect();
        Some(Solutions {
            seen: ids.chunks_exact(self.width).map(Box::from).collect(),
        })
    }

    fn heap_bytes(&self, state: &Solutions) -> usize {
        state.seen.capacity() * (size_of::<Box<[u64]>>() + 1) + state.seen.len() * 8 * self.width
    }
}

//! The `DISTINCT` wrapper of other aggregates: each term of a group counts once.
//!
//! A group keeps the ids it has seen, in the order in which they came; the aggregate below is only
//! run over them when the group's result is asked for.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion_common::Result;
use hashbrown::HashSet;
use orrery_term::TermId;

use super::groups::{Aggregate, ids_of, split_u64};

/// So many values are read at a time.
const ROWS_AT_ONCE: usize = 1_024;

/// An aggregate over distinct values.
#[derive(Clone)]
pub(super) struct Distinct<A> {
    pub(super) aggregate: A,
}

/// What a group has seen.
#[derive(Default)]
pub(super) struct SeenIds {
    set: HashSet<u64>,
    order: Vec<u64>,
    has_error: bool,
}

impl SeenIds {
    fn insert(&mut self, id: u64) {
        if self.set.insert(id) {
            self.order.push(id);
        }
    }
}

impl<A: Aggregate> Aggregate for Distinct<A> {
    type State = SeenIds;
    type Rows = UInt64Array;

    fn read(&self, columns: &[ArrayRef]) -> Result<UInt64Array> {
        ids_of(columns, 0)
    }

    fn update(&self, state: &mut SeenIds, rows: &UInt64Array, row: usize) {
        if rows.is_valid(row) {
            state.insert(rows.value(row));
        } else {
            state.has_error = true;
        }
    }

    fn merge(&self, state: &mut SeenIds, other: SeenIds) {
        state.has_error |= other.has_error;
        for id in other.order {
            state.insert(id);
        }
    }

    fn result(&self, state: &SeenIds) -> Result<Option<TermId>> {
        let ids: UInt64Array = state
            .order
            .iter()
            .copied()
            .map(Some)
            .chain(state.has_error.then_some(None))
            .collect();
        let mut total = A::State::default();
        for from in (0..ids.len()).step_by(ROWS_AT_ONCE) {
            let rows = ROWS_AT_ONCE.min(ids.len() - from);
            let column: ArrayRef = Arc::new(ids.slice(from, rows));
            let read = self.aggregate.read(&[column])?;
            for row in 0..rows {
                self.aggregate.update(&mut total, &read, row);
            }
        }
        self.aggregate.result(&total)
    }

    fn write(&self, state: &SeenIds, out: &mut Vec<u8>) {
        out.push(u8::from(state.has_error));
        for id in &state.order {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<SeenIds> {
        let (has_error, ids) = bytes.split_first()?;
        let mut seen = SeenIds {
            has_error: *has_error != 0,
            ..SeenIds::default()
        };
        for chunk in ids.chunks_exact(8) {
            seen.insert(split_u64(chunk)?.0);
        }
        Some(seen)
    }

    fn heap_bytes(&self, state: &SeenIds) -> usize {
        state.set.capacity() * 9 + state.order.capacity() * 8
    }
}

//! `MIN` and `MAX`, by the order of `ORDER BY`. An error makes the group's result unbound; among
//! equal values (1 and 1.0) the one with the smaller id is it, in whatever order they come.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion_common::Result;
use orrery_expressions::columns::sort_keys_of_ids;
use orrery_term::TermId;

use super::groups::{Aggregate, engine, ids_of, split_u64};
use crate::context::QueryContext;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Least,
    Greatest,
}

/// `MIN` or `MAX`.
#[derive(Clone)]
pub(super) struct MinMax {
    pub(super) extreme: Extreme,
    pub(super) context: Arc<QueryContext>,
}

/// The best so far.
#[derive(Default)]
pub(super) enum BestTerm {
    /// Nothing seen.
    #[default]
    Empty,
    /// A term and its sort key.
    Term { id: u64, key: Vec<u8> },
    /// An error was among the values.
    Failed,
}

/// The ids of a batch and their sort keys.
pub(super) struct TermKeys {
    ids: UInt64Array,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl TermKeys {
    fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }
}

impl MinMax {
    /// Whether a term comes before the best so far. Among equals the smaller id decides, so that it does not
    /// matter in which order they came.
    fn is_better(&self, (key, id): (&[u8], u64), than: (&[u8], u64)) -> bool {
        let by_value = match self.extreme {
            Extreme::Least => key.cmp(than.0),
            Extreme::Greatest => than.0.cmp(key),
        };
        by_value.then(id.cmp(&than.1)) == Ordering::Less
    }

    fn offer(&self, state: &mut BestTerm, id: u64, key: &[u8]) {
        match state {
            BestTerm::Failed => {}
            BestTerm::Empty => {
                *state = BestTerm::Term {
                    id,
                    key: key.to_vec(),
                };
            }
            BestTerm::Term {
                id: best,
                key: best_key,
            } => {
                if self.is_better((key, id), (best_key, *best)) {
                    *best = id;
                    best_key.clear();
                    best_key.extend_from_slice(key);
                }
            }
        }
    }
}

impl Aggregate for MinMax {
    type State = BestTerm;
    type Rows = TermKeys;

    fn read(&self, columns: &[ArrayRef]) -> Result<TermKeys> {
        let ids = ids_of(columns, 0)?;
        let mut bytes = Vec::with_capacity(ids.len() * 12);
        let mut ends = Vec::with_capacity(ids.len());
        sort_keys_of_ids(&ids, self.context.expressions(), |_, key| {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        })
        .map_err(engine)?;
        Ok(TermKeys { ids, bytes, ends })
    }

    fn update(&self, state: &mut BestTerm, rows: &TermKeys, row: usize) {
        if rows.ids.is_valid(row) {
            self.offer(state, rows.ids.value(row), rows.get(row));
        } else {
            *state = BestTerm::Failed;
        }
    }

    fn merge(&self, state: &mut BestTerm, other: BestTerm) {
        match other {
            BestTerm::Empty => {}
            BestTerm::Failed => *state = BestTerm::Failed,
            BestTerm::Term { id, key } => self.offer(state, id, &key),
        }
    }

    fn result(&self, state: &BestTerm) -> Result<Option<TermId>> {
        Ok(match state {
            BestTerm::Term { id, .. } => Some(TermId::from_bits(*id)),
            BestTerm::Empty | BestTerm::Failed => None,
        })
    }

    fn write(&self, state: &BestTerm, out: &mut Vec<u8>) {
        match state {
            BestTerm::Empty => {}
            BestTerm::Failed => out.push(0),
            BestTerm::Term { id, key } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(key);
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<BestTerm> {
        Some(match bytes {
            [] => BestTerm::Empty,
            [_] => BestTerm::Failed,
            bytes => {
                let (id, key) = split_u64(bytes)?;
                BestTerm::Term {
                    id,
                    key: key.to_vec(),
                }
            }
        })
    }

    fn heap_bytes(&self, state: &BestTerm) -> usize {
        match state {
            BestTerm::Term { key, .. } => key.capacity(),
            BestTerm::Empty | BestTerm::Failed => 0,
        }
    }
}

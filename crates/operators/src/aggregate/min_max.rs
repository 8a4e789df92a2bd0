//! `MIN` and `MAX`, by the order of `ORDER BY`. An error makes the group's result unbound; among
//! equal values (1 and 1.0) the one with the smaller id is it, in whatever order they come.
//!
//! Numbers of one kind and dates of one zone are compared by the bits of their ids, batches of
//! other terms by sort keys. A group's key is only made where both meet. Of neighbouring rows of
//! one group the best is found first: a loop over plain numbers.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion_common::Result;
use orrery_expressions::columns::{are_alike, order_alike, sort_key_of_alike, sort_keys_of_ids};
use orrery_term::TermId;
use orrery_term::inline::ValueOrder;

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
    /// A term whose bits tell its value among its like.
    Alike(TermId),
    /// A term with its sort key. Apart, for the states of many groups are to be small.
    Keyed(Box<KeyedTerm>),
    /// An error was among the values.
    Failed,
}

/// A term and its sort key.
pub(super) struct KeyedTerm {
    id: u64,
    key: Vec<u8>,
}

/// The ids of a batch and, unless all of them are alike, their sort keys.
pub(super) struct TermKeys {
    ids: UInt64Array,
    are_alike: bool,
    /// How all ids compare, if they are alike.
    order: Option<ValueOrder>,
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
    /// Whether a term comes before the best so far, given how it is ordered to it. Among equals the
    /// smaller id decides, so that it does not matter in which order they came.
    fn is_better(&self, order: Ordering, id: u64, than: u64) -> bool {
        let by_value = match self.extreme {
            Extreme::Least => order,
            Extreme::Greatest => order.reverse(),
        };
        by_value.then(id.cmp(&than)) == Ordering::Less
    }

    fn offer(&self, state: &mut BestTerm, id: u64, key: &[u8]) {
        if let BestTerm::Alike(best) = *state {
            *state = with_key(best);
        }
        match state {
            BestTerm::Failed => {}
            BestTerm::Empty | BestTerm::Alike(_) => *state = keyed(id, key.to_vec()),
            BestTerm::Keyed(best) => {
                if self.is_better(key.cmp(&best.key), id, best.id) {
                    best.id = id;
                    best.key.clear();
                    best.key.extend_from_slice(key);
                }
            }
        }
    }

    #[inline]
    fn offer_alike(&self, state: &mut BestTerm, id: TermId) {
        match state {
            BestTerm::Failed => {}
            BestTerm::Empty => *state = BestTerm::Alike(id),
            BestTerm::Alike(best) => match order_alike(id, *best) {
                Some(order) => {
                    if self.is_better(order, id.bits(), best.bits()) {
                        *best = id;
                    }
                }
                None => self.offer_with_key(state, id),
            },
            BestTerm::Keyed(_) => self.offer_with_key(state, id),
        }
    }

    // Apart: groups whose terms are of several kinds are rare.
    #[inline(never)]
    fn offer_with_key(&self, state: &mut BestTerm, id: TermId) {
        let mut key = Vec::new();
        sort_key_of_alike(id, &mut key);
        self.offer(state, id.bits(), &key);
    }
}

fn with_key(id: TermId) -> BestTerm {
    let mut key = Vec::new();
    sort_key_of_alike(id, &mut key);
    keyed(id.bits(), key)
}

fn keyed(id: u64, key: Vec<u8>) -> BestTerm {
    BestTerm::Keyed(Box::new(KeyedTerm { id, key }))
}

impl Aggregate for MinMax {
    type State = BestTerm;
    type Rows = TermKeys;

    fn read(&self, columns: &[ArrayRef]) -> Result<TermKeys> {
        let ids = ids_of(columns, 0)?;
        if are_alike(&ids) {
            let first = ids.values().first();
            return Ok(TermKeys {
                order: first.and_then(|&first| TermId::from_bits(first).value_order()),
                ids,
                are_alike: true,
                bytes: Vec::new(),
                ends: Vec::new(),
            });
        }
        let mut bytes = Vec::with_capacity(ids.len() * 12);
        let mut ends = Vec::with_capacity(ids.len());
        sort_keys_of_ids(&ids, self.context.expressions(), |_, key| {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        })
        .map_err(engine)?;
        Ok(TermKeys {
            ids,
            are_alike: false,
            order: None,
            bytes,
            ends,
        })
    }

    fn update(&self, state: &mut BestTerm, rows: &TermKeys, row: usize) {
        if rows.are_alike {
            self.offer_alike(state, TermId::from_bits(rows.ids.value(row)));
        } else if rows.ids.is_valid(row) {
            self.offer(state, rows.ids.value(row), rows.get(row));
        } else {
            *state = BestTerm::Failed;
        }
    }

    #[inline]
    fn update_in_place(&self, state: &mut BestTerm, rows: &TermKeys, row: usize) -> bool {
        let (Some(order), BestTerm::Alike(best)) = (rows.order, &mut *state) else {
            return false;
        };
        let id = rows.ids.value(row);
        if (id ^ best.bits()) & order.alike != 0 {
            return false;
        }
        let by_value = (id >> order.shift).cmp(&(best.bits() >> order.shift));
        if self.is_better(by_value, id, best.bits()) {
            *best = TermId::from_bits(id);
        }
        true
    }

    const COUNTS_RUNS: bool = true;

    #[inline]
    fn update_run(&self, state: &mut BestTerm, rows: &TermKeys, run: Range<usize>) -> bool {
        let (Some(order), Some(ids)) = (rows.order, rows.ids.values().get(run)) else {
            return false;
        };
        // Among equal values the smaller id: so what is below the value counts the other way round
        // for the greatest.
        let best = match self.extreme {
            Extreme::Least => ids.iter().min().copied(),
            Extreme::Greatest => {
                let below = (1u64 << order.shift) - 1;
                ids.iter().map(|id| id ^ below).max().map(|id| id ^ below)
            }
        };
        match (best, &*state) {
            (None, _) => true,
            (Some(_), BestTerm::Failed | BestTerm::Keyed(_)) => false,
            (Some(best), BestTerm::Empty) => {
                *state = BestTerm::Alike(TermId::from_bits(best));
                true
            }
            (Some(best), BestTerm::Alike(than)) => {
                let than = than.bits();
                if (best ^ than) & order.alike != 0 {
                    return false;
                }
                let by_value = (best >> order.shift).cmp(&(than >> order.shift));
                if self.is_better(by_value, best, than) {
                    *state = BestTerm::Alike(TermId::from_bits(best));
                }
                true
            }
        }
    }

    fn merge(&self, state: &mut BestTerm, other: BestTerm) {
        match other {
            BestTerm::Empty => {}
            BestTerm::Failed => *state = BestTerm::Failed,
            BestTerm::Alike(id) => self.offer_alike(state, id),
            BestTerm::Keyed(best) => self.offer(state, best.id, &best.key),
        }
    }

    fn result(&self, state: &BestTerm) -> Result<Option<TermId>> {
        Ok(match state {
            BestTerm::Alike(id) => Some(*id),
            BestTerm::Keyed(best) => Some(TermId::from_bits(best.id)),
            BestTerm::Empty | BestTerm::Failed => None,
        })
    }

    fn write(&self, state: &BestTerm, out: &mut Vec<u8>) {
        match state {
            BestTerm::Empty => {}
            BestTerm::Failed => out.push(0),
            BestTerm::Alike(id) => out.extend_from_slice(&id.bits().to_le_bytes()),
            BestTerm::Keyed(best) => {
                out.extend_from_slice(&best.id.to_le_bytes());
                out.extend_from_slice(&best.key);
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<BestTerm> {
        Some(match bytes {
            [] => BestTerm::Empty,
            [_] => BestTerm::Failed,
            bytes => match split_u64(bytes)? {
                (id, []) => BestTerm::Alike(TermId::from_bits(id)),
                (id, key) => keyed(id, key.to_vec()),
            },
        })
    }

    fn heap_bytes(&self, state: &BestTerm) -> usize {
        match state {
            BestTerm::Keyed(best) => size_of::<KeyedTerm>() + best.key.capacity(),
            BestTerm::Empty | BestTerm::Alike(_) | BestTerm::Failed => 0,
        }
    }
}

//! `SAMPLE`: the first value of a group without an error.

use arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion_common::Result;
use orrery_term::TermId;

use super::groups::{Aggregate, ids_of, split_u64};

/// `SAMPLE`.
#[derive(Clone)]
pub(super) struct Sample;

impl Aggregate for Sample {
    type State = Option<TermId>;
    type Rows = UInt64Array;

    fn read(&self, columns: &[ArrayRef]) -> Result<UInt64Array> {
        ids_of(columns, 0)
    }

    fn update(&self, state: &mut Option<TermId>, rows: &UInt64Array, row: usize) {
        if state.is_none() && rows.is_valid(row) {
            *state = Some(TermId::from_bits(rows.value(row)));
        }
    }

    fn merge(&self, state: &mut Option<TermId>, other: Option<TermId>) {
        *state = state.or(other);
    }

    fn result(&self, state: &Option<TermId>) -> Result<Option<TermId>> {
        Ok(*state)
    }

    fn write(&self, state: &Option<TermId>, out: &mut Vec<u8>) {
        if let Some(id) = state {
            out.extend_from_slice(&id.bits().to_le_bytes());
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Option<TermId>> {
        if bytes.is_empty() {
            return Some(None);
        }
        split_u64(bytes).map(|(bits, _)| Some(TermId::from_bits(bits)))
    }

    fn heap_bytes(&self, _: &Option<TermId>) -> usize {
        0
    }
}

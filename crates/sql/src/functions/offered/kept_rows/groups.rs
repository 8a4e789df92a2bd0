//! The rows of all groups of an aggregation.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::plain::Plain;
use super::store::Store;

/// Different values that are counted are there once more in a state.
const COPIES_OF_COUNTS: usize = 1;
/// What the engine's function makes of others grows by doubling, and becomes a column.
const COPIES: usize = 3;

/// See the module.
pub(super) struct KeptGroups {
    store: Store,
    plain: Plain,
    groups_count: usize,
}

impl KeptGroups {
    pub(super) fn new(store: Store, plain: Plain) -> Self {
        Self {
            store,
            plain,
            groups_count: 0,
        }
    }

    /// How many groups are given out; what is kept of them goes with `done`.
    fn emitted(&self, emit: EmitTo) -> usize {
        match emit {
            EmitTo::All => self.groups_count,
            EmitTo::First(count) => count.min(self.groups_count),
        }
    }

    fn done(&mut self, emitted: usize) -> Result<()> {
        self.groups_count -= emitted;
        self.store.drop_first(emitted)
    }

    fn results(&self, groups_count: usize) -> Result<ArrayRef> {
        if self.store.leaves_nulls() {
            let mut counts = vec![0_i64; groups_count];
            for group in self.store.groups() {
                if let Some(count) = counts.get_mut(group as usize) {
                    *count += 1;
                }
            }
            return Ok(Arc::new(Int64Array::from(counts)));
        }
        let places = self.store.sorted(groups_count);
        let parts = self.store.parts(&places);
        let rows = parts.map(|places| self.store.arguments(places));
        self.plain.results(groups_count, rows)
    }
}

impl fmt::Debug for KeptGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptGroups")
            .field("plain", &self.plain)
            .field("groups_count", &self.groups_count)
            .finish_non_exhaustive()
    }
}

impl GroupsAccumulator for KeptGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.groups_count = self.groups_count.max(groups_count);
        self.store.take(values, groups, filter)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let emitted = self.emitted(emit);
        let results = self.results(emitted)?;
        self.done(emitted)?;
        Ok(results)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let emitted = self.emitted(emit);
        let states = self.store.states(emitted)?;
        self.done(emitted)?;
        Ok(vec![states])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        self.groups_count = self.groups_count.max(groups_count);
        self.store.merge(&states[0], groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.store.states_of(values, filter)?])
    }

    fn size(&self) -> usize {
        let copies = match self.store.leaves_nulls() {
            true => COPIES_OF_COUNTS,
            false => COPIES,
        };
        self.store.size(copies)
    }
}

/// An aggregation without groups.
#[derive(Debug)]
pub(super) struct KeptOne(KeptGroups);

impl KeptOne {
    pub(super) fn new(mut groups: KeptGroups) -> Self {
        groups.groups_count = 1;
        Self(groups)
    }
}

impl Accumulator for KeptOne {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |it| it.len());
        self.0.update_batch(values, &vec![0; rows], None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.results(1)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let states = self.0.store.states(1)?;
        Ok(vec![ScalarValue::List(Arc::new(
            states.as_list::<i32>().clone(),
        ))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |it| it.len());
        self.0.merge_batch(states, &vec![0; rows], 1)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}

//! The adapter of SPARQL's aggregates to DataFusion's group accumulators.
//!
//! An [`Aggregate`] says what is kept for a group and how a row changes it; [`Groups`] keeps the
//! states of all groups in one vector for `GROUP BY`, [`Single`] the only one of a query without
//! groups. Between a partial and a final aggregation, and when groups spill to disk, a state
//! travels as one binary value that the aggregate writes and reads itself.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, LargeBinaryArray, LargeBinaryBuilder, UInt64Array,
};
use arrow::datatypes::UInt64Type;
use datafusion_common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};
use orrery_term::TermId;

/// An aggregate function; see the module's documentation.
pub(super) trait Aggregate: Clone + Send + Sync + 'static {
    /// What is kept for a group; its default is that of an empty group.
    type State: Default + Send + Sync + 'static;
    /// What is read of a batch before its rows are counted in.
    type Rows;

    /// Reads the argument columns of a batch.
    fn read(&self, columns: &[ArrayRef]) -> Result<Self::Rows>;
    /// Counts a row into a group.
    fn update(&self, state: &mut Self::State, rows: &Self::Rows, row: usize);
    /// Counts a row into a group if that is quick and changes nothing of what the state holds
    /// outside itself. Whether it was done.
    fn update_in_place(&self, _: &mut Self::State, _: &Self::Rows, _: usize) -> bool {
        false
    }
    /// Whether [`update_run`](Self::update_run) does anything.
    const COUNTS_RUNS: bool = false;
    /// Counts neighbouring rows of one group in, all at once, under the same conditions as
    /// [`update_in_place`](Self::update_in_place).
    fn update_run(&self, _: &mut Self::State, _: &Self::Rows, _: Range<usize>) -> bool {
        false
    }
    /// Adds what another state has seen, which comes after what this one has.
    fn merge(&self, state: &mut Self::State, other: Self::State);
    /// The group's result, `None` for unbound.
    fn result(&self, state: &Self::State) -> Result<Option<TermId>>;
    /// Appends the state as bytes.
    fn write(&self, state: &Self::State, out: &mut Vec<u8>);
    /// Reads a state back.
    fn parse(&self, bytes: &[u8]) -> Option<Self::State>;
    /// Bytes that a state holds outside itself.
    fn heap_bytes(&self, state: &Self::State) -> usize;
    /// Whether no further row changes the group's result, so that none has to be read.
    fn is_settled(&self, _: &Self::State) -> bool {
        false
    }
}

/// The ids of an argument column.
pub(super) fn ids_of(columns: &[ArrayRef], place: usize) -> Result<UInt64Array> {
    match columns
        .get(place)
        .and_then(|column| column.as_primitive_opt::<UInt64Type>())
    {
        Some(ids) => Ok(ids.clone()),
        None => internal_err!("argument {place} of an aggregate is no column of term ids"),
    }
}

/// The states of all groups.
pub(super) struct Groups<A: Aggregate> {
    aggregate: A,
    states: Vec<A::State>,
    heap_bytes: usize,
}

impl<A: Aggregate> Groups<A> {
    pub(super) fn new(aggregate: A) -> Self {
        Self {
            aggregate,
            states: Vec::new(),
            heap_bytes: 0,
        }
    }

    fn change(&mut self, group: usize, change: impl FnOnce(&A, &mut A::State)) {
        let state = &mut self.states[group];
        let before = self.aggregate.heap_bytes(state);
        change(&self.aggregate, state);
        self.heap_bytes += self.aggregate.heap_bytes(state);
        self.heap_bytes -= before;
    }

    fn grow(&mut self, groups: usize) {
        if self.states.len() < groups {
            self.states.resize_with(groups, A::State::default);
        }
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<A::State> {
        let taken = emit_to.take_needed(&mut self.states);
        for state in &taken {
            self.heap_bytes -= self.aggregate.heap_bytes(state);
        }
        taken
    }

    fn merge_column(
        &mut self,
        values: &[ArrayRef],
        group_of: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let states = states_of(values)?;
        for row in 0..states.len() {
            if states.is_null(row) {
                continue;
            }
            let state = parse_state(&self.aggregate, states.value(row))?;
            self.change(group_of(row), |aggregate, into| {
                aggregate.merge(into, state)
            });
        }
        Ok(())
    }

    fn update_column(
        &mut self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        group_of: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let count = values.first().map_or(0, |column| column.len());
        // Ends at the first group that is not.
        let is_settled = |row| self.aggregate.is_settled(&self.states[group_of(row)]);
        if (0..count).all(is_settled) {
            return Ok(());
        }
        self.update_rows(values, filter, 0, &group_of)
    }

    /// Takes rows in, of which `first` is the number of the first one: half of them at a time where
    /// there is no memory to read all.
    fn update_rows(
        &mut self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        first: usize,
        group_of: &impl Fn(usize) -> usize,
    ) -> Result<()> {
        let count = values.first().map_or(0, |column| column.len());
        let rows = match self.aggregate.read(values) {
            Ok(rows) => rows,
            Err(DataFusionError::ResourcesExhausted(_)) if count > 1 => {
                let half = count / 2;
                for (from, count) in [(0, half), (half, count - half)] {
                    let part: Vec<_> = values.iter().map(|it| it.slice(from, count)).collect();
                    self.update_rows(&part, filter, first + from, group_of)?;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if A::COUNTS_RUNS && filter.is_none() {
            self.update_runs(&rows, count, |row| group_of(first + row));
            return Ok(());
        }
        for row in 0..count {
            if is_kept(filter, first + row) {
                self.update_row(group_of(first + row), &rows, row);
            }
        }
        Ok(())
    }

    #[inline]
    fn update_row(&mut self, group: usize, rows: &A::Rows, row: usize) {
        if !self
            .aggregate
            .update_in_place(&mut self.states[group], rows, row)
        {
            self.change(group, |aggregate, state| {
                aggregate.update(state, rows, row);
            });
        }
    }

    /// Rows of a group stand together where the scan below is sorted by it, as the offers of a
    /// vendor are.
    fn update_runs(&mut self, rows: &A::Rows, count: usize, group_of: impl Fn(usize) -> usize) {
        let mut start = 0;
        while start < count {
            let group = group_of(start);
            let mut end = start + 1;
            while end < count && group_of(end) == group {
                end += 1;
            }
            if !self
                .aggregate
                .update_run(&mut self.states[group], rows, start..end)
            {
                for row in start..end {
                    self.update_row(group, rows, row);
                }
            }
            start = end;
        }
    }
}

fn is_kept(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

fn states_of(values: &[ArrayRef]) -> Result<LargeBinaryArray> {
    match values
        .first()
        .and_then(|column| column.as_binary_opt::<i64>())
    {
        Some(states) => Ok(states.clone()),
        None => internal_err!("the state of an aggregate is no binary column"),
    }
}

fn parse_state<A: Aggregate>(aggregate: &A, bytes: &[u8]) -> Result<A::State> {
    match aggregate.parse(bytes) {
        Some(state) => Ok(state),
        None => internal_err!(
            "the state of an aggregate is malformed: {} bytes",
            bytes.len()
        ),
    }
}

/// Each state is dropped as soon as it is written, so that they are never there twice.
fn write_states<A: Aggregate>(
    aggregate: &A,
    states: impl IntoIterator<Item = A::State>,
    heap_bytes: usize,
) -> ArrayRef {
    let states = states.into_iter();
    // A column that grows by doubling has its bytes twice and more, at the moment when memory is
    // short.
    let mut column = LargeBinaryBuilder::with_capacity(states.size_hint().0, heap_bytes);
    let mut bytes = Vec::new();
    for state in states {
        bytes.clear();
        aggregate.write(&state, &mut bytes);
        column.append_value(&bytes);
    }
    Arc::new(column.finish())
}

impl<A: Aggregate> GroupsAccumulator for Groups<A> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        self.update_column(values, opt_filter, |row| group_indices[row])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let results: UInt64Array = self
            .take(emit_to)
            .into_iter()
            .map(|state| Ok(self.aggregate.result(&state)?.map(TermId::bits)))
            .collect::<Result<_>>()?;
        Ok(Arc::new(results))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let before = self.heap_bytes;
        let states = self.take(emit_to);
        let heap_bytes = before - self.heap_bytes;
        Ok(vec![write_states(&self.aggregate, states, heap_bytes)])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        self.merge_column(values, |row| group_indices[row])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = self.aggregate.read(values)?;
        let states = (0..values.first().map_or(0, |column| column.len())).map(|row| {
            let mut state = A::State::default();
            if is_kept(opt_filter, row) {
                self.aggregate.update(&mut state, &rows, row);
            }
            state
        });
        Ok(vec![write_states(&self.aggregate, states, 0)])
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<A::State>() + self.heap_bytes
    }
}

/// The state of a query without `GROUP BY`.
pub(super) struct Single<A: Aggregate> {
    groups: Groups<A>,
}

impl<A: Aggregate> Single<A> {
    pub(super) fn new(aggregate: A) -> Self {
        let mut groups = Groups::new(aggregate);
        groups.grow(1);
        Self { groups }
    }
}

impl<A: Aggregate> std::fmt::Debug for Single<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Single")
    }
}

impl<A: Aggregate> Accumulator for Single<A> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.groups.update_column(values, None, |_| 0)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.groups.aggregate.result(&self.groups.states[0])?;
        Ok(ScalarValue::UInt64(result.map(TermId::bits)))
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.groups)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut bytes = Vec::new();
        self.groups
            .aggregate
            .write(&self.groups.states[0], &mut bytes);
        Ok(vec![ScalarValue::LargeBinary(Some(bytes))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.groups.merge_column(states, |_| 0)
    }
}

/// Cuts the first bytes off as an integer.
pub(super) fn split_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*head), rest))
}

/// An error of this crate as the engine's.
pub(super) fn engine(error: impl Into<DataFusionError>) -> DataFusionError {
    error.into()
}

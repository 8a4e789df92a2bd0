//! The in-memory groups of one execution: numbered keys, and a state per function and group.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, internal_err};
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_expr::GroupsAccumulator;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::group_keys::GroupKeys;
use super::pieces::{Pieces, Taken};
use super::{ResultSize, has_small_states, result_size};

/// What a result takes in the query's table of terms beside what its state has held: a place, its
/// share of a hash table, a short text.
const RESULT_BYTES: usize = 80;
/// A table may hold so much whatever there is: less than a batch on its way.
const ASSURED_BYTES: usize = 64 << 10;

/// Held beside groups that have texts, and given back while a batch is counted in: its own texts
/// have to be read.
const READING_BYTES: usize = 512 << 10;

/// An aggregation of the same functions over another input.
pub(super) fn over(
    aggregate: &AggregateExec,
    mode: AggregateMode,
    input: Arc<dyn ExecutionPlan>,
) -> Result<AggregateExec> {
    let group_by = match mode {
        AggregateMode::Final => aggregate.group_expr().as_final(),
        _ => aggregate.group_expr().clone(),
    };
    AggregateExec::try_new(
        mode,
        group_by,
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        input,
        aggregate.input_schema(),
    )
}

/// See the module's documentation.
pub(super) struct GroupTable {
    aggregate: Arc<AggregateExec>,
    /// Where the keys are in the batches that are read.
    places: Vec<usize>,
    keys: GroupKeys,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// Whether states are read, and no rows.
    reads_states: bool,
    /// What results of a group take in the query's table of terms, kept free for them.
    result_bytes: usize,
    /// Held beside the groups, see [`READING_BYTES`].
    reading_bytes: usize,
    /// The numbers of a batch's rows.
    numbers: Vec<usize>,
    reservation: MemoryReservation,
}

impl GroupTable {
    pub(super) fn new(
        aggregate: Arc<AggregateExec>,
        places: &[usize],
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let results = aggregate.aggr_expr().iter();
        let results = results.filter(|function| result_size(function) != ResultSize::Nothing);
        let result_bytes = match aggregate.mode() {
            AggregateMode::Partial => 0,
            _ => results.count() * RESULT_BYTES,
        };
        let mut functions = aggregate.aggr_expr().iter();
        let reading_bytes = match functions.all(|function| has_small_states(function)) {
            true => 0,
            false => READING_BYTES,
        };
        Ok(Self {
            places: places.to_vec(),
            keys: GroupKeys::new(places),
            accumulators: accumulators_of(&aggregate)?,
            reads_states: *aggregate.mode() == AggregateMode::Final,
            aggregate,
            reading_bytes,
            result_bytes,
            numbers: Vec::new(),
            reservation,
        })
    }

    /// No groups, for states of the columns that [`GroupTable::states`] gives.
    pub(super) fn begin_with_states(&mut self) {
        self.places = (0..self.places.len()).collect();
        self.keys = GroupKeys::new(&self.places);
        self.reads_states = true;
    }

    pub(super) fn aggregate(&self) -> &Arc<AggregateExec> {
        &self.aggregate
    }

    /// Columns of the keys.
    pub(super) fn key_columns(&self) -> usize {
        self.places.len()
    }

    pub(super) fn is_partial(&self) -> bool {
        *self.aggregate.mode() == AggregateMode::Partial
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Rows that were counted in.
    pub(super) fn rows(&self) -> usize {
        self.keys.rows()
    }

    /// Whether what is kept of each group is small, whatever comes.
    pub(super) fn has_small_states(&self) -> bool {
        let mut functions = self.aggregate.aggr_expr().iter();
        functions.all(|function| has_small_states(function))
    }

    /// What it holds.
    pub(super) fn bytes(&self) -> usize {
        let states: usize = self.accumulators.iter().map(|it| it.size()).sum();
        let numbers = self.numbers.capacity() * size_of::<usize>();
        let results = self.keys.len() * self.result_bytes;
        self.keys.size() + states + numbers + results
    }

    /// Reserves what it holds. A little is never refused, so that every part on the disk is read at
    /// some time, whatever others hold.
    pub(super) fn reserve(&self) -> Result<()> {
        match self.bytes() {
            little if little <= ASSURED_BYTES => {
                self.reservation.resize(little);
                Ok(())
            }
            bytes => self.reservation.try_resize(bytes + self.reading_bytes),
        }
    }

    /// Counts a batch in.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let reading_bytes = self.reading_bytes.min(self.reservation.size());
        self.reservation.shrink(reading_bytes);
        self.keys.number(batch, &mut self.numbers)?;
        let groups = self.keys.len();
        let functions = self.aggregate.aggr_expr().iter();
        if self.reads_states {
            // After the keys come the functions' states.
            let mut states = batch.columns().get(self.places.len()..).unwrap_or_default();
            for (function, accumulator) in functions.zip(&mut self.accumulators) {
                let Some((own, others)) = states.split_at_checked(function.state_fields()?.len())
                else {
                    return internal_err!("a group without its states");
                };
                accumulator.merge_batch(own, &self.numbers, groups)?;
                states = others;
            }
            return Ok(());
        }
        for (function, accumulator) in functions.zip(&mut self.accumulators) {
            let arguments = function
                .expressions()
                .iter()
                .map(|argument| argument.evaluate(batch)?.into_array(batch.num_rows()))
                .collect::<Result<Vec<_>>>()?;
            accumulator.update_batch(&arguments, &self.numbers, None, groups)?;
        }
        Ok(())
    }

    /// All groups with what the aggregation gives: results, or states if it is a partial one.
    /// Afterwards there are none here.
    pub(super) fn output(&mut self) -> Result<Pieces> {
        if self.is_partial() {
            return self.states();
        }
        let mut functions = self.aggregate.aggr_expr().iter();
        let taken = match functions.any(|function| result_size(function) == ResultSize::Text) {
            true => Taken::InPieces,
            false => Taken::AtOnce,
        };
        let results = self.keys.len() * self.result_bytes;
        self.reservation
            .shrink(results.min(self.reservation.size()));
        self.pieces(self.aggregate.schema(), taken, false)
    }

    /// All groups with their states. Afterwards there are none here.
    pub(super) fn states(&mut self) -> Result<Pieces> {
        let taken = match self.has_small_states() {
            true => Taken::AtOnce,
            false => Taken::InPieces,
        };
        let schema = self.states_schema()?;
        self.pieces(schema, taken, true)
    }

    fn pieces(&mut self, schema: SchemaRef, taken: Taken, is_states: bool) -> Result<Pieces> {
        let keys = std::mem::replace(&mut self.keys, GroupKeys::new(&self.places));
        let accumulators = accumulators_of(&self.aggregate)?;
        Ok(Pieces::new(
            schema,
            keys.into_columns(),
            std::mem::replace(&mut self.accumulators, accumulators),
            self.reservation.take(),
            taken,
            is_states,
        ))
    }

    /// The columns of states.
    pub(super) fn states_schema(&self) -> Result<SchemaRef> {
        let aggregate = &self.aggregate;
        match aggregate.mode() {
            AggregateMode::Partial => return Ok(aggregate.schema()),
            AggregateMode::Final => return Ok(aggregate.input().schema()),
            _ => {}
        }
        let input = Arc::clone(aggregate.input());
        Ok(over(aggregate, AggregateMode::Partial, input)?.schema())
    }
}

fn accumulators_of(aggregate: &AggregateExec) -> Result<Vec<Box<dyn GroupsAccumulator>>> {
    let functions = aggregate.aggr_expr().iter();
    functions
        .map(|function| function.create_groups_accumulator())
        .collect()
}

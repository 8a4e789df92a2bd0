//! `sum` and `avg` of floats that fail where they run over.
//!
//! The engine adds on to an infinity, as IEEE 754 has it. PostgreSQL refuses (22003) an infinite
//! result without an infinity among the inputs. So the inputs are searched for infinities, in one
//! pass over each batch, and an infinite result without any is refused. A sum that overflows in one
//! part fails too, even where another part would bring it back.

use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, SetMonotonicity, Signature,
};

use crate::functions::float_range::overflow;
use crate::functions::offered::of_engine_methods;

/// The function in the place of this one of an argument, if it is one that would run over.
pub(super) fn float_total(
    of_engine: &Arc<AggregateUDF>,
    argument: &DataType,
) -> Option<Arc<AggregateUDF>> {
    let is_total = matches!(of_engine.name(), "sum" | "avg") && argument.is_floating();
    (is_total && !of_engine.inner().is::<FloatTotal>()).then(|| {
        Arc::new(AggregateUDF::new_from_impl(FloatTotal {
            of_engine: Arc::clone(of_engine),
        }))
    })
}

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatTotal {
    of_engine: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for FloatTotal {
    of_engine_methods!();

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(checked(self.of_engine.accumulator(args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(checked(self.of_engine.create_sliding_accumulator(args)?))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.of_engine.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(CheckedGroups {
            of_engine: self.of_engine.create_groups_accumulator(args)?,
            infinite: Vec::new(),
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.of_engine.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.of_engine.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.of_engine.reverse_udf()
    }
}

/// Whether a row of an array is an infinity.
fn is_infinite(values: &dyn Array, row: usize) -> bool {
    values.is_valid(row)
        && match values.data_type() {
            DataType::Float64 => values
                .as_primitive::<Float64Type>()
                .value(row)
                .is_infinite(),
            DataType::Float32 => values
                .as_primitive::<Float32Type>()
                .value(row)
                .is_infinite(),
            _ => false,
        }
}

/// Whether an array may have infinities, also where it has no values.
fn may_be_infinite(values: &dyn Array) -> bool {
    // Without a branch, so that it is done for several at once.
    match values.data_type() {
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>().values().iter();
            values.fold(false, |found, value| found | value.is_infinite())
        }
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>().values().iter();
            values.fold(false, |found, value| found | value.is_infinite())
        }
        _ => false,
    }
}

/// How many infinities there are, also within lists.
fn infinities(values: &ArrayRef) -> usize {
    match values.data_type() {
        DataType::List(_) => infinities(values.as_list::<i32>().values()),
        _ if may_be_infinite(values) => (0..values.len())
            .filter(|row| is_infinite(values, *row))
            .count(),
        _ => 0,
    }
}

fn checked(of_engine: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
    Box::new(Checked {
        of_engine,
        infinities: 0,
    })
}

/// One total.
#[derive(Debug)]
struct Checked {
    of_engine: Box<dyn Accumulator>,
    /// Those in it.
    infinities: usize,
}

impl Checked {
    fn refuse(&self, value: &ScalarValue) -> Result<()> {
        let is_infinite = match value {
            ScalarValue::Float64(Some(value)) => value.is_infinite(),
            ScalarValue::Float32(Some(value)) => value.is_infinite(),
            _ => false,
        };
        match is_infinite && self.infinities == 0 {
            true => Err(overflow()),
            false => Ok(()),
        }
    }

    fn count(values: &[ArrayRef]) -> usize {
        values.iter().map(infinities).sum()
    }
}

impl Accumulator for Checked {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.infinities += Self::count(values);
        self.of_engine.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.infinities = self.infinities.saturating_sub(Self::count(values));
        self.of_engine.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.of_engine.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.of_engine.evaluate()?;
        self.refuse(&total)?;
        Ok(total)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.of_engine.state()?;
        state.iter().try_for_each(|value| self.refuse(value))?;
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.infinities += Self::count(states);
        self.of_engine.merge_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.of_engine.size()
    }
}

/// Totals of many groups.
struct CheckedGroups {
    of_engine: Box<dyn GroupsAccumulator>,
    /// The groups that have infinities; of those behind its end none has.
    infinite: Vec<bool>,
}

impl CheckedGroups {
    /// Notes the groups of infinities.
    fn note(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) {
        for values in values.iter().filter(|values| may_be_infinite(values)) {
            let is_counted =
                |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            for (row, group) in groups.iter().enumerate() {
                if is_infinite(values, row) && is_counted(row) {
                    let length = self.infinite.len().max(group + 1);
                    self.infinite.resize(length, false);
                    self.infinite[*group] = true;
                }
            }
        }
    }

    /// Which of the groups that are given out have infinities.
    fn taken(&mut self, emit: EmitTo) -> Vec<bool> {
        match emit {
            EmitTo::All => std::mem::take(&mut self.infinite),
            EmitTo::First(groups) => {
                let end = groups.min(self.infinite.len());
                self.infinite.drain(..end).collect()
            }
        }
    }
}

fn refuse_groups(totals: &dyn Array, infinite: &[bool]) -> Result<()> {
    let may_be = |row: usize| infinite.get(row).copied().unwrap_or(false);
    let runs_over = may_be_infinite(totals)
        && (0..totals.len()).any(|row| is_infinite(totals, row) && !may_be(row));
    match runs_over {
        true => Err(overflow()),
        false => Ok(()),
    }
}

impl GroupsAccumulator for CheckedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.note(values, groups, filter);
        self.of_engine
            .update_batch(values, groups, filter, groups_count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let infinite = self.taken(emit);
        let totals = self.of_engine.evaluate(emit)?;
        refuse_groups(&totals, &infinite)?;
        Ok(totals)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let infinite = self.taken(emit);
        let states = self.of_engine.state(emit)?;
        states
            .iter()
            .try_for_each(|states| refuse_groups(states, &infinite))?;
        Ok(states)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        self.note(states, groups, None);
        self.of_engine.merge_batch(states, groups, groups_count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.of_engine.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.of_engine.size() + self.infinite.capacity()
    }
}

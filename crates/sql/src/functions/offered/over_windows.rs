//! Aggregates over windows with growing results, whose memory is counted.
//!
//! `string_agg(text, ',') OVER (ORDER BY n)` gives a text for each row, each longer than the one
//! before: of 20,000 rows of a hundred bytes, 20 GB. An operator holds the results of its rows, and
//! puts them together, before it hands them on; it asks nobody. So the aggregate asks, before it
//! makes a result, for that and its place in a column, until its partition is done.

use std::hash::{Hash, Hasher};
use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, ReversedUDAF,
    SetMonotonicity, Signature, WindowFunctionDefinition,
};

use super::of_engine::of_engine_methods;
use crate::values::sizes::bytes_of_array;

/// Aggregates that give all that they were given.
const GROWING: [&str; 2] = ["array_agg", "string_agg"];
/// A result is there as such, and in the column that is made of all.
const COPIES: usize = 2;
/// What a value takes beside its bytes.
const VALUE_BYTES: usize = 16;

/// A call over a window with its memory counted, if its results grow.
pub(crate) fn counted_over_window(
    expr: Expr,
    pool: Option<&Arc<dyn MemoryPool>>,
) -> Result<Transformed<Expr>> {
    let (mut window, pool) = match (expr, pool) {
        (Expr::WindowFunction(window), Some(pool)) => (window, pool),
        (expr, _) => return Ok(Transformed::no(expr)),
    };
    let WindowFunctionDefinition::AggregateUDF(function) = &window.fun else {
        return Ok(Transformed::no(Expr::WindowFunction(window)));
    };
    if !GROWING.contains(&function.name()) || function.inner().is::<OverWindow>() {
        return Ok(Transformed::no(Expr::WindowFunction(window)));
    }
    window.fun = WindowFunctionDefinition::AggregateUDF(over_window(Arc::clone(function), pool));
    Ok(Transformed::yes(Expr::WindowFunction(window)))
}

fn over_window(of_engine: Arc<AggregateUDF>, pool: &Arc<dyn MemoryPool>) -> Arc<AggregateUDF> {
    let pool = Arc::clone(pool);
    Arc::new(AggregateUDF::new_from_impl(OverWindow { of_engine, pool }))
}

/// See the module.
#[derive(Debug)]
struct OverWindow {
    of_engine: Arc<AggregateUDF>,
    pool: Arc<dyn MemoryPool>,
}

impl PartialEq for OverWindow {
    fn eq(&self, other: &Self) -> bool {
        self.of_engine == other.of_engine
    }
}

impl Eq for OverWindow {}

impl Hash for OverWindow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of_engine.hash(state);
    }
}

impl OverWindow {
    fn counted(&self, of_engine: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        let memory = MemoryConsumer::new("the results of an aggregate over a window");
        Box::new(CountedAccumulator {
            of_engine,
            memory: memory.register(&self.pool),
            held_bytes: 0,
            held_values: 0,
        })
    }
}

impl AggregateUDFImpl for OverWindow {
    of_engine_methods!();

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.counted(self.of_engine.accumulator(args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.counted(self.of_engine.create_sliding_accumulator(args)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.of_engine.state_fields(args)
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_ordered: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let of_engine = AggregateUDF::clone(&self.of_engine);
        let ordered = of_engine.with_beneficial_ordering(is_ordered)?;
        Ok(ordered.map(|ordered| {
            Arc::new(Self {
                of_engine: Arc::new(ordered),
                pool: Arc::clone(&self.pool),
            }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.of_engine.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.of_engine.reverse_udf() {
            ReversedUDAF::Reversed(other) => ReversedUDAF::Reversed(over_window(other, &self.pool)),
            same_or_none => same_or_none,
        }
    }
}

/// The values of one partition, and what was given for its rows.
#[derive(Debug)]
struct CountedAccumulator {
    of_engine: Box<dyn Accumulator>,
    /// For what is held, and for what was given.
    memory: MemoryReservation,
    /// Of the values in the frame.
    held_bytes: usize,
    held_values: usize,
}

impl CountedAccumulator {
    fn bytes_of_result(&self) -> usize {
        self.held_bytes + self.held_values * VALUE_BYTES
    }
}

/// The bytes of arguments, and how many rows have them.
fn size_of(values: &[ArrayRef]) -> (usize, usize) {
    let bytes = values.iter().map(|values| bytes_of_array(values) as usize);
    (bytes.sum(), values.first().map_or(0, |values| values.len()))
}

impl Accumulator for CountedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (bytes, count) = size_of(values);
        self.memory.try_grow(bytes + count * VALUE_BYTES)?;
        self.held_bytes += bytes;
        self.held_values += count;
        self.of_engine.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.memory.try_grow(COPIES * self.bytes_of_result())?;
        self.of_engine.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.of_engine.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.of_engine.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.of_engine.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (bytes, count) = size_of(values);
        self.of_engine.retract_batch(values)?;
        let (bytes, count) = (bytes.min(self.held_bytes), count.min(self.held_values));
        self.held_bytes -= bytes;
        self.held_values -= count;
        self.memory.shrink(bytes + count * VALUE_BYTES);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.of_engine.supports_retract_batch()
    }
}

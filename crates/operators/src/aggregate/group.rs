//! `GROUP BY` variables.
//!
//! Does what DataFusion's `AggregateExec` does for keys that are columns of ids, through tables of our own ([`GroupKeys`]) and without
//! converting what it need not. The aggregate functions are the same.
//!
//! ```text
//! batch -> numbers of the groups by the keys' ids -> each function's accumulator        until the input ends; states, if final
//! ids and results -> batches                                                            or ids and states, if partial
//! ```
//!
//! Groups come in the order in which their keys first came. Memory is reserved; where there is no more, what there is goes on as states to
//! DataFusion's aggregation, which spills, and so does the rest of the input. What large states (joined texts, sets of terms) become is
//! computed a part of the groups at a time (`pieces`), as it is read, for results take memory of their own. The same is done with very many groups by several keys: one table of
//! whole keys is then quicker than one for each key and pair, and a partial aggregation that finds a new group in nearly every row only
//! makes work for the final one.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::{Result, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::GroupsAccumulator;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};

use super::group_keys::GroupKeys;
use super::pieces::Pieces;
use crate::node::{Inputs, alike_input, node_methods};
use crate::node_metrics::NodeMetrics;
use crate::nodes::StreamExec;

/// Groups by several keys from which DataFusion's table of whole keys is quicker: with three million it took half of the time of ours.
const GROUPS_OF_SEVERAL_KEYS_MAX: usize = if cfg!(test) { 20_000 } else { 500_000 };
/// Groups from which a partial aggregation looks whether it makes its input smaller.
const PARTIAL_GROUPS_MIN: usize = if cfg!(test) { 2_000 } else { 100_000 };

/// The same aggregation as a [`GroupExec`], if that can do it; else as it is.
pub fn grouped(aggregate: AggregateExec) -> Arc<dyn ExecutionPlan> {
    match keys_of(&aggregate) {
        Some(keys) => Arc::new(GroupExec {
            input: Arc::clone(aggregate.input()),
            keys: keys.into(),
            properties: Arc::clone(aggregate.properties()),
            aggregate: Arc::new(aggregate),
            metrics: ExecutionPlanMetricsSet::new(),
        }),
        None => Arc::new(aggregate),
    }
}

/// The input's columns by which is grouped, if they are ids and nothing else is asked for.
fn keys_of(aggregate: &AggregateExec) -> Option<Vec<usize>> {
    let is_of_planner = match aggregate.mode() {
        AggregateMode::Single | AggregateMode::Partial | AggregateMode::Final => true,
        AggregateMode::FinalPartitioned
        | AggregateMode::SinglePartitioned
        | AggregateMode::PartialReduce => false,
    };
    let is_plain = is_of_planner
        && aggregate.group_expr().is_single()
        && aggregate.limit_options().is_none()
        && aggregate.filter_expr().iter().all(Option::is_none)
        && aggregate
            .aggr_expr()
            .iter()
            .all(|function| function.groups_accumulator_supported());
    let schema = aggregate.input().schema();
    let id_column = |(key, _): &(Arc<dyn PhysicalExpr>, String)| {
        let key: &dyn std::any::Any = key.as_ref();
        let column = key.downcast_ref::<Column>()?.index();
        let field = schema.fields().get(column)?;
        (*field.data_type() == DataType::UInt64).then_some(column)
    };
    let keys = aggregate.group_expr().expr().iter();
    let keys: Vec<usize> = keys.map(id_column).collect::<Option<_>>()?;
    (is_plain && !keys.is_empty()).then_some(keys)
}

/// Groups by columns of ids; see the module's documentation.
#[derive(Clone, Debug)]
pub struct GroupExec {
    /// What it stands for, over an input of the same columns.
    aggregate: Arc<AggregateExec>,
    input: Arc<dyn ExecutionPlan>,
    keys: Arc<[usize]>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GroupExec {
    /// The same in DataFusion's terms. Its input has the columns of this one's, and may be another.
    pub fn aggregate(&self) -> &AggregateExec {
        &self.aggregate
    }
}

impl DisplayAs for GroupExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupExec, an ")?;
        self.aggregate.fmt_as(kind, f)
    }
}

impl Inputs for GroupExec {
    /// A state of each partition; whole groups are made of one.
    fn reads_partitions(&self) -> bool {
        *self.aggregate.mode() == AggregateMode::Partial
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        let aggregate = over(&self.aggregate, *self.aggregate.mode(), input)?;
        Ok(grouped(aggregate))
    }

    // To make an aggregation of DataFusion's anew was a tenth of a short query whose plan is kept.
    alike_input!();
}

impl ExecutionPlan for GroupExec {
    node_methods!("GroupExec", own expressions);

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(
            &Arc<dyn PhysicalExpr>,
        ) -> Result<datafusion_common::tree_node::TreeNodeRecursion>,
    ) -> Result<datafusion_common::tree_node::TreeNodeRecursion> {
        self.aggregate.apply_expressions(visit)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let groups = GroupTable::new(self, partition, &context)?;
        let schema = self.aggregate.schema();
        let batches = futures::stream::once(groups.of_all(input, context)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// An aggregation of the same functions over another input.
fn over(
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

/// The groups of one execution.
struct GroupTable {
    aggregate: Arc<AggregateExec>,
    places: Arc<[usize]>,
    keys: GroupKeys,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// The numbers of a batch's rows.
    numbers: Vec<usize>,
    reservation: MemoryReservation,
    baseline: NodeMetrics,
}

impl GroupTable {
    fn new(plan: &GroupExec, partition: usize, context: &TaskContext) -> Result<Self> {
        let functions = plan.aggregate.aggr_expr().iter();
        Ok(Self {
            aggregate: Arc::clone(&plan.aggregate),
            places: Arc::clone(&plan.keys),
            keys: GroupKeys::new(&plan.keys),
            accumulators: functions
                .map(|function| function.create_groups_accumulator())
                .collect::<Result<_>>()?,
            numbers: Vec::new(),
            reservation: MemoryConsumer::new("GroupExec").register(context.memory_pool()),
            baseline: NodeMetrics::new(&plan.metrics, partition),
        })
    }

    /// Reads the whole input; gives the batches of groups.
    async fn of_all(
        mut self,
        mut input: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        while let Some(batch) = input.next().await {
            let elapsed = self.baseline.elapsed_compute().clone();
            let _timer = elapsed.timer();
            self.add(&batch?)?;
            if self.is_better_elsewhere() || self.reservation.try_resize(self.size()).is_err() {
                return self.hand_over(input, context);
            }
        }
        let batch_rows = context.session_config().batch_size();
        let (schema, baseline) = (self.aggregate.schema(), self.baseline.clone());
        let is_partial = *self.aggregate.mode() == AggregateMode::Partial;
        let pieces = self.pieces(is_partial)?;
        let timed = baseline.elapsed_compute().clone();
        let batches = pieces.batches(batch_rows, Some(timed));
        let batches = batches.inspect(move |batch| {
            baseline.record_output(batch.as_ref().map_or(0, RecordBatch::num_rows));
        });
        let batches = futures::stream::iter(batches);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    /// Whether there are so many groups that DataFusion's aggregation is quicker.
    fn is_better_elsewhere(&self) -> bool {
        if self.places.len() < 2 {
            return false;
        }
        let (groups, rows) = (self.keys.len(), self.keys.rows());
        let is_nearly_each_row_new = groups > rows - rows / 5;
        let is_partial = *self.aggregate.mode() == AggregateMode::Partial;
        groups > GROUPS_OF_SEVERAL_KEYS_MAX
            || (is_partial && groups > PARTIAL_GROUPS_MIN && is_nearly_each_row_new)
    }

    fn size(&self) -> usize {
        let states: usize = self.accumulators.iter().map(|it| it.size()).sum();
        self.keys.size() + states + self.numbers.capacity() * size_of::<usize>()
    }

    /// Counts the rows of a batch in.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.keys.number(batch, &mut self.numbers)?;
        let groups = self.keys.len();
        let functions = self.aggregate.aggr_expr().iter();
        if *self.aggregate.mode() == AggregateMode::Final {
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

    /// All groups, with their results or with their states; afterwards there are none here.
    fn pieces(&mut self, is_partial: bool) -> Result<Pieces> {
        let empty = GroupKeys::new(&self.places);
        let keys = std::mem::replace(&mut self.keys, empty).into_columns();
        let schema = match is_partial {
            true => states_schema(&self.aggregate)?,
            false => self.aggregate.schema(),
        };
        Ok(Pieces::new(
            schema,
            keys,
            std::mem::take(&mut self.accumulators),
            self.reservation.take(),
            is_partial,
        ))
    }

    /// The groups so far as states, and the rest of the input, through DataFusion's aggregation.
    fn hand_over(
        mut self,
        rest: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let states = self.pieces(true)?.for_another();
        let schema = states.schema();
        let rest = match self.aggregate.mode() {
            AggregateMode::Final => rest,
            _ => {
                let input = Arc::new(StreamExec::new(rest));
                let partial = over(&self.aggregate, AggregateMode::Partial, input)?;
                partial.execute(0, Arc::clone(&context))?
            }
        };
        let states = futures::stream::iter(states.batches(batch_rows, None)).chain(rest);
        let states: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(schema, states));
        let baseline = self.baseline;
        let groups = match self.aggregate.mode() {
            AggregateMode::Partial => states,
            _ => {
                let input = Arc::new(StreamExec::new(states));
                over(&self.aggregate, AggregateMode::Final, input)?.execute(0, context)?
            }
        };
        let counted = groups.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        let schema = self.aggregate.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}

/// The columns of states.
fn states_schema(aggregate: &AggregateExec) -> Result<SchemaRef> {
    match aggregate.mode() {
        AggregateMode::Partial => return Ok(aggregate.schema()),
        AggregateMode::Final => return Ok(aggregate.input().schema()),
        _ => {}
    }
    let input = Arc::clone(aggregate.input());
    Ok(over(aggregate, AggregateMode::Partial, input)?.schema())
}

#[cfg(test)]
mod tests {
    use datafusion_execution::memory_pool::GreedyMemoryPool;
    use datafusion_execution::runtime_env::RuntimeEnvBuilder;
    use datafusion_physical_plan::aggregates::PhysicalGroupBy;
    use datafusion_physical_plan::collect;
    use datafusion_physical_plan::test::TestMemoryExec;
    use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};
    use spargebra::term::Variable;

    use arrow::array::{AsArray, UInt64Array};
    use arrow::datatypes::UInt64Type;

    use super::*;
    use crate::oracle::schema;
    use crate::test_support::{context_with, run, term, try_run};

    /// Rows in batches of a thousand: `groups` groups, every so manyeth key unbound, several rows each. The group's first column is the first
    /// of some keys.
    fn aggregation(rows: i64, groups: i64, keys: &[&str]) -> AggregateExec {
        let schema = schema(&["g", "x"]);
        let batches = (0..rows / 1_000).map(|batch| {
            let rows = batch * 1_000..(batch + 1) * 1_000;
            let key = |row: i64| (row % 1_009 != 0).then(|| term(row * 7_919 % groups).bits());
            let keys: UInt64Array = rows.clone().map(key).collect();
            let values: UInt64Array = rows.map(|row| Some(term(row % 100).bits())).collect();
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(keys), Arc::new(values)])
        });
        let batches = batches.collect::<std::result::Result<Vec<_>, _>>().unwrap();
        let input = TestMemoryExec::try_new_exec(&[batches], Arc::clone(&schema), None).unwrap();
        let sum = AggregateExpression::FunctionCall {
            name: AggregateFunction::Sum,
            expr: Expression::Variable(Variable::new_unchecked("x")),
            distinct: false,
        };
        let count = AggregateExpression::CountSolutions { distinct: false };
        let named = [("s".to_owned(), sum), ("n".to_owned(), count)];
        let functions = super::super::plan(&named, &schema, &context_with(&[])).unwrap();
        let column = |name: &&str| {
            let column = Column::new_with_schema(name, &schema).unwrap();
            (
                Arc::new(column) as Arc<dyn PhysicalExpr>,
                (*name).to_owned(),
            )
        };
        AggregateExec::try_new(
            AggregateMode::Single,
            PhysicalGroupBy::new_single(keys.iter().map(column).collect()),
            functions,
            vec![None, None],
            input,
            Arc::clone(&schema),
        )
        .unwrap()
    }

    #[test]
    fn groups_beyond_the_memory_go_on_in_an_aggregation_that_spills() {
        for keys in [&["g"] as &[&str], &["g", "x"], &["x", "g"]] {
            let aggregate = aggregation(200_000, 60_000, keys);
            let expected = run(Arc::new(aggregate.clone()));
            assert!(expected.len() > 59_000);
            let ours = grouped(aggregate);
            assert!(ours.is::<GroupExec>());
            assert_eq!(run(Arc::clone(&ours)), expected);
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(GreedyMemoryPool::new(3 << 20)))
                .build_arc()
                .unwrap();
            let short = Arc::new(TaskContext::default().with_runtime(runtime));
            assert_eq!(try_run(ours, short).unwrap(), expected);
        }
    }

    #[test]
    fn states_of_parts_are_merged_with_and_without_memory() {
        for keys in [&["g"] as &[&str], &["x", "g"]] {
            let aggregate = aggregation(200_000, 60_000, keys);
            let expected = run(Arc::new(aggregate.clone()));
            let input = Arc::clone(aggregate.input());
            let partial = over(&aggregate, AggregateMode::Partial, input).unwrap();
            let merged = over(&aggregate, AggregateMode::Final, grouped(partial)).unwrap();
            let merged = grouped(merged);
            assert!(merged.is::<GroupExec>());
            assert_eq!(run(Arc::clone(&merged)), expected);
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(GreedyMemoryPool::new(3 << 20)))
                .build_arc()
                .unwrap();
            let short = Arc::new(TaskContext::default().with_runtime(runtime));
            assert_eq!(try_run(merged, short).unwrap(), expected);
        }
    }

    #[test]
    fn groups_come_in_the_order_of_their_first_rows_and_in_short_batches() {
        let plan = grouped(aggregation(20_000, 9_000, &["g"]));
        let context = Arc::new(TaskContext::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let batches = runtime
            .block_on(collect(Arc::clone(&plan), context))
            .unwrap();
        assert!(batches.len() > 1);
        let keys: Vec<Option<u64>> = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().iter())
            .collect();
        let of_row = |row: i64| Some(term(row * 7_919 % 9_000).bits());
        assert_eq!(keys[..4], [None, of_row(1), of_row(2), of_row(3)]);
        assert_eq!(plan.metrics().unwrap().output_rows(), Some(keys.len()));
    }
}

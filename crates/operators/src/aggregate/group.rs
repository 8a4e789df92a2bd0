//! The plan node of `GROUP BY` over variables.
//!
//! Does what DataFusion's `AggregateExec` does for keys that are columns of ids, through tables of
//! our own ([`GroupKeys`]) and without converting what it need not. The aggregate functions are the
//! same.
//!
//! ```text
//! batch -> numbers of the groups by the keys' ids -> each function's accumulator        until the input ends; states, if final
//! ids and results -> batches                                                            or ids and states, if partial
//! ```
//!
//! Groups come in the order in which their keys first came. Memory is reserved, and what there is
//! not memory for goes to the disk in parts of the groups (`group_parts`): then they come in no
//! particular order. A partial aggregation gives what it has, and begins anew. What large states
//! (joined texts) become is computed a part of the groups at a time (`pieces`), as it is read, for
//! results take memory of their own. With very many groups by several keys DataFusion's aggregation
//! goes on, if their states are small (`group_stream`).

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::group_stream::{Execution, GroupStream};
use super::group_table::{GroupTable, over};
use orrery_plan_node::{Inputs, alike_input, node_methods};

/// Replaces an aggregation by a [`GroupExec`], if that can do it.
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
        let reservation = MemoryConsumer::new("GroupExec")
            .with_can_spill(true)
            .register(context.memory_pool());
        let table = GroupTable::new(Arc::clone(&self.aggregate), &self.keys, reservation)?;
        let execution = Execution {
            context,
            metrics: self.metrics.clone(),
            partition,
        };
        Ok(GroupStream::new(input, table, execution).batches())
    }
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

    use arrow::array::{AsArray, RecordBatch, UInt64Array};
    use arrow::datatypes::UInt64Type;

    use super::*;
    use crate::oracle::schema;
    use crate::test_support::{context_with, run, term, try_run};

    /// Rows in batches of a thousand: `groups` groups, every so manyeth key unbound, several rows
    /// each. The group's first column is the first of some keys.
    fn aggregation(rows: i64, groups: i64, keys: &[&str], is_joined: bool) -> AggregateExec {
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
        let of_x = |name: AggregateFunction| AggregateExpression::FunctionCall {
            name,
            expr: Expression::Variable(Variable::new_unchecked("x")),
            distinct: false,
        };
        let sum = of_x(match is_joined {
            true => AggregateFunction::GroupConcat { separator: None },
            false => AggregateFunction::Sum,
        });
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

    fn within(bytes: usize) -> Arc<TaskContext> {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)))
            .build_arc()
            .unwrap();
        Arc::new(TaskContext::default().with_runtime(runtime))
    }

    /// With no memory at all they are divided until a table is as small as it may always be.
    #[test]
    fn groups_beyond_the_memory_go_to_the_disk_in_parts_until_they_fit() {
        for keys in [&["g"] as &[&str], &["g", "x"], &["x", "g"]] {
            for is_joined in [false, true] {
                let aggregate = aggregation(60_000, 18_000, keys, is_joined);
                let expected = run(Arc::new(aggregate.clone()));
                assert!(expected.len() > 17_900);
                let ours = grouped(aggregate);
                assert!(ours.is::<GroupExec>());
                assert_eq!(run(Arc::clone(&ours)), expected);
                for bytes in [600_000, 0] {
                    let context = within(bytes);
                    let found = try_run(Arc::clone(&ours), Arc::clone(&context)).unwrap();
                    assert!(found == expected, "{keys:?}, {is_joined}, {bytes} bytes");
                    assert_eq!(context.memory_pool().reserved(), 0);
                }
                assert!(ours.metrics().unwrap().spilled_rows() > Some(0));
            }
        }
    }

    #[test]
    fn states_of_parts_are_merged_with_and_without_memory() {
        for keys in [&["g"] as &[&str], &["x", "g"]] {
            for is_joined in [false, true] {
                let aggregate = aggregation(60_000, 18_000, keys, is_joined);
                let expected = run(Arc::new(aggregate.clone()));
                let input = Arc::clone(aggregate.input());
                let partial = over(&aggregate, AggregateMode::Partial, input).unwrap();
                let merged = over(&aggregate, AggregateMode::Final, grouped(partial)).unwrap();
                let merged = grouped(merged);
                assert!(merged.is::<GroupExec>());
                assert_eq!(run(Arc::clone(&merged)), expected);
                for bytes in [600_000, 0] {
                    let found = try_run(Arc::clone(&merged), within(bytes)).unwrap();
                    assert!(found == expected, "{keys:?}, {is_joined}, {bytes} bytes");
                }
            }
        }
    }

    #[test]
    fn groups_come_in_the_order_of_their_first_rows_and_in_short_batches() {
        let plan = grouped(aggregation(20_000, 9_000, &["g"], false));
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

//! Tests of plans over three in-process workers: answers, traffic, and lost workers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use bytes::Bytes;
use datafusion_common::{JoinType, NullEquality, Result};
use datafusion_execution::TaskContext;
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_physical_expr::aggregate::AggregateExprBuilder;
use datafusion_physical_expr::expressions::{col, lit};
use datafusion_physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalSortExpr,
};
use datafusion_physical_plan::ExecutionPlanProperties as _;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};

use super::*;
use orrery_plan_node::node_methods;

type Plan = Arc<dyn ExecutionPlan>;

/// How partitions of [`Numbers`] are said to be divided.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Claim {
    Nothing,
    /// By the hash of `k`, which is not true.
    ByHash,
    /// Each value of `k` is in one partition, and that is said.
    Apart,
}

/// The numbers from 0 on, each with a key that repeats: partition p of n has a share of them.
#[derive(Debug)]
struct Numbers {
    name: &'static str,
    rows: i64,
    keys: i64,
    /// Whether each partition has keys of its own.
    is_apart: bool,
    properties: Arc<PlanProperties>,
}

impl Numbers {
    fn of(name: &'static str, rows: i64, keys: i64, partitions: usize) -> Self {
        Self::claiming(name, rows, keys, partitions, Claim::Nothing)
    }

    fn claiming(name: &'static str, rows: i64, keys: i64, partitions: usize, claim: Claim) -> Self {
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new(format!("{name}_k"), DataType::Int64, false),
            Field::new(format!("{name}_n"), DataType::Int64, false),
        ]));
        let key = col(&format!("{name}_k"), &schema).unwrap();
        let partitioning = match claim {
            Claim::Nothing => Partitioning::UnknownPartitioning(partitions),
            Claim::ByHash | Claim::Apart => Partitioning::Hash(vec![key], partitions),
        };
        Self {
            name,
            rows,
            keys,
            is_apart: claim == Claim::Apart,
            properties: Arc::new(PlanProperties::new(
                EquivalenceProperties::new(schema),
                partitioning,
                EmissionType::Incremental,
                Boundedness::Bounded,
            )),
        }
    }
}

impl DisplayAs for Numbers {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Numbers: {} {} rows {} keys",
            self.name, self.rows, self.keys
        )
    }
}

impl ExecutionPlan for Numbers {
    node_methods!("Numbers", leaf, own metrics);

    fn execute(
        &self,
        partition: usize,
        _: Arc<TaskContext>,
    ) -> Result<datafusion_execution::SendableRecordBatchStream> {
        let partitions = self.properties.partitioning.partition_count() as i64;
        let share = |at: i64| self.rows * at / partitions;
        let range = share(partition as i64)..share(partition as i64 + 1);
        let (schema, keys) = (self.schema(), self.keys);
        let first_key = match self.is_apart {
            true => keys * partition as i64,
            false => 0,
        };
        let made = Arc::clone(&schema);
        let starts: Vec<i64> = range.clone().step_by(1_000).collect();
        let batches = starts.into_iter().map(move |start| {
            let numbers = start..(start + 1_000).min(range.end);
            let key: Int64Array = numbers
                .clone()
                .map(|number| first_key + number * 7 % keys)
                .collect();
            let number: Int64Array = numbers.collect();
            let columns: Vec<arrow::array::ArrayRef> = vec![Arc::new(key), Arc::new(number)];
            Ok(RecordBatch::try_new(Arc::clone(&made), columns)?)
        });
        let rows = futures::stream::iter(batches);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

fn rules(may_divide_by_hash: bool) -> Rules {
    Rules {
        is_leaf: |_| false,
        is_dealt: |leaf| leaf.is::<Numbers>(),
        is_by_partition: |node| {
            let by_key = node.downcast_ref::<HashJoinExec>();
            by_key.is_none_or(|join| *join.partition_mode() == PartitionMode::Partitioned)
                && !node.is::<Unknown>()
        },
        is_with_reader: |node| node.is::<Tells>(),
        rows: |node| match node.downcast_ref::<Numbers>() {
            Some(numbers) => numbers.rows as f64,
            None => {
                let rows = node.children().into_iter().map(rows_below);
                rows.fold(0.0, f64::max)
            }
        },
        label: |node| node.name().to_owned(),
        extent: |leaf| leaf.name().to_owned(),
        may_divide_by_hash,
    }
}

fn rows_below(plan: &Plan) -> f64 {
    match plan.downcast_ref::<Numbers>() {
        Some(numbers) => numbers.rows as f64,
        None => {
            let rows = plan.children().into_iter().map(rows_below);
            rows.fold(0.0, f64::max)
        }
    }
}

/// A node that nobody knows: it is to run in one place.
#[derive(Debug)]
struct Unknown {
    input: Plan,
    properties: Arc<PlanProperties>,
}

impl Unknown {
    fn over(input: Plan) -> Self {
        let properties = Arc::clone(input.properties());
        Self { input, properties }
    }

    fn with_input(&self, input: Plan) -> Self {
        Self::over(input)
    }
}

impl DisplayAs for Unknown {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unknown")
    }
}

impl ExecutionPlan for Unknown {
    node_methods!("Unknown", over input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<datafusion_execution::SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

/// A node that tells nodes elsewhere which rows there are: each process has to see all of them.
#[derive(Debug)]
struct Tells {
    input: Plan,
    properties: Arc<PlanProperties>,
}

/// Rows that such nodes have seen, in all processes.
static TOLD: AtomicUsize = AtomicUsize::new(0);

impl Tells {
    fn over(input: Plan) -> Self {
        let properties = Arc::clone(input.properties());
        Self { input, properties }
    }

    fn with_input(&self, input: Plan) -> Self {
        Self::over(input)
    }
}

impl DisplayAs for Tells {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tells")
    }
}

impl ExecutionPlan for Tells {
    node_methods!("Tells", over input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<datafusion_execution::SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let rows = rows.inspect_ok(|batch| _ = TOLD.fetch_add(batch.num_rows(), Ordering::Relaxed));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// Makes the plan again, as each process does.
struct Made {
    make: fn() -> Plan,
    rules: Rules,
    /// How many of its plans are open.
    open: Arc<()>,
}

impl Language for Made {
    fn plan(&self, _: Bytes, _: u32) -> BoxFuture<'static, Result<WorkerPlan>> {
        let (plan, rules) = ((self.make)(), self.rules);
        let open = Arc::clone(&self.open);
        async move {
            Ok(WorkerPlan {
                plan,
                task: Arc::default(),
                rules,
                translation: Arc::new(AsTheyAre),
                touches: Arc::new(|_| 5),
                ends: Some(Box::new(open)),
            })
        }
        .boxed()
    }

    fn threads(&self) -> tokio::runtime::Handle {
        tokio::runtime::Handle::current()
    }
}

/// A plan, run by three workers.
struct Trial {
    network: Arc<InProcess>,
    workers: Vec<Arc<Workers>>,
    make: fn() -> Plan,
    rules: Rules,
    streams: usize,
    has_own_part: bool,
    touches: Arc<AtomicUsize>,
    open: Arc<()>,
}

impl Trial {
    fn of(make: fn() -> Plan, may_divide_by_hash: bool) -> Self {
        let (network, workers) = InProcess::members(3, 0.0);
        let rules = rules(may_divide_by_hash);
        let open = Arc::new(());
        for worker in &workers {
            let open = Arc::clone(&open);
            worker.learn("made", Arc::new(Made { make, rules, open }));
        }
        Self {
            network,
            workers,
            make,
            rules,
            streams: 2,
            has_own_part: true,
            touches: Arc::default(),
            open,
        }
    }

    /// Parts of plans that are held.
    fn parts_open(&self) -> usize {
        Arc::strong_count(&self.open) - 1 - self.workers.len()
    }

    fn divided(&self) -> Plan {
        let touches = Arc::clone(&self.touches);
        let query = Query {
            workers: Arc::clone(&self.workers[0]),
            members: self.workers[0].members(),
            streams: self.streams,
            own: self.has_own_part.then(|| {
                let open = Arc::downgrade(&self.open);
                Box::new(move |_: &TaskContext| OwnPart {
                    task: Arc::default(),
                    touches: Arc::new(|_| 5),
                    ends: open.upgrade().map(|open| Box::new(open) as Ends),
                }) as OwnParts
            }),
            language: "made",
            description: Bytes::new(),
            rules: self.rules,
            translation: Arc::new(AsTheyAre),
            note_touches: Box::new(move |more| {
                touches.fetch_add(more as usize, Ordering::Relaxed);
            }),
        };
        let divided = WorkersExec::over(&(self.make)(), query).unwrap();
        Arc::new(divided.expect("a plan that can be divided"))
    }

    async fn run(&self) -> Result<Vec<Vec<i64>>> {
        rows_of(self.divided()).await
    }

    /// The same as by one process, however many threads there are, and whether or not the one that
    /// was asked makes its plan twice.
    async fn checked(make: fn() -> Plan, may_divide_by_hash: bool) -> usize {
        let mut rows = 0;
        for streams in [1, 2, 5, 16] {
            for has_own_part in [true, false] {
                let trial = Self {
                    streams,
                    has_own_part,
                    ..Self::of(make, may_divide_by_hash)
                };
                rows = trial.check().await;
            }
        }
        rows
    }

    /// The same as by one process.
    async fn check(&self) -> usize {
        let mut expected = rows_of((self.make)()).await.unwrap();
        let mut found = self.run().await.unwrap();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        for workers in &self.workers {
            assert_eq!(workers.figures().open, 0, "all are closed");
        }
        found.len()
    }
}

async fn rows_of(plan: Plan) -> Result<Vec<Vec<i64>>> {
    let plan: Plan = match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    };
    let schema = plan.schema();
    let batches: Vec<RecordBatch> = plan.execute(0, Arc::default())?.try_collect().await?;
    let all = concat_batches(&schema, &batches)?;
    let rows = (0..all.num_rows()).map(|row| {
        let values = all.columns().iter().map(|column| {
            let column = column.as_primitive::<Int64Type>();
            if arrow::array::Array::is_null(column, row) {
                -1
            } else {
                column.value(row)
            }
        });
        values.collect()
    });
    Ok(rows.collect())
}

const PARTITIONS: usize = 16;

fn counted(input: Plan, key: &str, first: AggregateMode) -> Plan {
    let schema = input.schema();
    let group = PhysicalGroupBy::new_single(vec![(col(key, &schema).unwrap(), key.to_owned())]);
    let count = AggregateExprBuilder::new(count_udaf(), vec![lit(1_i64)])
        .schema(Arc::clone(&schema))
        .alias("count")
        .build()
        .unwrap();
    let count = vec![Arc::new(count)];
    let aggregate = AggregateExec::try_new(first, group, count, vec![None], input, schema);
    Arc::new(aggregate.unwrap())
}

/// The groups of each partition, brought together by their hash, as DataFusion plans it.
fn counted_by(input: Plan, key: &str) -> Plan {
    let partial = counted(input, key, AggregateMode::Partial);
    let of_partial = partial.downcast_ref::<AggregateExec>().unwrap();
    let (group, functions) = (
        of_partial.group_expr().as_final(),
        of_partial.aggr_expr().to_vec(),
    );
    let schema = of_partial.input_schema();
    let by = vec![col(key, &partial.schema()).unwrap()];
    let hash = Partitioning::Hash(by, PARTITIONS);
    let repartitioned = Arc::new(RepartitionExec::try_new(Arc::clone(&partial), hash).unwrap());
    let last = AggregateExec::try_new(
        AggregateMode::FinalPartitioned,
        group,
        functions,
        vec![None],
        repartitioned,
        schema,
    );
    Arc::new(last.unwrap())
}

fn join(left: Plan, right: Plan, join_type: JoinType) -> Plan {
    join_on(left, right, [0, 0], join_type)
}

/// Of these columns.
fn join_on(left: Plan, right: Plan, columns: [usize; 2], join_type: JoinType) -> Plan {
    let on = |plan: &Plan, at: usize| {
        let schema = plan.schema();
        let name = schema.field(at).name().clone();
        col(&name, &schema).unwrap()
    };
    let on = vec![(on(&left, columns[0]), on(&right, columns[1]))];
    let join = HashJoinExec::try_new(
        Arc::new(CoalescePartitionsExec::new(left)),
        right,
        on,
        None,
        &join_type,
        None,
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNothing,
        false,
    );
    Arc::new(join.unwrap())
}

fn grouped() -> Plan {
    counted_by(Arc::new(Numbers::of("a", 60_000, 997, PARTITIONS)), "a_k")
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_come_together_by_their_hash() {
    let trial = Trial::of(grouped, true);
    assert_eq!(trial.check().await, 997);
    assert_eq!(
        trial.touches.load(Ordering::Relaxed),
        15,
        "what workers did is told"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_side_of_a_join_goes_to_each_worker() {
    fn make() -> Plan {
        let small = Arc::new(Numbers::of("a", 300, 300, PARTITIONS));
        let large = Arc::new(Numbers::of("b", 90_000, 5_000, PARTITIONS));
        counted_by(join(small, large, JoinType::Inner), "a_k")
    }
    assert_eq!(Trial::checked(make, true).await, 300);
    assert_eq!(Trial::checked(make, false).await, 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_a_match_come_once() {
    fn make() -> Plan {
        let left = Arc::new(Numbers::of("a", 3_000, 3_000, PARTITIONS));
        let right = Arc::new(Numbers::of("b", 20_000, 1_700, PARTITIONS));
        join(left, right, JoinType::Left)
    }
    assert!(Trial::checked(make, true).await > 20_000);
    assert!(Trial::checked(make, false).await > 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_large_sides_go_over_the_network_once() {
    fn make() -> Plan {
        let left = Arc::new(Numbers::of("a", 200_000, 200_000, PARTITIONS));
        let right = Arc::new(Numbers::of("b", 220_000, 220_000, PARTITIONS));
        counted_by(join(left, right, JoinType::Inner), "a_k")
    }
    let trial = Trial::of(make, true);
    let rows = trial.check().await;
    assert_eq!(rows, 200_000);
    // Rows of 16 bytes; the groups, which are as many, go twice: divided by their hash, and to who
    // asked.
    let (sides, groups) = (420_000 * 16, 200_000 * 16 * 2);
    let bytes = trial.network.bytes();
    assert!(bytes < (sides + groups) * 11 / 10, "{bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_that_tells_its_keys_is_wholly_with_each_worker_though_both_are_divided() {
    fn make() -> Plan {
        let left = Arc::new(Numbers::of("a", 3_000, 3_000, PARTITIONS));
        let right = Arc::new(Numbers::of("b", 40_000, 1_700, PARTITIONS));
        let left = Arc::new(Tells::over(left));
        counted_by(join(left, right, JoinType::Left), "a_k")
    }
    let trial = Trial::of(make, true);
    assert_eq!(trial.check().await, 3_000);
    // Once by one process, and once by each of three.
    assert_eq!(TOLD.load(Ordering::Relaxed), 4 * 3_000);
}

/// Which rows come first is anybody's choice, but all workers have to have the same ones.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_of_a_build_side_are_chosen_once_for_all() {
    fn make() -> Plan {
        let left = Arc::new(Numbers::of("a", 60_000, 60_000, PARTITIONS));
        let first = CoalescePartitionsExec::new(left).with_fetch(Some(10_000));
        let right = Arc::new(Numbers::of("b", 60_000, 60_000, PARTITIONS));
        counted_by(join(Arc::new(first), right, JoinType::Inner), "a_k")
    }
    let trial = Trial::of(make, true);
    for _ in 0..20 {
        assert_eq!(trial.run().await.unwrap().len(), 10_000);
    }
}

/// Where groups are made of what partitions have apart already, a join below may not divide the
/// rows by its own keys.
#[tokio::test(flavor = "multi_thread")]
async fn what_partitions_have_apart_stays_apart_where_that_is_relied_on() {
    fn make() -> Plan {
        let left = Arc::new(Numbers::of("a", 900, 900, PARTITIONS));
        let right = Numbers::claiming("b", 40_000, 50, PARTITIONS, Claim::Apart);
        // Rows of the left side without a match come, too, so its probe side cannot be divided
        // alone.
        let joined = join_on(left, Arc::new(right), [0, 1], JoinType::Left);
        counted(joined, "b_k", AggregateMode::SinglePartitioned)
    }
    // A group for each key, and one for the rows that have none.
    let trial = Trial::of(make, true);
    let expected = rows_of(make()).await.unwrap().len();
    assert_eq!(trial.check().await, expected);
}

/// Both sides are divided by hash into as many partitions, whichever of them is with the workers.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_by_partitions_has_as_many_on_both_sides() {
    fn by_hash(input: Plan) -> Plan {
        let schema = input.schema();
        let key = col(schema.field(0).name(), &schema).unwrap();
        let division = Partitioning::Hash(vec![key], PARTITIONS);
        Arc::new(RepartitionExec::try_new(input, division).unwrap())
    }
    fn join_of(left: usize, right: usize) -> Plan {
        let left = by_hash(Arc::new(Numbers::of("a", 20_000, 997, left)));
        let right = by_hash(Arc::new(Numbers::of("b", 2_000, 997, right)));
        let on = vec![(
            col("a_k", &left.schema()).unwrap(),
            col("b_k", &right.schema()).unwrap(),
        )];
        let join = HashJoinExec::try_new(
            left,
            right,
            on,
            None,
            &JoinType::Inner,
            None,
            PartitionMode::Partitioned,
            NullEquality::NullEqualsNothing,
            false,
        );
        Arc::new(join.unwrap())
    }
    fn both() -> Plan {
        join_of(PARTITIONS, PARTITIONS)
    }
    fn left() -> Plan {
        join_of(PARTITIONS, 1)
    }
    fn right() -> Plan {
        join_of(1, PARTITIONS)
    }
    for make in [both, left, right] {
        assert!(Trial::checked(make, true).await > 20_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_are_chosen_by_each_worker_and_merged() {
    fn make() -> Plan {
        let input: Plan = Arc::new(Numbers::of("a", 50_000, 1_000, PARTITIONS));
        let schema = input.schema();
        let keys =
            ["a_k", "a_n"].map(|name| PhysicalSortExpr::new_default(col(name, &schema).unwrap()));
        let keys = LexOrdering::new(keys).unwrap();
        let sort = SortExec::new(keys.clone(), input)
            .with_preserve_partitioning(true)
            .with_fetch(Some(20));
        Arc::new(SortPreservingMergeExec::new(keys, Arc::new(sort)).with_fetch(Some(20)))
    }
    let trial = Trial::of(make, true);
    assert_eq!(trial.check().await, 20);
    // In order, too.
    assert_eq!(trial.run().await.unwrap(), rows_of(make()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_nobody_knows_runs_in_one_place() {
    fn make() -> Plan {
        counted_by(Arc::new(Unknown::over(grouped())), "a_k")
    }
    assert_eq!(Trial::checked(make, true).await, 997);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_divided_evenly() {
    let plan = Trial::of(grouped, true);
    let members = plan.workers[0].members();
    for streams in [1, 2, 4] {
        let among = cut::Among {
            members: &members,
            streams,
        };
        let stages = cut::cut(&grouped(), &plan.rules, among).unwrap().unwrap();
        for stage in &stages.stages {
            let mut counts = [0; 3];
            for group in &stage.groups {
                counts[group.owner] += group.partitions.len();
            }
            // Shares of a leaf, or what is divided by hash.
            let is_even = |range: std::ops::RangeInclusive<usize>| {
                counts.iter().all(|count| range.contains(count))
            };
            assert!(is_even(5..=6) || is_even(streams..=streams), "{counts:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_worker_is_done_without() {
    let trial = Trial::of(grouped, true);
    trial.network.lose_after("worker 2", 0);
    trial.check().await;
    assert_eq!(
        trial.workers[0].members().len(),
        2,
        "it is not asked for now"
    );
    for messages in 1..40 {
        let trial = Trial::of(grouped, true);
        trial.network.lose_after("worker 3", messages);
        trial.check().await;
    }
    // With nobody left the query runs where it was asked.
    let trial = Trial::of(grouped, true);
    trial.network.lose_after("worker 2", 1);
    trial.network.lose_after("worker 3", 2);
    trial.check().await;
}

/// Rows that are gone already are not asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_lost_late_fails_the_query() {
    fn make() -> Plan {
        Arc::new(Numbers::of("a", 1_500_000, 1_000, PARTITIONS))
    }
    let trial = Trial::of(make, true);
    trial.check().await;
    let mut failed = 0;
    for messages in [20, 300, 400] {
        let trial = Trial::of(make, true);
        trial.network.lose_after("worker 2", messages);
        match trial.run().await {
            Ok(rows) => assert_eq!(rows.len(), 1_500_000, "{messages}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("worker 2 is lost"), "{text}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "some are lost after the first rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_another_plan_is_not_believed() {
    fn other() -> Plan {
        Arc::new(Unknown::over(grouped()))
    }
    let trial = Trial::of(grouped, true);
    let rules = trial.rules;
    trial.workers[1].learn(
        "made",
        Arc::new(Made {
            make: other,
            rules,
            open: Arc::clone(&trial.open),
        }),
    );
    trial.check().await;
    assert_eq!(trial.workers[0].members().len(), 3, "it is well");
    assert_eq!(trial.workers[0].figures().alone, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_given_up_is_closed_everywhere() {
    fn make() -> Plan {
        Arc::new(Numbers::of("a", 3_000_000, 1_000, PARTITIONS))
    }
    let trial = Trial::of(make, true);
    let mut rows = trial.divided().execute(0, Arc::default()).unwrap();
    rows.try_next().await.unwrap().unwrap();
    assert_eq!(trial.workers[1].figures().open, 1);
    // What it has cost so far is known while it runs.
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if trial.touches.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    assert_eq!(trial.touches.load(Ordering::Relaxed), 15);
    assert_eq!(trial.parts_open(), 3);
    drop(rows);
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        let is_closed = trial.workers.iter().all(|it| it.figures().open == 0);
        // What ends with the query is gone, too, though the plan is held where it was asked.
        if is_closed && trial.parts_open() == 0 {
            return;
        }
    }
    panic!("it is still open");
}

/// Why leaves say nothing of how their rows are spread unless it is so: a plan that believes a
/// false claim loses groups without a word. Here the claim makes an aggregation of each partition
/// look whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_false_claim_of_a_leaf_gives_wrong_groups() {
    fn make(claim: Claim) -> Plan {
        let leaf = Numbers::claiming("a", 60_000, 997, PARTITIONS, claim);
        let leaf: Plan = Arc::new(leaf);
        // As DataFusion's rule does: what is divided by the key already is not divided again.
        match leaf.output_partitioning() {
            Partitioning::Hash(..) => counted(leaf, "a_k", AggregateMode::SinglePartitioned),
            _ => counted_by(leaf, "a_k"),
        }
    }
    fn honest() -> Plan {
        make(Claim::Nothing)
    }
    fn claiming() -> Plan {
        make(Claim::ByHash)
    }
    assert_eq!(Trial::checked(honest, true).await, 997);
    let wrong = Trial::of(claiming, true).run().await.unwrap();
    assert_ne!(
        wrong.len(),
        997,
        "what a false claim does is not seen here any more"
    );
    // Nothing of this crate claims anything.
    let members: Vec<String> = (1..4).map(|number| number.to_string()).collect();
    let among = cut::Among {
        members: &members,
        streams: 2,
    };
    let stages = cut::cut(&honest(), &rules(true), among).unwrap().unwrap();
    let mut open = vec![stages.root];
    while let Some(plan) = open.pop() {
        if plan.is::<exchange::ExchangeExec>() {
            let said = plan.output_partitioning();
            assert!(
                matches!(said, Partitioning::UnknownPartitioning(_)),
                "{said}"
            );
        }
        open.extend(plan.children().into_iter().cloned());
    }
    let picked = pick::picked(&claiming(), &[vec![1], vec![2, 3]], &rules(true)).unwrap();
    let leaf = picked.children()[0].output_partitioning();
    assert!(
        matches!(leaf, Partitioning::UnknownPartitioning(2)),
        "{leaf}"
    );
}

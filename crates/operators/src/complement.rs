//! Aggregates over the complement: for each group the members it has no match with.
//!
//! ```text
//! SELECT ?f (AVG(?x) AS ?mean) { groups: ?f   members: ?m, ?x   FILTER NOT EXISTS { ?m :feature ?f } } GROUP BY ?f
//!
//! members by ?m:   a b c d e f g h        of a group that matches d:
//! sums of pairs:   |ab |cd |ef |gh |      ab + c + efgh
//! of four:         |abcd   |efgh   |
//! ```
//!
//! The members are aggregated once, as a tree of states over their order. What a group does not
//! match are the gaps between its matches, and each gap is a few nodes of the tree. So `g` groups,
//! `m` members and `k` matches take `m + (g + k) log m` additions in place of `g m`, and nothing is
//! ever subtracted, so that sums are as exact as any other order of the rows gives them.
//!
//! Members, their states and the matches are kept in memory, counted against the pool; they do not
//! spill.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::{concat, concat_batches, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DataFusionError, Result, assert_or_internal_err, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::{EmitTo, GroupsAccumulator};
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use orrery_runtime::Pace;

use crate::aggregate::{has_small_states, is_order_free};
use crate::node_metrics::NodeMetrics;
use crate::solutions::{id_columns, plan_properties};
use orrery_plan_node::{Inputs, node_methods};

/// Nodes that are merged at a time.
const NODES_PER_BATCH: usize = 8_192;
/// Groups per batch of the output.
const GROUPS_PER_BATCH: usize = 8_192;

/// The inputs of a [`ComplementExec`], each in one partition. Neither variable may be unbound in
/// any row.
#[derive(Clone, Debug)]
pub struct ComplementInputs {
    /// Binds the group's variable; a row that comes twice counts its members twice.
    pub groups: Arc<dyn ExecutionPlan>,
    /// Binds the member's variable and what the aggregates read.
    pub members: Arc<dyn ExecutionPlan>,
    /// Binds both variables: the pairs that do not count.
    pub matches: Arc<dyn ExecutionPlan>,
}

/// The plan node of aggregates over the members without a match; see the module's documentation.
/// Groups that match all members are not given. The groups come in no particular order.
#[derive(Debug)]
pub struct ComplementExec {
    inputs: ComplementInputs,
    pub(crate) group: Arc<str>,
    pub(crate) member: Arc<str>,
    columns: ComplementColumns,
    pub(crate) aggregates: Arc<[Arc<AggregateFunctionExpr>]>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Where the variables are in the inputs.
#[derive(Clone, Copy, Debug)]
struct ComplementColumns {
    group: usize,
    member: usize,
    matched_group: usize,
    matched_member: usize,
}

/// Whether an aggregate can be put together from states of parts of its rows, in any order, that
/// are kept for each member.
pub fn can_be_complemented(aggregate: &AggregateFunctionExpr) -> bool {
    is_order_free(aggregate) && has_small_states(aggregate)
}

impl ComplementExec {
    /// Aggregates over the members' columns ([`crate::aggregate::plan`]), of which each
    /// [`can_be_complemented`]. The output has the group's variable and then the aggregates.
    ///
    /// # Errors
    /// When an input lacks a variable.
    pub fn try_new(
        inputs: ComplementInputs,
        (group, member): (&Arc<str>, &Arc<str>),
        aggregates: Vec<Arc<AggregateFunctionExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = ComplementColumns {
            group: inputs.groups.schema().index_of(group)?,
            member: inputs.members.schema().index_of(member)?,
            matched_group: inputs.matches.schema().index_of(group)?,
            matched_member: inputs.matches.schema().index_of(member)?,
        };
        let outputs = std::iter::once(&**group).chain(aggregates.iter().map(|it| it.name()));
        let fields = outputs.map(|name| Field::new(name, DataType::UInt64, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Arc::new(Self {
            inputs,
            group: Arc::clone(group),
            member: Arc::clone(member),
            columns,
            aggregates: aggregates.into(),
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl DisplayAs for ComplementExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ComplementExec: gby=[{}], each ?{} that does not match, aggr=[",
            self.group, self.member
        )?;
        for (number, aggregate) in self.aggregates.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{}", aggregate.name())?;
        }
        f.write_str("]")
    }
}

impl Inputs for ComplementExec {
    fn takes_any_order(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        let ComplementInputs {
            groups,
            members,
            matches,
        } = &self.inputs;
        vec![groups, members, matches]
    }

    fn with_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([groups, members, matches]) = <[_; 3]>::try_from(inputs) else {
            return internal_err!("ComplementExec has three children");
        };
        let inputs = ComplementInputs {
            groups,
            members,
            matches,
        };
        Self::try_new(
            inputs,
            (&self.group, &self.member),
            self.aggregates.to_vec(),
        )
    }
}

impl ExecutionPlan for ComplementExec {
    node_methods!("ComplementExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "ComplementExec has one partition");
        let reservation = MemoryConsumer::new("ComplementExec").register(context.memory_pool());
        let run = ComplementRun {
            members: self.inputs.members.execute(0, Arc::clone(&context))?,
            matches: self.inputs.matches.execute(0, Arc::clone(&context))?,
            groups: self.inputs.groups.execute(0, context)?,
            columns: self.columns,
            aggregates: Arc::clone(&self.aggregates),
            schema: Arc::clone(&self.schema),
            reservation,
            pace: Pace::new(),
        };
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let batches = futures::stream::once(run.aggregate())
            .map_ok(|batches| futures::stream::iter(batches.into_iter().map(Ok)))
            .try_flatten()
            .inspect_ok(move |batch: &RecordBatch| {
                baseline.record_output(batch.num_rows());
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        )))
    }
}

/// One execution.
struct ComplementRun {
    members: SendableRecordBatchStream,
    matches: SendableRecordBatchStream,
    groups: SendableRecordBatchStream,
    columns: ComplementColumns,
    aggregates: Arc<[Arc<AggregateFunctionExpr>]>,
    schema: SchemaRef,
    reservation: MemoryReservation,
    pace: Pace,
}

impl ComplementRun {
    async fn aggregate(mut self) -> Result<Vec<RecordBatch>> {
        let (keys, tree) = self.tree().await?;
        let matches = self.sorted_matches(&keys).await?;
        let mut totals = Totals::new(&self.aggregates, &tree)?;
        let mut nodes = Vec::new();
        let mut held_bytes = 0;
        while let Some(batch) = self.groups.next().await {
            let groups = bound(&batch?, self.columns.group)?;
            for &group in groups.values() {
                nodes.clear();
                let first = matches.partition_point(|(other, _)| *other < group);
                let mut from = 0;
                for (_, place) in matches[first..].iter().take_while(|pair| pair.0 == group) {
                    tree.cover(from, *place, &mut nodes);
                    from = place + 1;
                }
                tree.cover(from, tree.leaves, &mut nodes);
                if totals.add(group, &nodes)? {
                    let bytes = totals.bytes().max(held_bytes);
                    self.reservation.try_grow(bytes - held_bytes)?;
                    held_bytes = bytes;
                    self.give_way().await;
                }
            }
        }
        totals.batches(&self.schema)
    }

    /// The members in the order of their ids, and the tree over them.
    async fn tree(&mut self) -> Result<(Vec<u64>, StateTree)> {
        let schema = self.members.schema();
        let mut batches = Vec::new();
        while let Some(batch) = self.members.next().await {
            let batch = batch?;
            self.reservation.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        let members = concat_batches(&schema, &batches)?;
        drop(batches);
        let ids = bound(&members, self.columns.member)?;
        let Ok(count) = u32::try_from(ids.len()) else {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} members of groups",
                ids.len()
            )));
        };
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by_key(|&row| ids.value(row as usize));
        let keys = order.iter().map(|&row| ids.value(row as usize)).collect();
        let order = UInt32Array::from(order);
        let columns = members.columns().iter();
        let columns = columns.map(|column| take(column, &order, None));
        let sorted = RecordBatch::try_new(schema, columns.collect::<Result<_, _>>()?)?;
        let tree = StateTree::new(&self.aggregates, &sorted)?;
        self.reservation.try_grow(tree.bytes())?;
        Ok((keys, tree))
    }

    /// Group and place of the member, of each match once, in this order.
    async fn sorted_matches(&mut self, keys: &[u64]) -> Result<Vec<(u64, u32)>> {
        let mut matches = Vec::new();
        while let Some(batch) = self.matches.next().await {
            let batch = batch?;
            let groups = bound(&batch, self.columns.matched_group)?;
            let members = bound(&batch, self.columns.matched_member)?;
            let before = matches.len();
            for (&group, &member) in groups.values().iter().zip(members.values()) {
                let first = keys.partition_point(|key| *key < member);
                let places = keys[first..].iter().take_while(|key| **key == member);
                matches.extend(
                    (first..)
                        .zip(places)
                        .map(|(place, _)| (group, place as u32)),
                );
            }
            let added = matches.len() - before;
            self.reservation.try_grow(added * size_of::<(u64, u32)>())?;
        }
        matches.sort_unstable();
        matches.dedup();
        Ok(matches)
    }

    async fn give_way(&mut self) {
        if self.pace.must_give_way(Instant::now()) {
            tokio::task::yield_now().await;
        }
    }
}

/// A column of ids that are all bound.
fn bound(batch: &RecordBatch, column: usize) -> Result<UInt64Array> {
    let column = id_columns(batch)?.swap_remove(column);
    assert_or_internal_err!(column.null_count() == 0, "a key of a complement is unbound");
    Ok(column)
}

/// States of members, of pairs of them, of pairs of pairs and so on.
struct StateTree {
    /// The states of all nodes of each aggregate, level by level.
    states: Vec<ArrayRef>,
    /// The first node of each level.
    levels: Vec<u32>,
    leaves: u32,
}

impl StateTree {
    /// Over the rows of a batch in their order.
    fn new(aggregates: &[Arc<AggregateFunctionExpr>], members: &RecordBatch) -> Result<Self> {
        let mut levels = vec![0];
        let mut nodes = members.num_rows();
        let mut end = nodes;
        while nodes > 1 {
            levels.push(as_node(end)?);
            nodes /= 2;
            end += nodes;
        }
        as_node(end)?;
        let states = aggregates.iter().map(|aggregate| {
            let arguments = aggregate.expressions();
            let arguments = arguments.iter().map(|argument| {
                let value = argument.evaluate(members)?;
                value.into_array(members.num_rows())
            });
            let arguments: Vec<ArrayRef> = arguments.collect::<Result<_>>()?;
            let accumulator = aggregate.create_groups_accumulator()?;
            let mut level = only(accumulator.convert_to_state(&arguments, None)?)?;
            let mut all = vec![Arc::clone(&level)];
            while level.len() > 1 {
                let above = level.len() / 2;
                let pairs: Vec<usize> = (0..2 * above).map(|node| node / 2).collect();
                let mut accumulator = aggregate.create_groups_accumulator()?;
                accumulator.merge_batch(&[level.slice(0, 2 * above)], &pairs, above)?;
                level = only(accumulator.state(EmitTo::All)?)?;
                all.push(Arc::clone(&level));
            }
            let all: Vec<&dyn Array> = all.iter().map(AsRef::as_ref).collect();
            Ok(concat(&all)?)
        });
        Ok(Self {
            states: states.collect::<Result<_>>()?,
            levels,
            leaves: as_node(members.num_rows())?,
        })
    }

    fn bytes(&self) -> usize {
        self.states
            .iter()
            .map(|states| states.get_array_memory_size())
            .sum()
    }

    /// Appends the fewest nodes whose members are those from one place to before another.
    fn cover(&self, from: u32, to: u32, nodes: &mut Vec<u32>) {
        let (mut from, mut to) = (from, to);
        for first in &self.levels {
            if from >= to {
                return;
            }
            if from % 2 == 1 {
                nodes.push(first + from);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                nodes.push(first + to);
            }
            (from, to) = (from / 2, to / 2);
        }
    }
}

fn as_node(number: usize) -> Result<u32> {
    u32::try_from(number)
        .map_err(|_| DataFusionError::ResourcesExhausted(format!("a tree of {number} nodes")))
}

/// The state of one of our aggregates is one column.
fn only(mut states: Vec<ArrayRef>) -> Result<ArrayRef> {
    match (states.pop(), states.is_empty()) {
        (Some(states), true) => Ok(states),
        _ => internal_err!("the state of an aggregate is not one column"),
    }
}

/// What was added up for each group.
struct Totals<'t> {
    tree: &'t StateTree,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    numbers: HashMap<u64, usize>,
    groups: Vec<u64>,
    /// Nodes that are still to be added, and to which group.
    nodes: Vec<u32>,
    into: Vec<usize>,
}

impl<'t> Totals<'t> {
    fn new(aggregates: &[Arc<AggregateFunctionExpr>], tree: &'t StateTree) -> Result<Self> {
        let accumulators = aggregates.iter();
        let accumulators = accumulators.map(|aggregate| aggregate.create_groups_accumulator());
        Ok(Self {
            tree,
            accumulators: accumulators.collect::<Result<_>>()?,
            numbers: HashMap::new(),
            groups: Vec::new(),
            nodes: Vec::new(),
            into: Vec::new(),
        })
    }

    /// Adds nodes to a group, which is there from its first node on. Returns whether it took a
    /// while.
    fn add(&mut self, group: u64, nodes: &[u32]) -> Result<bool> {
        if nodes.is_empty() {
            return Ok(false);
        }
        let groups = &mut self.groups;
        let number = *self.numbers.entry(group).or_insert_with(|| {
            groups.push(group);
            groups.len() - 1
        });
        self.nodes.extend_from_slice(nodes);
        self.into.resize(self.nodes.len(), number);
        let is_full = self.nodes.len() >= NODES_PER_BATCH;
        if is_full {
            self.merge()?;
        }
        Ok(is_full)
    }

    fn merge(&mut self) -> Result<()> {
        let nodes = UInt32Array::from(std::mem::take(&mut self.nodes));
        for (accumulator, states) in self.accumulators.iter_mut().zip(&self.tree.states) {
            let states = take(states, &nodes, None)?;
            accumulator.merge_batch(&[states], &self.into, self.groups.len())?;
        }
        self.into.clear();
        Ok(())
    }

    fn bytes(&self) -> usize {
        const GROUP_BYTES: usize = 48;
        let states = self.accumulators.iter().map(|it| it.size());
        self.groups.len() * GROUP_BYTES + states.sum::<usize>()
    }

    fn batches(mut self, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        self.merge()?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(self.groups))];
        for accumulator in &mut self.accumulators {
            columns.push(accumulator.evaluate(EmitTo::All)?);
        }
        let all = RecordBatch::try_new(Arc::clone(schema), columns)?;
        let starts = (0..all.num_rows()).step_by(GROUPS_PER_BATCH);
        let batches = starts.map(|start| {
            let rows = (all.num_rows() - start).min(GROUPS_PER_BATCH);
            all.slice(start, rows)
        });
        Ok(batches.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_cover_each_place_between_two_once() {
        for leaves in 0..40_u32 {
            let mut tree = StateTree {
                states: Vec::new(),
                levels: vec![0],
                leaves,
            };
            // The places of each node, as `StateTree::new` numbers them.
            let mut places: Vec<Vec<u32>> = (0..leaves).map(|place| vec![place]).collect();
            let mut level = 0..places.len();
            while level.len() > 1 {
                tree.levels.push(places.len() as u32);
                let above = places.len();
                for pair in 0..level.len() / 2 {
                    let left = level.start + 2 * pair;
                    places.push([places[left].clone(), places[left + 1].clone()].concat());
                }
                level = above..places.len();
            }
            for from in 0..=leaves {
                for to in from..=leaves {
                    let mut nodes = Vec::new();
                    tree.cover(from, to, &mut nodes);
                    let mut covered: Vec<u32> = nodes
                        .iter()
                        .flat_map(|&node| places[node as usize].clone())
                        .collect();
                    covered.sort_unstable();
                    assert_eq!(covered, (from..to).collect::<Vec<_>>());
                }
            }
        }
    }
}

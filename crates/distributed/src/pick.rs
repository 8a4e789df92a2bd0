//! One worker's part of a stage: some partitions, as if there were no others.
//!
//! Nodes of DataFusion's count the partitions that stand below them (a hash join waits until all of
//! its probe side's have begun). So a worker's plan has no more partitions than the worker runs:
//! the choice is made at the leaves, and what stands above is made anew over it. Where it has more
//! of them than threads, some are read one after another, so that what stands above them is there
//! once for each thread. Leaves give rows that are in order in ascending partitions, as far as they
//! give them in any.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use hashbrown::HashMap;

use crate::divided_here::DividedHereExec;
use crate::language::Rules;
use orrery_plan_node::node_methods;

type Plan = Arc<dyn ExecutionPlan>;

/// Which children of a node of a divided stage are divided as it is; the others are there wholly
/// with each worker.
pub(crate) fn divided_children(node: &Plan) -> Vec<bool> {
    if node.is::<UnionExec>() {
        return vec![true; node.children().len()];
    }
    let own = count(node);
    let alike = |child: &&Plan| count(child) == own;
    node.children().iter().map(alike).collect()
}

pub(crate) fn count(plan: &Plan) -> usize {
    plan.properties().partitioning.partition_count()
}

/// The same node over other children.
pub(crate) fn over(plan: &Plan, children: Vec<Plan>) -> Result<Plan> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(children, options)
}

/// Partitions of a plan that are run one after another as one.
pub(crate) type Picks = Vec<usize>;

/// A plan with some of its partitions alone, in this order; of a plan with a union, one for each.
/// What several nodes read stays one node.
pub(crate) fn picked(plan: &Plan, picks: &[Picks], rules: &Rules) -> Result<Plan> {
    Picking {
        rules,
        made: HashMap::new(),
    }
    .node(plan, picks)
}

struct Picking<'r> {
    rules: &'r Rules,
    made: HashMap<(*const (), Vec<Picks>), Plan>,
}

impl Picking<'_> {
    fn node(&mut self, plan: &Plan, picks: &[Picks]) -> Result<Plan> {
        let key = (Arc::as_ptr(plan).cast(), picks.to_vec());
        if let Some(made) = self.made.get(&key) {
            return Ok(Arc::clone(made));
        }
        let children = plan.children();
        let new = if children.is_empty() || (self.rules.is_leaf)(plan) {
            Arc::new(PickExec::new(Arc::clone(plan), picks.to_vec())) as Plan
        } else if let Some(here) = plan.downcast_ref::<DividedHereExec>() {
            Arc::new(here.picked(&picks.concat()))
        } else if plan.is::<UnionExec>() {
            let (mut parts, mut first) = (Vec::new(), 0);
            for child in children {
                let end = first + count(child);
                let of_child = |picks: &Picks| picks.iter().all(|pick| (first..end).contains(pick));
                let own = picks.iter().filter(|picks| of_child(picks));
                let moved = |picks: &Picks| picks.iter().map(|pick| pick - first).collect();
                let own: Vec<Picks> = own.map(moved).collect();
                if !own.is_empty() {
                    parts.push(self.node(child, &own)?);
                }
                first = end;
            }
            UnionExec::try_new(parts)?
        } else {
            let divided = divided_children(plan);
            let mut parts = Vec::with_capacity(divided.len());
            for (child, is_divided) in children.into_iter().zip(divided) {
                parts.push(match is_divided {
                    true => self.node(child, picks)?,
                    false => Arc::clone(child),
                });
            }
            over(plan, parts)?
        };
        self.made.insert(key, Arc::clone(&new));
        Ok(new)
    }
}

/// Some partitions of a plan, some of them one after another.
#[derive(Debug)]
struct PickExec {
    input: Plan,
    picks: Vec<Picks>,
    properties: Arc<PlanProperties>,
}

impl PickExec {
    fn new(input: Plan, picks: Vec<Picks>) -> Self {
        let given = input.properties().as_ref().clone();
        let partitioning = Partitioning::UnknownPartitioning(picks.len());
        Self {
            properties: Arc::new(given.with_partitioning(partitioning)),
            input,
            picks,
        }
    }

    fn with_input(&self, input: Plan) -> Self {
        Self::new(input, self.picks.clone())
    }
}

impl DisplayAs for PickExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PickExec: {:?}", self.picks)
    }
}

impl ExecutionPlan for PickExec {
    node_methods!("PickExec", over input);

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let picks = self.picks.get(partition);
        let picks =
            picks.ok_or_else(|| internal_datafusion_err!("partition {partition} of none"))?;
        if let [pick] = picks.as_slice() {
            return self.input.execute(*pick, context);
        }
        let input = Arc::clone(&self.input);
        let rows = stream::iter(picks.clone())
            .map(move |pick| input.execute(pick, Arc::clone(&context)))
            .try_flatten();
        let schema = self.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

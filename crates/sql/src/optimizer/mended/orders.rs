//! A fix for sort orders and constants that DataFusion propagates too far.
//!
//! A plan knows of its rows in which order they come and which columns are constant, and leaves out
//! of `ORDER BY` what that makes needless. These plans know too much:
//!
//! ```text
//! WHERE a = 1 GROUP BY ROLLUP (a, b) ORDER BY a, b                            a is NULL in some rows, but no longer ordered by
//! SELECT ... FROM t LEFT JOIN (SELECT id, 1 AS k FROM u) u ... ORDER BY k     so is k, where the join finds no row
//! SELECT 1 AS k, a FROM t UNION ALL SELECT 2, a FROM t ORDER BY k, a LIMIT 3  the best three of the one half hide those of the other
//! ```
//!
//! Above them, and below sets of groups, a node passes rows on and knows nothing of them but how
//! they are divided.

use orrery_plan_node::node_methods;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    Statistics,
};

use super::nodes::{Changed, NodeRule, over};

/// Puts the nodes into plans. It is the first rule, before any that asks for orders.
pub(super) const FORGET_ORDERS: NodeRule = NodeRule {
    name: "forget_orders",
    change: unordered,
};

fn unordered(node: Arc<dyn ExecutionPlan>) -> Changed {
    let Some(aggregate) = node.downcast_ref::<AggregateExec>() else {
        return Ok(match is_constant_too_long(&node) {
            true => Transformed::yes(UnorderedExec::over(&node)),
            false => Transformed::no(node),
        });
    };
    if !aggregate.group_expr().has_grouping_set() {
        return Ok(Transformed::no(node));
    }
    let is_of_rows = aggregate.mode().input_mode() == AggregateInputMode::Raw;
    let mut node = node;
    if is_of_rows {
        let inputs = node.children().into_iter().map(UnorderedExec::over);
        node = over(&node, inputs.collect())?;
    }
    // Also where the groups go to a second aggregation, which would take a constant key for sorted.
    Ok(Transformed::yes(UnorderedExec::over(&node)))
}

/// Whether a node has a column that is constant, or equal to another, below it and not above.
fn is_constant_too_long(node: &Arc<dyn ExecutionPlan>) -> bool {
    let has_constant =
        |input: &Arc<dyn ExecutionPlan>| !input.equivalence_properties().constants().is_empty();
    let children = node.children();
    if node.is::<UnionExec>() {
        // Nor are columns equal above that are so in one of its inputs.
        let has_equal =
            |input: &&Arc<dyn ExecutionPlan>| !input.equivalence_properties().eq_group().is_empty();
        return children.iter().any(has_equal) || children.into_iter().any(has_constant);
    }
    let join_type = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        *join.join_type()
    } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        join.join_type()
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        *join.join_type()
    } else {
        return false;
    };
    // The sides that may have no row.
    let (left, right) = match join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => return false,
    };
    children
        .into_iter()
        .zip([left, right])
        .any(|(side, may_lack)| may_lack && has_constant(side))
}

/// Rows of which nothing is known but how they are divided.
#[derive(Clone, Debug)]
pub(super) struct UnorderedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UnorderedExec {
    pub(super) fn over(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(Arc::clone(input)))
    }

    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let nothing = EquivalenceProperties::new(input.schema());
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(nothing);
        let properties = Arc::new(properties);
        Self { input, properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

impl DisplayAs for UnorderedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnorderedExec")
    }
}

impl ExecutionPlan for UnorderedExec {
    node_methods!("UnorderedExec", over input);

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        inputs.first().map_or_else(
            || Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
            |of_input| Ok(Arc::clone(of_input)),
        )
    }
}

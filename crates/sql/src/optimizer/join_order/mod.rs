//! The join order rule.
//!
//! DataFusion joins them as they are written, but for crosswise products, and asks EXISTS and IN
//! when all of that is done. Here trees of inner joins, with the semi and anti joins over them, are
//! taken apart and put together in the order that is reckoned to be cheapest:
//!
//! ```text
//! optimized plan -> semi joins that look for another value: one row of each key                             (differing)
//!                -> Graph: relations, classes of columns that are equal, conditions, semi and anti joins    (graph)
//!                -> rows of each relation, distinct values of each class                                    (estimate)
//!                -> the cheapest tree of all                                                                (search)
//!                -> joins again, the side with fewer rows on the left                                       (here)
//! physical plan  -> the side with fewer rows in the table of hashes, by estimates of each node               (sides)
//! ```
//!
//! Estimates are those of the scans, which try conditions on some vectors, and the distinct counts
//! of the files. Two columns that are equal to a third are equal to each other, so more joins are
//! possible than are written. What has no estimate is left as it stands; so are more relations than
//! [`PARTS_MAX`](graph::PARTS_MAX), for the search looks at all trees.

mod differing;
mod estimate;
mod graph;
mod search;
mod sides;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinConstraint, LogicalPlan, Projection};
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::{Optimizer, OptimizerContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use self::estimate::Estimates;
use self::graph::Graph;
use self::search::Tree;
pub(crate) use self::sides::statistics;
use crate::execute::stopping::require_somebody_here;
use crate::plan::walk::WalkPlan;

/// Orders joins, then plans as DataFusion does.
#[derive(Debug)]
pub(crate) struct OrderedJoins;

#[async_trait]
impl QueryPlanner for OrderedJoins {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        state: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ordered = ordered(plan.clone(), state)?;
        let planner = DefaultPhysicalPlanner::default();
        planner.create_physical_plan(&ordered, state).await
    }
}

/// An optimized plan with its joins in order.
pub(crate) fn ordered(plan: LogicalPlan, state: &dyn Session) -> Result<LogicalPlan> {
    let done = differing::with_ends(plan, state)?;
    let done = done.transform_data(|plan| reordered(plan, state))?;
    if !done.transformed {
        return Ok(done.data);
    }
    // The joins have all columns of what they join.
    let options = Arc::clone(state.config().options());
    let context = OptimizerContext::new_with_config_options(options);
    let optimizer = Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]);
    optimizer.optimize(done.data, &context, |_, _| {})
}

/// All trees of joins of a plan.
fn reordered(plan: LogicalPlan, state: &dyn Session) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down_with_subqueries_by(&mut |node| {
        require_somebody_here()?;
        if !graph::is_tree(&node) {
            return Ok(Transformed::no(node));
        }
        let Some(mut graph) = Graph::of(&node) else {
            return Ok(Transformed::no(node));
        };
        // First the order: a tree that has none is walked on, and its parts would be ordered again
        // with each join of it.
        let Some(tree) = order_of(&graph, state) else {
            return Ok(Transformed::no(node));
        };
        for part in graph.parts_mut() {
            let inner = reordered(part.plan.as_ref().clone(), state)?;
            part.plan = Arc::new(inner.data);
        }
        // A query is asked as it is written where its joins cannot be made in another order.
        let built = graph.build(&tree);
        match built.map(|plan| plan.and_then(|plan| with_columns_of(plan, &node))) {
            Some(Ok(plan)) => Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump)),
            Some(Err(_)) | None => Ok(Transformed::no(node)),
        }
    })
}

fn order_of(graph: &Graph, state: &dyn Session) -> Option<Tree> {
    let estimates = Estimates::new(graph, state)?;
    search::cheapest(graph, &estimates)
}

/// A plan with the columns of another, in their order.
fn with_columns_of(plan: LogicalPlan, other: &LogicalPlan) -> Result<LogicalPlan> {
    let columns = other.schema().columns().into_iter().map(Expr::Column);
    let plan = Projection::try_new(columns.collect(), Arc::new(plan))?;
    Ok(LogicalPlan::Projection(plan))
}

impl Graph {
    /// The joins of a tree; `None` if it is not one of this graph.
    fn build(&self, tree: &Tree) -> Option<Result<LogicalPlan>> {
        let (plan, _) = self.joined(tree)?;
        Some(plan.map(|plan| plan.as_ref().clone()))
    }

    /// The plan of a tree, and which parts it has.
    fn joined(&self, tree: &Tree) -> Option<(Result<Arc<LogicalPlan>>, u32)> {
        match tree {
            Tree::Part(part) => {
                let plan = &self.relations.get(*part)?.plan;
                Some((Ok(Arc::clone(plan)), 1 << part))
            }
            Tree::Filtered(of, filter) => {
                let (left, mask) = self.joined(of)?;
                let place = filter.checked_sub(self.relations.len())?;
                let semi = self.semis.get(place)?;
                let join = left.and_then(|left| {
                    let join_type = match semi.is_anti {
                        true => JoinType::LeftAnti,
                        false => JoinType::LeftSemi,
                    };
                    let right = Arc::clone(&semi.part.plan);
                    join(left, right, semi.on.clone(), semi.filter.clone(), join_type)
                });
                Some((join, mask | 1 << filter))
            }
            Tree::Joined(left, right) => {
                let (left, left_mask) = self.joined(left)?;
                let (right, right_mask) = self.joined(right)?;
                let on = self.equal_between(left_mask, right_mask);
                let filter = conjunction(self.conditions_first_at(left_mask, right_mask));
                let join = left.and_then(|left| {
                    let right = right?;
                    join(left, right, on, filter, JoinType::Inner)
                });
                Some((join, left_mask | right_mask))
            }
        }
    }
}

fn join(
    left: Arc<LogicalPlan>,
    right: Arc<LogicalPlan>,
    on: Vec<(Expr, Expr)>,
    filter: Option<Expr>,
    join_type: JoinType,
) -> Result<Arc<LogicalPlan>> {
    let join = Join::try_new(
        left,
        right,
        on,
        filter,
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(Arc::new(LogicalPlan::Join(join)))
}

//! Uncorrelated scalar subqueries of distributed plans. The engine runs all of them before anything
//! else of a plan, each once (`ScalarSubqueryExec`), and what reads their values finds these in one
//! place of the process. So here they run first, as queries of their own, and their values travel.
//!
//! They are known by their places among those of the optimized plan, whose joins are in order by
//! then, as the engine numbers them. A subquery within a subquery is one of that.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::physical_planning_context::SubqueryIndex;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink};

use super::rules::Plan;

use crate::plan::walk::Walk;

/// A subquery as the optimizer leaves it, and its physical plan.
type Pair = (Arc<LogicalPlan>, Plan);

/// The scalar subqueries of an optimized plan, without those within them.
fn of(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    plan.apply_by(&mut |node| {
        for expr in node.expressions() {
            expr.apply_by(&mut |expr| {
                if let Expr::ScalarSubquery(subquery) = expr
                    && subquery.outer_ref_columns.is_empty()
                    // One that is there twice is run once.
                    && !found.contains(subquery)
                {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The subquery in a place of an optimized plan; the plan itself without a path.
pub(super) fn at(mut plan: LogicalPlan, path: &[usize]) -> Result<LogicalPlan> {
    for place in path {
        let found = of(&plan)?.into_iter().nth(*place);
        let found = found.ok_or_else(|| internal_datafusion_err!("no subquery {place}"))?;
        plan = Arc::unwrap_or_clone(found.subquery);
    }
    Ok(plan)
}

/// The node of a physical plan that runs its scalar subqueries.
fn node_of(plan: &Plan) -> Option<&ScalarSubqueryExec> {
    let node = plan.downcast_ref::<ScalarSubqueryExec>();
    node.or_else(|| plan.children().into_iter().find_map(node_of))
}

/// The scalar subqueries of a plan, optimized and physical; nothing if they are not the same in
/// both, so that what belongs together is not known.
pub(super) fn pairs(optimized: &LogicalPlan, physical: &Plan) -> Result<Option<Vec<Pair>>> {
    let Some(node) = node_of(physical) else {
        return Ok(Some(Vec::new()));
    };
    let (found, links) = (of(optimized)?, node.subqueries());
    let is_in_order = |(place, link): (usize, &ScalarSubqueryLink)| link.index.as_usize() == place;
    if found.len() != links.len() || !links.iter().enumerate().all(is_in_order) {
        return Ok(None);
    }
    let pairs = found.into_iter().zip(links);
    let pairs = pairs.map(|(found, link)| (found.subquery, Arc::clone(&link.plan)));
    Ok(Some(pairs.collect()))
}

/// A physical plan whose scalar subqueries have these values, and are run no more.
pub(super) fn with_values(plan: Plan, values: &[ScalarValue]) -> Result<Plan> {
    if values.is_empty() {
        return Ok(plan);
    }
    let placed = plan.transform_down_by(&mut |node| {
        let Some(subqueries) = node.downcast_ref::<ScalarSubqueryExec>() else {
            return Ok(Transformed::no(node));
        };
        if subqueries.subqueries().len() != values.len() {
            return internal_err!("{} values of other subqueries", values.len());
        }
        for (place, value) in values.iter().enumerate() {
            let place = SubqueryIndex::new(place);
            subqueries.results().set(place, value.clone())?;
        }
        let input = Arc::clone(subqueries.input());
        Ok(Transformed::new(input, true, TreeNodeRecursion::Stop))
    })?;
    match placed.transformed {
        true => Ok(placed.data),
        false => internal_err!("{} values without subqueries", values.len()),
    }
}

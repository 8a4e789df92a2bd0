//! A fix for functional dependencies of group columns.
//!
//! A primary key tells the other columns of its table, so that `ORDER BY` may leave these out
//! behind it, and `GROUP BY`, too. Above groups over a join, DataFusion takes it that such a key
//! tells all columns of the group, also those of the join's other side:
//!
//! ```text
//! SELECT c.id, o.year, count(*) FROM c JOIN o ON ... GROUP BY c.id, o.year ORDER BY c.id, o.year     would be ordered by c.id alone
//! SELECT id, year, sum(n) FROM (the same) GROUP BY id, year                                          would have one row of each id
//! ```
//!
//! A key tells those columns of a group that it tells of the rows below, and all of them only if
//! these are all that is grouped by. That is put right where a subquery is planned (what GROUP BY
//! may leave out is found from it there), and before each rule of the optimizer that asks: rules
//! make groups anew.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{
    DFSchema, Dependency, FunctionalDependence, FunctionalDependencies, Result,
};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::sql::sqlparser::ast::TableFactor;

use crate::execute::stopping::require_somebody_here;
use crate::plan::walk::WalkPlan;

/// A rule that changes what is known of plans, and nothing else.
#[derive(Debug)]
pub(super) struct MendDependencies;

impl OptimizerRule for MendDependencies {
    fn name(&self) -> &str {
        "mend_dependencies"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // It is no change to the plan, after which all rules would be asked once more.
        Ok(Transformed::no(mended(plan)?))
    }
}

/// Plans what stands in FROM as DataFusion does, with what is true of its columns.
#[derive(Debug)]
pub(super) struct RelationsWithTrueDependencies;

thread_local! {
    /// Whether the relation that comes next is the one that is being planned. Planning is a
    /// recursion within one thread.
    static IS_BEING_PLANNED: Cell<bool> = const { Cell::new(false) };
}

impl RelationPlanner for RelationsWithTrueDependencies {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        // For each relation: what the library does with the tables before is more with each.
        require_somebody_here()?;
        if IS_BEING_PLANNED.replace(false) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        // Tables are subqueries where they are views or names of WITH.
        let alias = match &mut relation {
            TableFactor::Derived { alias, .. } | TableFactor::Table { alias, .. } => alias.take(),
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        IS_BEING_PLANNED.set(true);
        let plan = context.plan(relation);
        IS_BEING_PLANNED.set(false);
        let planned = PlannedRelation::new(mended(plan?)?, alias);
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// The plan with true dependencies; the same if they are.
fn mended(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_true = true;
    plan.apply_with_subqueries_by(&mut |node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            is_true = *aggregate.schema.functional_dependencies() == dependencies(aggregate);
        }
        Ok(match is_true {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    })?;
    if is_true {
        return Ok(plan);
    }
    let plan = plan.transform_up_with_subqueries_by(&mut |node| {
        let mut node = node.recompute_schema()?;
        if let LogicalPlan::Aggregate(aggregate) = &mut node {
            let known = dependencies(aggregate);
            let schema = DFSchema::clone(&aggregate.schema);
            aggregate.schema = Arc::new(schema.with_functional_dependencies(known)?);
        }
        Ok(Transformed::yes(node))
    })?;
    Ok(plan.data)
}

/// What is true of the columns of groups, as far as it is of the rows below.
fn dependencies(aggregate: &Aggregate) -> FunctionalDependencies {
    let grouped = &aggregate.group_expr;
    if grouped.is_empty() || matches!(grouped.as_slice(), [Expr::GroupingSet(_)]) {
        return FunctionalDependencies::empty();
    }
    let below = aggregate.input.schema();
    // The column below that a part of the group is.
    let places: Vec<Option<usize>> = grouped
        .iter()
        .map(|expr| match expr {
            Expr::Column(column) => below.maybe_index_of_column(column),
            _ => None,
        })
        .collect();
    let all: Vec<usize> = (0..aggregate.schema.fields().len()).collect();
    let mut known = Vec::new();
    let mut has_key = false;
    for of_rows in below.functional_dependencies().iter() {
        let of_group = |source: &usize| places.iter().position(|place| *place == Some(*source));
        let sources: Option<Vec<usize>> = of_rows.source_indices.iter().map(of_group).collect();
        let Some(sources) = sources.filter(|sources| !sources.is_empty()) else {
            continue;
        };
        let told: HashSet<usize> = of_rows
            .target_indices
            .iter()
            .chain(&of_rows.source_indices)
            .copied()
            .collect();
        let is_told = |place: &Option<usize>| place.is_some_and(|place| told.contains(&place));
        let (targets, mode) = match places.iter().all(is_told) {
            true => (all.clone(), Dependency::Single),
            false => {
                let targets = (0..places.len()).filter(|&at| is_told(&places[at]));
                (targets.collect(), Dependency::Multi)
            }
        };
        has_key |= mode == Dependency::Single;
        known.push(FunctionalDependence::new(sources, targets, of_rows.nullable).with_mode(mode));
    }
    if !has_key {
        let keys: Vec<usize> = (0..grouped.len()).collect();
        let is_nullable = keys
            .iter()
            .any(|&at| aggregate.schema.field(at).is_nullable());
        let whole = FunctionalDependence::new(keys, all, is_nullable);
        known.push(whole.with_mode(Dependency::Single));
    }
    FunctionalDependencies::new(known)
}

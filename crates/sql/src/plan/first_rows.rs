//! `DISTINCT ON`, by row numbers within groups.
//!
//! The engine makes a group of each, with one aggregate for each column that keeps the first of its
//! values: all of them are in memory, and none is spilled. Sorts spill. So the first row is the one
//! with the number 1:
//!
//! ```text
//! SELECT DISTINCT ON (k) a, b FROM t ORDER BY k, c
//!
//!   ->  the columns a, b of   t, row_number() OVER (PARTITION BY k ORDER BY k, c)
//!                               WHERE the number is 1  ORDER BY k, c
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, lit,
};

use crate::plan::walk::WalkPlan;

/// A plan as the planner made it, its first rows by their numbers.
pub(crate) fn with_first_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = plan.transform_up_with_subqueries_by(&mut |node| match node {
        LogicalPlan::Distinct(Distinct::On(on)) => first_rows(on).map(Transformed::yes),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(numbered.data)
}

fn first_rows(on: DistinctOn) -> Result<LogicalPlan> {
    // The engine cannot sort by a column and by itself under another name.
    let mut seen = HashSet::new();
    let mut keys = on.on_expr;
    keys.retain(|key| seen.insert(computed(key, &on.input)));
    seen.clear();
    let mut order = on.sort_expr.unwrap_or_default();
    order.retain(|by| seen.insert(computed(&by.expr, &on.input)));
    let number = row_number().partition_by(keys);
    let number = match order.is_empty() {
        true => number.build()?,
        false => number.order_by(order.clone()).build()?,
    };
    let name = number.schema_name().to_string();
    let first = LogicalPlanBuilder::from(on.input)
        .window(vec![number])?
        .filter(Expr::Column(Column::new_unqualified(name)).eq(lit(1_u64)))?;
    let first = match order.is_empty() {
        true => first,
        false => first.sort(order)?,
    };
    let columns = on.select_expr.into_iter().zip(on.schema.iter());
    let columns: Vec<Expr> = columns
        .map(|(expr, (table, field))| expr.alias_qualified(table.cloned(), field.name()))
        .collect();
    first.project(columns)?.build()
}

/// What an expression is computed as below, where it is a column that is another one there.
fn computed(expr: &Expr, input: &Arc<LogicalPlan>) -> Expr {
    let mut below = input;
    while let LogicalPlan::SubqueryAlias(alias) = &**below {
        below = &alias.input;
    }
    if let (Expr::Column(column), LogicalPlan::Projection(projection)) = (expr, &**below)
        && let Some(place) = input.schema().maybe_index_of_column(column)
        && let Some(of) = projection.expr.get(place)
    {
        return of.clone().unalias();
    }
    expr.clone()
}

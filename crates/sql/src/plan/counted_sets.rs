//! `INTERSECT ALL` and `EXCEPT ALL`, by row counts.
//!
//! The planner asks whether a row is in the other set, by a semi or anti join, not how often. With
//! the number of each row among those that are like it, rows are different ones, and that is the
//! same question:
//!
//! ```text
//! l INTERSECT ALL r  ->  the columns of  l, row_number() OVER (PARTITION BY all columns)
//!                          LEFT SEMI JOIN r, row_number() OVER (...)  ON all columns, and the numbers
//! ```
//!
//! Three like ones with two like ones on the other side are 1, 2 of 1, 2, 3 in both sets, and 3
//! only in the left one. Where the left side is one of different rows, as the planner makes it for
//! `INTERSECT` and `EXCEPT`, nothing is to be counted.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder,
    Projection,
};

use crate::plan::walk::WalkPlan;

/// The name of the number, which no text can write.
const NUMBER: &str = "number\u{1}";

/// A plan as the planner made it, its sets counted.
pub(crate) fn counted(plan: LogicalPlan) -> Result<LogicalPlan> {
    let counted = plan.transform_up_with_subqueries_by(&mut |node| match node {
        // No text can write such a join otherwise: EXISTS and IN are still expressions.
        LogicalPlan::Join(join) if is_of_sets(&join) => numbered_join(join).map(Transformed::yes),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(counted.data)
}

fn is_of_sets(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_)))
        && !is_numbered(join)
}

/// Whether it is counted already, as that of a view is.
fn is_numbered(join: &Join) -> bool {
    let is_number = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == NUMBER);
    join.on.last().is_some_and(|(left, _)| is_number(left))
}

fn numbered_join(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join
        .left
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let left = numbered(&join.left, left_keys)?;
    let right = numbered(&join.right, right_keys)?;
    let number = || Expr::Column(Column::new_unqualified(NUMBER));
    let mut on = join.on;
    on.push((number(), number()));
    let joined = Join::try_new(
        left,
        right,
        on,
        None,
        join.join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    let joined = Arc::new(LogicalPlan::Join(joined));
    Projection::try_new(columns, joined).map(LogicalPlan::Projection)
}

/// Rows with their number among those that are like them behind their columns.
fn numbered(plan: &Arc<LogicalPlan>, keys: Vec<Expr>) -> Result<Arc<LogicalPlan>> {
    // The engine cannot sort by a column and by itself under another name.
    let mut computed = plan;
    while let LogicalPlan::SubqueryAlias(alias) = &**computed {
        computed = &alias.input;
    }
    let keys = match &**computed {
        LogicalPlan::Projection(projection) if projection.expr.len() == keys.len() => {
            let mut seen = HashSet::new();
            let pairs = keys.into_iter().zip(&projection.expr);
            let once = pairs.filter(|(_, of)| seen.insert((*of).clone().unalias()));
            once.map(|(key, _)| key).collect()
        }
        _ => keys,
    };
    let number = row_number().partition_by(keys).build()?;
    let name = Column::new_unqualified(number.schema_name().to_string());
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let columns = columns.chain([Expr::Column(name).alias(NUMBER)]);
    let columns: Vec<Expr> = columns.collect();
    let numbered = LogicalPlanBuilder::from(Arc::clone(plan)).window(vec![number])?;
    numbered.project(columns)?.build().map(Arc::new)
}

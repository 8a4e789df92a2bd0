//! The types of outer columns within subqueries.
//!
//! A subquery has each column of the query around it with the type that it had when the text was
//! planned. Rules give some of these others: a sum of `bigint` is a `numeric`
//! ([`arithmetic`](crate::functions::arithmetic)). What compares such a column would be settled for
//! the old type, and run with the new one.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

use crate::plan::walk::{Walk, WalkPlan};

/// A node whose inputs have their types: its subqueries see these.
pub(crate) fn with_outer_types(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = &plan
        && is_lateral(&join.right)
    {
        let outer = Arc::clone(join.left.schema());
        let mut is_left = true;
        return plan.map_children(|child| match std::mem::take(&mut is_left) {
            true => Ok(Transformed::no(child)),
            false => lateral(child, &outer),
        });
    }
    let outer = merge_schema(&plan.inputs());
    plan.map_expressions_by(&mut |expr| {
        expr.transform_down_by(&mut |expr| {
            Ok(match expr {
                Expr::Exists(mut exists) => {
                    let changed = settled(exists.subquery, &outer)?;
                    let is_changed = changed.transformed;
                    exists.subquery = changed.data;
                    Transformed::new_transformed(Expr::Exists(exists), is_changed)
                }
                Expr::InSubquery(mut within) => {
                    let changed = settled(within.subquery, &outer)?;
                    let is_changed = changed.transformed;
                    within.subquery = changed.data;
                    Transformed::new_transformed(Expr::InSubquery(within), is_changed)
                }
                Expr::SetComparison(mut comparison) => {
                    let changed = settled(comparison.subquery, &outer)?;
                    let is_changed = changed.transformed;
                    comparison.subquery = changed.data;
                    Transformed::new_transformed(Expr::SetComparison(comparison), is_changed)
                }
                Expr::ScalarSubquery(subquery) => {
                    settled(subquery, &outer)?.update_data(Expr::ScalarSubquery)
                }
                expr => Transformed::no(expr),
            })
        })
    })
}

fn is_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

fn lateral(plan: LogicalPlan, outer: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Subquery(subquery) => {
            Ok(settled(subquery, outer)?.update_data(LogicalPlan::Subquery))
        }
        plan => plan
            .map_children(|child| lateral(child, outer))?
            .map_data(LogicalPlan::recompute_schema),
    }
}

/// A subquery whose outer columns, so far as they are among these, have their types.
fn settled(subquery: Subquery, outer: &DFSchema) -> Result<Transformed<Subquery>> {
    let mut typed = |expr: Expr| {
        expr.transform_down_by(&mut |expr| {
            let Expr::OuterReferenceColumn(field, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            Ok(match outer.field_from_column(column) {
                Ok(now) if now.data_type() != field.data_type() => {
                    let field = Arc::new(
                        field
                            .as_ref()
                            .clone()
                            .with_data_type(now.data_type().clone()),
                    );
                    Transformed::yes(Expr::OuterReferenceColumn(field, column.clone()))
                }
                _ => Transformed::no(expr),
            })
        })
    };
    let mut is_changed = false;
    let columns = subquery.outer_ref_columns.into_iter().map(|column| {
        let column = typed(column)?;
        is_changed |= column.transformed;
        Ok(column.data)
    });
    let outer_ref_columns = columns.collect::<Result<Vec<_>>>()?;
    let mut inner = subquery.subquery;
    if is_changed {
        let plan = Arc::unwrap_or_clone(inner).transform_up_with_subqueries_by(&mut |node| {
            node.map_expressions_by(&mut typed)?
                .map_data(LogicalPlan::recompute_schema)
        })?;
        inner = Arc::new(plan.data);
    }
    let subquery = Subquery {
        subquery: inner,
        outer_ref_columns,
        spans: subquery.spans,
    };
    Ok(Transformed::new_transformed(subquery, is_changed))
}

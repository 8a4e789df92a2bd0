//! Semi and anti joins on inequality of a column.
//!
//! `EXISTS (... WHERE r.k = l.k AND r.x <> l.x)` finds all rows of a key and asks each. Some value
//! of a key differs from `l.x` exactly if the least or the greatest one does; so where keys come
//! again and again, one row of each is enough:
//!
//! ```text
//! l SEMI JOIN r ON l.k = r.k AND l.x <> r.x
//!   ->  l SEMI JOIN (SELECT k, min(x) AS least, max(x) AS greatest FROM r GROUP BY k) ON l.k = k AND (l.x <> least OR l.x <> greatest)
//! ```
//!
//! NULL differs from nothing, and the least and the greatest value pass over it.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator,
};

use super::estimate::rows_per_key;

use crate::plan::walk::WalkPlan;

/// Rows of a key, on average, from which on they become one.
const ROWS_PER_KEY_MIN: f64 = 2.0;

/// All such joins of a plan.
pub(super) fn with_ends(
    plan: LogicalPlan,
    state: &dyn Session,
) -> Result<Transformed<LogicalPlan>> {
    let mut number = 0;
    plan.transform_up_with_subqueries_by(&mut |node| {
        let LogicalPlan::Join(join) = &node else {
            return Ok(Transformed::no(node));
        };
        let Some((of_left, of_right)) = differing(join) else {
            return Ok(Transformed::no(node));
        };
        let mut keys: Vec<Expr> = Vec::new();
        for (_, key) in &join.on {
            // One key may be equal to several columns of the left side.
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        let repeats = rows_per_key(&join.right, &keys, state);
        if repeats.is_none_or(|rows| rows < ROWS_PER_KEY_MIN) {
            return Ok(Transformed::no(node));
        }
        number += 1;
        let least = format!("__least_{number}");
        let greatest = format!("__greatest_{number}");
        let value = Expr::Column(of_right);
        let ends = vec![
            min(value.clone()).alias(&least),
            max(value).alias(&greatest),
        ];
        let ends = LogicalPlanBuilder::from(Arc::clone(&join.right)).aggregate(keys, ends)?;
        let differs = |name: String| {
            Expr::Column(of_left.clone()).not_eq(Expr::Column(Column::new_unqualified(name)))
        };
        let join = Join {
            right: Arc::new(ends.build()?),
            filter: Some(differs(least).or(differs(greatest))),
            ..join.clone()
        };
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    })
}

/// The columns of the left and of the right side that are to differ, if that is all that a semi or
/// anti join asks beside equal columns.
fn differing(join: &Join) -> Option<(Column, Column)> {
    let is_kind = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti);
    let is_plain = join.null_equality == NullEquality::NullEqualsNothing && !join.null_aware;
    let are_columns = join
        .on
        .iter()
        .all(|(_, right)| matches!(right, Expr::Column(_)));
    if !is_kind || !is_plain || join.on.is_empty() || !are_columns {
        return None;
    }
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::NotEq,
        right,
    }) = join.filter.as_ref()?
    else {
        return None;
    };
    let (Expr::Column(one), Expr::Column(other)) = (&**left, &**right) else {
        return None;
    };
    let is_left = |column: &Column| {
        join.left.schema().has_column(column) && !join.right.schema().has_column(column)
    };
    let is_right = |column: &Column| {
        join.right.schema().has_column(column) && !join.left.schema().has_column(column)
    };
    let (of_left, of_right) = match is_left(one) && is_right(other) {
        true => (one, other),
        false if is_left(other) && is_right(one) => (other, one),
        false => return None,
    };
    // Of texts and floats the order is not that of `<>` for all values.
    let data_type = Expr::Column(of_right.clone())
        .get_type(join.right.schema())
        .ok()?;
    let is_ordered = data_type.is_integer() || data_type.is_decimal() || data_type.is_temporal();
    is_ordered.then(|| (of_left.clone(), of_right.clone()))
}

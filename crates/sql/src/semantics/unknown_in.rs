//! `IN` with an unknown result, where NULL and false differ.
//!
//! `x IN (subquery)` is NULL where no row is equal but x or one of the rows is NULL. A condition
//! that is all of a WHERE, or stands in it beside others with AND and OR, may take that for false;
//! the engine's join for `NOT IN` knows it, too. But it makes only true and false of an `IN` that
//! stands deeper, so `a OR x NOT IN (subquery)` would be true where it is unknown. Such a one is
//! said in other words:
//!
//! ```text
//! x NOT IN (s)  ->  CASE WHEN x IN (s) THEN false
//!                        WHEN EXISTS (s of which the column IS NULL) OR x IS NULL AND EXISTS (s) THEN NULL
//!                        ELSE true END
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    lit, when,
};

use crate::plan::walk::Walk;

/// The name of a subquery, which no text can write.
const NAME: &str = "in\u{1}";

/// A node whose condition has no such `IN` any more.
pub(crate) fn with_unknown_in(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = plan else {
        return Ok(Transformed::no(plan));
    };
    if !has_in(&filter.predicate) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let schema = Arc::clone(filter.input.schema());
    let mut is_changed = false;
    let mut parts = Vec::new();
    for part in split_conjunction_owned(filter.predicate) {
        let said = match is_in(&part) {
            true => Transformed::no(part),
            false => said(part, true, &schema)?,
        };
        is_changed |= said.transformed;
        parts.push(said.data);
    }
    let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
    let filter = LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?);
    Ok(match is_changed {
        true => Transformed::yes(filter),
        false => Transformed::no(filter),
    })
}

fn has_in(expr: &Expr) -> bool {
    let mut found = false;
    let _ = expr.apply_by(&mut |part| {
        found |= matches!(part, Expr::InSubquery(_));
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Whether it is one itself, which becomes a join.
fn is_in(expr: &Expr) -> bool {
    match expr {
        Expr::InSubquery(_) => true,
        Expr::Not(of) => matches!(**of, Expr::InSubquery(_)),
        _ => false,
    }
}

/// A part of a condition. `is_false` says whether what is unknown may be taken for false there.
fn said(expr: Expr, is_false: bool, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_false && matches!(op, Operator::And | Operator::Or) =>
        {
            let (left, right) = (said(*left, true, schema)?, said(*right, true, schema)?);
            let is_changed = left.transformed || right.transformed;
            let (left, right) = (Box::new(left.data), Box::new(right.data));
            let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
            Ok(match is_changed {
                true => Transformed::yes(expr),
                false => Transformed::no(expr),
            })
        }
        Expr::InSubquery(of) if is_false && !of.negated => {
            Ok(Transformed::yes(Expr::InSubquery(of_table(of)?)))
        }
        expr => expr.transform_up_by(&mut |part| match part {
            Expr::InSubquery(of) => in_other_words(of_table(of)?, schema),
            part => Ok(Transformed::no(part)),
        }),
    }
}

/// The same with a column of a table: the engine's join finds one without a table twice, by its own
/// name and by the one that it gives it. A subquery about the row at hand stays as it is: the
/// engine adds columns to it, which a name would hide.
fn of_table(of: InSubquery) -> Result<InSubquery> {
    let (qualifier, _) = of.subquery.subquery.schema().qualified_field(0);
    if qualifier.is_some() || !of.subquery.outer_ref_columns.is_empty() {
        return Ok(of);
    }
    let plan = LogicalPlanBuilder::from(Arc::clone(&of.subquery.subquery)).alias(NAME)?;
    let subquery = Subquery {
        subquery: Arc::new(plan.build()?),
        ..of.subquery
    };
    Ok(InSubquery { subquery, ..of })
}

fn in_other_words(of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let plan = &of.subquery.subquery;
    let (qualifier, field) = plan.schema().qualified_field(0);
    let column = Expr::from((qualifier, field));
    let may_be_null = of.expr.nullable(schema).unwrap_or(true);
    let may_find_null = field.is_nullable();
    if !may_be_null && !may_find_null {
        return Ok(Transformed::yes(Expr::InSubquery(of)));
    }
    let subquery = |plan: LogicalPlan| Subquery {
        subquery: Arc::new(plan),
        ..of.subquery.clone()
    };
    let of_null = LogicalPlanBuilder::from(Arc::clone(plan)).filter(column.is_null())?;
    let of_null = subquery(of_null.build()?);
    let exists_one = |of: Subquery| {
        Expr::Exists(Exists {
            subquery: of,
            negated: false,
        })
    };
    let finds_null = exists_one(of_null);
    let finds_any = exists_one(of.subquery.clone());
    let is_unknown = finds_null.or((*of.expr).clone().is_null().and(finds_any));
    let is_negated = of.negated;
    let is_found = Expr::InSubquery(InSubquery {
        negated: false,
        ..of
    });
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    let said = when(is_found, lit(!is_negated))
        .when(is_unknown, unknown)
        .otherwise(lit(is_negated))?;
    Ok(Transformed::yes(said))
}

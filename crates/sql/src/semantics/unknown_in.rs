//! `IN` with an unknown result, where NULL and false differ.
//!
//! `x IN (subquery)` is NULL where no row is equal but x or one of the rows is NULL. A condition
//! that is all of a WHERE, or stands in it beside others with AND and OR, may take that for false.
//! The engine's join for `NOT IN` knows it, too, if it compares a column with what does not depend
//! on the row at hand. Other ones are true where no row is equal, or may be:
//!
//! ```text
//! 3 NOT IN (s)  ->  NOT EXISTS (s of which (3 = column) IS NOT FALSE)
//! ```
//!
//! And it makes only true and false of an `IN` that stands deeper, so `a OR x NOT IN (subquery)`
//! would be true where it is unknown. Such a one is said in other words:
//!
//! ```text
//! x NOT IN (s)  ->  CASE WHEN x IN (s) THEN false
//!                        WHEN EXISTS (s of which the column IS NULL) OR x IS NULL AND EXISTS (s) THEN NULL
//!                        ELSE true END
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema as _, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, lit, when,
};

use crate::plan::walk::Walk;

/// The name of a subquery, which no text can write.
const NAME: &str = "in\u{1}";

/// A node whose condition has no such `IN` any more.
pub(crate) fn with_unknown_in(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Filter(filter) if has_in(&filter.predicate) => {
            let schema = Arc::clone(filter.input.schema());
            let said = of_condition(filter.predicate, &schema)?;
            said.map_data(|predicate| {
                let filter = Filter::try_new(predicate, filter.input)?;
                Ok(LogicalPlan::Filter(filter))
            })
        }
        LogicalPlan::Join(mut join) => {
            let Some(condition) = join.filter.take_if(|filter| has_in(filter)) else {
                return Ok(Transformed::no(LogicalPlan::Join(join)));
            };
            if join.join_type != JoinType::Inner {
                // What it joins, not what it gives, which has fewer columns in some.
                let schema = join.left.schema().join(join.right.schema())?;
                return of_condition(condition, &schema)?.map_data(|condition| {
                    join.filter = Some(condition);
                    Ok(LogicalPlan::Join(join))
                });
            }
            // A condition of all that is joined is one of the rows that the join gives.
            let parts = split_conjunction_owned(condition);
            let (of_rows, of_join): (Vec<_>, Vec<_>) = parts.into_iter().partition(has_in);
            join.filter = conjunction(of_join);
            let of_rows = conjunction(of_rows).unwrap_or_else(|| lit(true));
            let condition = of_condition(of_rows, &Arc::clone(&join.schema))?.data;
            let filter = Filter::try_new(condition, Arc::new(LogicalPlan::Join(join)))?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

/// The condition of a node over columns of a schema.
fn of_condition(condition: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_changed = false;
    let mut parts = Vec::new();
    for part in split_conjunction_owned(condition) {
        let said = match is_in(&part) {
            true => said_alone(part, schema)?,
            false => said(part, true, schema)?,
        };
        is_changed |= said.transformed;
        parts.push(said.data);
    }
    let condition = conjunction(parts).unwrap_or_else(|| lit(true));
    Ok(match is_changed {
        true => Transformed::yes(condition),
        false => Transformed::no(condition),
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

/// One that is a condition by itself.
fn said_alone(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let of = match &expr {
        Expr::InSubquery(of) if of.negated => of,
        Expr::InSubquery(of) => return found(of.clone(), schema),
        Expr::Not(of) => match &**of {
            Expr::InSubquery(of) if !of.negated => of,
            _ => return Ok(Transformed::no(expr)),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    let is_for_engine = of.subquery.outer_ref_columns.is_empty() && of.expr.any_column_refs();
    let said = match is_for_engine {
        true => None,
        false => looked_for(of, true, schema)?,
    };
    Ok(match said {
        Some(said) => Transformed::yes(said),
        None => Transformed::no(expr),
    })
}

/// `x IN (s)` as a condition that looks for what is equal, or `x NOT IN (s)` as one that looks for
/// what is equal or unknown. None where x has a subquery itself.
fn looked_for(of: &InSubquery, negated: bool, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut outer_ref_columns = of.subquery.outer_ref_columns.clone();
    if has_subquery(&of.expr) {
        return Ok(None);
    }
    // Seen from within the subquery, the row at hand is outside.
    let value = (*of.expr).clone().transform_up_by(&mut |part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            let outer = Expr::OuterReferenceColumn(field, column);
            if !outer_ref_columns.contains(&outer) {
                outer_ref_columns.push(outer.clone());
            }
            Ok(Transformed::yes(outer))
        }
        part => Ok(Transformed::no(part)),
    })?;
    let plan = &of.subquery.subquery;
    let may_be_null =
        of.expr.nullable(schema).unwrap_or(true) || plan.schema().field(0).is_nullable();
    let (column, plan) = column_of(plan);
    let is_equal = value.data.eq(column);
    let looked_for = match negated && may_be_null {
        true => Expr::IsNotFalse(Box::new(is_equal)),
        false => is_equal,
    };
    let subquery = Subquery {
        subquery: Arc::new(filtered(plan, looked_for)?),
        outer_ref_columns,
        ..of.subquery.clone()
    };
    Ok(Some(Expr::Exists(Exists { subquery, negated })))
}

/// The column of a subquery of whose rows nobody asks for more than whether there are any, and the
/// plan that it is a column of. Without the projection that makes it: the engine adds to that what
/// its conditions need beside it, to which a cast has the same name as the column.
fn column_of(plan: &Arc<LogicalPlan>) -> (Expr, Arc<LogicalPlan>) {
    if let LogicalPlan::Projection(of) = &**plan
        && let [column] = of.expr.as_slice()
        && !has_subquery(column)
    {
        return (column.clone().unalias(), Arc::clone(&of.input));
    }
    let (qualifier, field) = plan.schema().qualified_field(0);
    (Expr::from((qualifier, field)), Arc::clone(plan))
}

/// The rows of a plan that a condition is true of. In one node with its own condition: of two the
/// engine takes only one out of a subquery about the row at hand.
fn filtered(plan: Arc<LogicalPlan>, condition: Expr) -> Result<LogicalPlan> {
    let (condition, input) = match &*plan {
        LogicalPlan::Filter(of) => (of.predicate.clone().and(condition), Arc::clone(&of.input)),
        _ => (condition, plan),
    };
    Ok(LogicalPlan::Filter(Filter::try_new(condition, input)?))
}

fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    let _ = expr.apply_by(&mut |part| {
        found |= matches!(
            part,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// `x IN (s)` where only what is true counts. The engine's own, unless it would get two columns of
/// one name.
fn found(of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_cast = matches!(&*of.subquery.subquery, LogicalPlan::Projection(of)
        if matches!(of.expr.as_slice(), [of] if matches!(of.clone().unalias(), Expr::Cast(_))));
    if is_cast
        && !of.subquery.outer_ref_columns.is_empty()
        && let Some(said) = looked_for(&of, false, schema)?
    {
        return Ok(Transformed::yes(said));
    }
    Ok(Transformed::no(Expr::InSubquery(of)))
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
            let said = found(of_table(of)?, schema)?;
            Ok(Transformed::yes(said.data))
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
    let may_be_null = of.expr.nullable(schema).unwrap_or(true);
    let may_find_null = of.subquery.subquery.schema().field(0).is_nullable();
    if !may_be_null && !may_find_null {
        // The optimizer may take it out of a NOT, where the engine's join refuses it.
        let said = match of.subquery.outer_ref_columns.is_empty() {
            true => None,
            false => looked_for(&of, of.negated, schema)?,
        };
        return Ok(Transformed::yes(said.unwrap_or(Expr::InSubquery(of))));
    }
    let exists_one = |plan: Arc<LogicalPlan>| {
        Expr::Exists(Exists {
            subquery: Subquery {
                subquery: plan,
                ..of.subquery.clone()
            },
            negated: false,
        })
    };
    let (column, plan) = column_of(&of.subquery.subquery);
    let of_null = filtered(Arc::clone(&plan), column.is_null())?;
    let finds_null = exists_one(Arc::new(of_null));
    let finds_any = exists_one(plan);
    let is_unknown = finds_null.or((*of.expr).clone().is_null().and(finds_any));
    let is_negated = of.negated;
    let of = InSubquery {
        negated: false,
        ..of
    };
    let is_found = found(of, schema)?.data;
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    let said = when(is_found, lit(!is_negated))
        .when(is_unknown, unknown)
        .otherwise(lit(is_negated))?;
    Ok(Transformed::yes(said))
}

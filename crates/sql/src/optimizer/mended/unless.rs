//! A wrapper that keeps a rule from some plans.
//!
//! | DataFusion's rule | what it does | and where that is wrong |
//! | --- | --- | --- |
//! | `single_distinct_aggregation_to_group_by` | makes `sum(DISTINCT a), sum(b)` of two groupings, the second of which adds up the sums of the first | a sum of decimals has ten digits more than what is summed: its type would be another |
//! | `eliminate_cross_join` | joins the tables of a chain in another order | one `IS NOT DISTINCT FROM` makes NULLs equal in all of its joins |

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::plan::walk::WalkPlan;

/// Whether a rule would make a plan wrong.
type IsWrong = fn(&LogicalPlan) -> Result<bool>;

/// The rules, and when not to.
const KEPT: [(&str, IsWrong); 2] = [
    ("single_distinct_aggregation_to_group_by", sums_decimals),
    ("eliminate_cross_join", has_equal_nulls),
];

/// A rule of DataFusion, kept from the plans that it makes wrong.
pub(super) fn kept(
    rule: Arc<dyn OptimizerRule + Send + Sync>,
) -> Arc<dyn OptimizerRule + Send + Sync> {
    match KEPT.iter().find(|(name, _)| *name == rule.name()) {
        Some((_, is_wrong)) => Arc::new(Unless {
            rule,
            is_wrong: *is_wrong,
        }),
        None => rule,
    }
}

/// The rules that are kept from some plans.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEPT.into_iter().map(|(name, _)| name)
}

#[derive(Debug)]
struct Unless {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    is_wrong: IsWrong,
}

impl OptimizerRule for Unless {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match (self.is_wrong)(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => self.rule.rewrite(plan, config),
        }
    }
}

fn sums_decimals(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(Aggregate {
        aggr_expr, schema, ..
    }) = plan
    else {
        return Ok(false);
    };
    let fields = schema.fields();
    let first = fields.len().saturating_sub(aggr_expr.len());
    Ok(aggr_expr.iter().zip(&fields[first..]).any(|(expr, field)| {
        let is_sum = matches!(expr, Expr::AggregateFunction(call)
            if call.func.name() == "sum" && !call.params.distinct);
        is_sum && field.data_type().is_decimal()
    }))
}

fn has_equal_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries_by(&mut |node| {
        found = matches!(node, LogicalPlan::Join(join)
            if join.null_equality == NullEquality::NullEqualsNull);
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

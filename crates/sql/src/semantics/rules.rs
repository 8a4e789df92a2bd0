//! The analyzer rules for expressions.
//!
//! ```text
//! BeforeTypes   before types are settled:   one type for branches of CASE, queries of UNION (`branches`);
//!                                           sums of 64-bit integers as decimals (`arithmetic`);
//!                                           times in microseconds (`times`, `truncated`);
//!                                           decimals beside doubles as doubles (`floats`);
//!                                           arguments in the types that functions have (`arguments`);
//!                                           windows in the order of bytes; subqueries without a row (`no_row`)
//! AfterTypes    after they are settled:     integers and sums that fail where they overflow (`arithmetic`);
//!                                           bytes as texts and back (`bytes`);
//!                                           one zero and one NaN in comparisons (`floats`);
//!                                           functions with their limits, parameters of aggregates (`offered`);
//!                                           IN that is unknown, within conditions (`unknown_in`);
//!                                           lists of IN that the engine would put together (`in_lists`);
//!                                           aggregates and windows that the engine gets wrong (`mended`)
//! ```
//!
//! Each visits every expression of a plan once. The conditions and defaults of tables go the same
//! way, without a plan ([`settled`]).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, merge_schema};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, ScalarUDF, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};

use crate::execute::stopping::{is_written_down, require_somebody_here};
use crate::functions::arguments::as_taken;
use crate::functions::arithmetic::{checked, wide_sum};
use crate::functions::bytes::written_as_bytes;
use crate::functions::bytes_length::length_of_bytes;
use crate::functions::decimal_texts::with_short_decimals;
use crate::functions::offered::{Offered, refuse_parameters};
use crate::functions::truncated::truncated;
use crate::optimizer::mended::over_whole_partitions;
use crate::plan::walk::{Walk, WalkPlan};
use crate::semantics::branches::{of_one_type, rows_of_one_type};
use crate::semantics::in_lists::{Stands, with_lists_apart};
use crate::semantics::no_row::null_without_row;
use crate::semantics::outer_types::with_outer_types;
use crate::semantics::unknown_in::with_unknown_in;
use crate::values::floats::{beside_doubles, with_one_zero};
use crate::values::times::in_microseconds;

/// What comes before types are settled.
#[derive(Debug)]
pub(crate) struct BeforeTypes;

/// What comes when they are.
#[derive(Debug)]
pub(crate) struct AfterTypes {
    /// What is offered, by name.
    pub(crate) functions: HashMap<String, Arc<ScalarUDF>>,
}

impl AnalyzerRule for BeforeTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries_by(&mut |plan| {
            require_somebody_here()?;
            if is_written_down(&plan) {
                return Ok(Transformed::no(plan));
            }
            let plan = map_expressions(plan, before_types)?
                .transform_data(named_in_sets)?
                .transform_data(rows_of_one_type)?;
            // The types of what is below may be others now.
            plan.map_data(LogicalPlan::recompute_schema)?
                .transform_data(with_outer_types)
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "sql_before_types"
    }
}

impl AnalyzerRule for AfterTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries_by(&mut |plan| {
            require_somebody_here()?;
            if is_written_down(&plan) {
                return Ok(Transformed::no(plan));
            }
            let offered = Offered::new(&self.functions);
            let stands = match plan {
                LogicalPlan::Filter(_) => Stands::AsCondition,
                LogicalPlan::Projection(_) => Stands::AsColumn,
                _ => Stands::Elsewhere,
            };
            let after = |expr: Expr, schema: &DFSchema| {
                after_types(expr, schema, offered)?
                    .transform_data(|expr| with_lists_apart(expr, stands, schema))
            };
            map_expressions(plan, after)?.transform_data(with_unknown_in)
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "sql_after_types"
    }
}

/// An expression over columns, ready to be compiled; `now()` is when the statement began.
pub(crate) fn settled(state: &SessionState, expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expr = before_types(expr, schema)?.data;
    let expr = simplifier.coerce(expr, schema)?;
    let offered = Offered::new(state.scalar_functions());
    let expr = after_types(expr, schema, offered)?.data;
    simplifier.simplify(with_lists_apart(expr, Stands::Elsewhere, schema)?.data)
}

/// Keys within sets of groups that are computed, with their names: types are settled there without
/// these being kept.
fn named_in_sets(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !matches!(plan, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(plan));
    }
    let named = |key: Expr| {
        Ok(match key {
            Expr::Column(_) | Expr::Alias(_) => Transformed::no(key),
            key => {
                let name = key.schema_name().to_string();
                Transformed::yes(key.alias(name))
            }
        })
    };
    let plan = plan.map_expressions_by(&mut |expr| match expr {
        Expr::GroupingSet(_) => expr.map_children(named),
        expr => Ok(Transformed::no(expr)),
    })?;
    plan.transform_data(asked_by_name)
}

/// `grouping` of keys as they are named among the keys: the engine looks for them there.
fn asked_by_name(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let mut named = HashMap::new();
    for key in grouping_set_to_exprlist(&aggregate.group_expr)? {
        if let Expr::Alias(alias) = key {
            named.insert(alias.expr.as_ref().clone(), key.clone());
        }
    }
    if named.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions_by(&mut |expr| {
        let name = names.save(&expr);
        let asked = expr.transform_up_by(&mut |part| match part {
            Expr::AggregateFunction(mut call) if call.func.name() == "grouping" => {
                for key in &mut call.params.args {
                    if let Some(as_named) = named.get(key) {
                        *key = as_named.clone();
                    }
                }
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            part => Ok(Transformed::no(part)),
        })?;
        Ok(match asked.transformed {
            true => asked.update_data(|expr| name.restore(expr)),
            false => asked,
        })
    })
}

fn before_types(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up_by(&mut |expr| {
        let expr = null_without_row(expr)?;
        let expr = expr.transform_data(|expr| of_one_type(expr, schema))?;
        let expr = expr.transform_data(|expr| wide_sum(expr, schema))?;
        let expr = expr.transform_data(|expr| in_microseconds(expr, schema))?;
        let expr = expr.transform_data(|expr| truncated(expr, schema))?;
        let expr = expr.transform_data(|expr| beside_doubles(expr, schema))?;
        let expr = expr.transform_data(|expr| as_taken(expr, schema))?;
        let expr = expr.transform_data(|expr| length_of_bytes(expr, schema))?;
        expr.transform_data(|expr| peers_of_bytes(expr, schema))
    })
}

/// A window over rows in the order of bytes, of which DataFusion knows no ranges. Where the frame's
/// ends are those of peers, groups of peers are the same.
fn peers_of_bytes(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut window) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_of_peers = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => by.is_null(),
    };
    let by = window.params.order_by.first();
    let by = by.map(|by| by.expr.get_type(schema)).transpose()?;
    let is_of_bytes = matches!(
        by,
        Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    );
    let frame = &window.params.window_frame;
    let is_range = frame.units == WindowFrameUnits::Range;
    let has_peers = is_of_peers(&frame.start_bound) && is_of_peers(&frame.end_bound);
    if !(is_of_bytes && is_range && has_peers) {
        return Ok(Transformed::no(Expr::WindowFunction(window)));
    }
    window.params.window_frame.units = WindowFrameUnits::Groups;
    Ok(Transformed::yes(Expr::WindowFunction(window)))
}

fn after_types(expr: Expr, schema: &DFSchema, offered: Offered<'_>) -> Result<Transformed<Expr>> {
    expr.transform_up_by(&mut |expr| {
        refuse_parameters(&expr)?;
        let expr = checked(expr, schema)?;
        let expr = expr.transform_data(|expr| written_as_bytes(expr, schema))?;
        let expr = expr.transform_data(|expr| with_short_decimals(expr, schema))?;
        let expr = expr.transform_data(|expr| offered.bounded(expr, schema))?;
        let expr = expr.transform_data(|expr| with_one_zero(expr, schema))?;
        expr.transform_data(|expr| Ok(over_whole_partitions(expr)))
    })
}

fn map_expressions(
    plan: LogicalPlan,
    change: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let schema = inputs(&plan);
    let mut change_one = |expr: Expr| {
        let name = names.save(&expr);
        let changed = change(expr, &schema)?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    };
    plan.map_expressions_by(&mut |expr| match expr {
        // The columns are those of its parts, each by its name; it has none itself.
        Expr::GroupingSet(_) => expr.map_children(&mut change_one),
        expr => change_one(expr),
    })
}

/// What the expressions of a node can name.
fn inputs(plan: &LogicalPlan) -> DFSchema {
    match plan {
        LogicalPlan::TableScan(scan) => scan.projected_schema.as_ref().clone(),
        plan => merge_schema(&plan.inputs()),
    }
}

//! The optimizer rule that finds aggregations for dense arrays.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::super::node::ScanExec;
use super::groups::Groups;
use super::lanes::{Given, Lanes};
use super::node::{Changed, DenseAggregateExec};
use super::plan::DensePlan;
use super::tables::Aggregate;

/// A table has at most one place for so few rows.
const ROWS_PER_GROUP_MIN: u64 = 4;
/// So many groups are always few.
const FEW_GROUPS: usize = 64;

/// The optimizer rule of dense aggregation.
#[derive(Debug)]
pub struct DenseAggregation;

impl PhysicalOptimizerRule for DenseAggregation {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let done = plan.transform_up(|node| {
            let dense = match node.downcast_ref::<AggregateExec>() {
                Some(aggregate) if *aggregate.mode() == AggregateMode::Single => {
                    dense_below(aggregate)?
                }
                Some(aggregate) => dense(&node, aggregate)?.map(|dense| Arc::new(dense) as _),
                None => None,
            };
            Ok(match dense {
                Some(dense) => Transformed::yes(dense),
                None => Transformed::no(node),
            })
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "dense_aggregation"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// An aggregation in one step, of rows of one partition, in two: the first one in tables.
fn dense_below(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // The step above would not stop at its limit.
    if aggregate.limit_options().is_some() {
        return Ok(None);
    }
    let of = |mode, groups, filters, input| {
        let functions = aggregate.aggr_expr().to_vec();
        let schema = aggregate.input_schema();
        AggregateExec::try_new(mode, groups, functions, filters, input, schema)
    };
    let (groups, input) = (
        aggregate.group_expr().clone(),
        Arc::clone(aggregate.input()),
    );
    let filters = aggregate.filter_expr().to_vec();
    let none = vec![None; filters.len()];
    let above = groups.as_final();
    let partial = Arc::new(of(AggregateMode::Partial, groups, filters, input)?);
    let node: Arc<dyn ExecutionPlan> = Arc::clone(&partial) as _;
    let Some(dense) = dense(&node, &partial)? else {
        return Ok(None);
    };
    let whole = of(AggregateMode::Final, above, none, Arc::new(dense))?;
    Ok(Some(Arc::new(whole)))
}

/// What takes the place of an aggregation, if it can be done so.
fn dense(
    node: &Arc<dyn ExecutionPlan>,
    aggregate: &AggregateExec,
) -> Result<Option<DenseAggregateExec>> {
    let is_plain = *aggregate.mode() == AggregateMode::Partial
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.limit_options().is_none()
        && aggregate.filter_expr().iter().all(Option::is_none)
        && !aggregate.group_expr().has_grouping_set();
    if !is_plain {
        return Ok(None);
    }
    let Some((scan, projections)) = scan_below(aggregate.input()) else {
        return Ok(None);
    };
    let (wanted, projection) = (scan.given(), scan.projection());
    let Some(file) = projection.file().filter(|file| file.rows() > 0) else {
        return Ok(None);
    };
    let given = Given {
        projection,
        columns: wanted.0,
        schema: wanted.1,
    };
    let keys = aggregate.group_expr().expr().iter();
    let keys = keys.map(|(key, _)| over_scan(key, &projections));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let Some(groups) = Groups::new(&keys, &given, file)? else {
        return Ok(None);
    };
    let places = scan.row_count() / ROWS_PER_GROUP_MIN;
    if groups.count() > FEW_GROUPS && groups.count() as u64 > places {
        return Ok(None);
    }
    let mut lanes = Lanes::new();
    let mut aggregates = Vec::new();
    let mut states = Vec::new();
    for function in aggregate.aggr_expr() {
        let arguments = function.expressions();
        let arguments = arguments.iter().map(|of| over_scan(of, &projections));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let fields = function.state_fields()?;
        let Some(found) = aggregate_of(function, &arguments, &fields, &mut lanes, &given) else {
            return Ok(None);
        };
        aggregates.push(found);
        states.push(fields);
    }
    let fields = aggregate.schema();
    let group_fields = fields.fields().iter().take(keys.len()).cloned().collect();
    let rest = match projection.changes().inserted() {
        0 => None,
        _ => {
            let of = |scan: ScanExec| over(node, aggregate.input(), &Arc::new(scan));
            Some(Changed {
                new: of(scan.of_new_rows())?,
                file: of(scan.of_file_rows())?,
            })
        }
    };
    let plan = DensePlan {
        file: Arc::clone(file),
        groups,
        lanes,
        aggregates,
        states,
        group_fields,
        schema: fields,
    };
    Ok(Some(DenseAggregateExec::new(
        Arc::clone(node),
        scan.clone(),
        plan,
        rest,
    )))
}

/// The scan below projections, if it is one that gives all of its rows, and these.
fn scan_below(input: &Arc<dyn ExecutionPlan>) -> Option<(&ScanExec, Vec<&ProjectionExec>)> {
    let mut projections = Vec::new();
    let mut node = input;
    while let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        projections.push(projection);
        node = projection.input();
    }
    let scan: &ScanExec = node.downcast_ref()?;
    scan.is_of_all_rows().then_some((scan, projections))
}

/// The same plan over another scan.
fn over(
    node: &Arc<dyn ExecutionPlan>,
    input: &Arc<dyn ExecutionPlan>,
    scan: &Arc<ScanExec>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let below = match input.downcast_ref::<ProjectionExec>() {
        Some(projection) => over(input, projection.input(), scan)?,
        None => Arc::clone(scan) as _,
    };
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(node).replace_children(vec![below], keep)
}

/// An expression over the columns of projections, over those of the scan below.
fn over_scan(
    expr: &Arc<dyn PhysicalExpr>,
    projections: &[&ProjectionExec],
) -> Result<Arc<dyn PhysicalExpr>> {
    let mut expr = Arc::clone(expr);
    for projection in projections {
        let moved = expr.transform_up(|node| {
            let of = node.downcast_ref::<Column>();
            let of = of.and_then(|column| projection.expr().get(column.index()));
            Ok(match of {
                Some(of) => Transformed::yes(Arc::clone(&of.expr)),
                None => Transformed::no(node),
            })
        })?;
        expr = moved.data;
    }
    Ok(expr)
}

/// What a function is here, if its states are what they are known to be.
fn aggregate_of(
    function: &AggregateFunctionExpr,
    arguments: &[Arc<dyn PhysicalExpr>],
    fields: &[Arc<Field>],
    lanes: &mut Lanes,
    given: &Given<'_>,
) -> Option<Aggregate> {
    if function.is_distinct() || !function.order_bys().is_empty() {
        return None;
    }
    let [argument] = arguments else { return None };
    let types: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
    let is_sum = |of: &DataType| matches!(of, DataType::Decimal128(..) | DataType::Int64);
    match (function.fun().name(), &types[..]) {
        ("count", [DataType::Int64]) => {
            let is_of_rows = match argument.downcast_ref::<Literal>() {
                Some(literal) => !literal.value().is_null(),
                None => given.place(argument.downcast_ref()?).is_some(),
            };
            is_of_rows.then_some(Aggregate::Count)
        }
        ("sum", [of]) if is_sum(of) => {
            let step = lanes.step(argument, given)?;
            has_scale_of(argument, of, given).then_some(Aggregate::Sum(step))
        }
        ("avg", [DataType::UInt64, of @ DataType::Decimal128(..)]) => {
            let step = lanes.step(argument, given)?;
            has_scale_of(argument, of, given).then_some(Aggregate::Average(step))
        }
        (name @ ("min" | "max"), [of]) => {
            let step = lanes.step(argument, given)?;
            let is_same = argument.data_type(given.schema).ok()? == **of;
            is_same.then_some(match name {
                "min" => Aggregate::Least(step),
                _ => Aggregate::Greatest(step),
            })
        }
        _ => None,
    }
}

/// Whether digits of an argument are digits of a state.
fn has_scale_of(argument: &Arc<dyn PhysicalExpr>, state: &DataType, given: &Given<'_>) -> bool {
    match (argument.data_type(given.schema), state) {
        (Ok(DataType::Decimal128(_, scale)), DataType::Decimal128(_, other)) => scale == *other,
        (Ok(of), DataType::Int64) => of.is_integer(),
        _ => false,
    }
}

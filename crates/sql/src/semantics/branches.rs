//! The common type of alternatives: `CASE`, `UNION`, `VALUES`, and defaults of `lead` and `lag`.
//!
//! The engine takes the type of the first for that of all until it settles types, and for `lead`
//! and `lag` for ever. What is done before by types, such as `sum` of a bigint as that of a numeric
//! (`arithmetic`), would so make bigints of the others: `sum(CASE WHEN n < 10 THEN 0 ELSE n END)`
//! would add whole numbers. So these get their type before anything looks at it. It is the
//! engine's, but that a decimal beside a double is a double, as in PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, Values,
};

/// An expression whose parts are done, its branches of one type.
pub(crate) fn of_one_type(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut branches: Vec<&mut Expr> = match &mut expr {
        Expr::Case(case) => {
            let then = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            then.chain(case.else_expr.as_deref_mut()).collect()
        }
        Expr::WindowFunction(call) if matches!(call.fun.name(), "lead" | "lag") => {
            match call.params.args.as_mut_slice() {
                [of, _, default] => vec![of, default],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    // What has no type yet is left to the engine.
    let types = branches.iter().map(|branch| branch.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else {
        return Ok(Transformed::no(expr));
    };
    let Some(common) = differing(&types) else {
        return Ok(Transformed::no(expr));
    };
    for (branch, data_type) in branches.iter_mut().zip(&types) {
        if !data_type.is_null() {
            **branch = std::mem::take(*branch).cast_to(&common, schema)?;
        }
    }
    Ok(Transformed::yes(expr))
}

/// A node whose inputs are done, its rows of one type.
pub(crate) fn rows_of_one_type(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Union(union) => inputs_of_one_type(union),
        LogicalPlan::Values(values) if !have_their_types(&values) => {
            let values = LogicalPlanBuilder::values(values.values)?;
            Ok(Transformed::yes(values.build()?))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

fn inputs_of_one_type(union: Union) -> Result<Transformed<LogicalPlan>> {
    let mut is_changed = false;
    let mut fields = Vec::new();
    for (at, (qualifier, field)) in union.schema.iter().enumerate() {
        let inputs = union.inputs.iter();
        let types = inputs.map(|input| input.schema().fields().get(at).map(|it| it.data_type()));
        let types: Vec<DataType> = types.flatten().cloned().collect();
        let common = differing(&types);
        is_changed |= common.is_some();
        let data_type = common.or(types.into_iter().find(|of| !of.is_null()));
        let field = match data_type {
            Some(of) => Arc::new(field.as_ref().clone().with_data_type(of)),
            None => Arc::clone(field),
        };
        fields.push((qualifier.cloned(), field));
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
    let inputs = union.inputs.into_iter().map(|input| {
        let input = coerce_plan_expr_for_schema(Arc::unwrap_or_clone(input), &schema)?;
        Ok(Arc::new(input))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(schema);
    Ok(Transformed::yes(LogicalPlan::Union(Union {
        inputs,
        schema,
    })))
}

/// Whether all rows have the types that they had when the plan was made.
fn have_their_types(values: &Values) -> bool {
    let fields = values.schema.fields();
    values.values.iter().all(|row| {
        row.iter().zip(fields).all(|(value, field)| {
            matches!(value, Expr::Literal(..))
                || value
                    .get_type(&values.schema)
                    .is_ok_and(|of| of == *field.data_type())
        })
    })
}

/// The common type of some that are not the same; `None` where they are, or have none. NULL alone
/// is of any.
fn differing(types: &[DataType]) -> Option<DataType> {
    let mut told = types.iter().filter(|of| !of.is_null());
    let first = told.next()?;
    if told.all(|of| of == first) {
        return None;
    }
    let has = |kind: fn(&DataType) -> bool| types.iter().any(kind);
    let are_numbers = types.iter().all(|of| of.is_numeric() || of.is_null());
    if are_numbers && has(DataType::is_floating) && has(DataType::is_decimal) {
        return Some(DataType::Float64);
    }
    get_coerce_type_for_case_expression(types, None)
}

//! Scalar subqueries without rows are NULL, whatever their column.
//!
//! DataFusion takes the column's word for it: it would know without looking that
//! `(select id from t where false) is null` is false, and fail with the NULL where it comes. So the
//! column of a subquery that may give no row goes through a function of which it knows no more than
//! that.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Subquery, Volatility,
};

/// A subquery whose column may be NULL if it may have no row.
pub(crate) fn null_without_row(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = expr else {
        return Ok(Transformed::no(expr));
    };
    let plan = &subquery.subquery;
    let (qualifier, field) = plan.schema().qualified_field(0);
    if field.is_nullable() || has_a_row(plan) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let or_null = ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(OrNull::new())),
        args: vec![Expr::from((qualifier, field))],
    };
    let column = Expr::ScalarFunction(or_null).alias(field.name());
    let plan = Projection::try_new(vec![column], Arc::clone(plan))?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(LogicalPlan::Projection(plan)),
        ..subquery
    })))
}

/// Whether a plan gives a row whatever there is.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_a_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

/// Gives what it is given. It is volatile, so that a constant is not put in its place: that would
/// be none without a row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrNull {
    signature: Signature,
}

impl OrNull {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Volatile),
        }
    }
}

impl ScalarUDFImpl for OrNull {
    fn name(&self) -> &str {
        "or_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("it depends on the field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let data_type = args.arg_fields.first().map(|field| field.data_type());
        let data_type = data_type.cloned().unwrap_or(DataType::Null);
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(given) => Ok(given),
            None => internal_err!("or_null is called without a value"),
        }
    }
}

//! The normalization of floats: one zero and one NaN.
//!
//! To PostgreSQL `-0` and `0` are equal, and so are all NaNs; keys and zones of tables have one of
//! each. Arrow compares floats by their bits. So floats lose those signs where they are stored
//! ([`normal`]), and where something that is computed is compared.
//!
//! Where a double meets a decimal, PostgreSQL makes a double of that; DataFusion makes decimals of
//! 30 digits of both, which most doubles do not fit ([`beside_doubles`]).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::{Error, SqlState};

/// An expression whose parts are done, the decimals that it compares with doubles, or adds to them,
/// as doubles.
pub(crate) fn beside_doubles(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // What has no type yet is none of them.
    let is =
        |part: &Expr, kind: fn(&DataType) -> bool| part.get_type(schema).is_ok_and(|of| kind(&of));
    let has_both = |parts: &[&Expr]| {
        let has = |kind: fn(&DataType) -> bool| parts.iter().any(|part| is(part, kind));
        has(DataType::is_floating) && has(DataType::is_decimal)
    };
    let double = |expr: Expr| match is(&expr, DataType::is_decimal) {
        true => expr.cast_to(&DataType::Float64, schema),
        false => Ok(expr),
    };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if !op.is_logic_operator() && has_both(&[&left, &right]) =>
        {
            let (left, right) = (Box::new(double(*left)?), Box::new(double(*right)?));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(between) if has_both(&[&between.expr, &between.low, &between.high]) => {
            Transformed::yes(Expr::Between(Between {
                expr: Box::new(double(*between.expr)?),
                low: Box::new(double(*between.low)?),
                high: Box::new(double(*between.high)?),
                ..between
            }))
        }
        Expr::InList(list) => {
            let parts: Vec<&Expr> = list.list.iter().chain([&*list.expr]).collect();
            match has_both(&parts) {
                true => Transformed::yes(Expr::InList(InList {
                    expr: Box::new(double(*list.expr)?),
                    list: list.list.into_iter().map(double).collect::<Result<_>>()?,
                    ..list
                })),
                false => Transformed::no(Expr::InList(list)),
            }
        }
        expr => Transformed::no(expr),
    })
}

/// Floats without the signs of zeros and NaNs; other values as they are.
pub(crate) fn normal(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>();
            match values.values().iter().all(|value| is_normal_32(*value)) {
                true => Arc::new(values.clone()),
                false => Arc::new(values.unary::<_, Float32Type>(normal_32)),
            }
        }
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            match values.values().iter().all(|value| is_normal_64(*value)) {
                true => Arc::new(values.clone()),
                false => Arc::new(values.unary::<_, Float64Type>(normal_64)),
            }
        }
        _ => Arc::clone(values),
    }
}

fn is_normal_32(value: f32) -> bool {
    value.to_bits() == normal_32(value).to_bits()
}

fn is_normal_64(value: f64) -> bool {
    value.to_bits() == normal_64(value).to_bits()
}

fn normal_32(value: f32) -> f32 {
    // -0 + 0 is 0.
    if value.is_nan() {
        f32::NAN
    } else {
        value + 0.0
    }
}

fn normal_64(value: f64) -> f64 {
    if value.is_nan() {
        f64::NAN
    } else {
        value + 0.0
    }
}

/// A comparison whose types are settled, of floats as they are stored.
pub(crate) fn with_one_zero(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && is_float(&left, schema)? =>
        {
            let left = Box::new(operand(*left));
            let right = Box::new(operand(*right));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(between) if is_float(&between.expr, schema)? => {
            Transformed::yes(Expr::Between(Between {
                expr: Box::new(operand(*between.expr)),
                negated: between.negated,
                low: Box::new(operand(*between.low)),
                high: Box::new(operand(*between.high)),
            }))
        }
        Expr::InList(list) if is_float(&list.expr, schema)? => {
            Transformed::yes(Expr::InList(InList {
                expr: Box::new(operand(*list.expr)),
                list: list.list.into_iter().map(operand).collect(),
                negated: list.negated,
            }))
        }
        Expr::ScalarFunction(call) if compares_floats(&call, schema)? => {
            Transformed::yes(Expr::ScalarFunction(ScalarFunction {
                func: call.func,
                args: call.args.into_iter().map(operand).collect(),
            }))
        }
        expr => Transformed::no(expr),
    })
}

/// Whether a call compares its arguments, and these are floats.
fn compares_floats(call: &ScalarFunction, schema: &DFSchema) -> Result<bool> {
    match (call.func.name(), call.args.first()) {
        ("nullif", Some(of)) => is_float(of, schema),
        _ => Ok(false),
    }
}

/// Whether an operator compares values.
pub(crate) fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn is_float(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let data_type = expr.get_type(schema)?;
    Ok(matches!(data_type, DataType::Float32 | DataType::Float64))
}

/// Columns are as they were stored.
fn operand(expr: Expr) -> Expr {
    match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => expr,
        Expr::Cast(ref cast) if matches!(*cast.expr, Expr::Column(_)) => expr,
        Expr::Literal(ScalarValue::Float64(value), metadata) => {
            Expr::Literal(ScalarValue::Float64(value.map(normal_64)), metadata)
        }
        Expr::Literal(ScalarValue::Float32(value), metadata) => {
            Expr::Literal(ScalarValue::Float32(value.map(normal_32)), metadata)
        }
        expr => Expr::ScalarFunction(ScalarFunction {
            func: Arc::new(ScalarUDF::new_from_impl(Normal {
                signature: Signature::any(1, Volatility::Immutable),
            })),
            args: vec![expr],
        }),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Normal {
    signature: Signature,
}

impl ScalarUDFImpl for Normal {
    fn name(&self) -> &str {
        "one_zero"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        let of = args.first().cloned();
        of.ok_or_else(|| Error::new(SqlState::InternalError, "no float is given").into())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = args.arg_fields.first().cloned();
        of.ok_or_else(|| Error::new(SqlState::InternalError, "no float is given").into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(ColumnarValue::Array(values)) => Ok(ColumnarValue::Array(normal(&values))),
            Some(ColumnarValue::Scalar(value)) => {
                let value = normal(&value.to_array()?);
                let value = ScalarValue::try_from_array(&value, 0)?;
                Ok(ColumnarValue::Scalar(value))
            }
            None => Err(Error::new(SqlState::InternalError, "no float is given").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Float64Array;

    use super::*;

    #[test]
    fn zeros_and_nans_lose_their_signs_and_nulls_stay() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(-0.0),
            None,
            Some(-f64::NAN),
            Some(-1.5),
        ]));
        let normal = normal(&values);
        let bits: Vec<_> = normal.as_primitive::<Float64Type>().iter().collect();
        let bits: Vec<_> = bits.iter().map(|value| value.map(f64::to_bits)).collect();
        let expected = [Some(0.0), None, Some(f64::NAN), Some(-1.5)];
        assert_eq!(
            bits,
            expected.map(|value: Option<f64>| value.map(f64::to_bits))
        );
    }
}

//! `floor`, `ceil`, `round` and `trunc`, where DataFusion's fail: empty batches, and hundreds of
//! places.
//!
//! DataFusion's repeat a constant for each row of a batch, and take the first of what they made for
//! the answer: where a condition has left no rows, as in a branch of `CASE`, there is none, and
//! they panic. Here a constant is always asked for one row.
//!
//! To round a double to places it is made that many powers of ten as large, which is out of range
//! for hundreds of them. Then it is what it was, or zero left of the point.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::math;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};

/// What takes the place of the engine's functions of the same names.
pub(crate) fn roundings() -> [ScalarUDF; 4] {
    [math::floor(), math::ceil(), math::round(), math::trunc()]
        .map(|of_engine| ScalarUDF::new_from_impl(Rounding { of_engine }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounding {
    of_engine: Arc<ScalarUDF>,
}

/// What these functions of the engine define themselves, and nothing else that a function may.
impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        self.of_engine.name()
    }

    fn signature(&self) -> &Signature {
        self.of_engine.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.of_engine.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.of_engine.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.of_engine.is_strict()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        if args.args.iter().all(is_scalar) {
            args.number_rows = 1;
        }
        let rows = args.number_rows;
        let [value, places] = args.args.as_slice() else {
            return self.of_engine.invoke_with_args(args);
        };
        let (value, places) = (value.clone(), places.clone());
        let rounded = self.of_engine.invoke_with_args(args)?;
        match rounded.data_type() {
            DataType::Float64 => finite(rounded, &value, &places, rows),
            _ => Ok(rounded),
        }
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.of_engine.preimage(args, literal, context)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.of_engine.evaluate_bounds(inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.of_engine.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of_engine.documentation()
    }
}

/// What was rounded to places, without what was out of range on the way.
fn finite(
    rounded: ColumnarValue,
    value: &ColumnarValue,
    places: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let is_scalar = matches!(rounded, ColumnarValue::Scalar(_));
    let rounded = rounded.into_array(rows)?;
    let found = rounded.as_primitive::<Float64Type>();
    if found.values().iter().all(|value| value.is_finite()) {
        return of_rows(rounded, is_scalar);
    }
    let value = value.to_array(rounded.len())?;
    let places = cast(&places.to_array(rounded.len())?, &DataType::Int64)?;
    let (value, places) = (
        value.as_primitive::<Float64Type>(),
        places.as_primitive::<Int64Type>(),
    );
    let known = found.iter().zip(value.iter().zip(places.iter()));
    let mended: Float64Array = known
        .map(|known| match known {
            (Some(found), (Some(value), Some(places))) if !found.is_finite() => {
                let is_itself = places > 0 || !value.is_finite();
                Some(if is_itself { value } else { 0.0 })
            }
            (found, _) => found,
        })
        .collect();
    of_rows(Arc::new(mended), is_scalar)
}

fn of_rows(values: ArrayRef, is_scalar: bool) -> Result<ColumnarValue> {
    match is_scalar {
        true => ScalarValue::try_from_array(&values, 0).map(ColumnarValue::Scalar),
        false => Ok(ColumnarValue::Array(values)),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn a_constant_is_rounded_for_a_batch_without_rows() {
        let rounded = roundings().map(|function| {
            let decimal = |value| ScalarValue::Decimal128(Some(value), 10, 2);
            let mut args = vec![ColumnarValue::Scalar(decimal(-150))];
            match function.name() {
                "round" => args.push(ColumnarValue::Scalar(ScalarValue::Int32(Some(1)))),
                "trunc" => args.push(ColumnarValue::Scalar(ScalarValue::Int64(Some(1)))),
                _ => {}
            }
            let fields = args.iter().map(|arg| {
                let field = Field::new("x", arg.data_type(), true);
                Arc::new(field)
            });
            let args = ScalarFunctionArgs {
                arg_fields: fields.collect(),
                args,
                number_rows: 0,
                return_field: Arc::new(Field::new("y", DataType::Decimal128(10, 2), true)),
                config_options: Arc::default(),
            };
            function
                .invoke_with_args(args)
                .unwrap()
                .to_array(1)
                .unwrap()
        });
        for (rounded, expected) in rounded.iter().zip(["-2.00", "-1.00", "-1.50", "-1.50"]) {
            let text = datafusion::arrow::util::display::array_value_to_string(rounded, 0);
            assert_eq!(text.unwrap(), expected);
        }
    }
}

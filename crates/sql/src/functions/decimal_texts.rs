//! The length limit of texts that are cast to `numeric`.
//!
//! The engine reads the digits of such a text by a call in a call, 38 at a time, so that a text of
//! some megabytes overflows the stack, which ends the process. A `numeric` has 38 digits: what is
//! far longer is refused before the cast, or NULL where the cast may fail.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};

use crate::functions::strict_field::strict_field;
use crate::{Error, SqlState};

/// Longer texts are no numbers, bytes: zeros before and behind the digits are many already.
const BYTES_MAX: usize = 4_096;

/// An expression whose types are settled; its parts are done. What a cast reads as a decimal goes
/// through [`Bounded`].
pub(crate) fn with_short_decimals(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (of, field, is_lenient) = match &expr {
        Expr::Cast(Cast { expr, field }) => (expr, field, false),
        Expr::TryCast(TryCast { expr, field }) => (expr, field, true),
        _ => return Ok(Transformed::no(expr)),
    };
    if !has_decimals(field.data_type()) || is_bounded(of) || !has_texts(&of.get_type(schema)?) {
        return Ok(Transformed::no(expr));
    }
    let (of, field) = (of.clone(), Arc::clone(field));
    let function = Bounded {
        is_lenient,
        signature: Signature::any(1, Volatility::Immutable),
    };
    let expr = Box::new(Expr::ScalarFunction(ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(function)),
        args: vec![*of],
    }));
    Ok(Transformed::yes(match is_lenient {
        true => Expr::TryCast(TryCast { expr, field }),
        false => Expr::Cast(Cast { expr, field }),
    }))
}

/// Whether it is a short text, or bounded already.
fn is_bounded(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value
            .try_as_str()
            .is_some_and(|text| text.is_none_or(|text| text.len() <= BYTES_MAX)),
        Expr::ScalarFunction(call) => call.func.inner().is::<Bounded>(),
        _ => false,
    }
}

fn has_decimals(data_type: &DataType) -> bool {
    has_part(data_type, DataType::is_decimal)
}

fn has_texts(data_type: &DataType) -> bool {
    has_part(data_type, DataType::is_string)
}

/// Whether a type, or one of its parts at any depth, is such a one.
fn has_part(data_type: &DataType, is_it: fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => has_part(of.data_type(), is_it),
        DataType::Struct(fields) => {
            let mut fields = fields.iter();
            fields.any(|field| has_part(field.data_type(), is_it))
        }
        DataType::Dictionary(_, of) => has_part(of, is_it),
        of => is_it(of),
    }
}

/// Refuses values of which one is a text that is too long for a number, where they are to become
/// decimals; wherever the engine's cast is called by us.
pub fn require_short_decimals(values: &dyn Array, to: &DataType) -> Result<(), Error> {
    match has_decimals(to) {
        true => require_short(values),
        false => Ok(()),
    }
}

fn require_short(values: &dyn Array) -> Result<(), Error> {
    match longest(values) {
        length if length > BYTES_MAX => Err(Error::new(
            SqlState::NumericValueOutOfRange,
            format!("a text of {length} bytes is too long for a number: {BYTES_MAX} at most"),
        )),
        _ => Ok(()),
    }
}

/// The bytes of the longest text within, at any depth.
fn longest(values: &dyn Array) -> usize {
    let of_data = |data: &datafusion::arrow::array::ArrayData| {
        let children = data.child_data().iter();
        let each =
            children.map(|child| longest(&*datafusion::arrow::array::make_array(child.clone())));
        each.max().unwrap_or(0)
    };
    let bytes = |text: Option<&str>| text.map_or(0, str::len);
    let longest = match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().iter().map(bytes).max(),
        DataType::LargeUtf8 => values.as_string::<i64>().iter().map(bytes).max(),
        DataType::Utf8View => {
            let views = values.as_string_view().views().iter();
            // The low half of the first word of a view is its length.
            views.map(|view| *view as u32 as usize).max()
        }
        of if has_texts(of) => return of_data(&values.to_data()),
        _ => None,
    };
    longest.unwrap_or(0)
}

/// Gives what it is given, but for texts that are too long for numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    /// Whether these are NULL, and else an error.
    is_lenient: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        "number_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = args.arg_fields.first();
        let of = of.map_or(DataType::Null, |of| of.data_type().clone());
        Ok(match self.is_lenient {
            true => Arc::new(datafusion::arrow::datatypes::Field::new(
                self.name(),
                of,
                true,
            )),
            false => strict_field(self.name(), of, &args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of] = args.args.as_slice() else {
            return Err(Error::new(SqlState::InternalError, "a cast is of one value").into());
        };
        let is_scalar = matches!(of, ColumnarValue::Scalar(_));
        let values = of.to_array(if is_scalar { 1 } else { args.number_rows })?;
        if longest(&values) <= BYTES_MAX {
            return Ok(of.clone());
        }
        if !self.is_lenient {
            require_short(&values)?;
        }
        let are_long: BooleanArray = (0..values.len())
            .map(|row| Some(longest(&values.slice(row, 1)) > BYTES_MAX))
            .collect();
        let kept: ArrayRef = nullif(&values, &are_long)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&kept, 0)?),
            false => ColumnarValue::Array(kept),
        })
    }
}

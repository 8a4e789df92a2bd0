//! The text form of `bytea`: `\x0aff`.
//!
//! To DataFusion the bytes of a text are its letters, wherever a text meets a `bytea`. So every
//! cast between the two is one of ours. Columns of bytes are views (`BinaryView`), and so is a
//! `bytea` in a text, for functions know no type that both are.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use datafusion::sql::sqlparser::ast;

use crate::functions::decimal_texts::require_short_decimals;
use crate::functions::strict_field::strict_field;
use crate::values::data_types::bytes_of_text;
use crate::values::texts::ValueTexts;
use crate::{Error, SqlState};

/// An expression whose types are settled; its parts are done.
pub(crate) fn written_as_bytes(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr: of, field }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let from = of.get_type(schema)?;
    let to = field.data_type();
    if !(is_text(&from) && is_bytes(to) || is_bytes(&from) && is_text(to)) {
        return Ok(Transformed::no(Expr::Cast(Cast { expr: of, field })));
    }
    let function = Written {
        to: to.clone(),
        signature: Signature::any(1, Volatility::Immutable),
    };
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(function)),
        args: vec![*of],
    })))
}

/// Types in a text that are others than the planner's: bytes are what columns of bytes have.
#[derive(Debug)]
pub(crate) struct TypesOfColumns;

impl TypePlanner for TypesOfColumns {
    fn plan_type_field(&self, of_text: &ast::DataType) -> Result<Option<FieldRef>> {
        Ok(match of_text {
            ast::DataType::Bytea => Some(Arc::new(Field::new("", DataType::BinaryView, true))),
            _ => None,
        })
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Whether values of a type are bytes, however they are kept.
pub(crate) fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// A cast from texts to bytes, or back.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Written {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Written {
    fn name(&self) -> &str {
        match is_bytes(&self.to) {
            true => "bytea",
            false => "text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(strict_field(self.name(), self.to.clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of] = args.args.as_slice() else {
            return Err(Error::new(SqlState::InternalError, "a cast is of one value").into());
        };
        // The optimizer asks what comes of NULL in place of columns.
        if of.data_type() == DataType::Null {
            let none = ScalarValue::try_from(&self.to)?;
            return Ok(ColumnarValue::Scalar(none));
        }
        let is_scalar = matches!(of, ColumnarValue::Scalar(_));
        let of = of.to_array(if is_scalar { 1 } else { args.number_rows })?;
        let written = match is_bytes(&self.to) {
            true => bytes_of_text(&of)?,
            false => texts_of_bytes(&of)?,
        };
        let written = cast(&written, &self.to)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&written, 0)?),
            false => ColumnarValue::Array(written),
        })
    }
}

/// A value as one of another type, for EXECUTE.
pub(crate) fn cast_value(value: &ScalarValue, to: &DataType) -> Result<ScalarValue> {
    if !(is_text(&value.data_type()) && is_bytes(to)) {
        require_short_decimals(&value.to_array()?, to)?;
        return value.cast_to(to);
    }
    let bytes = bytes_of_text(&value.to_array()?)?;
    ScalarValue::try_from_array(&cast(&bytes, to)?, 0)
}

fn texts_of_bytes(values: &ArrayRef) -> Result<ArrayRef> {
    let texts = ValueTexts::new(values)?;
    let mut written = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    for row in 0..values.len() {
        text.clear();
        let has_value = texts.write(row, &mut text)?;
        written.append_option(has_value.then_some(&text));
    }
    Ok(Arc::new(written.finish()))
}

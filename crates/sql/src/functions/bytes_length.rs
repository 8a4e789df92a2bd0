//! `length`, `octet_length` and `bit_length` of `bytea`.
//!
//! DataFusion's count the letters of texts: of bytes they would count those of `\x0aff`, or refuse
//! them. The last two are replaced by these, for which a text is its bytes; what a `length` of
//! bytes is, is known when types are.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::bytes::is_bytes;
use crate::{Error, SqlState};

const BYTE_BITS: i32 = 8;

/// What takes the place of the engine's functions of the same names.
pub(crate) fn lengths() -> [ScalarUDF; 2] {
    [1, BYTE_BITS].map(|units| ScalarUDF::new_from_impl(LengthInBytes::new(units)))
}

/// A call whose arguments are done.
pub(crate) fn length_of_bytes(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_of_bytes = |arg: &Expr| matches!(arg.get_type(schema), Ok(of) if is_bytes(&of));
    let is_length = func.name() == "character_length" && args.iter().any(is_of_bytes);
    let func = match is_length {
        true => Arc::new(ScalarUDF::new_from_impl(LengthInBytes::new(1))),
        false => func,
    };
    let call = Expr::ScalarFunction(ScalarFunction { func, args });
    Ok(match is_length {
        true => Transformed::yes(call),
        false => Transformed::no(call),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LengthInBytes {
    /// That a byte counts for.
    units: i32,
    signature: Signature,
}

impl LengthInBytes {
    fn new(units: i32) -> Self {
        let types = vec![DataType::Utf8View, DataType::BinaryView];
        Self {
            units,
            signature: Signature::uniform(1, types, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for LengthInBytes {
    fn name(&self) -> &str {
        match self.units {
            BYTE_BITS => "bit_length",
            _ => "octet_length",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of] = args.args.as_slice() else {
            return Err(Error::new(SqlState::InternalError, "a length is of one value").into());
        };
        let is_scalar = matches!(of, ColumnarValue::Scalar(_));
        let of = of.to_array(if is_scalar { 1 } else { args.number_rows })?;
        let of = cast(&of, &DataType::BinaryView)?;
        let lengths = of.as_binary_view().iter().map(|value| {
            // A value has at most 2^30 bytes.
            let bytes = i32::try_from(value?.len()).unwrap_or(i32::MAX);
            Some(bytes.saturating_mul(self.units))
        });
        let lengths: ArrayRef = Arc::new(lengths.collect::<Int32Array>());
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?),
            false => ColumnarValue::Array(lengths),
        })
    }
}

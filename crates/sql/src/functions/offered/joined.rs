//! Text concatenation, `||`, within the limits of functions.

use std::sync::Arc;

use datafusion::arrow::compute::kernels::concat_elements::concat_elements_dyn;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::strict_field::strict_field;

/// The operator as a function of two texts of one type; `None` for other types.
pub(super) fn joined(left: &DataType, right: &DataType) -> Option<Arc<ScalarUDF>> {
    let is_text = matches!(
        left,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::BinaryView
    );
    (is_text && left == right).then(|| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Joined {
            of: left.clone(),
            signature,
        }))
    })
}

/// What comes of this function, if it is one of these.
pub(super) fn joined_type(function: &ScalarUDF) -> Option<&DataType> {
    function.inner().downcast_ref::<Joined>().map(|it| &it.of)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    of: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "||"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.of.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(strict_field(self.name(), self.of.clone(), &args))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("|| is of two values");
        };
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        // The optimizer asks what comes of NULL in place of columns.
        if [left, right]
            .iter()
            .any(|arg| matches!(arg, ColumnarValue::Scalar(value) if value.is_null()))
        {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&self.of)?));
        }
        let are_constant = is_scalar(left) && is_scalar(right);
        let rows = if are_constant { 1 } else { args.number_rows };
        let joined = concat_elements_dyn(&left.to_array(rows)?, &right.to_array(rows)?)?;
        Ok(match are_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?),
            false => ColumnarValue::Array(joined),
        })
    }
}

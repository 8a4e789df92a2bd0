//! Patterns of operators (`~`, `LIKE`, `SIMILAR TO`), which are looked at before they are read.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::work::{PATTERN_BYTES_MAX, refuse_patterns};

/// A pattern that is looked at when it is known; one that is written down and short is what it is.
pub(super) fn looked_at(pattern: Expr) -> Transformed<Expr> {
    if is_short(&pattern) || is_looked_at(&pattern) {
        return Transformed::no(pattern);
    }
    let signature = Signature::any(1, Volatility::Immutable);
    Transformed::yes(Expr::ScalarFunction(ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(Pattern { signature })),
        args: vec![pattern],
    }))
}

fn is_short(pattern: &Expr) -> bool {
    match pattern {
        Expr::Literal(
            ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text),
            _,
        ) => text
            .as_ref()
            .is_none_or(|text| text.len() as u64 <= PATTERN_BYTES_MAX),
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_short(&cast.expr),
        _ => false,
    }
}

fn is_looked_at(pattern: &Expr) -> bool {
    matches!(pattern, Expr::ScalarFunction(call) if call.func.inner().is::<Pattern>())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Pattern {
    signature: Signature,
}

impl ScalarUDFImpl for Pattern {
    fn name(&self) -> &str {
        "pattern"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] => Ok(of.clone()),
            _ => internal_err!("a pattern is one value"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [of] => Ok(Arc::clone(of)),
            _ => internal_err!("a pattern is one value"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [pattern] = args.args.as_slice() else {
            return internal_err!("a pattern is one value");
        };
        refuse_patterns(pattern)?;
        Ok(pattern.clone())
    }
}

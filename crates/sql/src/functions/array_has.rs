//! `array_has`, and so `x = ANY (array)`, with three-valued logic.
//!
//! | | DataFusion | here, as in PostgreSQL |
//! | --- | --- | --- |
//! | the array has a NULL, and no element that is equal | false | NULL |
//! | the array is empty, and `x` is NULL | NULL | false |
//!
//! A constant array becomes a list of IN without NULL in it: of one with NULL the engine makes
//! other lists than are meant (`crate::semantics::in_lists`).

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, OffsetSizeTrait};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, in_list, lit,
};

pub(crate) const ARRAY_HAS: &str = "array_has";

/// What takes the place of the engine's function.
pub(crate) fn array_has(of_engine: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(ArrayHas { of_engine }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayHas {
    of_engine: Arc<ScalarUDF>,
}

/// An array, as far as it matters what is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    /// There is no array.
    Unknown,
    Empty,
    /// All of them are known.
    Known,
    WithNull,
}

impl Elements {
    fn of(arrays: &ArrayRef, row: usize) -> Self {
        if arrays.is_null(row) {
            return Self::Unknown;
        }
        let (elements, range) = match arrays.data_type() {
            DataType::List(_) => of_row::<i32>(arrays, row),
            DataType::LargeList(_) => of_row::<i64>(arrays, row),
            DataType::FixedSizeList(_, length) => {
                let start = row * *length as usize;
                let arrays = arrays.as_fixed_size_list();
                (arrays.values(), start..start + *length as usize)
            }
            _ => return Self::Unknown,
        };
        if range.is_empty() {
            return Self::Empty;
        }
        let nulls = elements.nulls().filter(|nulls| nulls.null_count() > 0);
        match nulls.is_some_and(|nulls| range.into_iter().any(|at| nulls.is_null(at))) {
            true => Self::WithNull,
            false => Self::Known,
        }
    }

    /// Whether an element is equal, by what the engine has found.
    fn answer(self, found: Option<bool>) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Empty => Some(false),
            Self::Known => found,
            Self::WithNull => found.filter(|is| *is),
        }
    }
}

/// The elements of all arrays, and where those of one are.
fn of_row<O: OffsetSizeTrait>(arrays: &ArrayRef, row: usize) -> (&ArrayRef, Range<usize>) {
    let arrays = arrays.as_list::<O>();
    let ends = &arrays.value_offsets()[row..];
    (arrays.values(), ends[0].as_usize()..ends[1].as_usize())
}

impl ScalarUDFImpl for ArrayHas {
    fn name(&self) -> &str {
        self.of_engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.of_engine.aliases()
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

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.of_engine.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [arrays, values] = args.args.as_slice() else {
            return internal_err!("an array and a value");
        };
        let (arrays, values) = (arrays.clone(), values.clone());
        let rows = args.number_rows;
        let found = self.of_engine.invoke_with_args(args)?;
        // One array for all rows is looked at once.
        let of_all = match &arrays {
            ColumnarValue::Scalar(array) => Some(Elements::of(&array.to_array()?, 0)),
            ColumnarValue::Array(_) => None,
        };
        if let (Some(elements), ColumnarValue::Scalar(_)) = (of_all, &values) {
            let found = match found {
                ColumnarValue::Scalar(ScalarValue::Boolean(found)) => found,
                found => found.to_array(1)?.as_boolean().iter().next().flatten(),
            };
            return Ok(ColumnarValue::Scalar(elements.answer(found).into()));
        }
        if of_all == Some(Elements::Known) {
            return Ok(found);
        }
        let found = found.to_array(rows)?;
        let found = found.as_boolean();
        let answers: BooleanArray = match (of_all, &arrays) {
            (None, ColumnarValue::Array(arrays)) => found
                .iter()
                .enumerate()
                .map(|(row, found)| Elements::of(arrays, row).answer(found))
                .collect(),
            (elements, _) => {
                let elements = elements.unwrap_or(Elements::Unknown);
                found.iter().map(|found| elements.answer(found)).collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }

    /// A list of IN for a constant array.
    fn simplify(&self, mut args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let unknown = || Expr::Literal(ScalarValue::Boolean(None), None);
        let [Expr::Literal(array, _), value] = args.as_mut_slice() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        if array.is_null() {
            return Ok(ExprSimplifyResult::Simplified(unknown()));
        }
        let elements = match array {
            ScalarValue::List(array) => array.value(0),
            ScalarValue::LargeList(array) => array.value(0),
            _ => return Ok(ExprSimplifyResult::Original(args)),
        };
        let known = (0..elements.len()).filter(|at| !elements.is_null(*at));
        let known = known.map(|at| {
            let value = ScalarValue::try_from_array(&elements, at)?;
            Ok(Expr::Literal(value, None))
        });
        let known = known.collect::<Result<Vec<_>>>()?;
        let has_null = known.len() < elements.len();
        let value = std::mem::take(value);
        Ok(ExprSimplifyResult::Simplified(
            match (known.is_empty(), has_null) {
                (true, false) => lit(false),
                (true, true) => unknown(),
                (false, false) => in_list(value, known, false),
                (false, true) => in_list(value, known, false).or(unknown()),
            },
        ))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of_engine.documentation()
    }
}

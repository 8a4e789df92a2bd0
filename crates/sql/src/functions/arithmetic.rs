//! Arithmetic of integers and floats that fails where it runs over, as PostgreSQL's does.
//!
//! DataFusion's `+`, `-` and `*` of integers wrap, those of floats and `/` give infinities, and
//! `sum` of 64-bit integers wraps too. Two of the analyzer's rules (`rules`) fix that:
//!
//! ```text
//! wide_sum   before types are settled:   sum(bigint)                    ->  sum(CAST(... AS numeric)), which is what PostgreSQL gives
//! checked    after they are settled:     integer + - * integer          ->  a function of the same name that fails (22003)
//!                                        float + - * / float            ->  the same (`float_range`)
//!                                        sum(numeric(29 digits or more) ->  one that fails (`decimal_sum`)
//!                                        sum(float), avg(float)         ->  the same that fail (`float_totals`)
//! ```
//!
//! `sum(integer)` is a bigint, which four thousand million rows at least are needed to run over; so
//! it stays as it is. Operators on decimals are not touched: theirs fail.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunctionParams, ScalarFunction};
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition,
};
use datafusion::physical_expr_common::datum::apply;

use crate::functions::decimal_sum::sum_of;
use crate::functions::float_range::{By, refuse_out_of_range};
use crate::functions::float_totals::float_total;
use crate::functions::strict_field::strict_field;
use crate::{Error, SqlState};

/// Digits of the greatest integer of 64 bits.
const BIGINT_DIGITS: u8 = 19;

/// Sums of 64-bit integers as decimals; of an expression whose parts are done.
pub(crate) fn wide_sum(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_sum = |name: &str, params: &[Expr]| -> Result<bool> {
        let [of] = params else { return Ok(false) };
        let is_wide = |of: DataType| matches!(of, DataType::Int64 | DataType::UInt64);
        Ok(name == "sum" && is_wide(of.get_type(schema)?))
    };
    let widened = |mut args: Vec<Expr>| -> Result<Vec<Expr>> {
        let of = args.swap_remove(0);
        // Integers without a sign are in files alone.
        let digits = match of.get_type(schema)? {
            DataType::UInt64 => BIGINT_DIGITS + 1,
            _ => BIGINT_DIGITS,
        };
        Ok(vec![of.cast_to(&DataType::Decimal128(digits, 0), schema)?])
    };
    match expr {
        Expr::AggregateFunction(mut sum) if is_sum(sum.func.name(), &sum.params.args)? => {
            let AggregateFunctionParams { args, .. } = &mut sum.params;
            *args = widened(std::mem::take(args))?;
            Ok(Transformed::yes(Expr::AggregateFunction(sum)))
        }
        Expr::WindowFunction(mut sum) if is_sum(sum.fun.name(), &sum.params.args)? => {
            let args = &mut sum.params.args;
            *args = widened(std::mem::take(args))?;
            Ok(Transformed::yes(Expr::WindowFunction(sum)))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// An expression whose types are settled, its arithmetic checked; its parts are done.
pub(crate) fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let function = match op {
                Operator::Plus => Kind::Plus,
                Operator::Minus => Kind::Minus,
                Operator::Multiply => Kind::Times,
                Operator::Divide => Kind::Over,
                _ => return Ok(Transformed::no(binary(left, op, right))),
            };
            let types = (type_of(&left, schema)?, type_of(&right, schema)?);
            // Division of integers fails by itself.
            let is_taken = types.0.is_floating() || types.0.is_integer() && function != Kind::Over;
            match is_taken && types.0 == types.1 {
                true => Ok(Transformed::yes(function.call(vec![*left, *right]))),
                false => Ok(Transformed::no(binary(left, op, right))),
            }
        }
        Expr::AggregateFunction(mut sum) => {
            let Some(checked) = checked_total(&sum.func, &sum.params.args, schema)? else {
                return Ok(Transformed::no(Expr::AggregateFunction(sum)));
            };
            sum.func = checked;
            Ok(Transformed::yes(Expr::AggregateFunction(sum)))
        }
        Expr::WindowFunction(mut sum) => {
            let checked = match &sum.fun {
                WindowFunctionDefinition::AggregateUDF(of_engine) => {
                    checked_total(of_engine, &sum.params.args, schema)?
                }
                _ => None,
            };
            let Some(checked) = checked else {
                return Ok(Transformed::no(Expr::WindowFunction(sum)));
            };
            sum.fun = WindowFunctionDefinition::AggregateUDF(checked);
            Ok(Transformed::yes(Expr::WindowFunction(sum)))
        }
        Expr::Negative(of) => {
            let data_type = type_of(&of, schema)?;
            if !data_type.is_integer() || matches!(*of, Expr::Literal(..)) {
                return Ok(Transformed::no(Expr::Negative(of)));
            }
            let zero = Expr::Literal(ScalarValue::new_zero(&data_type)?, None);
            Ok(Transformed::yes(Kind::Minus.call(vec![zero, *of])))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// The type of an operand, of whose left end alone it is the type where that is such a function
/// already: the engine makes names of all that is within each part of it.
fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    let mut of = expr;
    while let Expr::ScalarFunction(call) = of
        && call.func.inner().is::<Arithmetic>()
        && let Some(first) = call.args.first()
    {
        of = first;
    }
    of.get_type(schema)
}

/// The replacement of a sum that would wrap, or of a sum or average that would become infinite.
fn checked_total(
    of_engine: &Arc<AggregateUDF>,
    args: &[Expr],
    schema: &DFSchema,
) -> Result<Option<Arc<AggregateUDF>>> {
    let [of] = args else { return Ok(None) };
    Ok(match of_engine.name() {
        name @ ("sum" | "avg") => {
            let of = of.get_type(schema)?;
            let of_decimals = (name == "sum").then(|| sum_of(&of)).flatten();
            of_decimals.or_else(|| float_total(of_engine, &of))
        }
        _ => None,
    })
}

fn binary(left: Box<Expr>, op: Operator, right: Box<Expr>) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// One of the operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Plus,
    Minus,
    Times,
    Over,
}

/// An operator between two integers, or two floats, of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    kind: Kind,
    signature: Signature,
}

impl Kind {
    fn call(self, args: Vec<Expr>) -> Expr {
        let function = Arithmetic {
            kind: self,
            signature: Signature::any(2, Volatility::Immutable),
        };
        Expr::ScalarFunction(ScalarFunction {
            func: Arc::new(ScalarUDF::new_from_impl(function)),
            args,
        })
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
        }
    }

    /// What is looked at in its result where that is a float.
    fn by(self) -> By {
        match self {
            Self::Plus | Self::Minus => By::Addition,
            Self::Times => By::Multiplication,
            Self::Over => By::Division,
        }
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.kind.sign()
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [left, right] => format!("{left} {} {right}", self.kind.sign()),
            _ => self.kind.sign().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        args.first()
            .cloned()
            .ok_or_else(|| DataFusionError::Plan(format!("{} has two operands", self.kind.sign())))
    }

    /// NULL where an operand is, as the operator: the planner has noted that already.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone());
        let types: Vec<DataType> = types.collect();
        let of = self.return_type(&types)?;
        Ok(strict_field(self.name(), of, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("two operands".to_owned()));
        };
        // The optimizer asks what comes of NULL in place of columns.
        if [left, right]
            .iter()
            .any(|of| of.data_type() == DataType::Null)
        {
            let none = ScalarValue::try_from(args.return_field.data_type())?;
            return Ok(ColumnarValue::Scalar(none));
        }
        let done = match self.kind {
            Kind::Plus => apply(left, right, numeric::add),
            Kind::Minus => apply(left, right, numeric::sub),
            Kind::Times => apply(left, right, numeric::mul),
            Kind::Over => apply(left, right, numeric::div),
        };
        let done = done.map_err(|error| match error.find_root() {
            DataFusionError::ArrowError(arrow, _)
                if matches!(
                    **arrow,
                    datafusion::arrow::error::ArrowError::ArithmeticOverflow(_)
                ) =>
            {
                out_of_range(args.return_field.data_type()).into()
            }
            _ => error,
        })?;
        refuse_out_of_range(self.kind.by(), [left, right], &done)?;
        Ok(done)
    }
}

fn out_of_range(data_type: &DataType) -> Error {
    let name = crate::values::data_types::type_of_values("", data_type)
        .map_or_else(|_| data_type.to_string(), |known| known.to_string());
    Error::new(
        SqlState::NumericValueOutOfRange,
        format!("{name} out of range"),
    )
}

//! The wrapper of a DataFusion function that estimates result and work, and reserves memory before
//! the call.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Documentation, Expr, ExprSchemable, ExpressionPlacement, Like,
    Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, lit,
};

use super::growth::Growth;
use super::joined::joined;
use super::kept_rows::counted_aggregate;
use super::lists::bounds_of;
use super::memory::{SMALL_BYTES, asked_for};
use super::over_windows::counted_over_window;
use super::patterns::{is_little_work, looked_at};
use super::refused::{refuse, refuse_patterns};
use super::slices::{called, in_slices};
use super::work::{Slices, Work};
use crate::execute::stopping::require_somebody;
use crate::plan::walk::Walk;
use crate::{Error, SqlState};

/// How many times a constant, and a column, is there at once while it is made.
const CONSTANT_COPIES: u64 = 4;
const COLUMN_COPIES: u64 = 2;

const REGEXP_LIKE: &str = "regexp_like";

/// What bounds casts between texts and bytes, and `||`.
const CAST: (Growth, Work) = (Growth::Arguments(3), Work::Bytes(5_000));
const JOIN: (Growth, Work) = (Growth::Arguments(1), Work::Bytes(500));

/// A function with its bound, in the place of itself.
pub(super) fn bounded_function(
    of_engine: Arc<ScalarUDF>,
    (growth, work): (Growth, Work),
    pool: &Arc<dyn MemoryPool>,
) -> Arc<ScalarUDF> {
    let pool = Arc::clone(pool);
    Arc::new(ScalarUDF::new_from_impl(Bounded {
        of_engine,
        growth,
        work,
        pool,
    }))
}

/// Functions by their names, as a state offers them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offered<'a>(&'a HashMap<String, Arc<ScalarUDF>>);

impl<'a> Offered<'a> {
    pub(crate) fn new(functions: &'a HashMap<String, Arc<ScalarUDF>>) -> Self {
        Self(functions)
    }

    /// The pool that results are of.
    fn pool(&self) -> Option<&'a Arc<dyn MemoryPool>> {
        let repeat = self.0.get("repeat")?;
        Some(&repeat.inner().downcast_ref::<Bounded>()?.pool)
    }

    /// A call that was made for an operator, or for another call, with the bounds of what is
    /// offered; its types are settled, its parts done.
    pub(crate) fn bounded(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expr {
            // Casts between texts and bytes that are ours.
            Expr::ScalarFunction(call)
                if matches!(call.func.name(), "bytea" | "text") && !is_bounded(&call.func) =>
            {
                let Some(pool) = self.pool() else {
                    return Ok(Transformed::no(Expr::ScalarFunction(call)));
                };
                Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
                    func: bounded_function(call.func, CAST, pool),
                    args: call.args,
                })))
            }
            Expr::ScalarFunction(call) if !is_bounded(&call.func) => {
                let Some(offered) = self.0.get(call.func.name()).filter(|it| is_bounded(it)) else {
                    return Ok(Transformed::no(Expr::ScalarFunction(call)));
                };
                Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
                    func: Arc::clone(offered),
                    args: call.args,
                })))
            }
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::StringConcat,
                right,
            }) => {
                let function = joined(&type_of(&left, schema)?, &type_of(&right, schema)?);
                let (Some(function), Some(pool)) = (function, self.pool()) else {
                    let op = Operator::StringConcat;
                    return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr {
                        left,
                        op,
                        right,
                    })));
                };
                Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
                    func: bounded_function(function, JOIN, pool),
                    args: vec![*left, *right],
                })))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_of_pattern(op)
                    && !is_little_work(&right)
                    && let Some(function) = self.0.get(REGEXP_LIKE) =>
            {
                Ok(Transformed::yes(by_function(function, *left, op, *right)))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_of_pattern(op) => {
                Ok(looked_at(*right).update_data(|right| {
                    let right = Box::new(right);
                    Expr::BinaryExpr(BinaryExpr { left, op, right })
                }))
            }
            Expr::Like(like) => Ok(of_like(like, Expr::Like)),
            Expr::SimilarTo(like) => Ok(of_like(like, Expr::SimilarTo)),
            expr @ Expr::WindowFunction(_) => counted_over_window(expr, self.pool()),
            expr @ Expr::AggregateFunction(_) => Ok(counted_aggregate(expr)),
            expr => Ok(Transformed::no(expr)),
        }
    }
}

fn of_like(like: Like, made: fn(Like) -> Expr) -> Transformed<Expr> {
    let Like {
        negated,
        expr,
        pattern,
        escape_char,
        case_insensitive,
    } = like;
    looked_at(*pattern).update_data(|pattern| {
        made(Like {
            negated,
            expr,
            pattern: Box::new(pattern),
            escape_char,
            case_insensitive,
        })
    })
}

/// What an operator of a pattern says, by the function.
fn by_function(function: &Arc<ScalarUDF>, text: Expr, op: Operator, pattern: Expr) -> Expr {
    let mut args = vec![text, pattern];
    if matches!(op, Operator::RegexIMatch | Operator::RegexNotIMatch) {
        args.push(lit("i"));
    }
    let found = Expr::ScalarFunction(ScalarFunction {
        func: Arc::clone(function),
        args,
    });
    match op {
        Operator::RegexNotMatch | Operator::RegexNotIMatch => Expr::Not(Box::new(found)),
        _ => found,
    }
}

fn is_of_pattern(op: Operator) -> bool {
    matches!(
        op,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
    )
}

/// The type of a text, which is known without its parts where those are joined already: the engine
/// makes names of all that is within each part.
fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    if let Expr::ScalarFunction(call) = expr
        && let Some(bounded) = call.func.inner().downcast_ref::<Bounded>()
        && let Some(known) = super::joined::joined_type(&bounded.of_engine)
    {
        return Ok(known.clone());
    }
    expr.get_type(schema)
}

fn is_bounded(function: &ScalarUDF) -> bool {
    function.inner().is::<Bounded>()
}

/// See the module.
#[derive(Debug)]
struct Bounded {
    of_engine: Arc<ScalarUDF>,
    growth: Growth,
    work: Work,
    pool: Arc<dyn MemoryPool>,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.of_engine == other.of_engine
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of_engine.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.of_engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.of_engine.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.of_engine.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.of_engine.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.of_engine.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        if self.growth == Growth::Cast {
            refuse_type(args.scalar_arguments)?;
        }
        self.of_engine.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.of_engine.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (name, rows) = (self.name(), args.number_rows);
        refuse(self.growth, name, &args.args)?;
        let bytes = self.growth.bytes(&args.args, rows)?;
        let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        // What is constant is copied by each step of the planner that looks at it; what is not
        // grows by doubling.
        let copies = match args.args.iter().all(is_constant) {
            true => CONSTANT_COPIES,
            false => COLUMN_COPIES,
        };
        let asked_for = asked_for(&self.pool, self.name(), bytes, copies)?;
        require_somebody(&args.config_options)?;
        let result = match self.work.may_be_long(&args.args, rows, bytes) {
            true => {
                let slices = Slices::new(name, (self.growth, self.work), &args.args, rows);
                in_slices(&self.of_engine, &args, |begin| slices.end(begin))
            }
            false => called(&self.of_engine, args),
        };
        drop(asked_for);
        result
    }

    /// What takes its place is bounded as it is.
    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        // A pattern that is written down is read here.
        if self.name().starts_with("regexp_")
            && let Some(pattern) = args.get(1).and_then(constant)
        {
            refuse_patterns(&pattern)?;
        }
        if self.name() == REGEXP_LIKE && !args.get(1).is_some_and(is_little_work) {
            // It would become an operator, which looks at no clock.
            return Ok(ExprSimplifyResult::Original(args));
        }
        // Some put constants together as they do: what is large is left to the call itself.
        let constants: Vec<_> = args.iter().filter_map(constant).collect();
        if self.growth.bytes(&constants, 1)? > SMALL_BYTES {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let simplified = self.of_engine.simplify(args, context)?;
        let ExprSimplifyResult::Simplified(expr) = simplified else {
            return Ok(simplified);
        };
        let bounded = expr.transform_up_by(&mut |expr| match expr {
            Expr::ScalarFunction(mut call) if !is_bounded(&call.func) => {
                let Some(bounds) = bounds_of(call.func.name()) else {
                    return Ok(Transformed::no(Expr::ScalarFunction(call)));
                };
                call.func = bounded_function(call.func, bounds, &self.pool);
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(ExprSimplifyResult::Simplified(bounded.data))
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.of_engine.preimage(args, literal, context)
    }

    fn short_circuits(&self) -> bool {
        self.of_engine.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.of_engine.conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.of_engine.evaluate_bounds(inputs)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.of_engine.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.of_engine.output_ordering(inputs)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.of_engine.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of_engine.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.of_engine.placement(args)
    }
}

fn constant(expr: &Expr) -> Option<ColumnarValue> {
    match expr {
        Expr::Literal(value, _) => Some(ColumnarValue::Scalar(value.clone())),
        _ => None,
    }
}

/// Types of the engine's own go by their names alone: one of parts may be as deep, or as long, as
/// its text says.
fn refuse_type(constants: &[Option<&ScalarValue>]) -> Result<()> {
    let name = constants
        .get(1)
        .copied()
        .flatten()
        .and_then(|value| value.try_as_str())
        .flatten();
    match name {
        Some(name) if name.bytes().any(|byte| !byte.is_ascii_alphanumeric()) => Err(Error::new(
            SqlState::FeatureNotSupported,
            "arrow_cast takes types that are one word, such as 'UInt64': write CAST for others",
        )
        .into()),
        _ => Ok(()),
    }
}

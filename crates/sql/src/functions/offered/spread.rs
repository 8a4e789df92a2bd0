//! The limit of large constants that are repeated into columns.
//!
//! Where a constant is all that a column is, or what a branch of `CASE` or an aggregate takes, it
//! is written once for each row. Such a one is put within a function that asks for the memory
//! first. Constants within other functions and comparisons stay what they are: those look at them
//! once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Case, ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::growth::scalar_bytes;
use super::memory::asked_for;
use crate::functions::strict_field::strict_field;
use crate::plan::walk::WalkPlan;

/// Constants up to this are spread as they are: 32 MB in a batch.
pub(crate) const LARGE_BYTES: u64 = 4 << 10;

/// The last of the rules for logical plans.
#[derive(Debug)]
pub(crate) struct SpreadConstants(pub(crate) Arc<dyn MemoryPool>);

impl OptimizerRule for SpreadConstants {
    fn name(&self) -> &str {
        "spread_constants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let is_computed = matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)
        );
        if !is_computed {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions_by(&mut |expr| {
            let name = names.save(&expr);
            let spread = self.spread(expr)?;
            Ok(match spread.transformed {
                true => spread.update_data(|expr| name.restore(expr)),
                false => spread,
            })
        })
    }
}

impl SpreadConstants {
    /// An expression as it makes a column.
    fn spread(&self, expr: Expr) -> Result<Transformed<Expr>> {
        match expr {
            Expr::Literal(value, metadata) if scalar_bytes(&value) > LARGE_BYTES => {
                let function = Spread {
                    of: value.data_type(),
                    pool: Arc::clone(&self.0),
                    // It is no constant to the optimizer, which would make one of it again.
                    signature: Signature::any(1, Volatility::Volatile),
                };
                Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
                    func: Arc::new(ScalarUDF::new_from_impl(function)),
                    args: vec![Expr::Literal(value, metadata)],
                })))
            }
            Expr::Alias(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_) => {
                expr.map_children(|part| self.spread(part))
            }
            Expr::Case(Case {
                expr,
                when_then_expr,
                else_expr,
            }) => {
                let mut is_changed = false;
                let mut branch = |then: Box<Expr>| -> Result<Box<Expr>> {
                    let spread = self.spread(*then)?;
                    is_changed |= spread.transformed;
                    Ok(Box::new(spread.data))
                };
                let when_then = when_then_expr.into_iter();
                let when_then = when_then.map(|(when, then)| Ok((when, branch(then)?)));
                let when_then_expr = when_then.collect::<Result<_>>()?;
                let else_expr = else_expr.map(&mut branch).transpose()?;
                let case = Expr::Case(Case {
                    expr,
                    when_then_expr,
                    else_expr,
                });
                Ok(Transformed::new_transformed(case, is_changed))
            }
            expr => Ok(Transformed::no(expr)),
        }
    }
}

/// A constant that is written once for each row.
#[derive(Debug)]
struct Spread {
    of: DataType,
    pool: Arc<dyn MemoryPool>,
    signature: Signature,
}

impl PartialEq for Spread {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for Spread {}

impl Hash for Spread {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl ScalarUDFImpl for Spread {
    fn name(&self) -> &str {
        "constant"
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

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Scalar(value)] => {
                let bytes = scalar_bytes(value).saturating_mul(args.number_rows as u64);
                let _asked_for = asked_for(&self.pool, "a constant in each row", bytes, 1)?;
                Ok(ColumnarValue::Array(
                    value.to_array_of_size(args.number_rows)?,
                ))
            }
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(Arc::clone(array))),
            _ => internal_err!("a constant is one value"),
        }
    }
}

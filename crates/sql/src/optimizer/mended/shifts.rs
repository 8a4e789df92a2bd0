//! A fix for `lead` and `lag` with `IGNORE NULLS`, over whole partitions.
//!
//! Row by row, as the rows of a window come, the engine loses count of the values behind a NULL,
//! and a limit above cuts off rows that a value is looked for in. It knows all rows of a partition
//! where its function says that it cannot go row by row; so this one says that.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::NullTreatment;
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    Expr, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowFunctionDefinition,
    WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

/// A call that ignores NULLs, over whole partitions.
pub(crate) fn over_whole_partitions(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::WindowFunction(mut call)
            if call.params.null_treatment == Some(NullTreatment::IgnoreNulls) =>
        {
            let whole = match &call.fun {
                WindowFunctionDefinition::WindowUDF(of_engine)
                    if matches!(of_engine.name(), "lead" | "lag")
                        && !of_engine.inner().is::<OverWholePartitions>() =>
                {
                    OverWholePartitions(Arc::clone(of_engine))
                }
                _ => return Transformed::no(Expr::WindowFunction(call)),
            };
            call.fun =
                WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::new_from_impl(whole)));
            Transformed::yes(Expr::WindowFunction(call))
        }
        expr => Transformed::no(expr),
    }
}

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OverWholePartitions(Arc<WindowUDF>);

impl WindowUDFImpl for OverWholePartitions {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.0.inner().expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(AllAtOnce(
            self.0.inner().partition_evaluator(args)?,
        )))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.0.field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::NotSupported
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::Unknown
    }
}

/// The engine's, of a partition.
#[derive(Debug)]
struct AllAtOnce(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for AllAtOnce {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}

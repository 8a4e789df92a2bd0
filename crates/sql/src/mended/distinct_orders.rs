//! `array_agg(DISTINCT x ORDER BY x)` and `string_agg` in the order that is asked for.
//!
//! What gathers different values sorts them itself. The engine takes them for aggregates that need their rows in that order, and turns one around to share the order of another; which then
//! sorts the other way round, and knows nothing of it. So these are told to be of no order.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ReversedUDAF, Signature,
};

/// The aggregates that sort what they gather.
const SORTING: [&str; 2] = ["array_agg", "string_agg"];

/// A call of such an aggregate as one without an order.
pub(crate) fn sorted_by_itself(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut call)
            if call.params.distinct
                && !call.params.order_by.is_empty()
                && SORTING.contains(&call.func.name())
                && !call.func.inner().is::<SortedByItself>() =>
        {
            let of_engine = call.func;
            call.func = Arc::new(AggregateUDF::new_from_impl(SortedByItself(of_engine)));
            Transformed::yes(Expr::AggregateFunction(call))
        }
        expr => Transformed::no(expr),
    }
}

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SortedByItself(Arc<AggregateUDF>);

impl AggregateUDFImpl for SortedByItself {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.0.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.0.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.0.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.0.supports_null_handling_clause()
    }
}

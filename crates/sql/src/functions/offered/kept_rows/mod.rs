//! Aggregates that hold rows, `count(DISTINCT text)` and `string_agg(text, ',' ORDER BY n)`, with
//! counted memory.
//!
//! The engine makes for each group an accumulator of its own, which begins with tables for hundreds
//! of values, or keeps each value and each key of its order as a scalar, and does not say so. Here
//! all groups share one store of rows (`store`), whose size is known at each time, and the engine's
//! function is asked for the result with the rows of each group as it wants them: each once, or in
//! their order, and then nothing is left that it would have to keep.
//!
//! ```text
//! (group, arguments, keys of ORDER BY)  --DISTINCT: those not there already-->  Rows (arrow's row format), hash table of places
//! state:    list<struct<arguments, keys>> of each group
//! result:   places sorted by group and keys  --few at a time-->  the engine's function without DISTINCT and ORDER BY
//! ```
//!
//! With DISTINCT that is so for each aggregate whose result depends on how often a value comes:
//! some of the engine's take no notice of the word. What functions keep that need one value or a
//! few numbers for a group stays with the engine, as do different integers, for which it has a
//! table of its own.

mod groups;
mod held;
mod plain;
mod store;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use groups::{KeptGroups, KeptOne};
use plain::Plain;
use store::{Store, are_kept, state_type};

use super::of_engine::of_engine_methods;

/// Aggregates to which it makes no difference whether a value comes once or more often, and one
/// that the engine does well.
const OF_ANY_NUMBER: [&str; 12] = [
    "any_value",
    "approx_distinct",
    "approx_median",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "first_value",
    "grouping",
    "last_value",
    "max",
    "min",
];
/// Aggregates that keep all values, in an order.
const ORDERED: [&str; 3] = ["array_agg", "nth_value", "string_agg"];

/// A call of an aggregate that keeps its rows as one that counts them.
pub(super) fn counted_aggregate(expr: Expr) -> Transformed<Expr> {
    let Expr::AggregateFunction(mut call) = expr else {
        return Transformed::no(expr);
    };
    let name = call.func.name();
    let is_kept = call.params.distinct && !OF_ANY_NUMBER.contains(&name)
        || !call.params.order_by.is_empty() && ORDERED.contains(&name);
    if !is_kept || call.func.inner().is::<KeptRows>() {
        return Transformed::no(Expr::AggregateFunction(call));
    }
    let of_engine = call.func;
    call.func = Arc::new(AggregateUDF::new_from_impl(KeptRows { of_engine }));
    Transformed::yes(Expr::AggregateFunction(call))
}

/// Whether a call keeps all of its rows, however many are alike.
pub(super) fn keeps_each_row(call: &AggregateFunctionExpr) -> bool {
    let function = call.fun();
    function.inner().is::<KeptRows>() && !call.is_distinct() && ORDERED.contains(&function.name())
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct KeptRows {
    of_engine: Arc<AggregateUDF>,
}

impl KeptRows {
    /// The types of what is kept of each row, its arguments and the keys of its order; `None` where
    /// the engine keeps it, which has been told so by a rule of the optimizer, or does as well.
    fn kept<'a>(
        &self,
        is_distinct: bool,
        arguments: &[FieldRef],
        keys: impl Iterator<Item = &'a DataType>,
    ) -> Option<(Vec<DataType>, Vec<DataType>)> {
        let types = arguments.iter().map(|it| it.data_type().clone());
        let types: Vec<_> = types.collect();
        let keys: Vec<_> = match ORDERED.contains(&self.name()) {
            true => keys.cloned().collect(),
            false => Vec::new(),
        };
        let is_kept = match is_distinct {
            true => match self.name() {
                "count" => !types.iter().all(DataType::is_integer),
                name => !OF_ANY_NUMBER.contains(&name),
            },
            false => !keys.is_empty(),
        };
        (is_kept && are_kept(&types) && are_kept(&keys)).then_some((types, keys))
    }

    fn kept_groups(&self, args: &AccumulatorArgs) -> Result<Option<KeptGroups>> {
        let of_keys = args.order_bys.iter();
        let of_keys = of_keys.map(|it| it.expr.data_type(args.schema));
        let of_keys = of_keys.collect::<Result<Vec<_>>>()?;
        let kept = self.kept(args.is_distinct, args.expr_fields, of_keys.iter());
        let Some((types, keys)) = kept else {
            return Ok(None);
        };
        // What the engine refuses stays refused.
        self.of_engine.accumulator(copied(args))?;
        let options = args.order_bys.iter().map(|it| it.options);
        let counts = self.name() == "count";
        let store = Store::new(types, keys, options, args.is_distinct, counts)?;
        let plain = Plain {
            of_engine: Arc::clone(&self.of_engine),
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            // An order that was not asked for to sort is part of what is computed.
            order_bys: match ORDERED.contains(&self.name()) {
                true => Vec::new(),
                false => args.order_bys.to_vec(),
            },
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        };
        Ok(Some(KeptGroups::new(store, plain)))
    }
}

fn copied<'a>(args: &AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: Arc::clone(&args.return_field),
        ..*args
    }
}

impl AggregateUDFImpl for KeptRows {
    of_engine_methods!();

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let of_keys = args.ordering_fields.iter().map(|it| it.data_type());
        match self.kept(args.is_distinct, args.input_fields, of_keys) {
            Some((types, keys)) => {
                let name = format_state_name(args.name, "rows");
                let list = DataType::List(state_type(&types, &keys));
                Ok(vec![Arc::new(Field::new(name, list, true))])
            }
            None => self.of_engine.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.kept_groups(&args)? {
            Some(groups) => Ok(Box::new(KeptOne::new(groups))),
            None => self.of_engine.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        // A failure is told where it is made.
        match self.kept_groups(&args) {
            Ok(Some(_)) | Err(_) => true,
            Ok(None) => self.of_engine.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match self.kept_groups(&args)? {
            Some(groups) => Ok(Box::new(groups)),
            None => self.of_engine.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.of_engine.create_sliding_accumulator(args)
    }

    /// It sorts whatever comes.
    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match ORDERED.contains(&self.name()) {
            true => AggregateOrderSensitivity::SoftRequirement,
            false => self.of_engine.order_sensitivity(),
        }
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.of_engine.simplify()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn is_descending(&self) -> Option<bool> {
        self.of_engine.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        self.of_engine.value_from_stats(args)
    }
}

//! SPARQL's aggregates, as aggregate functions of DataFusion's `AggregateExec`.
//!
//! They take columns of term ids and give term ids. Errors are SPARQL's: `COUNT` and `SAMPLE` pass
//! over them, in all others one error (an unbound variable too) makes the group's result unbound.
//! An empty group gives 0 for `COUNT`, `SUM` and `AVG`, `""` for `GROUP_CONCAT`, and nothing for
//! the others. Those of GeoSPARQL go by their IRIs.
//!
//! `DISTINCT` is part of the function here, not the engine's flag: it means distinct terms.

mod count;
mod distinct;
mod group;
mod group_concat;
mod group_keys;
mod group_parts;
mod group_stream;
mod group_table;
mod groups;
mod id_table;
mod min_max;
mod pieces;
mod places;
mod sample;
mod sum;

#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion_common::{Result as EngineResult, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use orrery_expressions::{Sparql, TermExpression};
use orrery_geo::PlacesAggregate;
use spargebra::algebra::{AggregateExpression, AggregateFunction};

use self::count::{Count, CountDistinctSolutions};
use self::distinct::Distinct;
pub use self::group::{GroupExec, grouped};
use self::group_concat::GroupConcat;
use self::groups::{Aggregate, Groups, Single};
pub use self::id_table::IdTable;
use self::min_max::{Extreme, MinMax};
use self::places::Places;
use self::sample::Sample;
use self::sum::{Sum, Total};
use crate::context::QueryContext;
use crate::error::{Error, Result};

/// The name of a state column whose values begin with the eight bytes of a term id, little-endian;
/// an empty state has none.
pub const ID_STATE: &str = "[state: id]";

/// The aggregate functions of a `GROUP BY`: for each the name of the output column and what to
/// compute over the columns of a schema. The output columns hold term ids; a group's null is
/// unbound.
pub fn plan(
    aggregates: &[(String, AggregateExpression)],
    schema: &SchemaRef,
    context: &Arc<QueryContext>,
) -> Result<Vec<Arc<AggregateFunctionExpr>>> {
    aggregates
        .iter()
        .map(|(name, aggregate)| plan_one(name, aggregate, schema, context))
        .collect()
}

/// Whether an aggregate gives the same in whatever order its rows come, so that parts of them can
/// be aggregated apart and merged. `SAMPLE` and `GROUP_CONCAT` do not; a function that is not of
/// this module may not.
pub fn is_order_free(function: &AggregateFunctionExpr) -> bool {
    match kind_of(function) {
        Some((kind, _)) => match kind {
            FunctionKind::Count
            | FunctionKind::CountSolutions(_)
            | FunctionKind::Sum
            | FunctionKind::Average
            | FunctionKind::Least
            | FunctionKind::Greatest => true,
            // Where a ring begins may depend on the order.
            FunctionKind::Sample | FunctionKind::GroupConcat(_) | FunctionKind::Places(_) => false,
        },
        None => false,
    }
}

/// Whether what a group keeps of an aggregate is small, so that merging what parts of the rows left
/// costs little. `DISTINCT` keeps all that it has seen.
pub fn has_small_states(function: &AggregateFunctionExpr) -> bool {
    match kind_of(function) {
        Some((kind, is_distinct)) => match kind {
            FunctionKind::Count | FunctionKind::Sum | FunctionKind::Average => !is_distinct,
            FunctionKind::Least | FunctionKind::Greatest | FunctionKind::Sample => true,
            FunctionKind::CountSolutions(_)
            | FunctionKind::GroupConcat(_)
            | FunctionKind::Places(_) => false,
        },
        None => false,
    }
}

/// What a result of an aggregate takes of the memory for terms that the query computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultSize {
    /// Nothing: its id says it, or it is a term that was there.
    Nothing,
    /// A number, at most.
    Number,
    /// As much as its state, or more.
    Text,
}

fn result_size(function: &AggregateFunctionExpr) -> ResultSize {
    match kind_of(function).map(|(kind, _)| kind) {
        Some(
            FunctionKind::Count
            | FunctionKind::CountSolutions(_)
            | FunctionKind::Least
            | FunctionKind::Greatest
            | FunctionKind::Sample,
        ) => ResultSize::Nothing,
        Some(FunctionKind::Sum | FunctionKind::Average) => ResultSize::Number,
        Some(FunctionKind::GroupConcat(_) | FunctionKind::Places(_)) | None => ResultSize::Text,
    }
}

fn plan_one(
    name: &str,
    aggregate: &AggregateExpression,
    schema: &SchemaRef,
    context: &Arc<QueryContext>,
) -> Result<Arc<AggregateFunctionExpr>> {
    let (kind, distinct, arguments) = match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => {
            (FunctionKind::Count, false, vec![one()])
        }
        AggregateExpression::CountSolutions { distinct: true } => {
            let arguments = all_columns(schema);
            (
                FunctionKind::CountSolutions(arguments.len()),
                true,
                arguments,
            )
        }
        AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        } => {
            let kind = FunctionKind::of(name)?;
            let argument = TermExpression::compile(expr, schema, context.expressions())?;
            let argument = match kind {
                FunctionKind::Sum | FunctionKind::Average if !distinct => {
                    argument.into_number_or_value()
                }
                _ => argument.into_value(),
            };
            (kind, *distinct, vec![argument])
        }
    };
    let shown = Shown(aggregate).to_string();
    let named = (name, Some(shown));
    function(named, (kind, distinct), arguments, schema, context)
}

/// A function over columns of a schema: its output column and how it is shown, what it is and
/// whether of distinct terms.
pub(crate) fn function(
    (name, shown): (&str, Option<String>),
    (kind, distinct): (FunctionKind, bool),
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    schema: &SchemaRef,
    context: &Arc<QueryContext>,
) -> Result<Arc<AggregateFunctionExpr>> {
    let function = SparqlAggregate {
        kind,
        distinct,
        context: Arc::clone(context),
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    let mut builder = AggregateExprBuilder::new(Arc::new(AggregateUDF::from(function)), arguments)
        .schema(Arc::clone(schema))
        .alias(name);
    if let Some(shown) = shown {
        builder = builder.human_display(shown);
    }
    Ok(Arc::new(builder.build()?))
}

/// Which function of this module it is, if it is one, and whether of distinct terms.
pub(crate) fn kind_of(function: &AggregateFunctionExpr) -> Option<(&FunctionKind, bool)> {
    let function: &dyn std::any::Any = function.fun().inner().as_ref();
    let aggregate = function.downcast_ref::<SparqlAggregate>()?;
    Some((&aggregate.kind, aggregate.distinct))
}

/// The argument of a function that needs none: the engine wants at least one.
fn one() -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(ScalarValue::UInt64(Some(1))))
}

fn all_columns(schema: &SchemaRef) -> Vec<Arc<dyn PhysicalExpr>> {
    if schema.fields().is_empty() {
        return vec![one()];
    }
    schema
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| Arc::new(Column::new(field.name(), at)) as Arc<dyn PhysicalExpr>)
        .collect()
}

/// Which aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FunctionKind {
    Count,
    /// `COUNT(DISTINCT *)` over this many variables.
    CountSolutions(usize),
    Sum,
    Average,
    Least,
    Greatest,
    Sample,
    GroupConcat(Arc<str>),
    /// One of GeoSPARQL's.
    Places(PlacesAggregate),
}

impl FunctionKind {
    fn of(function: &AggregateFunction) -> Result<Self> {
        Ok(match function {
            AggregateFunction::Count => Self::Count,
            AggregateFunction::Sum => Self::Sum,
            AggregateFunction::Avg => Self::Average,
            AggregateFunction::Min => Self::Least,
            AggregateFunction::Max => Self::Greatest,
            AggregateFunction::Sample => Self::Sample,
            AggregateFunction::GroupConcat { separator } => {
                Self::GroupConcat(separator.as_deref().unwrap_or(" ").into())
            }
            AggregateFunction::Custom(iri) => match PlacesAggregate::of_iri(iri.as_str()) {
                Some(aggregate) => Self::Places(aggregate),
                None => {
                    return Err(Error::UnknownAggregate {
                        iri: iri.as_str().to_owned(),
                    });
                }
            },
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Count | Self::CountSolutions(_) => "COUNT",
            Self::Sum => "SUM",
            Self::Average => "AVG",
            Self::Least => "MIN",
            Self::Greatest => "MAX",
            Self::Sample => "SAMPLE",
            Self::GroupConcat(_) => "GROUP_CONCAT",
            Self::Places(aggregate) => aggregate.name(),
        }
    }
}

/// An aggregate as the engine's function.
#[derive(Debug)]
struct SparqlAggregate {
    kind: FunctionKind,
    distinct: bool,
    context: Arc<QueryContext>,
    signature: Signature,
}

impl PartialEq for SparqlAggregate {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.distinct == other.distinct
            && Arc::ptr_eq(&self.context, &other.context)
    }
}

impl Eq for SparqlAggregate {}

impl Hash for SparqlAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.distinct.hash(state);
    }
}

/// Makes the accumulator of one form from any aggregate.
trait Form {
    type Output: ?Sized;
    fn make<A: Aggregate>(aggregate: A) -> Box<Self::Output>;
}

struct Grouped;

impl Form for Grouped {
    type Output = dyn GroupsAccumulator;
    fn make<A: Aggregate>(aggregate: A) -> Box<Self::Output> {
        Box::new(Groups::new(aggregate))
    }
}

struct Ungrouped;

impl Form for Ungrouped {
    type Output = dyn Accumulator;
    fn make<A: Aggregate>(aggregate: A) -> Box<Self::Output> {
        Box::new(Single::new(aggregate))
    }
}

impl SparqlAggregate {
    fn accumulator_of<F: Form>(&self) -> Box<F::Output> {
        let context = Arc::clone(&self.context);
        match &self.kind {
            FunctionKind::Count => self.distinct_or_not::<F, _>(Count),
            FunctionKind::CountSolutions(width) => {
                F::make(CountDistinctSolutions { width: *width })
            }
            FunctionKind::Sum => self.distinct_or_not::<F, _>(Sum {
                total: Total::Sum,
                context,
            }),
            FunctionKind::Average => self.distinct_or_not::<F, _>(Sum {
                total: Total::Average,
                context,
            }),
            // A value that comes twice changes nothing here.
            FunctionKind::Least => F::make(MinMax {
                extreme: Extreme::Least,
                context,
            }),
            FunctionKind::Greatest => F::make(MinMax {
                extreme: Extreme::Greatest,
                context,
            }),
            FunctionKind::Sample => F::make(Sample),
            FunctionKind::GroupConcat(separator) => self.distinct_or_not::<F, _>(GroupConcat {
                separator: Arc::clone(separator),
                context,
            }),
            FunctionKind::Places(aggregate) => self.distinct_or_not::<F, _>(Places {
                aggregate: *aggregate,
                context,
            }),
        }
    }

    fn distinct_or_not<F: Form, A: Aggregate>(&self, aggregate: A) -> Box<F::Output> {
        if self.distinct {
            F::make(Distinct { aggregate })
        } else {
            F::make(aggregate)
        }
    }
}

impl AggregateUDFImpl for SparqlAggregate {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> EngineResult<Box<dyn Accumulator>> {
        Ok(self.accumulator_of::<Ungrouped>())
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> EngineResult<Vec<FieldRef>> {
        let what = match self.kind {
            FunctionKind::Least | FunctionKind::Greatest => ID_STATE,
            _ => "[state]",
        };
        let name = format!("{}{what}", arguments.name);
        Ok(vec![Arc::new(Field::new(
            name,
            DataType::LargeBinary,
            true,
        ))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> EngineResult<Box<dyn GroupsAccumulator>> {
        Ok(self.accumulator_of::<Grouped>())
    }
}

/// Shows an aggregate as SPARQL.
struct Shown<'a>(&'a AggregateExpression);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let distinct_word = |distinct: bool| if distinct { "DISTINCT " } else { "" };
        match self.0 {
            AggregateExpression::CountSolutions { distinct } => {
                write!(f, "COUNT({}*)", distinct_word(*distinct))
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                let (separator, name) = match name {
                    AggregateFunction::GroupConcat { separator } => {
                        (separator.as_deref(), "GROUP_CONCAT".to_owned())
                    }
                    name => (None, name.to_string()),
                };
                write!(f, "{name}({}{}", distinct_word(*distinct), Sparql(expr))?;
                if let Some(separator) = separator {
                    write!(f, "; SEPARATOR={separator:?}")?;
                }
                f.write_str(")")
            }
        }
    }
}

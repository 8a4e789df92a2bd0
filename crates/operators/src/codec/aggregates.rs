//! The encoding of aggregations and their functions.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};
use orrery_expressions::codec::PhysicalText;
use orrery_geo::PlacesAggregate;
use serde::{Deserialize, Serialize};

use super::error::{CodecError, Result};
use super::texts::{Names, variables};
use crate::aggregate::{self, FunctionKind};
use crate::context::QueryContext;
use crate::solutions::solution_schema;

/// A `GROUP BY`, or a part of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AggregationText {
    mode: ModeText,
    keys: Vec<(PhysicalText, String)>,
    functions: Vec<FunctionText>,
    /// The columns that the functions read, also where states of them come in.
    read: Names,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum ModeText {
    /// All at once.
    Single,
    /// States of each partition.
    Partial,
    /// Results of states.
    Final,
}

/// An aggregate function over columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FunctionText {
    name: String,
    kind: KindText,
    is_distinct: bool,
    arguments: Vec<PhysicalText>,
    /// As SPARQL, for plans as text.
    shown: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum KindText {
    Count,
    CountSolutions,
    Sum,
    Average,
    Least,
    Greatest,
    Sample,
    GroupConcat(String),
    /// By its name within GeoSPARQL's functions.
    Places(String),
}

impl AggregationText {
    pub(super) fn of(aggregate: &AggregateExec) -> Result<Self> {
        let group_by = aggregate.group_expr();
        let is_plain = !group_by.has_grouping_set()
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none);
        let mode = match aggregate.mode() {
            AggregateMode::Single => ModeText::Single,
            AggregateMode::Partial => ModeText::Partial,
            AggregateMode::Final => ModeText::Final,
            AggregateMode::FinalPartitioned
            | AggregateMode::SinglePartitioned
            | AggregateMode::PartialReduce => return Err(unknown_form()),
        };
        if !is_plain {
            return Err(unknown_form());
        }
        let schema = aggregate.input_schema();
        let key = |(key, name): &(Arc<dyn PhysicalExpr>, String)| {
            Ok((PhysicalText::of(key.as_ref())?, name.clone()))
        };
        let functions = aggregate.aggr_expr().iter();
        let fields = schema.fields().iter();
        Ok(Self {
            mode,
            keys: group_by.expr().iter().map(key).collect::<Result<_>>()?,
            functions: functions
                .map(|function| FunctionText::of(function))
                .collect::<Result<_>>()?,
            read: fields.map(|field| field.name().clone()).collect(),
        })
    }

    pub(super) fn build(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: &Arc<QueryContext>,
    ) -> Result<AggregateExec> {
        let schema = input.schema();
        let read = solution_schema(&variables(&self.read));
        let (mode, columns) = match self.mode {
            ModeText::Single => (AggregateMode::Single, read.fields().len()),
            ModeText::Partial => (AggregateMode::Partial, read.fields().len()),
            ModeText::Final => (AggregateMode::Final, self.keys.len() + self.functions.len()),
        };
        // A state is one column.
        if schema.fields().len() != columns {
            return Err(CodecError::damaged(format!(
                "an aggregation of {columns} columns reads {}",
                schema.fields().len()
            )));
        }
        let is_state = |at: usize| self.mode == ModeText::Final && at >= self.keys.len();
        for (at, field) in schema.fields().iter().enumerate() {
            let wanted = match is_state(at) {
                true => DataType::LargeBinary,
                false => DataType::UInt64,
            };
            if *field.data_type() != wanted {
                return Err(CodecError::damaged(format!(
                    "column {} of an aggregation is {}",
                    field.name(),
                    field.data_type()
                )));
            }
        }
        let key = |(key, name): &(PhysicalText, String)| match key {
            PhysicalText::Column(..) | PhysicalText::Constant(_) => {
                Ok((key.build(&schema, context.expressions())?, name.clone()))
            }
            PhysicalText::Computed { .. } => {
                Err(CodecError::damaged("a computed key of an aggregation"))
            }
        };
        let keys = self.keys.iter().map(key).collect::<Result<_>>()?;
        let functions = self.functions.iter();
        let functions: Vec<_> = functions
            .map(|function| function.build(&read, context))
            .collect::<Result<_>>()?;
        let filters = vec![None; functions.len()];
        let keys = PhysicalGroupBy::new_single(keys);
        Ok(AggregateExec::try_new(
            mode, keys, functions, filters, input, read,
        )?)
    }
}

fn unknown_form() -> CodecError {
    CodecError::CannotTravel("an aggregation of a form that the planner does not make".to_owned())
}

impl FunctionText {
    pub(super) fn of(function: &AggregateFunctionExpr) -> Result<Self> {
        let Some((kind, is_distinct)) = aggregate::kind_of(function) else {
            let name = function.name();
            return Err(CodecError::CannotTravel(format!("the aggregate {name}")));
        };
        let arguments = function.expressions();
        let arguments = arguments.iter().map(|it| PhysicalText::of(it.as_ref()));
        Ok(Self {
            name: function.name().to_owned(),
            kind: match kind {
                FunctionKind::Count => KindText::Count,
                FunctionKind::CountSolutions(_) => KindText::CountSolutions,
                FunctionKind::Sum => KindText::Sum,
                FunctionKind::Average => KindText::Average,
                FunctionKind::Least => KindText::Least,
                FunctionKind::Greatest => KindText::Greatest,
                FunctionKind::Sample => KindText::Sample,
                FunctionKind::GroupConcat(separator) => {
                    KindText::GroupConcat(separator.to_string())
                }
                FunctionKind::Places(aggregate) => KindText::Places(aggregate.name().to_owned()),
            },
            is_distinct,
            arguments: arguments.collect::<std::result::Result<_, _>>()?,
            shown: function.human_display().map(ToOwned::to_owned),
        })
    }

    pub(super) fn build(
        &self,
        schema: &SchemaRef,
        context: &Arc<QueryContext>,
    ) -> Result<Arc<AggregateFunctionExpr>> {
        let arguments = self.arguments.iter();
        let arguments: Vec<_> = arguments
            .map(|argument| argument.build(schema, context.expressions()))
            .collect::<std::result::Result<_, _>>()?;
        let kind = match &self.kind {
            KindText::Count => FunctionKind::Count,
            KindText::CountSolutions => FunctionKind::CountSolutions(arguments.len()),
            KindText::Sum => FunctionKind::Sum,
            KindText::Average => FunctionKind::Average,
            KindText::Least => FunctionKind::Least,
            KindText::Greatest => FunctionKind::Greatest,
            KindText::Sample => FunctionKind::Sample,
            KindText::GroupConcat(separator) => {
                FunctionKind::GroupConcat(Arc::from(separator.as_str()))
            }
            KindText::Places(name) => match PlacesAggregate::of_name(name) {
                Some(aggregate) => FunctionKind::Places(aggregate),
                None => {
                    return Err(CodecError::damaged(format!("there is no aggregate {name}")));
                }
            },
        };
        let takes_numbers =
            matches!(kind, FunctionKind::Sum | FunctionKind::Average) && !self.is_distinct;
        let is_one = arguments.len() == 1 || matches!(kind, FunctionKind::CountSolutions(_));
        let mut are_right = is_one && !arguments.is_empty();
        for argument in &arguments {
            are_right &= match argument.data_type(schema)? {
                DataType::UInt64 => true,
                DataType::Float32 | DataType::Float64 => takes_numbers,
                _ => false,
            };
        }
        if !are_right {
            return Err(CodecError::damaged(format!(
                "the arguments of the aggregate {}",
                self.name
            )));
        }
        let shown = self.shown.clone();
        let named = (self.name.as_str(), shown);
        Ok(aggregate::function(
            named,
            (kind, self.is_distinct),
            arguments,
            schema,
            context,
        )?)
    }
}

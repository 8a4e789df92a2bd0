//! The encoding of physical expressions over id columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use serde::{Deserialize, Serialize};

use super::algebra::AlgebraText;
use super::error::CodecError;
use crate::columns::lexical_numbers::NumberType;
use crate::context::ExpressionContext;
use crate::expression::TermExpression;
use crate::expression::physical::{ResultKind, TermPhysicalExpr};

/// A physical expression as a description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PhysicalText {
    /// A column of ids: its name and its place.
    Column(String, usize),
    /// An id, or another number, in every row.
    Constant(Option<u64>),
    /// An expression over columns.
    Computed {
        /// What it computes.
        expression: AlgebraText,
        /// The columns that it reads: the variables, and where they are.
        columns: Vec<(String, usize)>,
        /// In which form it gives that.
        form: ResultForm,
    },
}

/// The form of an expression's results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ResultForm {
    /// An effective boolean value.
    Filter,
    /// An id.
    Value,
    /// A plain `xsd:float`.
    Float,
    /// A plain `xsd:double`.
    Double,
    /// The bytes to sort by.
    SortKey,
}

impl From<ResultKind> for ResultForm {
    fn from(kind: ResultKind) -> Self {
        match kind {
            ResultKind::Filter => Self::Filter,
            ResultKind::Value => Self::Value,
            ResultKind::Number(NumberType::Float) => Self::Float,
            ResultKind::Number(NumberType::Double) => Self::Double,
            ResultKind::SortKey => Self::SortKey,
        }
    }
}

impl From<ResultForm> for ResultKind {
    fn from(form: ResultForm) -> Self {
        match form {
            ResultForm::Filter => Self::Filter,
            ResultForm::Value => Self::Value,
            ResultForm::Float => Self::Number(NumberType::Float),
            ResultForm::Double => Self::Number(NumberType::Double),
            ResultForm::SortKey => Self::SortKey,
        }
    }
}

impl PhysicalText {
    /// The description of an expression that the planner made.
    pub fn of(expression: &dyn PhysicalExpr) -> Result<Self, CodecError> {
        let any: &dyn std::any::Any = expression;
        if let Some(column) = any.downcast_ref::<Column>() {
            return Ok(Self::Column(column.name().to_owned(), column.index()));
        }
        if let Some(literal) = any.downcast_ref::<Literal>()
            && let ScalarValue::UInt64(value) = literal.value()
        {
            return Ok(Self::Constant(*value));
        }
        let Some(computed) = any.downcast_ref::<TermPhysicalExpr>() else {
            return Err(CodecError::CannotTravel(format!(
                "the expression {expression}"
            )));
        };
        let columns = computed.variables.iter().map(|variable| {
            let any: &dyn std::any::Any = variable.as_ref();
            let column = any.downcast_ref::<Column>().ok_or_else(|| {
                CodecError::CannotTravel(format!("the expression {expression} over {variable}"))
            })?;
            Ok((column.name().to_owned(), column.index()))
        });
        Ok(Self::Computed {
            columns: columns.collect::<Result<_, CodecError>>()?,
            expression: AlgebraText::of_expression(&computed.program.expression)?,
            form: computed.output.into(),
        })
    }

    /// The expression over the columns of a schema.
    pub fn build(
        &self,
        schema: &Schema,
        context: &Arc<ExpressionContext>,
    ) -> Result<Arc<dyn PhysicalExpr>, CodecError> {
        let (expression, columns, form) = match self {
            Self::Column(name, index) => return column(schema, name, *index),
            Self::Constant(value) => {
                return Ok(Arc::new(Literal::new(ScalarValue::UInt64(*value))));
            }
            Self::Computed {
                expression,
                columns,
                form,
            } => (expression, columns, ResultKind::from(*form)),
        };
        // Variables that are no columns here were none there.
        let fields = columns
            .iter()
            .map(|(name, _)| Field::new(name, DataType::UInt64, true));
        let read = Schema::new(fields.collect::<Vec<_>>());
        let compiled = TermExpression::compile(&expression.to_expression()?, &read, context)?;
        let compiled = compiled.into_form(form).ok_or_else(|| {
            CodecError::damaged(format!("an expression does not give a {form:?}"))
        })?;
        let names = compiled.variables.iter().map(ToString::to_string);
        let wanted = columns.iter().enumerate();
        if !names.eq(wanted.map(|(at, (name, _))| Column::new(name, at).to_string())) {
            return Err(CodecError::damaged(format!(
                "{compiled} does not read the columns that it should"
            )));
        }
        let variables = columns.iter().map(|(name, at)| column(schema, name, *at));
        Ok(Arc::new(TermPhysicalExpr {
            variables: variables.collect::<Result<_, _>>()?,
            ..compiled
        }))
    }
}

/// A column of ids.
fn column(schema: &Schema, name: &str, at: usize) -> Result<Arc<dyn PhysicalExpr>, CodecError> {
    let field = schema.fields().get(at);
    match field.is_some_and(|field| *field.data_type() == DataType::UInt64) {
        true => Ok(Arc::new(Column::new(name, at))),
        false => Err(CodecError::damaged(format!(
            "column {at} ({name}) is none of ids among {}",
            schema.fields().len()
        ))),
    }
}

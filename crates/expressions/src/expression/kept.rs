//! Expressions of cached plans, without the query that they were compiled for.
//!
//! A [`TermPhysicalExpr`] holds the context of its query. What is kept of it is its algebra and in
//! which form it gives its results, so that it can be compiled for another query, over the same
//! columns.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_common::ScalarValue;
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use spargebra::algebra::Expression;

use crate::context::ExpressionContext;
use crate::error::{Error, Result};
use crate::expression::TermExpression;
use crate::expression::physical::{ResultKind, TermPhysicalExpr};

/// A physical expression without its query.
#[derive(Debug)]
pub enum KeptExpression {
    /// A column, or nothing in every row: the same for all queries.
    Same(Arc<dyn PhysicalExpr>),
    /// An expression that has to be compiled for each query.
    Computed(ComputedExpression),
}

/// An expression that has to be compiled for each query.
#[derive(Debug)]
pub struct ComputedExpression {
    expression: Expression,
    form: ResultKind,
}

impl KeptExpression {
    /// The cacheable form of an expression over columns of this schema; none where there is none.
    pub fn of(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Self> {
        let any: &dyn std::any::Any = expression.as_ref();
        if any.is::<Column>() {
            return Some(Self::Same(Arc::clone(expression)));
        }
        if let Some(literal) = any.downcast_ref::<Literal>() {
            // An id may be one of the query's own terms.
            let is_unbound = *literal.value() == ScalarValue::UInt64(None);
            return is_unbound.then(|| Self::Same(Arc::clone(expression)));
        }
        let computed = any.downcast_ref::<TermPhysicalExpr>()?;
        // A variable is compiled to the column of its name: so it must have been.
        let is_by_name = computed.variables.iter().all(|variable| {
            let any: &dyn std::any::Any = variable.as_ref();
            any.downcast_ref::<Column>()
                .is_some_and(|column| schema.index_of(column.name()).ok() == Some(column.index()))
        });
        (is_by_name && !computed.program.is_volatile).then(|| {
            Self::Computed(ComputedExpression {
                expression: computed.program.expression.clone(),
                form: computed.output,
            })
        })
    }

    /// The algebra, of an expression that is compiled for each query.
    pub fn algebra(&self) -> Option<&Expression> {
        match self {
            Self::Same(_) => None,
            Self::Computed(computed) => Some(&computed.expression),
        }
    }

    /// The expression for a query, with `change` made to its algebra.
    pub fn build(
        &self,
        schema: &Schema,
        context: &Arc<ExpressionContext>,
        change: impl FnOnce(&mut Expression),
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let computed = match self {
            Self::Same(expression) => return Ok(Arc::clone(expression)),
            Self::Computed(computed) => computed,
        };
        let mut expression = computed.expression.clone();
        change(&mut expression);
        let compiled = TermExpression::compile(&expression, schema, context)?;
        match compiled.into_form(computed.form) {
            Some(physical) => Ok(Arc::new(physical)),
            None => Err(Error::Unsupported(
                "an expression that gives plain numbers for some constants only".to_owned(),
            )),
        }
    }
}

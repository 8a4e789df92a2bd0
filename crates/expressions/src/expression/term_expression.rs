//! A compiled expression before its use is known: as filter, term or sort key.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use arrow::datatypes::{DataType, Schema};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use orrery_term::TermId;
use spargebra::algebra::Expression;

use crate::context::ExpressionContext;
use crate::error::{Error, Result};
use crate::expression::compile;
use crate::expression::display::Sparql;
use crate::expression::node::Node;
use crate::expression::physical::{ExpressionProgram, ResultKind, TermPhysicalExpr};

/// A compiled SPARQL expression, ready to become a physical expression.
pub struct TermExpression {
    program: Arc<ExpressionProgram>,
    variables: Vec<Arc<dyn PhysicalExpr>>,
}

impl TermExpression {
    /// Compiles an expression over the columns of a schema: a variable reads the column of its
    /// name, one that the schema has not is unbound.
    ///
    /// Fails for a function that is not known, for a wrong number of arguments, and for `EXISTS`.
    pub fn compile(
        expression: &Expression,
        schema: &Schema,
        context: &Arc<ExpressionContext>,
    ) -> Result<Self> {
        let compiled = compile::compile(expression, schema, context)?;
        let variables = compiled
            .columns
            .iter()
            .map(|&index| {
                let field = schema.field(index);
                if field.data_type() != &DataType::UInt64 {
                    return Err(Error::Unsupported(format!(
                        "the column {} is not one of term ids",
                        field.name()
                    )));
                }
                Ok(Arc::new(Column::new(field.name(), index)) as Arc<dyn PhysicalExpr>)
            })
            .collect::<Result<_>>()?;
        if compiled.is_volatile {
            context.note_volatile();
        }
        Ok(Self {
            program: Arc::new(ExpressionProgram {
                expression: expression.clone(),
                root: compiled.root,
                is_volatile: compiled.is_volatile,
                context: Arc::clone(context),
                rows_seen: AtomicU64::new(0),
                rows_at_once: AtomicUsize::new(usize::MAX),
            }),
            variables,
        })
    }

    /// The term that the expression is in every row, if it reads no variable: inner `None` if it
    /// is an error.
    pub fn as_constant(&self) -> Option<Option<TermId>> {
        match &self.program.root {
            Node::Constant(constant) => Some(Some(constant.id)),
            Node::Error => Some(None),
            _ => None,
        }
    }

    /// Whether the same input may give another result the next time (`RAND()`, `UUID()`,
    /// `BNODE()`).
    pub fn is_volatile(&self) -> bool {
        self.program.is_volatile
    }

    /// The effective boolean value: `Boolean`, null for an error, which a filter takes for false.
    pub fn into_filter(self) -> Arc<dyn PhysicalExpr> {
        self.into_physical(ResultKind::Filter)
    }

    /// The term: `UInt64` ids, null for an error. A plain variable is its column.
    pub fn into_value(mut self) -> Arc<dyn PhysicalExpr> {
        if matches!(self.program.root, Node::Variable(_))
            && let Some(variable) = self.variables.pop()
        {
            return variable;
        }
        self.into_physical(ResultKind::Value)
    }

    /// The argument of a sum: a plain `Float32` or `Float64` column where the expression is known
    /// to give such numbers, else what [`into_value`](Self::into_value) gives. Null for an error.
    pub fn into_number_or_value(self) -> Arc<dyn PhysicalExpr> {
        match self.program.root.number_type() {
            Some(number_type) => self.into_physical(ResultKind::Number(number_type)),
            None => self.into_value(),
        }
    }

    /// The bytes to sort by: `Binary` without nulls, whose `memcmp` order is that of `ORDER BY`.
    pub fn into_sort_key(self) -> Arc<dyn PhysicalExpr> {
        self.into_physical(ResultKind::SortKey)
    }

    /// In the form that is asked for, whatever the expression is; nothing if it is not known to
    /// give such numbers.
    pub(crate) fn into_form(self, output: ResultKind) -> Option<TermPhysicalExpr> {
        let can_give = match output {
            ResultKind::Number(wanted) => self.program.root.number_type() == Some(wanted),
            ResultKind::Filter | ResultKind::Value | ResultKind::SortKey => true,
        };
        can_give.then_some(TermPhysicalExpr {
            program: self.program,
            variables: self.variables,
            output,
        })
    }

    fn into_physical(self, output: ResultKind) -> Arc<dyn PhysicalExpr> {
        Arc::new(TermPhysicalExpr {
            program: self.program,
            variables: self.variables,
            output,
        })
    }
}

impl fmt::Display for TermExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Sparql(&self.program.expression).fmt(f)
    }
}

impl fmt::Debug for TermExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TermExpression({self})")
    }
}

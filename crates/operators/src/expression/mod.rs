//! SPARQL expressions over columns of term ids, as physical expressions.
//!
//! ```text
//! spargebra Expression --compile--> tree of nodes --+-- into_filter()   Boolean, error = null
//!                                                   +-- into_value()    UInt64 term ids, error = null
//!                                                   +-- into_sort_key() Binary, memcmp order
//! ```
//!
//! Evaluation goes a record batch at a time, on ids as far as they tell (`compare_columns`), and on
//! values read once per distinct id beyond ([`column`]). A literal that is only passed on keeps its lexical form
//! (`STR("01"^^xsd:integer)` is `"01"`), all date and duration types of XML Schema are
//! compared and computed by value, integers and decimals are exact (`exact.rs`). `docs/values.md` has the choices.
//!
//! `EXISTS` is not evaluated here: the planner puts a variable in its place that a mark join fills.

mod arithmetic;
mod children;
pub(crate) mod column;
pub(crate) mod compare;
mod compare_alike;
mod compare_columns;
mod compile;
mod display;
pub(crate) mod exact;
mod id_sort_keys;
mod inline_arithmetic;
mod lexical_numbers;
mod membership;
mod node;
mod physical;
mod plain_numbers;
pub(crate) mod sort_key;
mod triple;
pub(crate) mod value;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::datatypes::{DataType, Schema};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use spargebra::algebra::Expression;

pub(crate) use self::arithmetic::Arithmetic;
pub use self::children::for_each_child;
pub use self::display::Sparql;
pub(crate) use self::id_sort_keys::{StringKeys, sort_keys_of_ids};
use self::node::Node;
use self::physical::{Output, Program, TermPhysicalExpr};
pub use self::value::Value;
use crate::context::QueryContext;
use crate::error::{Error, Result};
use orrery_term::TermId;

/// A compiled SPARQL expression, ready to become a physical expression.
pub struct TermExpression {
    program: Arc<Program>,
    variables: Vec<Arc<dyn PhysicalExpr>>,
}

impl TermExpression {
    /// Compiles an expression over the columns of a schema: a variable reads the column of its name, one
    /// that the schema has not is unbound.
    ///
    /// Fails for a function that is not known, for a wrong number of arguments, and for `EXISTS`.
    pub fn compile(
        expression: &Expression,
        schema: &Schema,
        context: &Arc<QueryContext>,
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
            program: Arc::new(Program {
                expression: expression.clone(),
                root: compiled.root,
                is_volatile: compiled.is_volatile,
                context: Arc::clone(context),
                rows_seen: AtomicU64::new(0),
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

    /// Whether the same input may give another result the next time (`RAND()`, `UUID()`, `BNODE()`).
    pub fn is_volatile(&self) -> bool {
        self.program.is_volatile
    }

    /// The effective boolean value: `Boolean`, null for an error, which a filter takes for false.
    pub fn into_filter(self) -> Arc<dyn PhysicalExpr> {
        self.into_physical(Output::Filter)
    }

    /// The term: `UInt64` ids, null for an error. A plain variable is its column.
    pub fn into_value(mut self) -> Arc<dyn PhysicalExpr> {
        if matches!(self.program.root, Node::Variable(_))
            && let Some(variable) = self.variables.pop()
        {
            return variable;
        }
        self.into_physical(Output::Value)
    }

    /// The argument of a sum: a plain `Float32` or `Float64` column where the expression is known to give such numbers,
    /// else what [`into_value`](Self::into_value) gives. Null for an error.
    pub(crate) fn into_number_or_value(self) -> Arc<dyn PhysicalExpr> {
        match self.program.root.number_type() {
            Some(number_type) => self.into_physical(Output::Number(number_type)),
            None => self.into_value(),
        }
    }

    /// The bytes to sort by: `Binary` without nulls, whose `memcmp` order is that of `ORDER BY`.
    pub fn into_sort_key(self) -> Arc<dyn PhysicalExpr> {
        self.into_physical(Output::SortKey)
    }

    fn into_physical(self, output: Output) -> Arc<dyn PhysicalExpr> {
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

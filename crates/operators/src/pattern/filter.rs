//! Conditions inside a pattern: the variables they need, and their effect on a chunk.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, UInt64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::PhysicalExpr;
use orrery_expressions::{TermExpression, for_each_child};
use spargebra::algebra::Expression;

use super::chunk::Chunk;
use super::given_ids::GivenIds;
use crate::context::QueryContext;
use crate::solutions::{solution_batch, solution_schema};

/// The names of the variables that an expression reads, each once. The planner has replaced
/// `EXISTS` by a mark variable; should one come here, compiling the expression reports it.
pub(crate) fn expression_variables(expression: &Expression) -> Vec<&str> {
    let mut names = Vec::new();
    let mut pending = vec![expression];
    while let Some(expression) = pending.pop() {
        if let Expression::Variable(variable) | Expression::Bound(variable) = expression
            && !names.contains(&variable.as_str())
        {
            names.push(variable.as_str());
        }
        for_each_child(expression, &mut |child| pending.push(child));
    }
    names
}

/// A compiled condition over some columns of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkFilter(Condition);

#[derive(Debug)]
enum Condition {
    Expression(CompiledExpression),
    /// The column has one of these ids; without a column, nothing has.
    Given {
        column: Option<usize>,
        ids: GivenIds,
    },
}

#[derive(Debug)]
struct CompiledExpression {
    predicate: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// Columns of the chunk, in the order of the schema.
    columns: Vec<usize>,
}

impl ChunkFilter {
    /// Compiles a condition against those of the chunk's variables that it uses; any other variable
    /// is unbound.
    pub(crate) fn compile(
        expression: &Expression,
        variables: &[Arc<str>],
        context: &Arc<QueryContext>,
    ) -> Result<Self> {
        let used = expression_variables(expression);
        let columns: Vec<usize> = (0..variables.len())
            .filter(|&column| used.contains(&&*variables[column]))
            .collect();
        let schema = solution_schema(columns.iter().map(|&column| &variables[column]));
        let predicate =
            TermExpression::compile(expression, &schema, context.expressions())?.into_filter();
        Ok(Self(Condition::Expression(CompiledExpression {
            predicate,
            schema,
            columns,
        })))
    }

    /// That a variable of the chunk has one of the ids.
    pub(super) fn given(ids: &GivenIds, variables: &[Arc<str>]) -> Self {
        Self(Condition::Given {
            column: variables.iter().position(|name| name == ids.variable()),
            ids: ids.clone(),
        })
    }

    /// Keeps the rows for which the condition is true (an error counts as false).
    pub(crate) fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        match &self.0 {
            Condition::Expression(expression) => expression.apply(chunk),
            Condition::Given { column, ids } => {
                let mask = match column {
                    Some(column) => is_in(&chunk.columns[*column], ids),
                    None => BooleanArray::from(vec![false; chunk.rows]),
                };
                chunk.filter(&mask)
            }
        }
    }
}

/// Which ids of a column are given; an unbound variable has none of them.
fn is_in(column: &UInt64Array, ids: &GivenIds) -> BooleanArray {
    let set = ids.set();
    let found = BooleanBuffer::collect_bool(column.len(), |row| set.contains(column.value(row)));
    BooleanArray::new(found, column.nulls().cloned())
}

impl CompiledExpression {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        let columns = self
            .columns
            .iter()
            .map(|&column| chunk.columns[column].clone())
            .collect();
        let batch = solution_batch(&self.schema, columns, chunk.rows)?;
        let result = self.predicate.evaluate(&batch)?.into_array(chunk.rows)?;
        let Some(result) = result.as_any().downcast_ref::<BooleanArray>() else {
            return Err(DataFusionError::Internal(format!(
                "a filter gave {} instead of Boolean",
                result.data_type()
            )));
        };
        chunk.filter(result)
    }
}

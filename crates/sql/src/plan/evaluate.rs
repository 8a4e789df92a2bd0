//! The evaluation of a definition's expressions, defaults and checks, over batches.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::Expr;
use orrery_storage::table::{ColumnDefinition, TableDefinition};

use crate::parse::statement::parse_expression;
use crate::parse::visit::visit_expressions_mut;
use crate::plan::planner::expression;
use crate::values::data_types::{assign, schema_of};
use crate::{Error, Result, SqlState};

/// Characters of a row that a message shows.
const SHOWN_CHARS_MAX: usize = 500;

/// What an expression over no columns gives a column.
#[derive(Debug, Clone)]
pub(crate) struct Default {
    value: Arc<dyn PhysicalExpr>,
    column: ColumnDefinition,
}

impl Default {
    /// Of a column that says one.
    pub(crate) fn of(state: &SessionState, column: &ColumnDefinition) -> Result<Option<Self>> {
        let default = column.default.as_deref();
        let of = |text| Self::new(state, &parse_expression(text)?, column);
        default.map(of).transpose()
    }

    fn new(state: &SessionState, value: &Expr, column: &ColumnDefinition) -> Result<Self> {
        Ok(Self {
            value: expression(state, value, &DFSchema::empty())?,
            column: column.clone(),
        })
    }

    /// For so many rows: each may have another, as with `random()`.
    pub(crate) fn values(&self, rows: usize) -> Result<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch =
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
        let values = batch
            .map_err(Into::into)
            .and_then(|batch| self.value.evaluate(&batch))
            .and_then(|values| values.into_array(rows));
        let values = values.map_err(|error| Error::of_run(&error))?;
        assign(&values, &self.column.name, self.column.column_type)
    }
}

/// The value that an expression over no columns gives a column.
pub(crate) fn constant(
    state: &SessionState,
    value: &Expr,
    column: &ColumnDefinition,
) -> Result<ArrayRef> {
    Default::new(state, value, column)?.values(1)
}

/// The value of an expression over no columns, in the type that it has.
pub(crate) fn scalar(state: &SessionState, value: &Expr, schema: &DFSchema) -> Result<ScalarValue> {
    let value = expression(state, value, schema)?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
    let value = batch
        .map_err(Into::into)
        .and_then(|batch| value.evaluate(&batch))
        .and_then(|value| value.into_array(1))
        .and_then(|value| ScalarValue::try_from_array(&value, 0));
    value.map_err(|error| Error::of_run(&error))
}

/// A condition whose columns have no table before them: it is of one table, which may have another
/// name one day.
pub(crate) fn unqualified(mut condition: Expr) -> Expr {
    let _: ControlFlow<()> = visit_expressions_mut(&mut condition, |expr| {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(column) = parts.pop()
        {
            *expr = Expr::Identifier(column);
        }
        ControlFlow::Continue(())
    });
    condition
}

/// Fails for the type of an expression that is no condition.
pub(crate) fn require_boolean(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Boolean | DataType::Null => Ok(()),
        other => Err(Error::new(
            SqlState::DatatypeMismatch,
            format!("argument of CHECK must be type boolean, not type {other}"),
        )),
    }
}

/// The conditions of a table.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    table_schema: String,
    table: String,
    schema: SchemaRef,
    conditions: Vec<(String, Arc<dyn PhysicalExpr>)>,
}

impl Conditions {
    /// All of them.
    pub(crate) fn of(state: &SessionState, table: &TableDefinition) -> Result<Self> {
        let schema = schema_of(table);
        let qualified = DFSchema::try_from_qualified_schema(table.name.as_str(), &schema);
        let qualified = qualified.map_err(|error| Error::of_run(&error))?;
        let conditions = table.checks.iter().map(|check| {
            let condition = unqualified(parse_expression(&check.condition)?);
            let condition = expression(state, &condition, &qualified)?;
            Ok((check.name.clone(), condition))
        });
        Ok(Self {
            table_schema: table.schema.clone(),
            table: table.name.clone(),
            conditions: conditions.collect::<Result<_>>()?,
            schema,
        })
    }

    /// The same of rows that were there before.
    pub(crate) fn check_stored(&self, columns: &[ArrayRef]) -> Result<()> {
        self.check(columns).map_err(|error| Error {
            message: error
                .message
                .replace("new row for relation", "some row of relation"),
            ..error
        })
    }

    /// Fails if one is false for a row, given as arrays in the order of the table's columns. Where
    /// it is NULL, it is not false.
    pub(crate) fn check(&self, columns: &[ArrayRef]) -> Result<()> {
        if self.conditions.is_empty() {
            return Ok(());
        }
        let of_engine = |error| Error::of_run(&error);
        // What may not be NULL and is one is found by the storage.
        let fields = self.schema.fields().iter();
        let fields: Vec<_> = fields
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.to_vec());
        let batch = batch.map_err(|error| of_engine(error.into()))?;
        for (name, condition) in &self.conditions {
            let holds = condition.evaluate(&batch).map_err(of_engine)?;
            let holds = holds.into_array(batch.num_rows()).map_err(of_engine)?;
            if *holds.data_type() == DataType::Null {
                continue;
            }
            let holds = holds.as_boolean();
            let broken = (0..holds.len()).find(|row| holds.is_valid(*row) && !holds.value(*row));
            if let Some(row) = broken {
                return Err(Error::new(
                    SqlState::CheckViolation,
                    format!(
                        "new row for relation \"{}\" violates check constraint \"{name}\"",
                        self.table
                    ),
                )
                .with_detail(format!("Failing row contains {}.", shown(columns, row)))
                .of_table(&self.table_schema, &self.table)
                .of_constraint(name));
            }
        }
        Ok(())
    }
}

/// A row as messages have it: `(1, x, null)`.
pub(crate) fn shown(columns: &[ArrayRef], row: usize) -> String {
    let value = |column: &ArrayRef| match column.is_null(row) {
        true => "null".to_owned(),
        false => array_value_to_string(column, row).unwrap_or_default(),
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    let row = format!("({})", values.join(", "));
    match row.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &row[..end]),
        None => row,
    }
}

//! The conversion of query rows to table rows: column types and defaults.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::Expr;
use orrery_storage::table::{ColumnDefinition, RelationId, TableDefinition};

use crate::Result;
use crate::parse::statement::parse_expression;
use crate::plan::evaluate::{Conditions, Default};
use crate::values::data_types::assign;

/// Where the values of a column come from.
#[derive(Debug, Clone)]
enum Source {
    /// A column of the query.
    Query(usize),
    Default(Default),
    Null,
}

/// What makes rows of a table out of a query's.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    pub(crate) table: RelationId,
    pub(crate) definition: Arc<TableDefinition>,
    sources: Vec<Source>,
    conditions: Conditions,
}

impl Maker {
    /// Of a query whose columns are for these of the table.
    pub(crate) fn new(
        state: &SessionState,
        definition: &Arc<TableDefinition>,
        given: &[String],
    ) -> Result<Self> {
        let source = |column: &ColumnDefinition| {
            if let Some(place) = given.iter().position(|name| *name == column.name) {
                return Ok(Source::Query(place));
            }
            let default = Default::of(state, column)?;
            Ok(default.map_or(Source::Null, Source::Default))
        };
        let sources = definition.columns.iter().map(source);
        Ok(Self {
            table: definition.id,
            sources: sources.collect::<Result<_>>()?,
            conditions: Conditions::of(state, definition)?,
            definition: Arc::clone(definition),
        })
    }

    /// Rows as arrays in the order of the table's columns.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let columns = self.definition.columns.iter().zip(&self.sources);
        let columns = columns.map(|(column, source)| match source {
            Source::Query(place) => assign(batch.column(*place), &column.name, column.column_type),
            Source::Default(default) => default.values(batch.num_rows()),
            Source::Null => Ok(new_null_array(
                &column.column_type.arrow(),
                batch.num_rows(),
            )),
        });
        columns.collect()
    }

    /// The first column that does not take the value which a query has for it, and the place of
    /// that in the query.
    pub(crate) fn misfit(&self, batch: &RecordBatch) -> Option<(&str, usize)> {
        let mut columns = self.definition.columns.iter().zip(&self.sources);
        columns.find_map(|(column, source)| match source {
            Source::Query(place) => {
                let assigned = assign(batch.column(*place), &column.name, column.column_type);
                assigned.is_err().then_some((column.name.as_str(), *place))
            }
            Source::Default(_) | Source::Null => None,
        })
    }

    /// Fails if a row has NULL where there is none, or breaks a condition.
    pub(crate) fn check(&self, rows: &[ArrayRef]) -> Result<()> {
        let columns = self.definition.columns.iter().zip(rows);
        for (column, values) in columns {
            if !column.is_nullable && values.null_count() > 0 {
                return Err(orrery_storage::Error::NotNull {
                    table: Box::new(orrery_storage::TableName {
                        schema: self.definition.schema.clone(),
                        name: self.definition.name.clone(),
                    }),
                    column: column.name.clone(),
                }
                .into());
            }
        }
        self.conditions.check(rows)
    }

    /// Whether a row may refer to another of the same statement.
    pub(crate) fn refers_to_itself(&self) -> bool {
        let mut keys = self.definition.foreign_keys.iter();
        keys.any(|key| key.table == self.table)
    }
}

/// Whether an expression is the word `DEFAULT`.
pub(crate) fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// What a column gets where nothing is given.
pub(crate) fn default_of(column: &ColumnDefinition) -> Result<Expr> {
    parse_expression(column.default.as_deref().unwrap_or("NULL"))
}

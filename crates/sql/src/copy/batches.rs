//! Ingestion of Arrow batches from a client into a table, the binary counterpart of
//! `COPY ... FROM STDIN`.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::from::Rows;
use crate::catalog::lookup::{shown, undefined};
use crate::catalog::scope::RowsChange;
use crate::changes::change::Change;
use crate::changes::{Maker, given_columns};
use crate::{Error, Result, SqlState};

/// An ingestion of batches into a table.
pub struct BatchesIn {
    /// The schema of the table; the usual one if none.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The columns of the batches, by the names that they have in the table, as these are kept.
    pub columns: Vec<String>,
    /// Batches, as they come.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
}

impl std::fmt::Debug for BatchesIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchesIn")
            .field("schema", &self.schema)
            .field("table", &self.table)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl BatchesIn {
    /// Inserts all rows, and says how many.
    pub(crate) async fn run(self, change: &mut Change) -> Result<u64> {
        let (tables, seen) = (change.tables()?, change.seen()?);
        let schema = self.schema.as_deref().unwrap_or(crate::names::SCHEMA);
        let table = seen.table_named(schema, &self.table);
        let table = table.ok_or_else(|| undefined("relation", &shown(schema, &self.table)))?;
        let definition = Arc::clone(table.definition());
        change.require_rows(&definition, RowsChange::Come)?;
        let columns = self.columns.iter();
        let columns: Vec<_> = columns
            .map(|name| datafusion::sql::sqlparser::ast::Ident::with_quote('"', name))
            .collect();
        let given = given_columns(&definition, &columns)?;
        let maker = Maker::new(change.state(), &definition, &given)?;
        let rows = Rows::new(maker, tables);
        let width = given.len();
        let maker = rows.clone();
        let made = self.batches.map(move |batch| {
            let batch = batch?;
            if batch.num_columns() != width {
                return Err(Error::new(
                    SqlState::InvalidParameterValue,
                    format!(
                        "a batch of rows has {} columns, {width} were told",
                        batch.num_columns()
                    ),
                ));
            }
            maker.assigned(&batch)
        });
        rows.take(change, made.boxed()).await
    }
}

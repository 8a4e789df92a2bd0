//! `RETURNING`: a query over the rows that a statement has changed.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{Ident, SelectItem};
use orrery_storage::table::TableDefinition;

use super::select::{select, table};
use crate::change::Change;
use crate::outcome::{Outcome, Tag};
use crate::types::schema_of;
use crate::{Error, Result};

/// The outcome of a change of these rows, given as arrays in the order of the table's columns.
pub(super) async fn outcome(
    change: &Change,
    items: Option<&Vec<SelectItem>>,
    definition: &TableDefinition,
    alias: Ident,
    rows: Vec<ArrayRef>,
    tag: Tag,
    text: &str,
) -> Result<Outcome> {
    let Some(items) = items else {
        return Ok(Outcome::Done(tag));
    };
    let planner = change.planner()?;
    let batch = batch_of(definition, rows)?;
    let name = planner.add_rows("returned", batch.schema(), vec![batch])?;
    let query = select(items.clone(), vec![table(name, alias)?], None)?;
    let plan = planner.query(query, text).await?;
    let stream = planner.stream(&plan, text).await?;
    // All of it now: what fails must undo the change.
    let schema = stream.schema();
    let rows: Vec<RecordBatch> = futures::TryStreamExt::try_collect(stream)
        .await
        .map_err(|error| Error::of_run(&error))?;
    let rows = futures::stream::iter(rows.into_iter().map(Ok));
    let stream = datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(schema, rows);
    Ok(Outcome::Returned(Box::pin(stream), tag))
}

/// Rows as a batch; where there are no arrays, there are no rows.
pub(super) fn batch_of(definition: &TableDefinition, rows: Vec<ArrayRef>) -> Result<RecordBatch> {
    let schema: Arc<Schema> = schema_of(definition);
    let batch = match rows.is_empty() {
        true => Ok(RecordBatch::new_empty(schema)),
        false => RecordBatch::try_new(schema, rows),
    };
    batch.map_err(|error| Error::of_run(&error.into()))
}

//! `RETURNING`: a query over the changed rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    FromTable, Ident, SelectItem, Statement, TableFactor, TableObject,
};
use orrery_storage::table::{TableDefinition, Tables};

use super::select::{select, table};
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::lookup::table_named;
use crate::changes::change::Change;
use crate::changes::rows::held_rows;
use crate::parse::identifiers::{folded, quoted};
use crate::plan::planner::Planner;
use crate::semantics::column_names::shown_columns;
use crate::values::data_types::schema_of;
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
    let memory = change.memory("rows of RETURNING");
    let (rows, _) = held_rows(stream, memory).await?;
    Ok(Outcome::Returned(rows, tag))
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

/// The columns that a statement gives back, without doing it; none if it gives nothing back.
pub(crate) async fn columns(
    planner: &Planner,
    tables: &Tables,
    statement: &Statement,
    text: &str,
) -> Result<Option<SchemaRef>> {
    let (name, alias, items) = match statement {
        Statement::Insert(insert) => {
            let TableObject::TableName(name) = &insert.table else {
                return Ok(None);
            };
            let alias = insert.table_alias.as_ref().map(|alias| &alias.alias);
            (name, alias, &insert.returning)
        }
        Statement::Update(update) => {
            let TableFactor::Table { name, alias, .. } = &update.table.relation else {
                return Ok(None);
            };
            (
                name,
                alias.as_ref().map(|alias| &alias.name),
                &update.returning,
            )
        }
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let Some(TableFactor::Table { name, alias, .. }) = from.first().map(|it| &it.relation)
            else {
                return Ok(None);
            };
            (
                name,
                alias.as_ref().map(|alias| &alias.name),
                &delete.returning,
            )
        }
        _ => return Ok(None),
    };
    let Some(items) = items else {
        return Ok(None);
    };
    let definition = table_named(tables, name)?.definition();
    let alias = match alias {
        Some(alias) => folded(alias)?,
        None => definition.name.clone(),
    };
    let rows = batch_of(definition, Vec::new())?;
    let name = planner.add_rows("returned", rows.schema(), vec![rows])?;
    let query = select(items.clone(), vec![table(name, quoted(&alias))?], None)?;
    let plan = planner.query(query, text).await?;
    Ok(Some(shown_columns(plan.schema().inner())))
}

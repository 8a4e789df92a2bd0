//! `INSERT`, and `CREATE TABLE AS`.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat_batches;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    CreateTable, Ident, Insert, OnConflictAction, OnInsert, Query, SetExpr, TableObject,
};
use futures::TryStreamExt;
use orrery_storage::table::{DefinitionChange, TableDefinition};

use super::bulk;
use super::conflict;
use super::maker::{Maker, default_of, is_default};
use super::returning;
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::lookup::{column_named, table_named};
use crate::catalog::scope::RowsChange;
use crate::changes::change::Change;
use crate::changes::references;
use crate::changes::rows::{joined, state_of};
use crate::definitions::{require_place, table_of_values};
use crate::parse::identifiers::{folded, quoted, simple};
use crate::semantics::column_names::shown_columns;
use crate::{Error, Result, SqlState};

/// Rows that are inserted at a time.
const ROWS_AT_ONCE: usize = 32 * 1024;

/// Does it.
pub(super) async fn run(change: &mut Change, statement: &Insert, text: &str) -> Result<Outcome> {
    refuse_options(statement)?;
    let TableObject::TableName(name) = &statement.table else {
        return Err(Error::unsupported("INSERT into what is not a table"));
    };
    let definition = Arc::clone(table_named(&*change.seen()?, name)?.definition());
    change.require_rows(&definition, rows_changed(statement))?;
    let names = statement.columns.iter().map(simple);
    let given = named_columns(&definition, names)?;
    let alias = match &statement.table_alias {
        Some(alias) => quoted(&folded(&alias.alias)?),
        None => quoted(&definition.name),
    };
    let query = source(change, statement, &definition, &given, text).await?;
    let width = match &statement.source {
        Some(_) => query.schema().fields().len(),
        None => 0,
    };
    let given = fitting(given, !statement.columns.is_empty(), width)?;
    let maker = Maker::new(change.state(), &definition, &given)?;
    if statement.on.is_none()
        && statement.returning.is_none()
        && let Some(count) = bulk::insert(change, &maker, &query, text).await?
    {
        return Ok(Outcome::Done(Tag::Insert(count)));
    }
    let stream = change.planner()?.stream(&query, text).await?;
    let (rows, count) = match &statement.on {
        None => {
            let keeps = statement.returning.is_some();
            insert_all(change, &maker, stream, keeps).await?
        }
        Some(OnInsert::OnConflict(on)) => {
            conflict::insert(change, &maker, stream, on, &alias, text).await?
        }
        Some(_) => return Err(Error::unsupported("ON DUPLICATE KEY UPDATE")),
    };
    let returning = statement.returning.as_ref();
    let tag = Tag::Insert(count);
    returning::outcome(change, returning, &definition, alias, rows, tag, text).await
}

/// What happens to rows: some go where `DO UPDATE` changes them.
fn rows_changed(statement: &Insert) -> RowsChange {
    match &statement.on {
        Some(OnInsert::OnConflict(on)) if matches!(on.action, OnConflictAction::DoUpdate(_)) => {
            RowsChange::Both
        }
        _ => RowsChange::Come,
    }
}

fn refuse_options(statement: &Insert) -> Result<()> {
    let given = [
        (statement.or.is_some(), "INSERT OR"),
        (statement.ignore, "INSERT IGNORE"),
        (statement.overwrite, "INSERT OVERWRITE"),
        (statement.replace_into, "REPLACE INTO"),
        (!statement.assignments.is_empty(), "INSERT ... SET"),
        (
            statement.partitioned.is_some() || !statement.after_columns.is_empty(),
            "PARTITION",
        ),
        (
            statement.output.is_some()
                || statement.insert_alias.is_some()
                || statement.settings.is_some()
                || statement.format_clause.is_some()
                || statement.multi_table_insert_type.is_some(),
            "an option of INSERT",
        ),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

/// The columns that a statement names, or all.
pub(crate) fn given_columns(definition: &TableDefinition, names: &[Ident]) -> Result<Vec<String>> {
    named_columns(definition, names.iter().map(folded))
}

fn named_columns(
    definition: &TableDefinition,
    names: impl ExactSizeIterator<Item = Result<String>>,
) -> Result<Vec<String>> {
    if names.len() == 0 {
        let columns = definition.columns.iter();
        return Ok(columns.map(|column| column.name.clone()).collect());
    }
    let mut given = Vec::new();
    for name in names {
        let name = name?;
        column_named(definition, &name)?;
        if given.contains(&name) {
            return Err(Error::new(
                SqlState::DuplicateColumn,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        given.push(name);
    }
    Ok(given)
}

/// As many of the columns as the query has; fewer only where the statement names none.
fn fitting(mut given: Vec<String>, is_named: bool, width: usize) -> Result<Vec<String>> {
    if width > given.len() {
        return Err(Error::new(
            SqlState::SyntaxError,
            "INSERT has more expressions than target columns",
        ));
    }
    if width < given.len() && is_named && width > 0 {
        return Err(Error::new(
            SqlState::SyntaxError,
            "INSERT has more target columns than expressions",
        ));
    }
    given.truncate(width);
    Ok(given)
}

/// The query's rows; one row of no columns for `DEFAULT VALUES`.
async fn source(
    change: &Change,
    statement: &Insert,
    definition: &TableDefinition,
    given: &[String],
    text: &str,
) -> Result<LogicalPlan> {
    let planner = change.planner()?;
    match &statement.source {
        Some(query) => {
            let query = with_defaults(query, definition, given)?;
            planner.query(query, text).await
        }
        None => {
            let one = crate::parse::statement::parse_one("VALUES (1)")?;
            planner.logical(one, text).await
        }
    }
}

/// `DEFAULT` among the values is what the column says.
fn with_defaults(query: &Query, definition: &TableDefinition, given: &[String]) -> Result<Query> {
    let mut query = query.clone();
    if let SetExpr::Values(values) = &mut *query.body {
        for row in &mut values.rows {
            for (value, name) in row.iter_mut().zip(given) {
                if is_default(value) {
                    *value = default_of(column_named(definition, name)?)?;
                }
            }
        }
    }
    Ok(query)
}

/// Inserts all rows of a query, in bulk if they are many; how many they are.
pub(crate) async fn insert_query(
    change: &mut Change,
    maker: &Maker,
    query: &LogicalPlan,
    text: &str,
) -> Result<u64> {
    if let Some(count) = bulk::insert(change, maker, query, text).await? {
        return Ok(count);
    }
    let stream = change.planner()?.stream(query, text).await?;
    Ok(insert_all(change, maker, stream, false).await?.1)
}

/// Inserts all rows of a query, in pieces; returns them if they are to be kept, and how many they
/// are.
async fn insert_all(
    change: &mut Change,
    maker: &Maker,
    mut stream: SendableRecordBatchStream,
    keeps: bool,
) -> Result<(Vec<ArrayRef>, u64)> {
    let memory = change.memory("rows of an INSERT");
    let of_run = |error| Error::of_run(&error);
    let keeps_all = keeps || maker.refers_to_itself();
    let schema = stream.schema();
    let (mut kept, mut count) = (Vec::new(), 0);
    let (mut piece, mut piece_rows) = (Vec::new(), 0);
    loop {
        let batch = stream.try_next().await.map_err(of_run)?;
        let is_end = batch.is_none();
        if let Some(batch) = batch {
            memory
                .try_grow(batch.get_array_memory_size())
                .map_err(of_run)?;
            piece_rows += batch.num_rows();
            piece.push(batch);
        }
        if piece_rows >= ROWS_AT_ONCE || (is_end && piece_rows > 0) {
            let batch = concat_batches(&schema, &piece).map_err(|error| of_run(error.into()))?;
            piece.clear();
            piece_rows = 0;
            let maker = maker.clone();
            let (rows, inserted) = change
                .apply(move |transaction| {
                    let rows = maker.rows(&batch)?;
                    maker.check(&rows)?;
                    let inserted = transaction.insert_rows(maker.table, &rows)?;
                    if !maker.refers_to_itself() {
                        references::require(transaction.tables(), &maker.definition, &rows)?;
                    }
                    Ok((keeps_all.then_some(rows), inserted))
                })
                .await?;
            count += inserted;
            change.pay_up_to(count)?;
            match rows {
                Some(rows) => kept.push(rows),
                None => {
                    memory.free();
                }
            }
        }
        if is_end {
            break;
        }
    }
    let rows = joined(&kept)?;
    if maker.refers_to_itself() && !rows.is_empty() {
        // When all are there: they may refer to each other.
        references::require(&*change.tables()?, &maker.definition, &rows)?;
    }
    Ok((rows, count))
}

/// Makes a table of what a query gives.
pub(super) async fn create_table_as(
    change: &mut Change,
    statement: &CreateTable,
    text: &str,
) -> Result<Outcome> {
    let query = statement
        .query
        .as_ref()
        .ok_or_else(|| Error::unsupported("CREATE TABLE AS without a query"))?;
    if !statement.columns.is_empty() || !statement.constraints.is_empty() {
        return Err(Error::unsupported("CREATE TABLE AS with columns"));
    }
    if let Some(sight) = change.sight() {
        require_place(sight, &*change.seen()?, &statement.name)?;
    }
    let tables = change.tables()?;
    let planner = change.planner()?;
    let plan = planner.query((**query).clone(), text).await?;
    let schema = shown_columns(&planner.physical(&plan, text).await?.schema());
    let Some(definition) = table_of_values(&tables, change.state(), statement, &schema)? else {
        return Ok(Outcome::Done(Tag::Words("CREATE TABLE AS")));
    };
    let defined = DefinitionChange::CreateTable(definition.clone());
    change
        .apply(move |transaction| Ok(transaction.define(defined)?))
        .await?;
    let state = state_of(&*change.tables()?, definition.id)?;
    let names = definition.columns.iter().map(|column| column.name.clone());
    let names: Vec<String> = names.collect();
    let maker = Maker::new(change.state(), state.definition(), &names)?;
    let count = insert_query(change, &maker, &plan, text).await?;
    Ok(Outcome::Done(Tag::Select(count)))
}

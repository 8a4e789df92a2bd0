//! `CREATE TABLE`, `CREATE INDEX`, `CREATE SCHEMA`.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    CreateIndex, CreateTable, CreateTableOptions, IndexType, SchemaName,
};
use orrery_storage::Transaction;
use orrery_storage::table::{DefinitionChange, RelationId, TableDefinition, TableState, Tables};

use super::constraints::{Draft, plain_columns};
use super::fill;
use super::row_work::RowWork;
use crate::catalog::lookup::{chosen_name, free_relation_name, table_named};
use crate::catalog::scope::{Sight, seen_by};
use crate::changes::change::Change;
use crate::changes::rows::state_of;
use crate::parse::identifiers::{qualified, simple};
use crate::values::data_types::type_of_values;
use crate::{Error, Result, SqlState};

/// Tables that a database may have.
const TABLES_MAX: usize = 10_000;
/// Schemas that a database may have.
const SCHEMAS_MAX: usize = 1_000;

/// Makes a table, unless there is one and that is allowed.
pub(super) fn table(
    transaction: &mut Transaction,
    sight: Option<&Arc<Sight>>,
    state: &SessionState,
    statement: &CreateTable,
) -> Result<()> {
    let tables = Arc::clone(transaction.tables());
    let Some(mut definition) = new_table(&tables, statement)? else {
        return Ok(());
    };
    let next_relation = tables.next_relation() + 1;
    definition.id = RelationId(tables.next_relation());
    let seen = seen_by(sight, &tables);
    let mut draft = Draft {
        tables: &seen,
        state,
        definition,
        next_relation,
    };
    // A constraint that stands with a column may be on one that comes later.
    for column in &statement.columns {
        draft.add_column(column)?;
    }
    for constraint in &statement.constraints {
        draft.add_constraint(constraint)?;
    }
    if draft.definition.columns.is_empty() {
        return Err(Error::unsupported("a table without columns"));
    }
    let definition = draft.definition;
    refuse_taken_names(&tables, &definition)?;
    transaction.define(DefinitionChange::CreateTable(definition))?;
    Ok(())
}

/// A table with the columns of a query's rows.
pub(crate) fn table_of_values(
    tables: &Tables,
    state: &SessionState,
    statement: &CreateTable,
    schema: &Schema,
) -> Result<Option<TableDefinition>> {
    let Some(definition) = new_table(tables, statement)? else {
        return Ok(None);
    };
    let next_relation = tables.next_relation() + 1;
    let mut draft = Draft {
        tables,
        state,
        definition,
        next_relation,
    };
    for field in schema.fields() {
        let column_type = type_of_values(field.name(), field.data_type())?;
        draft.push_column(field.name().clone(), column_type)?;
    }
    Ok(Some(draft.definition))
}

/// A table of a name, without anything; `None` where there is one already and that is allowed.
fn new_table(tables: &Tables, statement: &CreateTable) -> Result<Option<TableDefinition>> {
    refuse_options(statement)?;
    let (schema, name) = qualified(&statement.name)?;
    if let Err(error) = free_relation_name(tables, &schema, &name) {
        return match statement.if_not_exists && error.state == SqlState::DuplicateTable {
            true => Ok(None),
            false => Err(error),
        };
    }
    if tables.tables().count() >= TABLES_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a database has at most {TABLES_MAX} tables"),
        ));
    }
    Ok(Some(TableDefinition {
        id: RelationId(tables.next_relation()),
        schema,
        name,
        columns: Vec::new(),
        next_column: 1,
        primary_key: None,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }))
}

/// Fails if the name of an index, or of the primary key, is that of something else.
pub(super) fn refuse_taken_names(tables: &Tables, definition: &TableDefinition) -> Result<()> {
    let before = tables.table(definition.id).map(|table| table.definition());
    let key =
        |definition: &TableDefinition| definition.primary_key.as_ref().map(|key| key.name.clone());
    let indexes = definition.indexes.iter().filter(|index| {
        before.is_none_or(|before| before.indexes.iter().all(|old| old.name != index.name))
    });
    let new_key =
        key(definition).filter(|name| before.and_then(|it| key(it)).as_ref() != Some(name));
    let names = indexes.map(|index| index.name.clone()).chain(new_key);
    for name in names {
        free_relation_name(tables, &definition.schema, &name)?;
    }
    Ok(())
}

fn refuse_options(statement: &CreateTable) -> Result<()> {
    let given = [
        (statement.or_replace, "CREATE OR REPLACE TABLE"),
        (
            statement.temporary || statement.global.is_some(),
            "a temporary table",
        ),
        (statement.external, "CREATE EXTERNAL TABLE"),
        (
            statement.transient || statement.volatile || statement.iceberg || statement.dynamic,
            "a table of this kind",
        ),
        (statement.like.is_some(), "LIKE"),
        (statement.clone.is_some(), "CLONE"),
        (
            statement.partition_by.is_some()
                || statement.partition_of.is_some()
                || statement.cluster_by.is_some()
                || statement.clustered_by.is_some(),
            "a partitioned table",
        ),
        (statement.inherits.is_some(), "INHERITS"),
        (statement.on_commit.is_some(), "ON COMMIT"),
        (
            !matches!(statement.table_options, CreateTableOptions::None)
                || statement.file_format.is_some()
                || statement.location.is_some()
                || statement.order_by.is_some()
                || statement.without_rowid
                || statement.strict,
            "an option of CREATE TABLE",
        ),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

/// Makes an index, and fills it.
pub(super) async fn index(change: &mut Change, statement: &CreateIndex) -> Result<()> {
    let (state, own) = (change.state().clone(), statement.clone());
    let (seen, work) = (change.seen()?, RowWork::of(change));
    let emptied = change
        .apply(move |transaction| define_index(transaction, &seen, &state, &own, &work))
        .await?;
    fill::refill(change, emptied).await
}

/// The same, but that an index of many rows is not filled: its table is emptied, and returned as it
/// was.
fn define_index(
    transaction: &mut Transaction,
    seen: &Tables,
    state: &SessionState,
    statement: &CreateIndex,
    work: &RowWork,
) -> Result<Option<TableState>> {
    let tables = Arc::clone(transaction.tables());
    let id = table_named(seen, &statement.table_name)?.definition().id;
    let table = &state_of(&tables, id)?;
    if let Some(kind) = &statement.using
        && *kind != IndexType::BTree
    {
        return Err(Error::unsupported(format!("an index of the kind {kind}")));
    }
    if statement.predicate.is_some() {
        return Err(Error::unsupported("a partial index"));
    }
    if statement.concurrently {
        return Err(Error::unsupported("CREATE INDEX CONCURRENTLY"));
    }
    if statement.nulls_distinct == Some(false) {
        return Err(Error::unsupported("NULLS NOT DISTINCT"));
    }
    if !statement.with.is_empty()
        || !statement.index_options.is_empty()
        || !statement.alter_options.is_empty()
    {
        return Err(Error::unsupported("an option of CREATE INDEX"));
    }
    let definition = (**table.definition()).clone();
    let mut draft = Draft {
        tables: &tables,
        state,
        definition,
        next_relation: tables.next_relation(),
    };
    let columns = draft.key_columns(plain_columns(&statement.columns)?)?;
    let included = draft.key_columns(&statement.include)?;
    let name = match &statement.name {
        Some(name) => {
            let name = simple(name)?;
            match free_relation_name(&tables, &table.definition().schema, &name) {
                Err(error)
                    if statement.if_not_exists && error.state == SqlState::DuplicateTable =>
                {
                    return Ok(None);
                }
                free => free.map(|()| name)?,
            }
        }
        None => {
            let mut parts = vec![table.definition().name.as_str()];
            parts.extend(columns.iter().filter_map(|id| {
                let column = table.definition().column(*id);
                column.map(|column| column.name.as_str())
            }));
            parts.push("idx");
            let wanted = parts.join("_");
            chosen_name(&tables, &table.definition().schema, &wanted, |_| false)
        }
    };
    draft.add_index(name, columns, included, statement.unique, false)?;
    fill::define(transaction, table, draft.definition, work)
}

/// Makes a schema, unless there is one and that is allowed.
pub(super) fn schema(
    transaction: &mut Transaction,
    name: &SchemaName,
    if_not_exists: bool,
) -> Result<()> {
    let name = match name {
        SchemaName::Simple(name) => simple(name)?,
        SchemaName::UnnamedAuthorization(_) | SchemaName::NamedAuthorization(..) => {
            return Err(Error::unsupported("AUTHORIZATION"));
        }
    };
    if transaction.tables().has_schema(&name) {
        return match if_not_exists {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::DuplicateSchema,
                format!("schema \"{name}\" already exists"),
            )),
        };
    }
    if name == "information_schema" || name.starts_with("pg_") {
        return Err(Error::new(
            SqlState::DuplicateSchema,
            format!("the schema name \"{name}\" is reserved"),
        ));
    }
    if transaction.tables().schemas().count() >= SCHEMAS_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a database has at most {SCHEMAS_MAX} schemas"),
        ));
    }
    transaction.define(DefinitionChange::CreateSchema(name))?;
    Ok(())
}

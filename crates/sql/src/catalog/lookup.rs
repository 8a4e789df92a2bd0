//! Look-ups of tables, views and indexes by name.

use datafusion::sql::sqlparser::ast::ObjectName;
use orrery_storage::table::{
    ColumnDefinition, ColumnId, RelationId, TableDefinition, TableState, Tables,
};

use crate::files::is_external;
use crate::parse::identifiers::qualified;
use crate::{Error, Result, SqlState};

/// The table of a name.
pub(crate) fn table_named<'t>(tables: &'t Tables, name: &ObjectName) -> Result<&'t TableState> {
    let (schema, name) = qualified(name)?;
    if let Some(table) = tables.table_named(&schema, &name) {
        return Ok(table);
    }
    if let Some(view) = tables.view_named(&schema, &name) {
        let what = match is_external(&view.query) {
            true => "an external table, which is for reading",
            false => "a view, not a table",
        };
        return Err(Error::new(
            SqlState::WrongObjectType,
            format!("\"{name}\" is {what}"),
        ));
    }
    Err(undefined("relation", &shown(&schema, &name)))
}

/// A name with its schema, where that is not the default one.
pub(crate) fn shown(schema: &str, name: &str) -> String {
    match schema == crate::names::SCHEMA {
        true => name.to_owned(),
        false => format!("{schema}.{name}"),
    }
}

/// Something that is not there.
pub(crate) fn undefined(kind: &str, name: &str) -> Error {
    let state = match kind {
        "schema" => SqlState::InvalidSchemaName,
        "relation" | "table" | "view" => SqlState::UndefinedTable,
        _ => SqlState::UndefinedObject,
    };
    Error::new(state, format!("{kind} \"{name}\" does not exist"))
}

/// The column of a name.
pub(crate) fn column_named<'t>(
    table: &'t TableDefinition,
    name: &str,
) -> Result<&'t ColumnDefinition> {
    table.column_named(name).ok_or_else(|| {
        Error::new(
            SqlState::UndefinedColumn,
            format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            ),
        )
    })
}

/// Whether a table, view or index of a schema has a name.
fn is_taken(tables: &Tables, schema: &str, name: &str) -> bool {
    let is_key = |table: &TableState| {
        let definition = table.definition();
        let key = definition.primary_key.as_ref();
        definition.schema == schema && key.is_some_and(|key| key.name == name)
    };
    tables.table_named(schema, name).is_some()
        || tables.view_named(schema, name).is_some()
        || tables.table_of_index(schema, name).is_some()
        || tables.tables().any(is_key)
}

/// Fails if a name cannot be that of a new table, view or index.
pub(crate) fn free_relation_name(tables: &Tables, schema: &str, name: &str) -> Result<()> {
    if !tables.has_schema(schema) {
        return Err(undefined("schema", schema));
    }
    if is_taken(tables, schema, name) {
        return Err(Error::new(
            SqlState::DuplicateTable,
            format!("relation \"{name}\" already exists"),
        ));
    }
    Ok(())
}

/// A name that nothing in a schema has yet: the wanted one, or that with a number.
pub(crate) fn chosen_name(
    tables: &Tables,
    schema: &str,
    wanted: &str,
    is_used: impl Fn(&str) -> bool,
) -> String {
    /// Room for the number.
    const BYTES_MAX: usize = 57;
    let mut end = wanted.len().min(BYTES_MAX);
    while !wanted.is_char_boundary(end) {
        end -= 1;
    }
    let is_free = |name: &String| !is_taken(tables, schema, name) && !is_used(name);
    let numbered = (1_u32..).map(|number| format!("{}{number}", &wanted[..end]));
    std::iter::once(wanted.to_owned())
        .filter(|name| name.len() <= 63)
        .chain(numbered)
        .find(is_free)
        .unwrap_or_default()
}

/// The primary key or unique index of just these columns, in any order: its own order of them.
pub(crate) fn unique_key<'t>(
    table: &'t TableDefinition,
    columns: &[ColumnId],
) -> Option<(RelationId, &'t [ColumnId])> {
    let is_it = |key: &[ColumnId]| {
        key.len() == columns.len() && columns.iter().all(|column| key.contains(column))
    };
    let primary = table.primary_key.as_ref();
    let primary = primary.map(|key| (table.id, key.columns.as_slice()));
    let indexes = table.indexes.iter().filter(|index| index.is_unique);
    let indexes = indexes.map(|index| (index.id, index.columns.as_slice()));
    primary.into_iter().chain(indexes).find(|key| is_it(key.1))
}

/// What is said where something else needs what is to go.
pub(crate) fn still_needed(what: &str) -> Error {
    Error::new(
        SqlState::DependentObjectsStillExist,
        format!("cannot drop {what} because other objects depend on it"),
    )
    .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

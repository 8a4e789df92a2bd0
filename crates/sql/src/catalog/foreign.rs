//! Definitions of external tables, in the form of stored tables' definitions, for mappings.

use orrery_storage::table::{
    ColumnDefinition, ColumnId, PrimaryKey, RelationId, TableDefinition, Tables, ViewDefinition,
};

use crate::Result;
use crate::files::{ExternalTable, KnownOfForeign, is_external};

/// The definition of an external table of another server.
#[derive(Debug)]
pub struct ForeignDefinition {
    /// Its name, columns and primary key.
    pub definition: TableDefinition,
    /// About how many rows it has.
    pub rows: Option<u64>,
}

/// The definition of a foreign table by name.
///
/// # Errors
/// When the definition cannot be read.
pub fn foreign_definition(
    tables: &Tables,
    schema: &str,
    name: &str,
) -> Result<Option<ForeignDefinition>> {
    match tables.view_named(schema, name) {
        Some(view) => of_view(view),
        None => Ok(None),
    }
}

/// The foreign tables of a schema, by name.
///
/// # Errors
/// When a definition cannot be read.
pub fn foreign_definitions(tables: &Tables, schema: &str) -> Result<Vec<ForeignDefinition>> {
    let mut all = Vec::new();
    for view in tables.views().filter(|view| view.schema == schema) {
        all.extend(of_view(view)?);
    }
    all.sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
    Ok(all)
}

fn of_view(view: &ViewDefinition) -> Result<Option<ForeignDefinition>> {
    if !is_external(&view.query) {
        return Ok(None);
    }
    let table = ExternalTable::parse(&view.query)?;
    let Some(KnownOfForeign { columns, key, rows }) = table.foreign()? else {
        return Ok(None);
    };
    // Numbers from one, in the order in which the columns are shown.
    let numbered = (1..).map(ColumnId).zip(columns);
    let columns: Vec<ColumnDefinition> = numbered
        .map(|(id, column)| ColumnDefinition {
            id,
            name: column.name,
            column_type: column.column_type,
            is_nullable: column.is_nullable,
            default: None,
            initial: None,
        })
        .collect();
    let key = key.iter().map(|name| {
        let column = columns.iter().find(|column| column.name == *name);
        column.map(|column| column.id)
    });
    let key: Option<Vec<ColumnId>> = key.collect();
    let key = key.filter(|columns| !columns.is_empty());
    let definition = TableDefinition {
        id: RelationId(view.id.0),
        schema: view.schema.clone(),
        name: view.name.clone(),
        next_column: u32::try_from(columns.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1),
        primary_key: key.map(|columns| PrimaryKey {
            name: format!("{}_pkey", view.name),
            columns,
        }),
        columns,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    };
    Ok(Some(ForeignDefinition { definition, rows }))
}

//! The tables of `orrery_catalog`: `relations`, `columns`, `constraints`.
//!
//! The standard's `information_schema` has no indexes and no types as they were declared; a shell
//! shows both. Each table is made anew for a statement that names it, out of the definitions that
//! the statement sees.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::DataFusionError;
use orrery_storage::table::{ColumnId, IndexDefinition, TableDefinition, Tables};

use crate::mapped::is_mapped;

/// The schema.
pub(crate) const DESCRIBED: &str = "orrery_catalog";
/// Its tables.
pub(crate) const NAMES: [&str; 3] = ["relations", "columns", "constraints"];

/// The table of a name, if there is one.
pub(crate) fn described(
    tables: &Tables,
    name: &str,
) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
    let batch = match name {
        "relations" => relations(tables)?,
        "columns" => columns(tables)?,
        "constraints" => constraints(tables)?,
        _ => return Ok(None),
    };
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
    Ok(Some(Arc::new(table)))
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Tables, views and indexes.
fn relations(tables: &Tables) -> Result<RecordBatch, DataFusionError> {
    struct Relation {
        schema: String,
        name: String,
        kind: &'static str,
        table: Option<String>,
        definition: Option<String>,
    }
    let mut all = Vec::new();
    for table in tables.tables().map(|table| table.definition()) {
        all.push(Relation {
            schema: table.schema.clone(),
            name: table.name.clone(),
            kind: "table",
            table: None,
            definition: None,
        });
        all.extend(table.indexes.iter().map(|index| Relation {
            schema: table.schema.clone(),
            name: index.name.clone(),
            kind: "index",
            table: Some(table.name.clone()),
            definition: Some(definition_of_index(table, index)),
        }));
    }
    let views = tables.views().filter(|view| !is_mapped(&view.query));
    all.extend(views.map(|view| Relation {
        schema: view.schema.clone(),
        name: view.name.clone(),
        kind: "view",
        table: None,
        definition: Some(view.query.clone()),
    }));
    all.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
    let optional = |of: fn(&Relation) -> Option<&String>| -> ArrayRef {
        Arc::new(all.iter().map(of).collect::<StringArray>())
    };
    Ok(RecordBatch::try_from_iter_with_nullable([
        (
            "schema_name",
            texts(all.iter().map(|it| it.schema.clone())),
            false,
        ),
        ("name", texts(all.iter().map(|it| it.name.clone())), false),
        (
            "kind",
            texts(all.iter().map(|it| it.kind.to_owned())),
            false,
        ),
        ("table_name", optional(|it| it.table.as_ref()), true),
        ("definition", optional(|it| it.definition.as_ref()), true),
    ])?)
}

/// The columns of tables.
fn columns(tables: &Tables) -> Result<RecordBatch, DataFusionError> {
    let all = tables.tables().map(|table| table.definition());
    let all = all.flat_map(|table| {
        let columns = table.columns.iter().enumerate();
        columns.map(move |(place, column)| (table, place, column))
    });
    let all: Vec<_> = all.collect();
    let places = all.iter().map(|(_, place, _)| *place as i32 + 1);
    let nullable = all.iter().map(|(.., column)| Some(column.is_nullable));
    let defaults = all.iter().map(|(.., column)| column.default.as_ref());
    Ok(RecordBatch::try_from_iter_with_nullable([
        (
            "schema_name",
            texts(all.iter().map(|(table, ..)| table.schema.clone())),
            false,
        ),
        (
            "table_name",
            texts(all.iter().map(|(table, ..)| table.name.clone())),
            false,
        ),
        (
            "place",
            Arc::new(Int32Array::from_iter_values(places)) as ArrayRef,
            false,
        ),
        (
            "name",
            texts(all.iter().map(|(.., column)| column.name.clone())),
            false,
        ),
        (
            "type",
            texts(
                all.iter()
                    .map(|(.., column)| column.column_type.to_string()),
            ),
            false,
        ),
        (
            "is_nullable",
            Arc::new(nullable.collect::<BooleanArray>()) as ArrayRef,
            false,
        ),
        (
            "default_value",
            Arc::new(defaults.collect::<StringArray>()) as ArrayRef,
            true,
        ),
    ])?)
}

/// Keys, foreign keys and conditions.
fn constraints(tables: &Tables) -> Result<RecordBatch, DataFusionError> {
    let mut all: Vec<(&TableDefinition, &str, &str, String)> = Vec::new();
    for table in tables.tables().map(|table| table.definition()) {
        if let Some(key) = &table.primary_key {
            let definition = format!("PRIMARY KEY ({})", names(table, &key.columns));
            all.push((table, &key.name, "primary key", definition));
        }
        for index in table.indexes.iter().filter(|index| index.is_constraint) {
            let definition = format!("UNIQUE ({})", names(table, &index.columns));
            all.push((table, &index.name, "unique", definition));
        }
        for key in &table.foreign_keys {
            let columns = names(table, &key.columns);
            let definition = match tables.table(key.table).map(|table| table.definition()) {
                Some(other) => format!(
                    "FOREIGN KEY ({columns}) REFERENCES {} ({})",
                    other.name,
                    names(other, &key.referenced)
                ),
                None => format!("FOREIGN KEY ({columns})"),
            };
            all.push((table, &key.name, "foreign key", definition));
        }
        for check in &table.checks {
            let definition = format!("CHECK ({})", check.condition);
            all.push((table, &check.name, "check", definition));
        }
    }
    Ok(RecordBatch::try_from_iter([
        (
            "schema_name",
            texts(all.iter().map(|(table, ..)| table.schema.clone())),
        ),
        (
            "table_name",
            texts(all.iter().map(|(table, ..)| table.name.clone())),
        ),
        (
            "name",
            texts(all.iter().map(|(_, name, ..)| (*name).to_owned())),
        ),
        (
            "kind",
            texts(all.iter().map(|(_, _, kind, _)| (*kind).to_owned())),
        ),
        (
            "definition",
            texts(all.iter().map(|(.., definition)| definition.clone())),
        ),
    ])?)
}

fn definition_of_index(table: &TableDefinition, index: &IndexDefinition) -> String {
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let columns = names(table, &index.columns);
    match index.included.is_empty() {
        true => format!("{unique}({columns})"),
        false => format!(
            "{unique}({columns}) INCLUDE ({})",
            names(table, &index.included)
        ),
    }
}

fn names(table: &TableDefinition, columns: &[ColumnId]) -> String {
    let names = columns.iter().filter_map(|id| table.column(*id));
    let names: Vec<&str> = names.map(|column| column.name.as_str()).collect();
    names.join(", ")
}

//! Metadata of keys: primary keys, and foreign keys from both of their sides.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, UInt8Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::sql::{
    CommandGetCrossReference, CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys,
};
use orrery_sql::DATABASE;
use orrery_storage::table::{TableDefinition, Tables};
use tonic::Status;

use crate::calls::call::Call;
use crate::refusal::{malformed, refused};

/// The protocol's number for `NO ACTION`, on the deletion of a referenced row.
const NO_ACTION: u8 = 3;

/// A table that a call asks for; catalog and schema are optional.
struct Wanted<'a> {
    catalog: Option<&'a str>,
    schema: Option<&'a str>,
    table: &'a str,
}

impl Wanted<'_> {
    fn is(&self, table: &TableDefinition) -> bool {
        let fits = |wanted: Option<&str>, is: &str| {
            wanted.is_none_or(|wanted| wanted.is_empty() || wanted == is)
        };
        fits(self.catalog, DATABASE) && fits(self.schema, &table.schema) && self.table == table.name
    }
}

/// The columns of `GetPrimaryKeys`.
pub(crate) fn primary_key_columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// The columns of the other calls.
pub(crate) fn foreign_key_columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

fn text(name: &str, is_nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, is_nullable)
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// A column of a foreign key, and the column that it refers to.
struct Pair {
    referenced: Arc<TableDefinition>,
    referenced_column: String,
    referenced_key: Option<String>,
    referring: Arc<TableDefinition>,
    referring_column: String,
    key: String,
    place: i32,
}

fn pairs(
    tables: &Tables,
    is_wanted: impl Fn(&TableDefinition, &TableDefinition) -> bool,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for referring in tables.tables().map(|table| table.definition()) {
        for key in &referring.foreign_keys {
            let referenced = tables.table(key.table).map(|table| table.definition());
            let Some(referenced) = referenced.filter(|it| is_wanted(it, referring)) else {
                continue;
            };
            let name = |table: &TableDefinition, id| {
                let column = table.column(id);
                column.map(|column| column.name.clone()).unwrap_or_default()
            };
            let unique = referenced.indexes.iter().filter(|index| index.is_unique);
            let keys = referenced
                .primary_key
                .iter()
                .map(|key| (&key.name, &key.columns));
            let mut keys = keys.chain(unique.map(|index| (&index.name, &index.columns)));
            let is_it = |columns: &Vec<_>| {
                columns.len() == key.referenced.len()
                    && columns.iter().all(|column| key.referenced.contains(column))
            };
            let referenced_key = keys.find(|(_, columns)| is_it(columns));
            let referenced_key = referenced_key.map(|(name, _)| name.clone());
            let columns = key.columns.iter().zip(&key.referenced).enumerate();
            pairs.extend(columns.map(|(place, (from, to))| Pair {
                referenced: Arc::clone(referenced),
                referenced_column: name(referenced, *to),
                referenced_key: referenced_key.clone(),
                referring: Arc::clone(referring),
                referring_column: name(referring, *from),
                key: key.name.clone(),
                place: place as i32 + 1,
            }));
        }
    }
    pairs.sort_by(|one, other| {
        let order = |pair: &Pair| {
            let (a, b) = (&pair.referenced, &pair.referring);
            let names = [&a.schema, &a.name, &b.schema, &b.name, &pair.key];
            (names.map(String::clone), pair.place)
        };
        order(one).cmp(&order(other))
    });
    pairs
}

fn foreign_keys(pairs: &[Pair]) -> Result<RecordBatch, Status> {
    let column = |of: fn(&Pair) -> &str| texts(pairs.iter().map(of));
    let rules: ArrayRef = Arc::new(UInt8Array::from(vec![NO_ACTION; pairs.len()]));
    let referenced_keys = pairs.iter().map(|pair| pair.referenced_key.as_deref());
    let columns = vec![
        column(|_| DATABASE),
        column(|pair| &pair.referenced.schema),
        column(|pair| &pair.referenced.name),
        column(|pair| &pair.referenced_column),
        column(|_| DATABASE),
        column(|pair| &pair.referring.schema),
        column(|pair| &pair.referring.name),
        column(|pair| &pair.referring_column),
        Arc::new(Int32Array::from_iter_values(
            pairs.iter().map(|pair| pair.place),
        )),
        column(|pair| &pair.key),
        Arc::new(referenced_keys.collect::<StringArray>()),
        Arc::clone(&rules),
        rules,
    ];
    RecordBatch::try_new(foreign_key_columns(), columns).map_err(malformed)
}

impl Call {
    /// The present table definitions.
    pub(crate) fn tables(&self) -> Result<Arc<Tables>, Status> {
        self.require_serving()?;
        self.session().tables().map_err(|error| refused(&error))
    }

    pub(crate) fn primary_keys(
        &self,
        command: &CommandGetPrimaryKeys,
    ) -> Result<RecordBatch, Status> {
        let wanted = Wanted {
            catalog: command.catalog.as_deref(),
            schema: command.db_schema.as_deref(),
            table: &command.table,
        };
        let tables = self.tables()?;
        let found = tables.tables().map(|table| table.definition());
        let found = found.filter(|table| wanted.is(table));
        let columns = found.filter_map(|table| Some((table, table.primary_key.as_ref()?)));
        let columns = columns.flat_map(|(table, key)| {
            let columns = key.columns.iter().enumerate();
            columns.filter_map(move |(place, id)| Some((table, key, place, table.column(*id)?)))
        });
        let columns: Vec<_> = columns.collect();
        let places = columns.iter().map(|(_, _, place, _)| *place as i32 + 1);
        let arrays = vec![
            texts(columns.iter().map(|_| DATABASE)),
            texts(columns.iter().map(|(table, ..)| table.schema.as_str())),
            texts(columns.iter().map(|(table, ..)| table.name.as_str())),
            texts(columns.iter().map(|(.., column)| column.name.as_str())),
            texts(columns.iter().map(|(_, key, ..)| key.name.as_str())),
            Arc::new(Int32Array::from_iter_values(places)),
        ];
        RecordBatch::try_new(primary_key_columns(), arrays).map_err(malformed)
    }

    /// Foreign keys of other tables that refer to this one.
    pub(crate) fn exported_keys(
        &self,
        command: &CommandGetExportedKeys,
    ) -> Result<RecordBatch, Status> {
        let wanted = Wanted {
            catalog: command.catalog.as_deref(),
            schema: command.db_schema.as_deref(),
            table: &command.table,
        };
        foreign_keys(&pairs(&*self.tables()?, |referenced, _| {
            wanted.is(referenced)
        }))
    }

    /// Foreign keys of this table.
    pub(crate) fn imported_keys(
        &self,
        command: &CommandGetImportedKeys,
    ) -> Result<RecordBatch, Status> {
        let wanted = Wanted {
            catalog: command.catalog.as_deref(),
            schema: command.db_schema.as_deref(),
            table: &command.table,
        };
        foreign_keys(&pairs(&*self.tables()?, |_, referring| {
            wanted.is(referring)
        }))
    }

    /// Foreign keys of one table that refer to another.
    pub(crate) fn cross_reference(
        &self,
        command: &CommandGetCrossReference,
    ) -> Result<RecordBatch, Status> {
        let referenced_wanted = Wanted {
            catalog: command.pk_catalog.as_deref(),
            schema: command.pk_db_schema.as_deref(),
            table: &command.pk_table,
        };
        let referring_wanted = Wanted {
            catalog: command.fk_catalog.as_deref(),
            schema: command.fk_db_schema.as_deref(),
            table: &command.fk_table,
        };
        let found = pairs(&*self.tables()?, |referenced, referring| {
            referenced_wanted.is(referenced) && referring_wanted.is(referring)
        });
        foreign_keys(&found)
    }
}

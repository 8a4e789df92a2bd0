//! The rows of `pg_class` and related tables.
//!
//! Columns that speak of what cannot be here (inheritance, rules, toast) are there, for clients
//! name them, and say so.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::SchemaRef;
use orrery_storage::table::{
    ColumnId, ColumnType, IndexDefinition, RelationId, TableDefinition, Tables, ViewDefinition,
};

use super::cells::{Cell, row};
use super::definitions::{Constraint, index as index_definition};
use super::numbers::{
    BTREE, DEFAULT_COLLATION, HEAP, Numbers, OWNER, PG_CLASS, PG_CONSTRAINT, TYPES, of_column,
    own_tables, schema,
};
use crate::files::is_external;
use crate::mapped::is_mapped;
use crate::values::data_types::type_of_values;

/// What the rows are made of.
pub(crate) struct Seen {
    pub(crate) tables: Arc<Tables>,
    /// The columns of views, as they are planned.
    pub(crate) views: HashMap<RelationId, SchemaRef>,
    pub(crate) settings: Vec<(&'static str, String, &'static str)>,
    pub(crate) user: String,
    pub(super) numbers: Numbers,
    found: Found,
}

/// What functions look up by a number, made when the first asks.
#[derive(Default)]
struct Found {
    relations: OnceLock<HashMap<i64, (String, String)>>,
    definitions: OnceLock<HashMap<i64, String>>,
    index_columns: OnceLock<HashMap<(i64, i64), String>>,
}

pub(super) type Rows = Vec<Vec<Cell>>;

/// A relation with its columns: number, schema, name; of each column its name, type, whether it may
/// be NULL, and its default.
pub(super) type WithColumns<'s> = (
    i64,
    &'s str,
    &'s str,
    Vec<(String, ColumnType, bool, Option<String>)>,
);

/// The number of a column within its table: its place, for there are no gaps.
fn place(table: &TableDefinition, id: ColumnId) -> i64 {
    let place = table.columns.iter().position(|column| column.id == id);
    place.map_or(0, |place| place as i64 + 1)
}

fn places(table: &TableDefinition, ids: &[ColumnId]) -> Vec<i64> {
    ids.iter().map(|id| place(table, *id)).collect()
}

/// An index, or the primary key as one.
pub(super) struct Index<'t> {
    pub(super) oid: i64,
    pub(super) name: &'t str,
    pub(super) key: &'t [ColumnId],
    included: &'t [ColumnId],
    is_unique: bool,
    is_primary: bool,
    definition: String,
}

pub(super) fn indexes<'t>(numbers: &Numbers, table: &'t TableDefinition) -> Vec<Index<'t>> {
    let primary = table.primary_key.iter().map(|key| Index {
        oid: numbers.primary_key(table),
        name: &key.name,
        key: &key.columns,
        included: &[],
        is_unique: true,
        is_primary: true,
        definition: index_definition(table, None),
    });
    let others = table.indexes.iter().map(|index: &IndexDefinition| Index {
        oid: numbers.relation(index.id),
        name: &index.name,
        key: &index.columns,
        included: &index.included,
        is_unique: index.is_unique,
        is_primary: false,
        definition: index_definition(table, Some(index)),
    });
    primary.chain(others).collect()
}

impl Seen {
    pub(crate) fn new(
        tables: &Arc<Tables>,
        views: HashMap<RelationId, SchemaRef>,
        settings: Vec<(&'static str, String, &'static str)>,
        user: &str,
        shows_all: bool,
    ) -> Self {
        Self {
            numbers: match shows_all {
                true => Numbers::of_all(),
                false => Numbers::among(tables),
            },
            tables: Arc::clone(tables),
            views,
            settings,
            user: user.to_owned(),
            found: Found::default(),
        }
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = &TableDefinition> {
        self.tables.tables().map(|table| &**table.definition())
    }

    /// The columns of a view: name, type.
    fn columns_of_view(&self, view: &ViewDefinition) -> Vec<(String, ColumnType)> {
        let columns = self.views.get(&view.id);
        let fields = columns.iter().flat_map(|columns| columns.fields().iter());
        let text = ColumnType::Text {
            length_max: None,
            is_padded: false,
        };
        fields
            .map(|field| {
                let of = type_of_values(field.name(), field.data_type());
                (field.name().clone(), of.unwrap_or(text))
            })
            .collect()
    }

    /// All relations with columns.
    pub(super) fn all_columns(&self) -> Vec<WithColumns<'_>> {
        let tables = self.definitions().map(|table| {
            let columns = table.columns.iter().map(|column| {
                (
                    column.name.clone(),
                    column.column_type,
                    column.is_nullable,
                    column.default.clone(),
                )
            });
            (
                self.numbers.relation(table.id),
                table.schema.as_str(),
                table.name.as_str(),
                columns.collect(),
            )
        });
        let views = self.all_views().map(|view| {
            let columns = self.columns_of_view(view).into_iter();
            let columns = columns.map(|(name, of)| (name, of, true, None)).collect();
            (
                self.numbers.relation(view.id),
                view.schema.as_str(),
                view.name.as_str(),
                columns,
            )
        });
        tables.chain(views).collect()
    }

    pub(super) fn namespaces(&self) -> Rows {
        let schemas = self.tables.schemas();
        let all = schemas.chain(["pg_catalog", "information_schema"]);
        all.map(|name| row![schema(name), name, OWNER, Cell::Null])
            .collect()
    }

    pub(super) fn classes(&self) -> Rows {
        let class = |oid: i64, name: &str, within: &str, kind: &str, columns: usize, rows: i64| {
            let method = match kind {
                "i" => BTREE,
                "r" => HEAP,
                _ => 0,
            };
            row![
                oid,
                name,
                schema(within),
                0,
                0,
                OWNER,
                method,
                oid,
                0,
                0,
                rows,
                0,
                0,
                false,
                false,
                "p",
                kind,
                columns as i64,
                0,
                false,
                false,
                false,
                false,
                false,
                false,
                "d",
                false,
                0,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                0,
                PG_CLASS
            ]
        };
        let keys = self.definitions().flat_map(|table| &table.foreign_keys);
        let referenced: HashSet<RelationId> = keys.map(|key| key.table).collect();
        let own = own_tables();
        let mut all: Rows = own
            .map(|(oid, name, width)| class(oid, name, "pg_catalog", "r", width, 0))
            .collect();
        for state in self.tables.tables() {
            let table = state.definition();
            let rows = i64::try_from(state.rows()).unwrap_or(i64::MAX);
            let oid = self.numbers.relation(table.id);
            let mut of_table = class(
                oid,
                &table.name,
                &table.schema,
                "r",
                table.columns.len(),
                rows,
            );
            let own = indexes(&self.numbers, table);
            of_table[13] = Cell::Boolean(!own.is_empty());
            of_table[18] = Cell::Integer(table.checks.len() as i64);
            // Foreign keys are triggers there, on both of their tables.
            let is_bound = !table.foreign_keys.is_empty() || referenced.contains(&table.id);
            of_table[20] = Cell::Boolean(is_bound);
            all.push(of_table);
            for index in own {
                let columns = index.key.len() + index.included.len();
                all.push(class(
                    index.oid,
                    index.name,
                    &table.schema,
                    "i",
                    columns,
                    rows,
                ));
            }
        }
        for view in self.all_views() {
            let planned = self.columns_of_view(view).len();
            let columns = view.columns.len().max(planned);
            all.push(class(
                self.numbers.relation(view.id),
                &view.name,
                &view.schema,
                if is_external(&view.query) { "r" } else { "v" },
                columns,
                0,
            ));
        }
        all
    }

    pub(super) fn attributes(&self) -> Rows {
        let attribute = |relation: i64,
                         place: i64,
                         name: &str,
                         of: ColumnType,
                         is_nullable: bool,
                         has_default: bool| {
            let (oid, modifier) = of_column(of);
            let found = TYPES.iter().find(|it| it.oid == oid);
            let collation = if matches!(of, ColumnType::Text { .. }) {
                DEFAULT_COLLATION
            } else {
                0
            };
            row![
                relation,
                name,
                oid,
                -1,
                found.map_or(-1, |it| it.bytes),
                place,
                0,
                modifier,
                !is_nullable,
                has_default,
                false,
                "",
                "",
                false,
                true,
                0,
                collation,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                "",
                Cell::Null,
                if found.is_some_and(|it| it.bytes < 0) {
                    "x"
                } else {
                    "p"
                }
            ]
        };
        let mut all = Rows::new();
        for (oid, _, _, columns) in self.all_columns() {
            for (place, (name, of, is_nullable, default)) in columns.into_iter().enumerate() {
                all.push(attribute(
                    oid,
                    place as i64 + 1,
                    &name,
                    of,
                    is_nullable,
                    default.is_some(),
                ));
            }
        }
        for table in self.definitions() {
            for index in indexes(&self.numbers, table) {
                let ids = index.key.iter().chain(index.included);
                for (place, column) in ids.filter_map(|id| table.column(*id)).enumerate() {
                    all.push(attribute(
                        index.oid,
                        place as i64 + 1,
                        &column.name,
                        column.column_type,
                        true,
                        false,
                    ));
                }
            }
        }
        all
    }

    pub(super) fn defaults(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for (number, column) in table.columns.iter().enumerate() {
                if let Some(default) = &column.default {
                    let oid = self.numbers.named(table, "default", &column.name);
                    all.push(row![
                        oid,
                        self.numbers.relation(table.id),
                        number as i64 + 1,
                        default.clone()
                    ]);
                }
            }
        }
        all
    }

    pub(super) fn indexes(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for index in indexes(&self.numbers, table) {
                let mut columns = places(table, index.key);
                columns.extend(places(table, index.included));
                let count = columns.len() as i64;
                let zeros = vec![0; columns.len()];
                all.push(row![
                    index.oid,
                    self.numbers.relation(table.id),
                    count,
                    index.key.len() as i64,
                    index.is_unique,
                    false,
                    index.is_primary,
                    false,
                    true,
                    false,
                    true,
                    false,
                    true,
                    true,
                    false,
                    columns,
                    zeros.clone(),
                    zeros.clone(),
                    zeros,
                    Cell::Null,
                    Cell::Null
                ]);
            }
        }
        all
    }

    pub(super) fn constraints(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for constraint in Constraint::of(table) {
                let name = constraint.name(table);
                let (index, other, referenced) = match &constraint {
                    Constraint::Primary => (self.numbers.primary_key(table), 0, None),
                    Constraint::Unique(index) => (self.numbers.relation(index.id), 0, None),
                    Constraint::Foreign(key) => {
                        let other = self.tables.table(key.table).map(|other| other.definition());
                        let index = other.and_then(|other| {
                            let found = indexes(&self.numbers, other)
                                .into_iter()
                                .find(|it| it.key == key.referenced);
                            found.map(|index| index.oid)
                        });
                        let referenced = other.map(|other| places(other, &key.referenced));
                        (
                            index.unwrap_or(0),
                            self.numbers.relation(key.table),
                            referenced,
                        )
                    }
                    Constraint::Check(_) => (0, 0, None),
                };
                let action = if other == 0 { " " } else { "a" };
                let condition = match &constraint {
                    Constraint::Check(check) => Cell::from(check.condition.as_str()),
                    _ => Cell::Null,
                };
                let keys = constraint.columns(table);
                all.push(row![
                    self.numbers.named(table, "constraint", name),
                    name,
                    schema(&table.schema),
                    constraint.kind(),
                    false,
                    false,
                    true,
                    self.numbers.relation(table.id),
                    0,
                    index,
                    0,
                    other,
                    action,
                    action,
                    if other == 0 { " " } else { "s" },
                    true,
                    0,
                    true,
                    (!keys.is_empty()).then(|| places(table, keys)),
                    referenced,
                    Cell::Null,
                    condition,
                    PG_CONSTRAINT
                ]);
            }
        }
        all
    }

    /// Indexes that belong to constraints.
    pub(super) fn dependencies(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for constraint in Constraint::of(table) {
                let index = match &constraint {
                    Constraint::Primary => self.numbers.primary_key(table),
                    Constraint::Unique(index) => self.numbers.relation(index.id),
                    Constraint::Foreign(_) | Constraint::Check(_) => continue,
                };
                let oid = self
                    .numbers
                    .named(table, "constraint", constraint.name(table));
                all.push(row![PG_CLASS, index, 0, PG_CONSTRAINT, oid, 0, "i"]);
            }
        }
        all
    }

    pub(super) fn types(&self) -> Rows {
        let mut all = Rows::new();
        for it in TYPES {
            let kind = if it.category == "X" { "p" } else { "b" };
            let collation = if it.category == "S" {
                DEFAULT_COLLATION
            } else {
                0
            };
            let one =
                |oid: i64, name: String, bytes: i64, category: &str, element: i64, array: i64| {
                    row![
                        oid,
                        name,
                        schema("pg_catalog"),
                        OWNER,
                        bytes,
                        bytes > 0 && bytes <= 8,
                        kind,
                        category,
                        false,
                        true,
                        ",",
                        0,
                        element,
                        array,
                        "-",
                        "-",
                        0,
                        -1,
                        0,
                        false,
                        collation,
                        Cell::Null,
                        Cell::Null
                    ]
                };
            all.push(one(
                it.oid,
                it.name.to_owned(),
                it.bytes,
                it.category,
                0,
                it.array,
            ));
            if it.array != 0 {
                all.push(one(it.array, format!("_{}", it.name), -1, "A", it.oid, 0));
            }
        }
        all
    }

    pub(super) fn tables(&self) -> Rows {
        let row = |schema: &str, name: &str, has_indexes: bool, has_triggers: bool| {
            row![
                schema,
                name,
                self.user.as_str(),
                Cell::Null,
                has_indexes,
                false,
                has_triggers,
                false
            ]
        };
        let tables = self.definitions().map(|table| {
            let has_indexes = !indexes(&self.numbers, table).is_empty();
            let refers = !table.foreign_keys.is_empty();
            row(&table.schema, &table.name, has_indexes, refers)
        });
        let external = self.all_views().filter(|view| is_external(&view.query));
        let external = external.map(|view| row(&view.schema, &view.name, false, false));
        tables.chain(external).collect()
    }

    /// Views and external tables, without the graphs that are kept among them.
    pub(super) fn all_views(&self) -> impl Iterator<Item = &Arc<ViewDefinition>> {
        let views = self.tables.views();
        views.filter(|view| !is_mapped(&view.query))
    }

    /// Views, without the external tables that are kept among them.
    pub(super) fn real_views(&self) -> impl Iterator<Item = &Arc<ViewDefinition>> {
        self.all_views().filter(|view| !is_external(&view.query))
    }

    pub(super) fn views(&self) -> Rows {
        let row = |view: &Arc<ViewDefinition>| {
            row![
                view.schema.as_str(),
                view.name.as_str(),
                self.user.as_str(),
                view.query.as_str()
            ]
        };
        self.real_views().map(row).collect()
    }

    pub(super) fn named_indexes(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for index in indexes(&self.numbers, table) {
                all.push(row![
                    table.schema.as_str(),
                    table.name.as_str(),
                    index.name,
                    Cell::Null,
                    index.definition
                ]);
            }
        }
        all
    }

    pub(super) fn settings(&self) -> Rows {
        let row = |(name, value, about): &(&'static str, String, &'static str)| {
            row![
                *name,
                value.as_str(),
                Cell::Null,
                "Orrery",
                *about,
                Cell::Null,
                "user",
                "string",
                "default",
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                false
            ]
        };
        self.settings.iter().map(row).collect()
    }

    /// The definition of a constraint, of an index or of a view, by its number.
    pub(super) fn definition(&self, oid: i64) -> Option<String> {
        let all = self.found.definitions.get_or_init(|| {
            let mut all = HashMap::new();
            for table in self.definitions() {
                for constraint in Constraint::of(table) {
                    let oid = self
                        .numbers
                        .named(table, "constraint", constraint.name(table));
                    all.insert(oid, constraint.definition(table, &self.tables));
                }
                all.extend(
                    indexes(&self.numbers, table)
                        .into_iter()
                        .map(|it| (it.oid, it.definition)),
                );
            }
            let views = self.real_views();
            all.extend(
                views.map(|view| (self.numbers.relation(view.id), format!(" {};", view.query))),
            );
            all
        });
        all.get(&oid).cloned()
    }

    /// The name of a column of an index.
    pub(super) fn index_column(&self, oid: i64, place: i64) -> Option<String> {
        let all = self.found.index_columns.get_or_init(|| {
            let mut all = HashMap::new();
            for table in self.definitions() {
                for index in indexes(&self.numbers, table) {
                    let ids = index.key.iter().chain(index.included);
                    let columns = ids.filter_map(|id| table.column(*id)).zip(1..);
                    all.extend(columns.map(|(column, place)| {
                        let name = super::definitions::name(&column.name);
                        ((index.oid, place), name)
                    }));
                }
            }
            all
        });
        all.get(&(oid, place)).cloned()
    }

    /// The schema and the name of a relation.
    pub(super) fn relation(&self, oid: i64) -> Option<&(String, String)> {
        self.relations().get(&oid)
    }

    /// All relations: number, schema, name.
    pub(super) fn relations(&self) -> &HashMap<i64, (String, String)> {
        self.found.relations.get_or_init(|| {
            let mut all = HashMap::new();
            let own = own_tables();
            all.extend(own.map(|(oid, name, _)| (oid, ("pg_catalog".to_owned(), name.to_owned()))));
            for table in self.definitions() {
                let name = (table.schema.clone(), table.name.clone());
                all.insert(self.numbers.relation(table.id), name);
                for index in indexes(&self.numbers, table) {
                    let name = (table.schema.clone(), index.name.to_owned());
                    all.insert(index.oid, name);
                }
            }
            let views = self.all_views();
            all.extend(views.map(|view| {
                (
                    self.numbers.relation(view.id),
                    (view.schema.clone(), view.name.clone()),
                )
            }));
            all
        })
    }
}

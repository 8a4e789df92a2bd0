//! The tables of `information_schema`.

use std::sync::Arc;

use orrery_storage::table::{ColumnType, ViewDefinition};

use super::cells::{Cell, row};
use super::columns::SCHEMAS;
use super::definitions::Constraint;
use super::numbers::{TYPES, of_column};
use super::relations::{Rows, Seen, indexes};
use crate::files::is_external;

impl Seen {
    /// `information_schema.tables`.
    pub(super) fn standard_tables(&self) -> Rows {
        let row = |schema: &str, name: &str, kind: &str| {
            row![
                crate::names::CATALOG,
                schema,
                name,
                kind,
                if kind == "VIEW" { "NO" } else { "YES" },
                "NO"
            ]
        };
        let tables = self
            .definitions()
            .map(|it| row(&it.schema, &it.name, "BASE TABLE"));
        let views = self.all_views().map(|it| {
            let kind = match is_external(&it.query) {
                true => "BASE TABLE",
                false => "VIEW",
            };
            row(&it.schema, &it.name, kind)
        });
        tables.chain(views).collect()
    }

    /// `information_schema.views`.
    pub(super) fn standard_views(&self) -> Rows {
        let row = |view: &Arc<ViewDefinition>| {
            row![
                crate::names::CATALOG,
                view.schema.as_str(),
                view.name.as_str(),
                view.query.as_str(),
                "NONE",
                "NO",
                "NO"
            ]
        };
        self.real_views().map(row).collect()
    }

    /// `information_schema.schemata`.
    pub(super) fn standard_schemas(&self) -> Rows {
        let row = |name: &str| {
            row![
                crate::names::CATALOG,
                name,
                self.user.as_str(),
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null
            ]
        };
        self.tables.schemas().chain(SCHEMAS).map(row).collect()
    }

    /// `information_schema.columns`.
    pub(super) fn standard_columns(&self) -> Rows {
        let mut all = Rows::new();
        for (_, schema, relation, columns) in self.all_columns() {
            for (place, (name, of, is_nullable, default)) in columns.into_iter().enumerate() {
                let (oid, _) = of_column(of);
                let found = TYPES.iter().find(|it| it.oid == oid);
                let (characters, digits, scale, time) = match of {
                    ColumnType::Text { length_max, .. } => {
                        (length_max.map(i64::from), None, None, None)
                    }
                    ColumnType::Decimal { precision, scale } => (
                        None,
                        Some((i64::from(precision), 10)),
                        Some(i64::from(scale)),
                        None,
                    ),
                    ColumnType::SmallInt => (None, Some((16, 2)), Some(0), None),
                    ColumnType::Integer => (None, Some((32, 2)), Some(0), None),
                    ColumnType::BigInt => (None, Some((64, 2)), Some(0), None),
                    ColumnType::Real => (None, Some((24, 2)), None, None),
                    ColumnType::Double => (None, Some((53, 2)), None, None),
                    ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
                        (None, None, None, Some(6))
                    }
                    ColumnType::Date => (None, None, None, Some(0)),
                    ColumnType::Boolean | ColumnType::Blob => (None, None, None, None),
                };
                all.push(row![
                    crate::names::CATALOG,
                    schema,
                    relation,
                    name,
                    place as i64 + 1,
                    default,
                    if is_nullable { "YES" } else { "NO" },
                    found.map(|it| it.sql),
                    characters,
                    digits.map(|it: (i64, i64)| it.0),
                    digits.map(|it: (i64, i64)| it.1),
                    scale,
                    time,
                    crate::names::CATALOG,
                    "pg_catalog",
                    found.map(|it| it.name),
                    "NO",
                    "NEVER",
                    "YES"
                ]);
            }
        }
        all
    }

    /// `information_schema.referential_constraints`.
    pub(super) fn references(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for key in &table.foreign_keys {
                let other = self.tables.table(key.table).map(|other| other.definition());
                let unique = other.and_then(|other| {
                    let found = indexes(&self.numbers, other)
                        .into_iter()
                        .find(|it| it.key == key.referenced);
                    found.map(|index| index.name)
                });
                all.push(row![
                    crate::names::CATALOG,
                    table.schema.as_str(),
                    key.name.as_str(),
                    crate::names::CATALOG,
                    other.map(|other| other.schema.as_str()),
                    unique,
                    "NONE",
                    "NO ACTION",
                    "NO ACTION"
                ]);
            }
        }
        all
    }

    /// `information_schema.table_constraints`.
    pub(super) fn standard_constraints(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for constraint in Constraint::of(table) {
                let kind = match constraint.kind() {
                    "p" => "PRIMARY KEY",
                    "u" => "UNIQUE",
                    "f" => "FOREIGN KEY",
                    _ => "CHECK",
                };
                all.push(row![
                    crate::names::CATALOG,
                    table.schema.as_str(),
                    constraint.name(table),
                    crate::names::CATALOG,
                    table.schema.as_str(),
                    table.name.as_str(),
                    kind,
                    "NO",
                    "NO"
                ]);
            }
        }
        all
    }

    /// `information_schema.key_column_usage`.
    pub(super) fn key_columns(&self) -> Rows {
        let mut all = Rows::new();
        for table in self.definitions() {
            for constraint in Constraint::of(table) {
                let is_foreign = constraint.kind() == "f";
                let columns = constraint.columns(table).iter();
                for (place, column) in columns.filter_map(|id| table.column(*id)).enumerate() {
                    let place = place as i64 + 1;
                    all.push(row![
                        crate::names::CATALOG,
                        table.schema.as_str(),
                        constraint.name(table),
                        crate::names::CATALOG,
                        table.schema.as_str(),
                        table.name.as_str(),
                        column.name.as_str(),
                        place,
                        is_foreign.then_some(place)
                    ]);
                }
            }
        }
        all
    }
}

//! Definitions of indexes and constraints as SQL text.

use orrery_storage::table::{ColumnId, ForeignKey, IndexDefinition, TableDefinition, Tables};

/// A name, in quotes where it needs them.
pub(super) fn name(name: &str) -> String {
    let is_plain = name.starts_with(|it: char| it.is_ascii_lowercase() || it == '_')
        && name
            .chars()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A name with its schema where that is not looked in without.
pub(super) fn qualified(schema: &str, relation: &str) -> String {
    match schema == crate::names::SCHEMA {
        true => name(relation),
        false => format!("{}.{}", name(schema), name(relation)),
    }
}

pub(super) fn columns(table: &TableDefinition, ids: &[ColumnId]) -> String {
    let names = ids.iter().filter_map(|id| table.column(*id));
    names
        .map(|column| name(&column.name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A constraint, whichever it is.
pub(super) enum Constraint<'t> {
    Primary,
    Unique(&'t IndexDefinition),
    Foreign(&'t ForeignKey),
    Check(&'t orrery_storage::table::Check),
}

impl<'t> Constraint<'t> {
    /// All that a table has.
    pub(super) fn of(table: &'t TableDefinition) -> Vec<Self> {
        let primary = table.primary_key.iter().map(|_| Self::Primary);
        let unique = table.indexes.iter().filter(|index| index.is_constraint);
        let foreign = table.foreign_keys.iter().map(Self::Foreign);
        let checks = table.checks.iter().map(Self::Check);
        primary
            .chain(unique.map(Self::Unique))
            .chain(foreign)
            .chain(checks)
            .collect()
    }

    pub(super) fn name(&self, table: &'t TableDefinition) -> &'t str {
        match self {
            Self::Primary => table.primary_key.as_ref().map_or("", |key| &key.name),
            Self::Unique(index) => &index.name,
            Self::Foreign(key) => &key.name,
            Self::Check(check) => &check.name,
        }
    }

    /// `contype`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Primary => "p",
            Self::Unique(_) => "u",
            Self::Foreign(_) => "f",
            Self::Check(_) => "c",
        }
    }

    pub(super) fn columns(&self, table: &'t TableDefinition) -> &'t [ColumnId] {
        match self {
            Self::Primary => table.primary_key.as_ref().map_or(&[], |key| &key.columns),
            Self::Unique(index) => &index.columns,
            Self::Foreign(key) => &key.columns,
            Self::Check(_) => &[],
        }
    }

    /// `pg_get_constraintdef`.
    pub(super) fn definition(&self, table: &TableDefinition, tables: &Tables) -> String {
        match self {
            Self::Primary => format!("PRIMARY KEY ({})", columns(table, self.columns(table))),
            Self::Unique(index) => {
                let included = included(table, index);
                format!("UNIQUE ({}){included}", columns(table, &index.columns))
            }
            Self::Foreign(key) => {
                let Some(other) = tables.table(key.table) else {
                    return String::new();
                };
                let other = other.definition();
                format!(
                    "FOREIGN KEY ({}) REFERENCES {}({})",
                    columns(table, &key.columns),
                    qualified(&other.schema, &other.name),
                    columns(other, &key.referenced)
                )
            }
            Self::Check(check) => format!("CHECK (({}))", check.condition),
        }
    }
}

fn included(table: &TableDefinition, index: &IndexDefinition) -> String {
    match index.included.is_empty() {
        true => String::new(),
        false => format!(" INCLUDE ({})", columns(table, &index.included)),
    }
}

/// `pg_get_indexdef`; without an index of the primary key.
pub(super) fn index(table: &TableDefinition, index: Option<&IndexDefinition>) -> String {
    let place = format!("{}.{}", name(&table.schema), name(&table.name));
    match index {
        Some(index) => format!(
            "CREATE {}INDEX {} ON {place} USING btree ({}){}",
            if index.is_unique { "UNIQUE " } else { "" },
            name(&index.name),
            columns(table, &index.columns),
            included(table, index)
        ),
        None => {
            let (key, ids) = match &table.primary_key {
                Some(key) => (key.name.as_str(), key.columns.as_slice()),
                None => ("", &[][..]),
            };
            format!(
                "CREATE UNIQUE INDEX {} ON {place} USING btree ({})",
                name(key),
                columns(table, ids)
            )
        }
    }
}

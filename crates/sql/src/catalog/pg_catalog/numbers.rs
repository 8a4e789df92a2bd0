//! Object identifiers (`oid`): stable as long as an object has its name.
//!
//! For an asker who sees only some tables, numbers are counted among these tables, so that gaps do
//! not reveal others.

use std::collections::HashMap;

use orrery_storage::table::{ColumnType, RelationId, TableDefinition, Tables};

use super::columns::{TABLES, place_of};

/// PostgreSQL's own numbers end here.
const FIRST: i64 = 16_384;
/// Numbers of indexes that are primary keys: they have none of their own.
const PRIMARY_KEYS: i64 = 1 << 28;
/// Numbers that are made of names.
const NAMED: i64 = 1 << 30;

pub(super) const PG_CATALOG: i64 = 11;
pub(super) const PUBLIC: i64 = 2_200;
pub(super) const INFORMATION_SCHEMA: i64 = 13_000;
/// Tools show databases of users alone, whose numbers are beyond PostgreSQL's own.
pub(super) const DATABASE: i64 = FIRST;
pub(super) const OWNER: i64 = 10;
pub(super) const PG_CLASS: i64 = 1_259;
pub(super) const PG_CONSTRAINT: i64 = 2_606;
pub(super) const HEAP: i64 = 2;
pub(super) const BTREE: i64 = 403;
pub(super) const DEFAULT_COLLATION: i64 = 100;

/// Tables of the catalog that have no number of their own in PostgreSQL's list here.
const OF_CATALOG: i64 = 12_000;

/// Of a table of the catalog itself.
pub(super) fn of_catalog(name: &str) -> Option<i64> {
    Some(match name {
        "pg_type" => 1_247,
        "pg_attribute" => 1_249,
        "pg_proc" => 1_255,
        "pg_class" => PG_CLASS,
        "pg_database" => 1_262,
        "pg_am" => 2_601,
        "pg_attrdef" => 2_604,
        "pg_constraint" => PG_CONSTRAINT,
        "pg_description" => 2_609,
        "pg_index" => 2_610,
        "pg_namespace" => 2_615,
        "pg_rewrite" => 2_618,
        "pg_trigger" => 2_620,
        name => OF_CATALOG + place_of("pg_catalog", name)?,
    })
}

/// The tables of the catalog: number, name, how many columns.
pub(super) fn own_tables() -> impl Iterator<Item = (i64, &'static str, usize)> {
    TABLES.iter().filter_map(|(name, columns)| {
        let width = columns.split_whitespace().count() / 2;
        Some((of_catalog(name)?, *name, width))
    })
}

/// Of what is in tables and views.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Those of tables, views and indexes among these that are seen, in the order in which they
    /// came; where all are, they have numbers of their own.
    among_seen: Option<HashMap<RelationId, i64>>,
}

impl Numbers {
    pub(super) fn of_all() -> Self {
        Self { among_seen: None }
    }

    /// For who sees these tables and views alone.
    pub(super) fn among(tables: &Tables) -> Self {
        let of_tables = tables.tables().flat_map(|table| {
            let table = table.definition();
            let indexes = table.indexes.iter().map(|index| index.id);
            indexes.chain([table.id])
        });
        let mut seen: Vec<RelationId> = of_tables
            .chain(tables.views().map(|view| view.id))
            .collect();
        seen.sort_unstable();
        Self {
            among_seen: Some(seen.into_iter().zip(1..).collect()),
        }
    }

    fn of(&self, id: RelationId) -> i64 {
        match &self.among_seen {
            None => i64::from(id.0),
            // What is not seen is in nothing that is.
            Some(seen) => seen.get(&id).copied().unwrap_or(0),
        }
    }

    /// Of a table, a view or an index.
    pub(super) fn relation(&self, id: RelationId) -> i64 {
        FIRST + self.of(id)
    }

    /// Of a table's primary key, as an index.
    pub(super) fn primary_key(&self, table: &TableDefinition) -> i64 {
        PRIMARY_KEYS + self.of(table.id)
    }

    /// Of a constraint, or of a column's default.
    pub(super) fn named(&self, table: &TableDefinition, kind: &str, name: &str) -> i64 {
        NAMED + hash(&format!("{}\0{kind}\0{name}", self.of(table.id)))
    }
}

/// Of a schema.
pub(super) fn schema(name: &str) -> i64 {
    match name {
        "pg_catalog" => PG_CATALOG,
        "public" => PUBLIC,
        "information_schema" => INFORMATION_SCHEMA,
        name => NAMED + hash(name),
    }
}

/// FNV-1a, to 29 bits.
fn hash(text: &str) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    i64::from((hash >> 32) as u32 >> 3)
}

/// A type of PostgreSQL: its number, its name in the catalog and in SQL, the bytes of a value, its
/// category, the number of the type of its arrays.
pub(super) struct Type {
    pub(super) oid: i64,
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) bytes: i64,
    pub(super) category: &'static str,
    pub(super) array: i64,
}

const fn of(
    oid: i64,
    name: &'static str,
    sql: &'static str,
    bytes: i64,
    category: &'static str,
    array: i64,
) -> Type {
    Type {
        oid,
        name,
        sql,
        bytes,
        category,
        array,
    }
}

/// Those that columns here have, or the catalog's own.
pub(super) const TYPES: &[Type] = &[
    of(16, "bool", "boolean", 1, "B", 1000),
    of(17, "bytea", "bytea", -1, "U", 1001),
    of(18, "char", "\"char\"", 1, "Z", 1002),
    of(19, "name", "name", 64, "S", 1003),
    of(20, "int8", "bigint", 8, "N", 1016),
    of(21, "int2", "smallint", 2, "N", 1005),
    of(23, "int4", "integer", 4, "N", 1007),
    of(25, "text", "text", -1, "S", 1009),
    of(26, "oid", "oid", 4, "N", 1028),
    of(700, "float4", "real", 4, "N", 1021),
    of(701, "float8", "double precision", 8, "N", 1022),
    of(705, "unknown", "unknown", -2, "X", 0),
    of(1042, "bpchar", "character", -1, "S", 1014),
    of(1043, "varchar", "character varying", -1, "S", 1015),
    of(1082, "date", "date", 4, "D", 1182),
    of(1083, "time", "time without time zone", 8, "D", 1183),
    of(
        1114,
        "timestamp",
        "timestamp without time zone",
        8,
        "D",
        1115,
    ),
    of(
        1184,
        "timestamptz",
        "timestamp with time zone",
        8,
        "D",
        1185,
    ),
    of(1186, "interval", "interval", 16, "T", 1187),
    of(1700, "numeric", "numeric", -1, "N", 1231),
];

/// The number and the modifier of a column's type.
pub(super) fn of_column(column: ColumnType) -> (i64, i64) {
    match column {
        ColumnType::Boolean => (16, -1),
        ColumnType::SmallInt => (21, -1),
        ColumnType::Integer => (23, -1),
        ColumnType::BigInt => (20, -1),
        ColumnType::Decimal { precision, scale } => {
            (1700, ((i64::from(precision) << 16) | i64::from(scale)) + 4)
        }
        ColumnType::Real => (700, -1),
        ColumnType::Double => (701, -1),
        ColumnType::Date => (1082, -1),
        ColumnType::Timestamp => (1114, -1),
        ColumnType::TimestampWithTimeZone => (1184, -1),
        ColumnType::Text {
            length_max,
            is_padded,
        } => match (length_max, is_padded) {
            (Some(length), true) => (1042, i64::from(length) + 4),
            (Some(length), false) => (1043, i64::from(length) + 4),
            (None, _) => (25, -1),
        },
        ColumnType::Blob => (17, -1),
    }
}

/// `format_type`: a type as SQL writes it.
pub(super) fn format_type(oid: i64, modifier: i64) -> String {
    if let Some(element) = TYPES.iter().find(|it| it.array == oid && oid != 0) {
        return format!("{}[]", element.sql);
    }
    let Some(found) = TYPES.iter().find(|it| it.oid == oid) else {
        return "???".to_owned();
    };
    let digits = modifier - 4;
    match (oid, modifier) {
        (_, ..=3) => found.sql.to_owned(),
        (1042 | 1043, _) => format!("{}({digits})", found.sql),
        (1700, _) => format!("numeric({},{})", digits >> 16, digits & 0xffff),
        _ => found.sql.to_owned(),
    }
}

/// `regtype`: the number of a type by its name in the catalog or in SQL.
pub(super) fn type_named(name: &str) -> Option<i64> {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let found = TYPES.iter().find(|it| it.name == name || it.sql == name);
    found.map(|it| it.oid).or(match name {
        "int" => Some(23),
        "decimal" => Some(1700),
        "float" => Some(701),
        "varchar" => Some(1043),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_sql_writes_them() {
        assert_eq!(format_type(1700, ((10 << 16) | 2) + 4), "numeric(10,2)");
        assert_eq!(format_type(1043, 44), "character varying(40)");
        assert_eq!(format_type(1043, -1), "character varying");
        assert_eq!(format_type(1007, -1), "integer[]");
        assert_eq!(format_type(1114, -1), "timestamp without time zone");
        assert_eq!(type_named("pg_catalog.int4"), Some(23));
        assert_eq!(type_named("Integer"), Some(23));
        assert_eq!(type_named("nothing"), None);
    }

    #[test]
    fn numbers_of_names_fit_and_differ() {
        assert_eq!(schema("public"), PUBLIC);
        assert_ne!(schema("a"), schema("b"));
        assert!(schema("a") < i64::from(i32::MAX));
    }
}

//! The description of a foreign table for its definition: columns, types, primary key, row
//! estimate.

use std::sync::Arc;

use orrery_storage::table::ColumnType;
use tokio_postgres::Row;

use crate::access::ForeignAccess;
use crate::address::{Server, SourceName};
use crate::columns::{ForeignColumn, SourceKind, SourceType};
use crate::error::{Error, Result};
use crate::lease::Lease;

/// How long the questions may take.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

const TABLE: &str = "SELECT c.oid, c.relkind::text, c.reltuples, c.relhassubclass \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";

/// Domains are what they are made of.
const COLUMNS: &str = "WITH RECURSIVE typed(attnum, type, modifier, is_required) AS ( \
      SELECT a.attnum, a.atttypid, a.atttypmod, a.attnotnull FROM pg_attribute a \
      WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped \
    UNION ALL \
      SELECT o.attnum, t.typbasetype, CASE WHEN o.modifier = -1 THEN t.typtypmod ELSE o.modifier END, o.is_required \
      FROM typed o JOIN pg_type t ON t.oid = o.type WHERE t.typtype = 'd') \
    SELECT a.attname::text, o.is_required, t.typname::text, t.typtype = 'e' AS is_enum, o.modifier, \
      format_type(a.atttypid, a.atttypmod), coalesce(c.collisdeterministic, true) \
    FROM typed o JOIN pg_type t ON t.oid = o.type AND t.typtype <> 'd' \
    JOIN pg_attribute a ON a.attrelid = $1 AND a.attnum = o.attnum \
    LEFT JOIN pg_collation c ON c.oid = a.attcollation ORDER BY o.attnum";

const KEY: &str = "SELECT a.attname::text FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place), pg_attribute a \
    WHERE i.indrelid = $1 AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place";

/// What was found.
#[derive(Debug)]
pub struct Described {
    /// The columns that are wanted, or all.
    pub columns: Vec<ForeignColumn>,
    /// The columns of the primary key, if there is one and all of them are among the columns.
    pub primary_key: Vec<String>,
    /// About how many rows there are, where the server knows.
    pub rows: Option<u64>,
}

/// Asks for a table. `wanted` are the columns that a definition says, with types that may differ
/// from those that follow from the source as far as values can; all, if there are none.
///
/// # Errors
/// When the server may not be asked or does not answer, has no such table, or a column of a type
/// that is not read.
pub async fn describe(
    access: &ForeignAccess,
    server: &Arc<Server>,
    name: &SourceName,
    wanted: &[(String, ColumnType)],
) -> Result<Described> {
    let shared = access.shared(server)?;
    let failed = |words: String| Error::Connect {
        server: server.to_string(),
        words,
    };
    let (access, server_of) = (access.clone(), Arc::clone(server));
    let (name, wanted) = (name.clone(), wanted.to_vec());
    // Where the clock is that the connections have.
    let threads = shared.threads().map_err(failed)?;
    let asking = threads.spawn(async move {
        let asked = ask(&access, &server_of, &name, &wanted);
        tokio::time::timeout(TIMEOUT, asked).await
    });
    match asking.await {
        Ok(Ok(described)) => described,
        Ok(Err(_)) => Err(failed(format!("no answer within {} s", TIMEOUT.as_secs()))),
        Err(error) => Err(failed(error.to_string())),
    }
}

async fn ask(
    access: &ForeignAccess,
    server: &Arc<Server>,
    name: &SourceName,
    wanted: &[(String, ColumnType)],
) -> Result<Described> {
    let failed = |error: tokio_postgres::Error| {
        Error::of_read(&error, &name.to_string(), &server.to_string())
    };
    let (mut lease, found) = loop {
        let mut lease = access.lease(server).await?;
        lease.is_busy = true;
        let found = lease
            .client()?
            .query(TABLE, &[&name.schema, &name.table])
            .await;
        match found {
            Err(error) if lease.was_ended(&error) => {}
            found => break (lease, found.map_err(failed)?),
        }
    };
    let described = match found.first() {
        Some(table) => of_table(&lease, table, server, name, wanted).await,
        None => Err(Error::NoTable {
            server: server.to_string(),
            table: name.to_string(),
        }),
    };
    lease.is_busy = false;
    lease.give_back();
    described
}

async fn of_table(
    lease: &Lease,
    table: &Row,
    server: &Server,
    name: &SourceName,
    wanted: &[(String, ColumnType)],
) -> Result<Described> {
    let failed = |error: tokio_postgres::Error| {
        Error::of_read(&error, &name.to_string(), &server.to_string())
    };
    let client = lease.client()?;
    let id: u32 = table.try_get(0).map_err(failed)?;
    let kind: String = table.try_get(1).map_err(failed)?;
    let rows: f32 = table.try_get(2).map_err(failed)?;
    let has_children: bool = table.try_get(3).map_err(failed)?;
    if !matches!(kind.as_str(), "r" | "p" | "v" | "m" | "f") {
        return Err(Error::Unsupported {
            what: format!("{name} is neither table nor view"),
            hint: "Tables, partitioned tables, views, materialized views and foreign tables can be read.".to_owned(),
        });
    }
    let rows_of_columns = client.query(COLUMNS, &[&id]).await.map_err(failed)?;
    let mut found = Vec::with_capacity(rows_of_columns.len());
    for row in &rows_of_columns {
        found.push(Found::of(row).map_err(failed)?);
    }
    let columns = match wanted.is_empty() {
        true => found
            .iter()
            .map(|column| column.read(None, name))
            .collect::<Result<Vec<_>>>()?,
        false => chosen(&found, wanted, name)?,
    };
    // The rows of children are no keys of their parent's.
    let primary_key = match kind == "r" && has_children {
        true => Vec::new(),
        false => {
            let key = client.query(KEY, &[&id]).await.map_err(failed)?;
            let names = key.iter().map(|row| row.try_get::<_, String>(0));
            names
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(failed)?
        }
    };
    let is_read = |name: &String| columns.iter().any(|column| column.name == *name);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, which is -1 where there is none"
    )]
    let rows = (rows >= 0.0 && kind != "v").then_some(rows as u64);
    Ok(Described {
        primary_key: match primary_key.iter().all(is_read) {
            true => primary_key,
            false => Vec::new(),
        },
        columns,
        rows,
    })
}

fn chosen(
    found: &[Found],
    wanted: &[(String, ColumnType)],
    name: &SourceName,
) -> Result<Vec<ForeignColumn>> {
    let columns = wanted.iter().map(|(wanted, declared)| {
        let column = found.iter().find(|column| column.name == *wanted);
        let column = column.ok_or_else(|| {
            Error::Invalid(format!("the table {name} has no column \"{wanted}\""))
        })?;
        column.read(Some(*declared), name)
    });
    columns.collect()
}

/// A column as the catalog has it.
struct Found {
    name: String,
    is_required: bool,
    type_name: String,
    is_enum: bool,
    modifier: i32,
    written: String,
    is_deterministic: bool,
}

impl Found {
    fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            name: row.try_get(0)?,
            is_required: row.try_get(1)?,
            type_name: row.try_get(2)?,
            is_enum: row.try_get(3)?,
            modifier: row.try_get(4)?,
            written: row.try_get(5)?,
            is_deterministic: row.try_get(6)?,
        })
    }

    fn read(&self, declared: Option<ColumnType>, table: &SourceName) -> Result<ForeignColumn> {
        let (name, written) = (&self.name, &self.written);
        let unsupported = |why: &str| {
            Error::Unsupported {
            what: format!("the column \"{name}\" of {table} is of the type {written}{why}"),
            hint: "Say the columns that are wanted, CREATE EXTERNAL TABLE name (column type, ...), or read a view of the source that casts it."
                .to_owned(),
        }
        };
        let kind = SourceKind::of(&self.type_name, self.is_enum);
        let kind = kind.ok_or_else(|| unsupported(", which is not read"))?;
        let found = kind.column_type(self.modifier);
        let found = found.map_err(|why| unsupported(&format!(": {why}")))?;
        let column_type = declared.unwrap_or(found);
        if !kind.may_be(column_type, found) {
            return Err(Error::Invalid(format!(
                "the column \"{name}\" of {table} is of the type {written}, which is read as {found} and not as {column_type}"
            )));
        }
        Ok(ForeignColumn {
            name: name.clone(),
            column_type,
            source: SourceType {
                kind,
                is_deterministic: self.is_deterministic,
            },
            is_nullable: !self.is_required,
        })
    }
}

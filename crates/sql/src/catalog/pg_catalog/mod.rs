//! PostgreSQL's catalogs, `pg_catalog` and `information_schema`, as far as clients query them.
//!
//! ```text
//!   numbers      oids and types            definitions   constraints and indexes as SQL writes them
//!   relations    rows of the tables        functions     pg_get_constraintdef, format_type, ...
//!                                          rewrite       what clients write, in words that the planner knows
//! ```
//!
//! A table is made when a statement names it, out of the same state of the tables that the
//! statement sees; nothing is kept. A database has ten thousand tables at most, so that one is
//! small.

mod cells;
mod columns;
mod definitions;
mod functions;
mod numbers;
mod relations;
mod rewrite;
mod standard;
mod subqueries;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::DataFusionError;

pub use cells::VECTOR;
use cells::{Cell, row};
pub(crate) use columns::SCHEMAS;
use columns::columns_of;
pub(crate) use functions::{of_catalog, of_session};
pub(crate) use relations::Seen;
pub(crate) use rewrite::{Needs, rewrite};

/// A table of the catalog.
pub(crate) fn table(
    schema: &str,
    name: &str,
    seen: &Seen,
) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
    let Some(columns) = columns_of(schema, name) else {
        return Ok(None);
    };
    let rows = match name {
        "pg_am" => vec![
            row![numbers::HEAP, "heap", "-", "t"],
            row![numbers::BTREE, "btree", "-", "i"],
        ],
        "pg_attrdef" => seen.defaults(),
        "pg_attribute" => seen.attributes(),
        "pg_class" => seen.classes(),
        "pg_collation" => vec![row![
            numbers::DEFAULT_COLLATION,
            "default",
            numbers::PG_CATALOG,
            numbers::OWNER,
            "d",
            true,
            -1,
            Cell::Null,
            Cell::Null
        ]],
        "pg_constraint" => seen.constraints(),
        "pg_depend" => seen.dependencies(),
        "pg_database" => vec![row![
            numbers::DATABASE,
            crate::names::CATALOG,
            numbers::OWNER,
            6,
            "c",
            false,
            true,
            -1,
            1663,
            "C",
            "C",
            Cell::Null,
            Cell::Null,
            Cell::Null
        ]],
        "pg_index" => seen.indexes(),
        "pg_indexes" => seen.named_indexes(),
        "pg_language" => vec![row![12, "internal", numbers::OWNER, false, false]],
        "pg_namespace" => seen.namespaces(),
        "pg_roles" => vec![row![
            numbers::OWNER,
            seen.user.as_str(),
            true,
            true,
            true,
            true,
            true,
            false,
            -1,
            "********",
            Cell::Null,
            true,
            Cell::Null
        ]],
        "pg_settings" => seen.settings(),
        "pg_tables" => seen.tables(),
        "pg_tablespace" => vec![row![
            1663,
            "pg_default",
            numbers::OWNER,
            Cell::Null,
            Cell::Null
        ]],
        "pg_type" => seen.types(),
        "pg_user" => vec![row![
            seen.user.as_str(),
            numbers::OWNER,
            true,
            true,
            false,
            true,
            "********",
            Cell::Null,
            Cell::Null
        ]],
        "pg_views" => seen.views(),
        "columns" => seen.standard_columns(),
        "key_column_usage" => seen.key_columns(),
        "referential_constraints" => seen.references(),
        "schemata" => seen.standard_schemas(),
        "table_constraints" => seen.standard_constraints(),
        "tables" => seen.standard_tables(),
        "views" => seen.standard_views(),
        // There is none of these.
        _ => Vec::new(),
    };
    cells::table(columns, rows).map(Some)
}

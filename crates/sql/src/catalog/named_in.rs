//! The names of tables that a query's text mentions.

use std::collections::BTreeSet;

use datafusion::sql::parser::Statement;
use datafusion::sql::resolve::resolve_table_references;

use crate::files::is_external;
use crate::mapped::is_mapped;
use crate::names::SCHEMA;
use crate::parse::statement::parse_one;
use crate::{Error, Result};

/// The tables and views that a view's query names, with their schemas.
pub(crate) fn named_in(query: &str) -> Result<BTreeSet<(String, String)>> {
    if is_external(query) || is_mapped(query) {
        return Ok(BTreeSet::new());
    }
    let statement: Statement = parse_one(query)?;
    let named = resolve_table_references(&statement, true);
    let (named, _) = named.map_err(|error| Error::of_engine(&error, query))?;
    let named = named.into_iter().map(|reference| {
        let schema = reference.schema().unwrap_or(SCHEMA).to_owned();
        (schema, reference.table().to_owned())
    });
    Ok(named.collect())
}

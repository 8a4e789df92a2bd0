//! The rights that definitions need.
//!
//! A right to a single table is one to its rows. Whoever may change a schema sees all that is in
//! it, so that a new name tells nothing.

use datafusion::sql::sqlparser::ast::{ObjectName, ObjectType, SchemaName, Statement};
use orrery_storage::table::Tables;

use crate::catalog::scope::{RowsChange, Sight};
use crate::changes::change::Change;
use crate::parse::identifiers::{qualified, simple};
use crate::{Error, Result, SqlState};

/// Fails unless whoever asks may do it to what is there. What they do not see is left to the
/// statement, which does not find it.
pub(super) fn require(change: &Change, statement: &Statement) -> Result<()> {
    let Some(sight) = change.sight() else {
        return Ok(());
    };
    let (all, seen) = (change.tables()?, change.seen()?);
    match statement {
        Statement::CreateTable(create) => require_place(sight, &seen, &create.name),
        Statement::CreateView(view) => require_place(sight, &seen, &view.name),
        Statement::CreateSchema {
            schema_name: SchemaName::Simple(name),
            ..
        } => sight.require_schema(&simple(name)?),
        Statement::CreateIndex(index) => require_relation(sight, &seen, &index.table_name),
        Statement::AlterTable(alter) => require_relation(sight, &seen, &alter.name),
        Statement::Drop {
            object_type, names, ..
        } => names.iter().try_for_each(|name| match object_type {
            ObjectType::Schema => {
                let name = simple(name)?;
                match seen.has_schema(&name) {
                    true => sight.require_schema(&name),
                    false => Ok(()),
                }
            }
            ObjectType::Index => {
                let (schema, name) = qualified(name)?;
                match seen.table_of_index(&schema, &name) {
                    Some(_) => sight.require_schema(&schema),
                    None => Ok(()),
                }
            }
            _ => require_relation(sight, &seen, name),
        }),
        Statement::Truncate(truncate) => truncate.table_names.iter().try_for_each(|target| {
            let (schema, name) = qualified(&target.name)?;
            match seen.table_named(&schema, &name) {
                Some(table) => sight.require_rows(&all, table.definition(), RowsChange::Go),
                None => Ok(()),
            }
        }),
        _ => Ok(()),
    }
}

/// For what comes: its schema is to be seen, and to be changed.
pub(crate) fn require_place(sight: &Sight, seen: &Tables, name: &ObjectName) -> Result<()> {
    let (schema, _) = qualified(name)?;
    match seen.has_schema(&schema) {
        true => sight.require_schema(&schema),
        false => Err(crate::catalog::lookup::undefined("schema", &schema)),
    }
}

/// For what is there.
fn require_relation(sight: &Sight, seen: &Tables, name: &ObjectName) -> Result<()> {
    let (schema, name) = qualified(name)?;
    let is_there =
        seen.table_named(&schema, &name).is_some() || seen.view_named(&schema, &name).is_some();
    match is_there {
        true => sight.require_schema(&schema),
        false => Ok(()),
    }
}

/// An error as whoever sees only some tables is told it: what depends on something may be hidden,
/// so none of it is named.
pub(super) fn without_dependents(error: Error) -> Error {
    match error.state {
        SqlState::DependentObjectsStillExist => Error {
            detail: None,
            ..error
        },
        _ => error,
    }
}

//! `DROP TABLE`, `DROP INDEX`, `DROP SCHEMA`, `TRUNCATE`.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    CascadeOption, ObjectName, Truncate, TruncateIdentityOption,
};
use orrery_storage::Transaction;
use orrery_storage::table::{DefinitionChange, RelationId, TableDefinition, Tables};

use super::views;
use crate::catalog::lookup::{shown, still_needed, table_named, undefined};
use crate::changes::rows::state_of;
use crate::names::SCHEMA;
use crate::parse::identifiers::{qualified, simple};
use crate::{Error, Result, SqlState};

/// Drops a table; with `CASCADE` also the foreign keys that refer to it, and the views over it.
pub(super) fn table(
    transaction: &mut Transaction,
    seen: &Tables,
    name: &ObjectName,
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    if views::drop_external(transaction, seen, name, cascade)? {
        return Ok(());
    }
    let definition = match table_named(seen, name) {
        Ok(table) => Arc::clone(table.definition()),
        Err(error) if if_exists && error.state == SqlState::UndefinedTable => return Ok(()),
        Err(error) if error.state == SqlState::UndefinedTable => {
            let (schema, name) = qualified(name)?;
            return Err(undefined("table", &shown(&schema, &name)));
        }
        Err(error) => return Err(error),
    };
    drop_table(transaction, &definition, cascade)
}

fn drop_table(
    transaction: &mut Transaction,
    definition: &TableDefinition,
    cascade: bool,
) -> Result<()> {
    let tables = Arc::clone(transaction.tables());
    let what = format!("table {}", shown(&definition.schema, &definition.name));
    for other in referring(&tables, definition.id) {
        if !cascade {
            let keys = other.foreign_keys.iter();
            let key = keys
                .filter(|key| key.table == definition.id)
                .map(|key| &key.name);
            return Err(still_needed(&what).with_detail(format!(
                "constraint {} on table {} depends on {what}",
                key.map(String::as_str).collect::<Vec<_>>().join(", "),
                other.name
            )));
        }
        let mut other = (*other).clone();
        other.foreign_keys.retain(|key| key.table != definition.id);
        transaction.define(DefinitionChange::AlterTable(other))?;
    }
    views::drop_dependent(
        transaction,
        &definition.schema,
        &definition.name,
        &what,
        cascade,
    )?;
    transaction.define(DefinitionChange::DropTable(definition.id))?;
    Ok(())
}

/// The other tables that have a foreign key to one.
pub(super) fn referring(tables: &Tables, id: RelationId) -> Vec<Arc<TableDefinition>> {
    let others = tables.tables().map(|table| table.definition());
    let others = others.filter(|other| other.id != id);
    let refers =
        |other: &&Arc<TableDefinition>| other.foreign_keys.iter().any(|key| key.table == id);
    others.filter(refers).cloned().collect()
}

/// Drops an index that is not a constraint's.
pub(super) fn index(
    transaction: &mut Transaction,
    seen: &Tables,
    name: &ObjectName,
    if_exists: bool,
) -> Result<()> {
    let (schema, name) = qualified(name)?;
    let tables = Arc::clone(transaction.tables());
    let Some(table) = seen.table_of_index(&schema, &name) else {
        return match if_exists {
            true => Ok(()),
            false => Err(undefined("index", &shown(&schema, &name))),
        };
    };
    let table = state_of(&tables, table.definition().id)?;
    let mut definition = (**table.definition()).clone();
    let place = definition.indexes.iter().position(|it| it.name == name);
    if let Some(place) = place {
        let index = definition.indexes.remove(place);
        if index.is_constraint {
            return Err(Error::new(
                SqlState::DependentObjectsStillExist,
                format!(
                    "cannot drop index {name} because constraint {name} on table {} requires it",
                    definition.name
                ),
            )
            .with_hint(format!(
                "You can drop constraint {name} on table {} instead.",
                definition.name
            )));
        }
        refuse_needed_key(
            &tables,
            &definition,
            &index.columns,
            &format!("index {name}"),
        )?;
    }
    transaction.define(DefinitionChange::AlterTable(definition))?;
    Ok(())
}

/// Fails if a foreign key refers to columns that nothing makes unique in a definition to come.
pub(super) fn refuse_needed_key(
    tables: &Tables,
    definition: &TableDefinition,
    columns: &[orrery_storage::table::ColumnId],
    what: &str,
) -> Result<()> {
    if crate::catalog::lookup::unique_key(definition, columns).is_some() {
        return Ok(());
    }
    let mut others = referring(tables, definition.id);
    others.push(Arc::new(definition.clone()));
    for other in others {
        let needs = |key: &&orrery_storage::table::ForeignKey| {
            key.table == definition.id
                && key.referenced.len() == columns.len()
                && columns.iter().all(|column| key.referenced.contains(column))
        };
        if let Some(key) = other.foreign_keys.iter().find(needs) {
            return Err(still_needed(what).with_detail(format!(
                "constraint {} on table {} depends on {what}",
                key.name, other.name
            )));
        }
    }
    Ok(())
}

/// Drops a schema; with `CASCADE` also all that is in it.
pub(super) fn schema(
    transaction: &mut Transaction,
    seen: &Tables,
    name: &ObjectName,
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    let name = simple(name)?;
    if !seen.has_schema(&name) {
        return match if_exists {
            true => Ok(()),
            false => Err(undefined("schema", &name)),
        };
    }
    if name == SCHEMA {
        return Err(Error::unsupported(format!("DROP SCHEMA {SCHEMA}")));
    }
    let tables = Arc::clone(transaction.tables());
    let within: Vec<_> = tables
        .tables()
        .map(|table| Arc::clone(table.definition()))
        .collect();
    let within = within.into_iter().filter(|it| it.schema == name);
    let within: Vec<_> = within.collect();
    let views = tables.views().filter(|view| view.schema == name);
    if !cascade && (!within.is_empty() || views.count() > 0) {
        return Err(still_needed(&format!("schema {name}")));
    }
    for table in &within {
        drop_table(transaction, table, true)?;
    }
    let tables = Arc::clone(transaction.tables());
    for view in tables.views().filter(|view| view.schema == name) {
        views::drop_dependent(transaction, &view.schema, &view.name, "", true)?;
        transaction.define(DefinitionChange::DropView(view.id))?;
    }
    transaction.define(DefinitionChange::DropSchema(name))?;
    Ok(())
}

/// Deletes all rows of tables.
pub(super) fn truncate(
    transaction: &mut Transaction,
    seen: &Tables,
    statement: &Truncate,
) -> Result<()> {
    if statement.partitions.is_some() || statement.on_cluster.is_some() {
        return Err(Error::unsupported("an option of TRUNCATE"));
    }
    if statement.cascade == Some(CascadeOption::Cascade) {
        return Err(Error::unsupported("TRUNCATE ... CASCADE"));
    }
    if statement.identity == Some(TruncateIdentityOption::Restart) {
        return Err(Error::unsupported("RESTART IDENTITY"));
    }
    let tables = Arc::clone(transaction.tables());
    let names = statement.table_names.iter();
    let ids = names.map(|target| Ok(table_named(seen, &target.name)?.definition().id));
    let ids: Vec<RelationId> = ids.collect::<Result<_>>()?;
    for id in &ids {
        // As PostgreSQL does, without looking at rows.
        let others = referring(&tables, *id);
        if let Some(other) = others.iter().find(|other| !ids.contains(&other.id)) {
            return Err(Error::unsupported(
                "TRUNCATE of a table that is referenced in a foreign key constraint",
            )
            .with_detail(format!("Table \"{}\" references it.", other.name)));
        }
        transaction.truncate(*id)?;
    }
    Ok(())
}

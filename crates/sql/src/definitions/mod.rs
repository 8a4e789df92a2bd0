//! Statements that change what there is: tables, indexes, views, schemas.
//!
//! ```text
//! statement -> what it names, looked up -> a definition, checked against all others -> Transaction::define -> rows checked against what is new
//! ```
//!
//! Each works on the state of the transaction, and what it does is undone as a whole where it fails in the middle.

mod alter;
mod classes;
mod constraints;
mod create;
mod drop;
mod external;
mod rebuild;
mod rights;
mod views;

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{AlterTableOperation, ObjectName, ObjectType, Statement};
use orrery_storage::Transaction;

use crate::change::Change;
use crate::outcome::Outcome;
use crate::scope::{Sight, seen_by};
use crate::tag::Tag;
use crate::{Error, Result};

pub(crate) use create::table_of_values;
pub(crate) use external::create as create_external;
pub(crate) use rights::require_place;

/// Whether a statement is one of these.
pub(crate) fn is_definition(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateView(_)
            | Statement::CreateSchema { .. }
            | Statement::AlterTable(_)
            | Statement::Drop { .. }
            | Statement::Truncate(_)
    )
}

/// Does it, if whoever asks may.
pub(crate) async fn run(change: &mut Change, statement: &Statement, text: &str) -> Result<Outcome> {
    let Some(sight) = change.sight().cloned() else {
        return run_allowed(change, statement, text).await;
    };
    rights::require(change, statement)?;
    let before = change.tables()?;
    let done = run_allowed(change, statement, text).await;
    let done = done.map_err(rights::without_dependents)?;
    let after = change.tables()?;
    sight.require_changed_within(&before, &after)?;
    sight.require_references(&before, &after)?;
    Ok(done)
}

async fn run_allowed(change: &mut Change, statement: &Statement, text: &str) -> Result<Outcome> {
    if let Statement::CreateView(view) = statement {
        views::create(change, view, text).await?;
        return Ok(Outcome::Done(Tag::Words("CREATE VIEW")));
    }
    if let Statement::CreateIndex(index) = statement {
        create::index(change, index).await?;
        return Ok(Outcome::Done(Tag::Words("CREATE INDEX")));
    }
    let grown = grown_table(statement);
    let statement = statement.clone();
    let (state, sight) = (change.state().clone(), change.sight().cloned());
    let tag = change
        .apply(move |transaction| define(transaction, sight.as_ref(), &state, &statement))
        .await?;
    if let Some(name) = grown {
        views::require_unchanged(change, &name).await?;
    }
    Ok(Outcome::Done(Tag::Words(tag)))
}

/// The table that gets another column.
fn grown_table(statement: &Statement) -> Option<ObjectName> {
    let Statement::AlterTable(alter) = statement else {
        return None;
    };
    let is_new = |it: &AlterTableOperation| matches!(it, AlterTableOperation::AddColumn { .. });
    alter
        .operations
        .iter()
        .any(is_new)
        .then(|| alter.name.clone())
}

fn define(
    transaction: &mut Transaction,
    sight: Option<&Arc<Sight>>,
    state: &SessionState,
    statement: &Statement,
) -> Result<&'static str> {
    Ok(match statement {
        Statement::CreateTable(statement) => {
            create::table(transaction, sight, state, statement)?;
            "CREATE TABLE"
        }
        Statement::CreateSchema {
            schema_name,
            if_not_exists,
            with,
            options,
            default_collate_spec,
            clone,
        } => {
            if with.is_some()
                || options.is_some()
                || default_collate_spec.is_some()
                || clone.is_some()
            {
                return Err(Error::unsupported("CREATE SCHEMA with options"));
            }
            create::schema(transaction, schema_name, *if_not_exists)?;
            "CREATE SCHEMA"
        }
        Statement::AlterTable(statement) => {
            alter::table(transaction, sight, state, statement)?;
            "ALTER TABLE"
        }
        Statement::Drop {
            object_type,
            if_exists,
            names,
            cascade,
            ..
        } => {
            let mut dropped = "";
            for name in names {
                // As it is after those before it.
                let seen = seen_by(sight, transaction.tables());
                dropped = match object_type {
                    ObjectType::Table => {
                        drop::table(transaction, &seen, name, *if_exists, *cascade)?;
                        "DROP TABLE"
                    }
                    ObjectType::Index => {
                        drop::index(transaction, &seen, name, *if_exists)?;
                        "DROP INDEX"
                    }
                    ObjectType::View => {
                        views::drop(transaction, &seen, name, *if_exists, *cascade)?;
                        "DROP VIEW"
                    }
                    ObjectType::Schema => {
                        drop::schema(transaction, &seen, name, *if_exists, *cascade)?;
                        "DROP SCHEMA"
                    }
                    other => return Err(Error::unsupported(format!("DROP {other}"))),
                };
            }
            dropped
        }
        Statement::Truncate(statement) => {
            drop::truncate(
                transaction,
                &seen_by(sight, transaction.tables()),
                statement,
            )?;
            "TRUNCATE TABLE"
        }
        other => return Err(Error::unsupported(other)),
    })
}

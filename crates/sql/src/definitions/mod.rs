//! Data definition statements: tables, indexes, views, schemas.
//!
//! ```text
//! statement -> what it names, looked up -> a definition, checked against all others
//!           -> Transaction::define -> rows checked against what is new
//! ```
//!
//! A definition that reads rows pays for them, holds them in the statement's memory, and ends when
//! nobody waits for it (`row_work`); one that touches no row costs one touch.
//!
//! Each definition works on the state of the transaction, and is undone as a whole where it fails
//! in the middle.

mod alter;
mod classes;
mod constraints;
mod create;
mod drop;
mod external;
mod fill;
mod rebuild;
mod rights;
mod row_work;
mod views;

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{AlterTable, AlterTableOperation, ObjectType, Statement};
use futures::future::BoxFuture;
use orrery_storage::Transaction;

use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::scope::{Sight, seen_by};
use crate::changes::change::Change;
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
pub(crate) fn run<'a>(
    change: &'a mut Change,
    statement: &'a Statement,
    text: &'a str,
) -> BoxFuture<'a, Result<Outcome>> {
    Box::pin(async move {
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
    })
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
    if let Statement::AlterTable(alter) = statement {
        alter::table(change, alter).await?;
        if has_new_column(alter) {
            views::require_unchanged(change, &alter.name).await?;
        }
        return Ok(Outcome::Done(Tag::Words("ALTER TABLE")));
    }
    let statement = statement.clone();
    let (state, sight) = (change.state().clone(), change.sight().cloned());
    let tag = change
        .apply(move |transaction| define(transaction, sight.as_ref(), &state, &statement))
        .await?;
    Ok(Outcome::Done(Tag::Words(tag)))
}

/// Whether a table gets another column.
fn has_new_column(alter: &AlterTable) -> bool {
    let is_new = |it: &AlterTableOperation| matches!(it, AlterTableOperation::AddColumn { .. });
    alter.operations.iter().any(is_new)
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

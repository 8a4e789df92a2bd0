//! Statements that change rows: `INSERT`, `UPDATE`, `DELETE`, `CREATE TABLE AS`.
//!
//! ```text
//! INSERT   query -> batches -> values of the columns' types, defaults -> conditions -> Transaction::insert_rows -> foreign keys
//! UPDATE   query for keys and new values -> all rows of it -> conditions -> delete_rows, insert_rows -> foreign keys, both ways
//! DELETE   query for keys -> all rows of it -> delete_rows -> foreign keys that refer to them
//! ```
//!
//! The query reads the state before the statement, which never changes; so a statement does not see
//! its own rows. Storage finds NULLs and keys that are there already; foreign keys are looked at
//! when all rows have come and gone. Whatever fails, the session undoes the whole statement.

mod bulk;
pub(crate) mod change;
mod conflict;
mod delete;
mod insert;
pub(crate) mod key_sets;
pub(crate) mod load;
mod maker;
pub(crate) mod references;
mod returning;
pub(crate) mod rows;
mod select;
mod update;

use datafusion::sql::sqlparser::ast::Statement;
use futures::future::BoxFuture;

pub(crate) use bulk::schema_of;
pub(crate) use insert::{given_columns, insert_query};
pub(crate) use maker::Maker;
pub(crate) use returning::columns as returned_columns;

use crate::answers::outcome::Outcome;
use crate::changes::change::Change;
use crate::{Error, Result};

/// Whether a statement is one of these.
pub(crate) fn is_change(statement: &Statement) -> bool {
    match statement {
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => true,
        Statement::CreateTable(create) => create.query.is_some(),
        _ => false,
    }
}

/// Does it.
pub(crate) fn run<'a>(
    change: &'a mut Change,
    statement: &'a Statement,
    text: &'a str,
) -> BoxFuture<'a, Result<Outcome>> {
    Box::pin(async move {
        match statement {
            Statement::Insert(statement) => insert::run(change, statement, text).await,
            Statement::Update(statement) => update::run(change, statement, text).await,
            Statement::CreateTable(statement) => {
                insert::create_table_as(change, statement, text).await
            }
            Statement::Delete(statement) => delete::run(change, statement, text).await,
            other => Err(Error::unsupported(other)),
        }
    })
}

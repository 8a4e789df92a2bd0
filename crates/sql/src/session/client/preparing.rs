//! The preparation of statements with parameters.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast;
use futures::future::BoxFuture;
use orrery_storage::table::Tables;

use super::{Session, ends_transaction, is_query, is_without_rows, refuse_changes};
use crate::parse::statement::{Statement, parse_apart, parse_one_apart};
use crate::plan::planner::Planner;
use crate::plan::prepared::Prepared;
use crate::semantics::column_names::shown_columns;
use crate::settings::{columns_shown, setting_name};
use crate::{Error, Result, SqlState, changes};

impl Session {
    /// Understands a text of one statement with parameters `$1`, `$2`, ..., to be run as often as
    /// wanted.
    ///
    /// # Errors
    /// When it is not SQL, or is a query that cannot be planned.
    pub fn prepare<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Prepared>> {
        Box::pin(async move {
            let statement = Statement::alone(parse_one_apart(text).await?, text);
            self.prepare_statement(statement, &[]).await
        })
    }

    /// Prepares a statement with given types of some parameters. None of a text without a
    /// statement.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub fn prepare_told<'a>(
        &'a self,
        text: &'a str,
        told: &'a [Option<DataType>],
    ) -> BoxFuture<'a, Result<Option<Prepared>>> {
        Box::pin(async move {
            let mut statements = parse_apart(text).await?;
            match (statements.pop_front(), statements.len()) {
                (None, _) => Ok(None),
                (Some(parsed), 0) => {
                    let statement = Statement::alone(parsed, text);
                    Ok(Some(self.prepare_statement(statement, told).await?))
                }
                (Some(_), _) => Err(Error::new(
                    SqlState::SyntaxError,
                    "cannot insert multiple commands into a prepared statement",
                )),
            }
        })
    }

    pub(crate) fn prepare_statement<'a>(
        &'a self,
        statement: Statement,
        told: &'a [Option<DataType>],
    ) -> BoxFuture<'a, Result<Prepared>> {
        Box::pin(async move {
            let text = &*Arc::clone(&statement.text);
            if ends_transaction(&statement.parsed) {
                // Needs no state, and is all that can be done where there is none.
                let tables = self.database.snapshot();
                return Prepared::other(statement, tables.tables(), None, told, self.pool());
            }
            self.block.lock().note_statement()?;
            if let Some(prepared) = self.prepared_elsewhere(&statement, told).await? {
                return prepared.held_in(self.pool());
            }
            let snapshot = self.looked_at()?;
            let tables = &self.tables_in(&snapshot);
            let planner = self.planner(&snapshot);
            if !is_query(&statement.parsed) {
                let columns = self.columns_of(&planner, tables, &statement).await?;
                return Prepared::other(statement, tables, columns, told, self.pool());
            }
            let plan = planner.logical(statement.parsed.clone(), text).await?;
            refuse_changes(&plan)?;
            let prepared = Prepared::query(statement, tables, plan, told, self.pool())?;
            if planner.reads_graphs() {
                prepared.forget_plan();
            }
            Ok(prepared)
        })
    }

    /// The columns of the rows that a statement gives which is no query.
    async fn columns_of(
        &self,
        planner: &Planner,
        tables: &Tables,
        statement: &Statement,
    ) -> Result<Option<SchemaRef>> {
        let text = &statement.text;
        let Parsed::Statement(parsed) = &statement.parsed else {
            return Ok(match &statement.parsed {
                Parsed::Explain(_) => {
                    let plan = planner.logical(statement.parsed.clone(), text).await?;
                    Some(shown_columns(plan.schema().inner()))
                }
                _ => None,
            });
        };
        match &**parsed {
            ast::Statement::ShowVariable { variable } => {
                let name = setting_name(variable.iter().map(|part| part.value.as_str()));
                Ok(Some(columns_shown(&name)))
            }
            ast::Statement::Explain { .. } => {
                let plan = planner.logical(statement.parsed.clone(), text).await?;
                Ok(Some(shown_columns(plan.schema().inner())))
            }
            ast::Statement::Execute {
                name: Some(name), ..
            } => {
                let kept = self.kept_statement(&crate::parse::identifiers::simple(name)?);
                let prepared = kept.and_then(|kept| kept.prepared);
                Ok(prepared.and_then(|prepared| prepared.columns().cloned()))
            }
            ast::Statement::Fetch { name, .. } => {
                Ok(self.cursor_columns(&crate::parse::identifiers::folded(name)?))
            }
            parsed if changes::is_change(parsed) => {
                changes::returned_columns(planner, tables, parsed, text).await
            }
            parsed if is_without_rows(parsed) => Ok(None),
            // `SHOW TABLES` and what else is a query by another name.
            _ => {
                let plan = planner.logical(statement.parsed.clone(), text).await?;
                refuse_changes(&plan)?;
                Ok(Some(shown_columns(plan.schema().inner())))
            }
        }
    }
}

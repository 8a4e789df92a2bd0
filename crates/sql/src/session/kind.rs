//! The kind of a statement, by its form.

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast;

use crate::parse::statement::Statement;
use crate::{changes, definitions, mapped};

/// The kinds of statements, by who may run them and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// It changes nothing.
    Read,
    /// It changes rows or definitions, and needs the writers' turn.
    Change,
    /// It begins or ends a transaction. Savepoints, which do neither, are [`Self::Read`].
    Transaction,
}

impl Statement {
    /// Whether it is a `COPY` whose data come from the client, or go to it.
    pub fn copies_with_client(&self) -> bool {
        matches!(&self.parsed, Parsed::Statement(parsed) if matches!(
            parsed.as_ref(),
            ast::Statement::Copy {
                target: ast::CopyTarget::Stdin | ast::CopyTarget::Stdout,
                ..
            }
        ))
    }

    /// Whether it is about the session alone: settings, and statements that are kept. What it does
    /// is gone with the session.
    pub fn is_of_session(&self) -> bool {
        let Parsed::Statement(parsed) = &self.parsed else {
            return matches!(self.parsed, Parsed::Reset(_));
        };
        matches!(
            parsed.as_ref(),
            ast::Statement::Set(_)
                | ast::Statement::Reset(_)
                | ast::Statement::Prepare { .. }
                | ast::Statement::Execute { .. }
                | ast::Statement::Deallocate { .. }
                | ast::Statement::Discard { .. }
                | ast::Statement::Savepoint { .. }
                | ast::Statement::ReleaseSavepoint { .. }
                | ast::Statement::Rollback {
                    savepoint: Some(_),
                    ..
                }
        )
    }

    /// The kind of this one.
    pub fn kind(&self) -> StatementKind {
        let parsed = match &self.parsed {
            Parsed::Statement(parsed) => parsed,
            Parsed::CreateExternalTable(_) => return StatementKind::Change,
            _ => return StatementKind::Read,
        };
        match parsed.as_ref() {
            // What is written to a file is a change, though none of the database.
            ast::Statement::Copy { to: false, .. }
            | ast::Statement::Copy {
                target: ast::CopyTarget::File { .. },
                ..
            } => StatementKind::Change,
            ast::Statement::StartTransaction { .. }
            | ast::Statement::Commit { .. }
            | ast::Statement::Rollback {
                savepoint: None, ..
            } => StatementKind::Transaction,
            parsed
                if changes::is_change(parsed)
                    || definitions::is_definition(parsed)
                    || mapped::of(parsed).is_some() =>
            {
                StatementKind::Change
            }
            _ => StatementKind::Read,
        }
    }
}

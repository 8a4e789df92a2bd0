//! Statements about the session: settings and prepared statements.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::{ResetStatement, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    ContextModifier, DiscardObject, Expr, ObjectName, Set, Statement as Sql, TransactionAccessMode,
    TransactionMode, Value,
};

use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::execute::threads::on_own_thread;
use crate::parse::identifiers::{folded, simple};
use crate::parse::statement::Statement;
use crate::plan::evaluate::scalar;
use crate::plan::prepared::Prepared;
use crate::session::client::Session;
use crate::session::kept::Kept;
use crate::session::kind::StatementKind;
use crate::settings::{Scope, columns_shown, setting_name};
use crate::transactions::block::TransactionStatus;
use crate::{Error, Result, SqlState};

impl Session {
    /// Does such a statement; `None` for any other.
    pub(crate) async fn own(&self, whole: &Statement) -> Result<Option<Outcome>> {
        let sql = match &whole.parsed {
            Parsed::Statement(sql) => sql,
            Parsed::Reset(ResetStatement::Variable(name)) => {
                self.noted()?;
                self.reset(name)?;
                return Ok(Some(Outcome::Done(Tag::Words("RESET"))));
            }
            _ => return Ok(None),
        };
        let words = match &**sql {
            // Which state a block reads is the block's.
            Sql::Set(Set::SetTransaction {
                snapshot: Some(_), ..
            }) => return Ok(None),
            Sql::Set(set) => {
                self.noted()?;
                self.set(set)?;
                "SET"
            }
            Sql::ShowVariable { variable } => {
                self.noted()?;
                let name = setting_name(variable.iter().map(|part| part.value.as_str()));
                return Ok(Some(Outcome::Query(self.show(&name)?)));
            }
            Sql::Discard { object_type } => {
                self.discard(object_type)?;
                match object_type {
                    DiscardObject::ALL => "DISCARD ALL",
                    DiscardObject::PLANS => "DISCARD PLANS",
                    DiscardObject::SEQUENCES => "DISCARD SEQUENCES",
                    DiscardObject::TEMP => "DISCARD TEMP",
                }
            }
            Sql::Deallocate { name, .. } => {
                if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all") {
                    self.kept.lock().clear();
                    "DEALLOCATE ALL"
                } else if self.forget(&folded(name)?) {
                    "DEALLOCATE"
                } else {
                    return Err(no_statement(&name.value));
                }
            }
            Sql::Prepare {
                name,
                data_types,
                statement,
            } => {
                self.noted()?;
                let name = folded(name)?;
                if self.kept.lock().get(&name).is_some() {
                    return Err(Error::new(
                        SqlState::DuplicatePreparedStatement,
                        format!("prepared statement \"{name}\" already exists"),
                    ));
                }
                refuse_unpreparable(statement)?;
                let told = data_types.iter().map(|it| {
                    crate::values::data_types::column_type(it).map(|it| Some(it.arrow()))
                });
                let told: Vec<_> = told.collect::<Result<_>>()?;
                let statement = Statement {
                    parsed: Parsed::Statement(statement.clone()),
                    ..whole.clone()
                };
                let prepared = self.prepare_statement(statement, &told).await?;
                let kept = Kept {
                    prepared: Some(Arc::new(prepared)),
                    types: None,
                };
                self.keep(&name, kept)?;
                "PREPARE"
            }
            Sql::Execute {
                name: Some(name),
                parameters,
                immediate: false,
                ..
            } => {
                let name = simple(name)?;
                let prepared = self
                    .kept_statement(&name)
                    .and_then(|kept| kept.prepared)
                    .ok_or_else(|| no_statement(&name))?;
                refuse_execute(&prepared.statement.parsed)?;
                let values = constants(&self.state, parameters).await?;
                return Ok(Some(Box::pin(self.run(&prepared, &values)).await?));
            }
            _ => return Ok(None),
        };
        Ok(Some(Outcome::Done(Tag::Words(words))))
    }

    /// Stores a prepared statement under a name.
    ///
    /// # Errors
    /// When there are too many, or they are too long.
    pub fn keep(&self, name: &str, statement: Kept) -> Result<()> {
        self.kept.lock().insert(name, statement, self.pool())
    }

    /// The statement that is kept under a name.
    pub fn kept_statement(&self, name: &str) -> Option<Kept> {
        self.kept.lock().get(name).cloned()
    }

    /// Removes a prepared statement; returns whether there was one.
    pub fn forget(&self, name: &str) -> bool {
        self.kept.lock().remove(name)
    }

    /// Whether a statement changes rows or definitions, also when it runs one that does and is
    /// kept.
    pub fn does_change(&self, statement: &Statement) -> bool {
        statement.kind() == StatementKind::Change
            || self
                .executed(statement)
                .is_some_and(|kept| kept.statement.kind() == StatementKind::Change)
    }

    /// Whether it does, and gives rows back.
    pub fn does_change_with_rows(&self, statement: &Statement) -> bool {
        let Parsed::Statement(parsed) = &statement.parsed else {
            return false;
        };
        match parsed.as_ref() {
            Sql::Insert(insert) => insert.returning.is_some(),
            Sql::Update(update) => update.returning.is_some(),
            Sql::Delete(delete) => delete.returning.is_some(),
            _ => self.executed(statement).is_some_and(|kept| {
                kept.statement.kind() == StatementKind::Change && kept.columns().is_some()
            }),
        }
    }

    /// What EXECUTE is about.
    fn executed(&self, statement: &Statement) -> Option<Arc<Prepared>> {
        match &statement.parsed {
            Parsed::Statement(parsed) => match parsed.as_ref() {
                Sql::Execute {
                    name: Some(name), ..
                } => self.kept_statement(&simple(name).ok()?)?.prepared,
                _ => None,
            },
            _ => None,
        }
    }

    /// Sets what a client asks for as it comes.
    ///
    /// # Errors
    /// When there is no such setting, or it cannot have that value.
    pub fn set_at_start(&self, name: &str, value: &str) -> Result<()> {
        self.settings.lock().set_at_start(name, value)
    }

    /// Settings that clients are told at the start.
    pub fn reported_settings(&self) -> Vec<(String, String)> {
        self.settings.lock().reported()
    }

    /// The value of one setting; none where there is no such.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.lock().get(name)
    }

    /// The settings that have changed since the last call.
    pub fn changed_settings(&self) -> Vec<(String, String)> {
        self.settings.lock().take_changed()
    }

    /// The statement timeout; none is that of the server.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.settings.lock().statement_timeout()
    }

    /// Fails in a transaction that has failed.
    fn noted(&self) -> Result<()> {
        self.block.lock().note_statement()
    }

    fn set(&self, set: &Set) -> Result<()> {
        let scope_of = |is_local: bool| match is_local {
            true => Scope::Transaction,
            false => Scope::Session,
        };
        let mut settings = self.settings.lock();
        match set {
            Set::SingleAssignment {
                scope,
                hivevar: false,
                variable,
                values,
            } => {
                let parts = variable.0.iter().filter_map(|part| part.as_ident());
                let name = setting_name(parts.map(|part| part.value.as_str()));
                let values = values.iter().map(word).collect::<Result<Vec<_>>>()?;
                let value = match values.as_slice() {
                    [one] if one.eq_ignore_ascii_case("default") => None,
                    _ => Some(values.join(", ")),
                };
                let scope = scope_of(*scope == Some(ContextModifier::Local));
                settings.set(&name, value.as_deref(), scope)
            }
            Set::SetTimeZone { local, value } => {
                let value = word(value)?;
                let is_default = ["default", "local"].contains(&value.to_lowercase().as_str());
                let value = (!is_default).then_some(value.as_str());
                settings.set("TimeZone", value, scope_of(*local))
            }
            Set::SetNames { charset_name, .. } => {
                settings.set("client_encoding", Some(&charset_name.value), Scope::Session)
            }
            Set::SetNamesDefault {} => settings.set("client_encoding", None, Scope::Session),
            Set::SetRole {
                role_name: None, ..
            } => Ok(()),
            Set::SetTransaction {
                modes,
                snapshot: None,
                session,
            } => {
                drop(settings);
                self.set_transaction(modes, *session)
            }
            other => Err(Error::unsupported(other)),
        }
    }

    /// Whatever level is asked for, transactions are serializable: no level promises more.
    fn set_transaction(&self, modes: &[TransactionMode], is_session: bool) -> Result<()> {
        let access = modes.iter().find_map(|mode| match mode {
            TransactionMode::AccessMode(access) => Some(*access),
            TransactionMode::IsolationLevel(_) => None,
        });
        let Some(access) = access else {
            return Ok(());
        };
        let is_read_only = access == TransactionAccessMode::ReadOnly;
        if is_session {
            let value = if is_read_only { "on" } else { "off" };
            let mut settings = self.settings.lock();
            return settings.set("default_transaction_read_only", Some(value), Scope::Session);
        }
        self.settings.lock().set_read_only(is_read_only)
    }

    fn reset(&self, name: &ObjectName) -> Result<()> {
        let parts = name.0.iter().filter_map(|part| part.as_ident());
        let name = setting_name(parts.map(|part| part.value.as_str()));
        let mut settings = self.settings.lock();
        match name.eq_ignore_ascii_case("all") {
            true => {
                settings.reset();
                Ok(())
            }
            false => settings.set(&name, None, Scope::Session),
        }
    }

    fn discard(&self, what: &DiscardObject) -> Result<()> {
        if *what == DiscardObject::ALL {
            if self.transaction_status() != TransactionStatus::Idle {
                return Err(Error::new(
                    SqlState::ActiveSqlTransaction,
                    "DISCARD ALL cannot run inside a transaction block",
                ));
            }
            self.kept.lock().clear();
            self.settings.lock().reset();
        }
        Ok(())
    }

    fn show(&self, name: &str) -> Result<SendableRecordBatchStream> {
        let settings = self.settings.lock();
        let schema = columns_shown(name);
        let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
        let columns = match name.eq_ignore_ascii_case("all") {
            true => {
                let all = settings.all();
                vec![
                    texts(all.iter().map(|it| it.0.to_owned()).collect()),
                    texts(all.iter().map(|it| it.1.clone()).collect()),
                    texts(all.iter().map(|it| it.2.to_owned()).collect()),
                ]
            }
            false => vec![texts(vec![settings.require(name)?])],
        };
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns);
        let batch = batch.map_err(|error| Error::of_run(&error.into()))?;
        let rows = futures::stream::iter([Ok(batch)]);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The values of expressions over nothing. What is more than values is computed where it can be
/// stopped.
async fn constants(state: &SessionState, exprs: &[Expr]) -> Result<Vec<ScalarValue>> {
    fn computed(state: &SessionState, exprs: &[Expr]) -> Result<Vec<ScalarValue>> {
        let values = exprs.iter();
        let values = values.map(|expr| scalar(state, expr, &DFSchema::empty()));
        values.collect()
    }
    if exprs.iter().all(|expr| matches!(expr, Expr::Value(_))) {
        return computed(state, exprs);
    }
    let (state, exprs) = (state.clone(), exprs.to_vec());
    on_own_thread(move || computed(&state, &exprs)).await
}

/// A value as SET takes it: a word, a text or a number.
fn word(value: &Expr) -> Result<String> {
    Ok(match value {
        Expr::Identifier(name) => name.value.clone(),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
            Value::Boolean(value) => value.to_string(),
            Value::Number(number, _) => number.to_string(),
            other => other.to_string(),
        },
        Expr::UnaryOp { .. } => value.to_string().replace(' ', ""),
        other => return Err(Error::unsupported(format!("SET to {other}"))),
    })
}

/// PREPARE takes what PostgreSQL's takes.
fn refuse_unpreparable(statement: &Sql) -> Result<()> {
    match statement {
        Sql::Query(_) | Sql::Insert(_) | Sql::Update(_) | Sql::Delete(_) => Ok(()),
        _ => Err(Error::new(
            SqlState::SyntaxError,
            "PREPARE takes SELECT, VALUES, INSERT, UPDATE and DELETE",
        )),
    }
}

/// A client may keep an EXECUTE by a message, also one of itself: that would run without an end.
fn refuse_execute(kept: &Parsed) -> Result<()> {
    match kept {
        Parsed::Statement(sql) if matches!(**sql, Sql::Execute { .. } | Sql::Prepare { .. }) => {
            Err(Error::new(
                SqlState::SyntaxError,
                "EXECUTE runs no statement that is itself EXECUTE or PREPARE",
            ))
        }
        _ => Ok(()),
    }
}

fn no_statement(name: &str) -> Error {
    Error::new(
        SqlState::InvalidSqlStatementName,
        format!("prepared statement \"{name}\" does not exist"),
    )
}

//! The execution of a session's changes: writer lock or open transaction, savepoint, statement,
//! commit or rollback.

use std::sync::Arc;

use datafusion::sql::parser::CreateExternalTable;
use datafusion::sql::sqlparser::ast;
use futures::future::BoxFuture;
use orrery_storage::{CommitOptions, TableSavepoint, Transaction, Writer};

use super::{EndingSettings, Session, first_word};
use crate::answers::outcome::Outcome;
use crate::changes::change::Change;
use crate::copy::BatchesIn;
use crate::execute::threads::on_own_thread;
use crate::files::ExternalTable;
use crate::mapped::GraphStatement;
use crate::plan::counted::{touches_of, touches_of_definition};
use crate::transactions::block::{AtWork, Taken, TransactionStatus, serialization_failure};
use crate::{Error, Result, SqlState, changes, definitions, mapped};

impl Session {
    /// Runs what changes something: as a whole or not at all.
    pub(super) async fn change(&self, statement: &ast::Statement, text: &str) -> Result<Outcome> {
        let mut change = self.begin_change(|| first_word(statement)).await?;
        let savepoint = change.savepoint()?;
        let is_change = changes::is_change(statement);
        let done = match is_change {
            true => changes::run(&mut change, statement, text).await,
            false => definitions::run(&mut change, statement, text).await,
        };
        let touches = if is_change {
            touches_of
        } else {
            touches_of_definition
        };
        self.end_change(change, &savepoint, done, touches).await
    }

    pub(super) async fn create_external(&self, statement: &CreateExternalTable) -> Result<Outcome> {
        let what = || "CREATE EXTERNAL TABLE".to_owned();
        let mut table = ExternalTable::of_statement(statement)?;
        self.may_change(what)?;
        if let Some(sight) = &self.sight {
            sight.require_all(&what())?;
        }
        // Another server is asked while other writers have their turn.
        let seen = self.looked_at()?;
        let is_there = seen
            .tables()
            .view_named(&table.schema, &table.name)
            .is_some();
        if !(is_there && table.if_not_exists) {
            table.look(&self.state).await?;
        }
        let mut change = self.begin_change(what).await?;
        let savepoint = change.savepoint()?;
        let done = definitions::create_external(&mut change, table).await;
        self.end_change(change, &savepoint, done, touches_of_definition)
            .await
    }

    /// What is about graphs out of tables.
    pub(super) async fn mapped_graph(&self, statement: &GraphStatement) -> Result<Outcome> {
        let what = match statement {
            GraphStatement::Create(_) => "CREATE GRAPH",
            GraphStatement::Drop { .. } => "DROP GRAPH MAPPING",
            GraphStatement::Materialize { .. } => {
                // Savepoints are of tables alone.
                self.block.lock().refuse_savepoints("MATERIALIZE GRAPH")?;
                "MATERIALIZE GRAPH"
            }
        };
        if let Some(sight) = &self.sight {
            sight.require_all_with_graphs(what)?;
        }
        let mut change = self.begin_change(|| what.to_owned()).await?;
        let savepoint = change.savepoint()?;
        let done = mapped::run(&mut change, self.mappings.as_ref(), statement).await;
        self.end_change(change, &savepoint, done, touches_of_definition)
            .await
    }

    /// Inserts rows that come as batches, and says how many; as a whole or not at all, like a
    /// statement.
    ///
    /// # Errors
    /// When there is no such table or column, when a row is not right, or when the batches fail.
    pub fn insert_batches(&self, batches: BatchesIn) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let at_work = AtWork::new(&self.block);
            let done = self.take_batches(batches).await;
            drop(at_work);
            self.note_end(done.is_err());
            done
        })
    }

    async fn take_batches(&self, batches: BatchesIn) -> Result<u64> {
        self.block.lock().note_statement()?;
        let batches = match self.forward_batches(batches).await? {
            Ok(count) => return Ok(count),
            Err(batches) => batches,
        };
        let mut change = self.begin_change(|| "INSERT".to_owned()).await?;
        let savepoint = change.savepoint()?;
        let done = batches.run(&mut change).await;
        self.end_change(change, &savepoint, done, |rows| *rows)
            .await
    }

    /// Takes the writers' turn, or goes on with the open transaction. `what` is the statement's
    /// first words.
    pub(crate) async fn begin_change(&self, what: impl FnOnce() -> String) -> Result<Change> {
        let writer = self.may_change(what)?;
        let taken = self.block.lock().take();
        if let Some(spending) = self.spending() {
            spending.begin_change();
        }
        let mut state = self.state.clone();
        state.mark_start_execution();
        let (transaction, block) = match taken {
            Taken::Transaction(number, transaction) => (*transaction, Some(number)),
            Taken::Autocommit => (self.turn(writer).await?, None),
            Taken::After(number, commit) => {
                let transaction = self.turn(writer).await?;
                if commit.is_some_and(|commit| commit != transaction.begins_after()) {
                    return Err(serialization_failure());
                }
                (transaction, Some(number))
            }
        };
        let mut transaction = transaction;
        // Others may have changed something while this one waited for its turn.
        let sight = self.sight_in(transaction.start()).await;
        // What a statement reads is the state before it.
        let graphs = match &self.graphs {
            Some(_) => self.graphs_in(&transaction.snapshot()?, sight.as_ref(), true),
            None => None,
        };
        let change = Change::new(
            transaction,
            block,
            state,
            Arc::clone(&self.pool),
            self.memory_bytes,
        );
        Ok(change
            .with_graphs(graphs)
            .with_old_states(self.old_states())
            .with_sight(sight))
    }

    /// Commits what a statement has done, or gives it to the open transaction; undoes it if it
    /// failed, or costs more than there is: `touches` says what its changes cost.
    pub(crate) async fn end_change<T>(
        &self,
        change: Change,
        savepoint: &TableSavepoint,
        done: Result<T>,
        touches: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        let block = change.block();
        let done = done.and_then(|done| {
            change.pay_up_to(touches(&done))?;
            Ok(done)
        });
        let transaction = change.into_transaction();
        match (done, transaction) {
            (Ok(done), Some(transaction)) => {
                match block {
                    Some(number) => self.block.lock().give_back(number, transaction),
                    None => {
                        self.commit_transaction(transaction).await?;
                    }
                }
                Ok(done)
            }
            (Ok(_), None) => Err(Error::new(
                SqlState::InternalError,
                "a statement has lost its transaction",
            )),
            (Err(error), transaction) => {
                let undone = transaction.map(|mut transaction| {
                    transaction.undo_to(savepoint);
                    transaction
                });
                if let Some(number) = block {
                    self.block.lock().fail(number, undone);
                }
                Err(error)
            }
        }
    }

    /// Who writes, where that is not a unit's affair; fails where nothing may be changed.
    pub(crate) fn may_change(&self, what: impl FnOnce() -> String) -> Result<Option<Writer>> {
        let block = self.block.lock();
        let is_read_only = block.is_read_only() || self.settings.lock().is_read_only();
        // A unit brings its transaction.
        let writer = self.writer.writer();
        let may_write = writer.is_some() || block.holds_turn();
        if may_write && !is_read_only {
            return Ok(writer);
        }
        let refused = Error::new(
            SqlState::ReadOnlySqlTransaction,
            format!("cannot execute {} in a read-only transaction", what()),
        );
        Err(match self.writer.address() {
            Some(address) if !is_read_only => refused.with_hint(format!(
                "Another server writes this database: {address}. Clients find it among several by target_session_attrs=read-write."
            )),
            _ => refused,
        })
    }

    /// Waits for the writers' turn. Whoever waits, and one who has gone meanwhile, keeps no thread
    /// from the one who has it.
    async fn turn(&self, writer: Option<Writer>) -> Result<Transaction> {
        let writer = writer.ok_or_else(|| {
            Error::new(SqlState::ReadOnlySqlTransaction, "there is no writer here")
        })?;
        self.leave_place();
        let turns = Arc::clone(&self.turns);
        let waits = turns.acquire_owned().await;
        let waits =
            waits.map_err(|error| Error::new(SqlState::InternalError, error.to_string()))?;
        on_own_thread(move || {
            let transaction = writer.begin();
            drop(waits);
            Ok(transaction?)
        })
        .await
    }

    /// Commits what the open transaction has changed, and says how it stood, and the number of the
    /// commit if it was made here.
    pub(super) async fn commit(&self) -> Result<(TransactionStatus, Option<u64>)> {
        let remote = self.block.lock().remote_to_commit();
        let ended = self.block.lock().end_for_commit();
        let mut ending = EndingSettings {
            settings: &self.settings,
            is_committed: false,
        };
        let (transaction, status) = ended?;
        let mut number = None;
        if let Some(transaction) = transaction {
            number = Some(self.commit_transaction(transaction).await?);
        }
        if let Some(remote) = remote {
            self.leave_place();
            let _begun = self.committing.begin();
            remote.commit().await?;
        }
        ending.is_committed = status == TransactionStatus::Open;
        Ok((status, number))
    }

    /// Commits, which goes on also where nobody waits for it any more; the number of the commit.
    async fn commit_transaction(&self, transaction: Transaction) -> Result<u64> {
        self.leave_place();
        let options = self.commit_options();
        let _begun = self.committing.begin();
        on_own_thread(move || Ok(transaction.commit(options)?.wait()?)).await
    }

    pub(super) fn commit_options(&self) -> CommitOptions {
        CommitOptions {
            who: self.options.who.clone(),
            ..CommitOptions::default()
        }
    }
}

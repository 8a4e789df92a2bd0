//! Several statements as one transaction over one state.
//!
//! Units are for callers that ask once and keep no session, such as a request over HTTP. The caller
//! brings the transaction and gets it back to commit it: the writers' turn, the conditions and the
//! wait for the disk are the caller's. If a query ends a unit of changes, all of its rows are
//! computed before the unit returns, because a failed query must undo the changes; without changes
//! the rows are computed as they are asked for.

use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryConsumer;
use futures::TryStreamExt;
use futures::future::BoxFuture;
use orrery_storage::Transaction;

use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::changes::rows::held_rows;
use crate::parse::statement::Statement;
use crate::session::client::Session;
use crate::session::kind::StatementKind;
use crate::{Error, Result, SqlState};

/// The outcome of a unit.
#[derive(Debug)]
pub struct Unit {
    /// Of the last statement.
    pub outcome: Outcome,
    /// The commit whose state was read, or changed.
    pub commit: u64,
    /// When that was made, in microseconds since 1970.
    pub commit_time_us: i64,
    /// With what was changed, for the caller to commit.
    pub transaction: Option<Transaction>,
}

impl Session {
    /// Runs statements as one unit, in this transaction; without a transaction they may only read.
    ///
    /// # Errors
    /// As [`Session::execute`]; when there is no statement, or one that begins or ends a
    /// transaction. The transaction is dropped then.
    pub fn run_unit<'a>(
        &'a self,
        statements: &'a [Statement],
        transaction: Option<Transaction>,
    ) -> BoxFuture<'a, Result<Unit>> {
        Box::pin(async move {
            let ends = |statement: &Statement| statement.kind() == StatementKind::Transaction;
            if statements.iter().any(ends) {
                return Err(Error::new(
                    SqlState::ActiveSqlTransaction,
                    "the statements are one transaction, none of them can begin or end it",
                )
                .with_hint("Leave BEGIN, COMMIT and ROLLBACK out."));
            }
            let does_change = transaction.is_some();
            if statements.iter().any(Statement::copies_with_client) {
                return Err(Error::unsupported(
                    "COPY FROM STDIN or TO STDOUT among statements that are sent at once",
                ));
            }
            self.block().lock().begin_unit(transaction)?;
            let run = self.run_all(statements, does_change).await;
            let seen = self.seen();
            let (transaction, _) = self.block().lock().end();
            let (outcome, seen) = (run?, seen?);
            Ok(Unit {
                outcome,
                commit: seen.commit(),
                commit_time_us: seen.commit_time_us(),
                transaction,
            })
        })
    }

    async fn run_all(&self, statements: &[Statement], does_change: bool) -> Result<Outcome> {
        let Some((last, before)) = statements.split_last() else {
            return Err(Error::new(SqlState::SyntaxError, "there is no statement"));
        };
        for statement in before {
            match self.run_statement(statement).await? {
                // What fails in it counts, though nobody sees its rows.
                Outcome::Query(rows) => drain(rows).await?,
                Outcome::Returned(..)
                | Outcome::CopyIn(_)
                | Outcome::CopyOut(_)
                | Outcome::Done(_) => {}
            }
        }
        match self.run_statement(last).await? {
            Outcome::Query(rows) if does_change => self.kept(rows).await,
            outcome => Ok(outcome),
        }
    }

    /// All rows of a query, in memory that is counted until they are taken.
    async fn kept(&self, rows: SendableRecordBatchStream) -> Result<Outcome> {
        let memory = MemoryConsumer::new("rows of a query behind changes").register(self.pool());
        let (rows, count) = held_rows(rows, memory).await?;
        Ok(Outcome::Returned(rows, Tag::Select(count)))
    }
}

async fn drain(mut rows: SendableRecordBatchStream) -> Result<()> {
    let of_run = |error: DataFusionError| Error::of_run(&error);
    while rows.try_next().await.map_err(of_run)?.is_some() {}
    Ok(())
}

//! The simple query protocol: one text with any number of statements; all rows go as text.
//!
//! Several statements of one text are one transaction, unless the text itself says BEGIN and
//! COMMIT, as in PostgreSQL. BEGIN makes the implicit transaction so far the client's own; COMMIT
//! and ROLLBACK end it, and the rest begins another.

use bytes::BufMut;
use orrery_sql::{Outcome, Statement, Tag, TransactionStatus};

use crate::connection::Connection;
use crate::encode::put_columns;
use crate::message::put_message;
use crate::portal::Answer;
use crate::refusal::{Refusal, Stopped};

impl Connection {
    /// Answers a simple query.
    pub(crate) async fn simple(&mut self, text: &str) -> Stopped<()> {
        self.portals.remove("");
        self.forget_unnamed();
        let statements = self.session.statements_apart(text).await?;
        if statements.is_empty() {
            put_message(&mut self.wire.output, b'I', |_| {});
            return Ok(());
        }
        for (place, statement) in statements.iter().enumerate() {
            // Rows of a change are sent before it is committed: nothing may fail behind the commit.
            if statements.len() > 1 || self.session.does_change_with_rows(statement) {
                self.begin_implicit();
            }
            self.run_simple(statement, place + 1 == statements.len())
                .await?;
        }
        Ok(())
    }

    /// Begins an implicit transaction, unless one is open.
    pub(crate) fn begin_implicit(&mut self) {
        if self.session.transaction_status() == TransactionStatus::Idle {
            self.session.begin_block();
            self.is_implicit = true;
        }
    }

    /// Runs a statement. The implicit transaction is committed before the last one reports
    /// completion.
    async fn run_simple(&mut self, statement: &Statement, is_last: bool) -> Stopped<()> {
        let before = self.session.transaction_status();
        let turn = self.begin_statement().await?;
        if self.wire.is_full() {
            self.guard.send(&mut self.wire).await?;
        }
        let outcome = self.session.execute(statement);
        let outcome = self.guard.run(&mut self.wire, outcome).await?;
        let mut answer = match outcome {
            Outcome::Done(tag) => {
                self.note_control(tag, before);
                return self.end_simple(tag, is_last).await;
            }
            Outcome::CopyIn(copy) => {
                // Others compute while the client sends.
                drop(turn);
                let tag = self.copy_in(copy).await?;
                return self.end_simple(tag, is_last).await;
            }
            Outcome::CopyOut(copy) => {
                let tag = self.copy_out(copy).await?;
                return self.end_simple(tag, is_last).await;
            }
            Outcome::Query(rows) => Answer::new(rows, None, None),
            Outcome::Returned(rows, tag) => Answer::new(rows, None, Some(tag)),
        };
        put_columns(&mut self.wire.output, answer.columns(), &[]);
        self.send_rows(&mut answer, usize::MAX, &[], |session| {
            Box::pin(async move { session.execute(statement).await })
        })
        .await?;
        self.end_simple(answer.tag(), is_last).await
    }

    /// Sends CommandComplete; for the last statement, after the commit.
    async fn end_simple(&mut self, tag: Tag, is_last: bool) -> Stopped<()> {
        if is_last {
            self.commit_implicit().await?;
        }
        self.put_complete(tag);
        Ok(())
    }

    /// Handles what BEGIN, COMMIT and ROLLBACK mean for an implicit transaction, and sends their
    /// warnings.
    pub(crate) fn note_control(&mut self, tag: Tag, before: TransactionStatus) {
        let Tag::Words(words) = tag else {
            return;
        };
        let is_idle = self.session.transaction_status() == TransactionStatus::Idle;
        let warning = match words {
            "BEGIN" | "START TRANSACTION" => {
                let was_open = before != TransactionStatus::Idle && !self.is_implicit;
                self.is_implicit = false;
                was_open.then_some(("25001", "there is already a transaction in progress"))
            }
            "COMMIT" | "ROLLBACK" if is_idle => {
                let was_own = before != TransactionStatus::Idle && !self.is_implicit;
                self.is_implicit = false;
                (!was_own).then_some(("25P01", "there is no transaction in progress"))
            }
            _ => None,
        };
        if let Some((code, message)) = warning {
            Refusal::warning(code, message).write(&mut self.wire.output);
        }
    }

    /// Writes CommandComplete.
    pub(crate) fn put_complete(&mut self, tag: Tag) {
        put_message(&mut self.wire.output, b'C', |body| {
            body.put_slice(tag.to_string().as_bytes());
            body.put_u8(0);
        });
    }
}

//! The choice of a session's statements that are forwarded, and their transfer.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{CloseCursor, CopyTarget, Statement as Sql};
use futures::{StreamExt as _, TryStreamExt as _};

use super::PIECE_BYTES_MAX;
use super::messages::{
    Ask, Asked, Opening, SettingValues, Told, damaged, pieces_of, schema_from_bytes,
    values_from_bytes, values_to_bytes,
};
use super::remote::{Answer, Remote};
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::copy::{BatchesIn, CopyIn, CopyOut, Piece, Pieces, canceled};
use crate::parse::identifiers::folded;
use crate::parse::statement::Statement;
use crate::plan::prepared::Prepared;
use crate::session::client::Session;
use crate::session::copying::Unfinished;
use crate::session::kind::StatementKind;
use crate::settings::is_of_process;
use crate::transactions::block::BlockNumber;
use crate::{Error, Result, SqlState};

/// A transaction elsewhere that a statement is part of.
struct Forwarded {
    remote: Arc<Remote>,
    /// The block whose it is; it is committed with the statement if none.
    block: Option<BlockNumber>,
}

impl Session {
    /// Whether a statement is to be run where the database is written: because the open transaction
    /// is there, or because it changes something and that is another process.
    pub(crate) fn is_forwarded(&self, statement: &Statement) -> bool {
        // First what is so nearly always: statements of a server by itself pay nothing.
        let has_remote = self.block().lock().has_remote();
        if !has_remote && self.writer_calls().is_none() {
            return false;
        }
        let is_own = statement.is_of_session()
            || statement.kind() == StatementKind::Transaction
            || matches!(&statement.parsed, Parsed::Statement(parsed) if matches!(**parsed, Sql::ShowVariable { .. }));
        if is_own {
            return false;
        }
        if has_remote {
            return !self.is_about_own_cursor(statement);
        }
        statement.kind() == StatementKind::Change
            && !writes_file(statement)
            && self.may_forward_change()
    }

    /// Whether changes are made by another process that can be asked.
    fn may_forward_change(&self) -> bool {
        let Some(calls) = self.writer_calls() else {
            return false;
        };
        let block = self.block().lock();
        let is_read_only = block.is_read_only() || self.settings.lock().is_read_only();
        !is_read_only && !block.holds_turn() && !self.has_writer() && calls.writer().is_some()
    }

    /// Cursors that were declared before the transaction came to be elsewhere are here.
    fn is_about_own_cursor(&self, statement: &Statement) -> bool {
        let Parsed::Statement(parsed) = &statement.parsed else {
            return false;
        };
        let name = match &**parsed {
            Sql::Fetch { name, .. } => name,
            Sql::Close {
                cursor: CloseCursor::Specific { name },
            } => name,
            _ => return false,
        };
        folded(name).is_ok_and(|name| self.block().lock().cursor(&name).is_some())
    }

    /// Runs a statement elsewhere, with values of its parameters if it was prepared. None where it
    /// has to be run here after all: this process has begun to write.
    pub(crate) async fn forwarded(
        &self,
        statement: &Statement,
        prepared: Option<(&Prepared, &[ScalarValue])>,
    ) -> Result<Option<Outcome>> {
        let Some(forwarded) = self.forwarding().await? else {
            return Ok(None);
        };
        let values =
            prepared.map(|(prepared, values)| values_to_bytes(prepared.told_types(), values));
        let values = values.transpose()?;
        let ask = Ask::Run(self.asked(&forwarded.remote, statement, prepared.is_some()));
        let remote = Arc::clone(&forwarded.remote);
        let answer = remote.ask(&ask, &values.unwrap_or_default()).await?;
        let outcome = self.outcome(forwarded, answer).await?;
        if let Some(name) = declared(statement)? {
            let columns = columns_of_cursor(&remote, &name).await?;
            self.block().lock().put_remote_cursor(name, columns);
        }
        Ok(Some(outcome))
    }

    /// Savepoints are set both here and there.
    pub(crate) async fn forward_savepoint(&self, statement: &Statement) -> Result<()> {
        let remote = self.block().lock().remote();
        let (Some(remote), Parsed::Statement(parsed)) = (remote, &statement.parsed) else {
            return Ok(());
        };
        let is_about_savepoint = matches!(
            **parsed,
            Sql::Savepoint { .. }
                | Sql::ReleaseSavepoint { .. }
                | Sql::Rollback {
                    savepoint: Some(_),
                    ..
                }
        );
        if is_about_savepoint {
            let ask = Ask::Run(self.asked(&remote, statement, false));
            remote.ask_one(&ask, &[]).await?;
        }
        Ok(())
    }

    /// Has a statement understood where the open transaction is; none if that is here.
    pub(crate) async fn prepared_elsewhere(
        &self,
        statement: &Statement,
        told: &[Option<DataType>],
    ) -> Result<Option<Prepared>> {
        let remote = self.block().lock().remote();
        let Some(remote) = remote.filter(|_| self.is_forwarded(statement)) else {
            return Ok(None);
        };
        let ask = Ask::Prepare(self.asked(&remote, statement, true));
        let types = values_to_bytes(told, &[])?;
        let mut answer = remote.ask(&ask, &types).await?;
        let (Told::Parameters, types) = answer.expected().await? else {
            return Err(damaged(&"no parameters"));
        };
        let (parameters, _) = values_from_bytes(&types)?;
        let columns = match answer.expected().await? {
            (Told::Columns, columns) => Some(schema_from_bytes(&columns)?),
            (Told::End, _) => None,
            (other, _) => return Err(damaged(&format!("{other:?}"))),
        };
        let statement = statement.clone();
        Ok(Some(Prepared::elsewhere(
            statement, parameters, columns, told,
        )))
    }

    /// Inserts batches where the database is written. The batches again if that is here.
    pub(crate) async fn forward_batches(
        &self,
        batches: BatchesIn,
    ) -> Result<std::result::Result<u64, BatchesIn>> {
        let is_open = self.block().lock().has_remote();
        if !is_open && !self.may_forward_change() {
            return Ok(Err(batches));
        }
        let Some(forwarded) = self.forwarding().await? else {
            return Ok(Err(batches));
        };
        let remote = &forwarded.remote;
        let begun = Ask::Insert {
            within: remote.within(),
            settings: remote.changed(self.setting_values()),
            schema: batches.schema,
            table: batches.table,
            columns: batches.columns,
        };
        remote.ask_one(&begun, &[]).await?;
        let mut rows = batches.batches;
        let mut failed = None;
        while let Some(batch) = rows.next().await {
            match batch {
                Ok(batch) => send_batch(remote, batch).await?,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let reason = failed.as_ref().map(ToString::to_string);
        let ended = finish(remote, reason).await;
        if let Some(error) = failed {
            return Err(error);
        }
        let Tag::Insert(count) = ended? else {
            return Err(damaged(&"no count of rows"));
        };
        self.ended(&forwarded).await?;
        Ok(Ok(count))
    }

    fn asked(&self, remote: &Remote, statement: &Statement, is_prepared: bool) -> Asked {
        Asked {
            within: remote.within(),
            settings: remote.changed(self.setting_values()),
            text: statement.text.to_string(),
            place: statement.place,
            is_prepared,
        }
    }

    /// What statements there go by. Whether changes are wanted was looked at here.
    fn setting_values(&self) -> SettingValues {
        let all = self.settings.lock().all().into_iter();
        let all = all.filter(|(name, ..)| !is_of_process(name));
        all.map(|(name, value, _)| (name.to_owned(), value))
            .collect()
    }

    /// The transaction elsewhere for a change: the block's, which is begun there if it was not yet,
    /// or one of its own. Until the statement has ended, the block counts as failed: one that is
    /// stopped leaves the transaction in a state that nobody knows. None if this process writes.
    async fn forwarding(&self) -> Result<Option<Forwarded>> {
        // From now on it waits for another process.
        self.leave_place();
        let (begun, before) = {
            let block = self.block().lock();
            (block.remote(), block.before_remote())
        };
        let (block, after, savepoints) = match before {
            Some((number, after, savepoints)) => (Some(number), after, savepoints),
            None => (None, None, Vec::new()),
        };
        let remote = match begun {
            Some(remote) => remote,
            None => {
                let Some(remote) = self.open_remote(after, savepoints).await? else {
                    return Ok(None);
                };
                Arc::new(remote)
            }
        };
        if let Some(number) = block {
            self.block().lock().begin_remote(number, &remote)?;
        }
        Ok(Some(Forwarded { remote, block }))
    }

    async fn open_remote(
        &self,
        after: Option<u64>,
        savepoints: Vec<String>,
    ) -> Result<Option<Remote>> {
        let Some(calls) = self.writer_calls() else {
            return Ok(None);
        };
        let opening = Opening {
            passport: self.passport(),
            user: self.options.user.clone(),
            who: self.options.who.clone(),
            after,
            savepoints,
            names_user: true,
        };
        Remote::open(calls, opening, || self.has_writer()).await
    }

    /// The statement was done: the block goes on, or what was done is committed.
    async fn ended(&self, forwarded: &Forwarded) -> Result<()> {
        match forwarded.block {
            Some(number) => self.block().lock().end_remote(number),
            None => {
                let _begun = self.committing().begin();
                forwarded.remote.commit().await?;
            }
        }
        Ok(())
    }

    async fn outcome(&self, forwarded: Forwarded, mut answer: Answer) -> Result<Outcome> {
        let (told, behind) = answer.expected().await?;
        let outcome = match told {
            Told::Done(tag) => Outcome::Done(tag),
            Told::Query => {
                let schema = schema_from_bytes(&behind)?;
                let rows = answer.rows().map_err(Into::into);
                let rows = RecordBatchStreamAdapter::new(schema, rows);
                Outcome::Query(self.answer(Box::pin(rows)))
            }
            Told::Returned(tag) => {
                let (schema, rows) = answer.all_rows(&behind).await?;
                let memory = MemoryConsumer::new("rows of a change").register(self.pool());
                let bytes = rows.iter().map(RecordBatch::get_array_memory_size).sum();
                memory
                    .try_grow(bytes)
                    .map_err(|error| Error::of_run(&error))?;
                let rows = futures::stream::iter(rows.into_iter().map(Ok));
                let rows = rows.inspect(move |_| _ = &memory);
                let rows = RecordBatchStreamAdapter::new(schema, rows);
                Outcome::Returned(Box::pin(rows) as SendableRecordBatchStream, tag)
            }
            Told::CopyOut { columns } => {
                Outcome::CopyOut(CopyOut::new(columns, answer.copied().boxed()))
            }
            Told::CopyIn { columns } => {
                let session = self.clone();
                let unfinished = Unfinished::new(&self.block);
                if let Some(number) = forwarded.block {
                    self.block().lock().end_remote(number);
                }
                return Ok(Outcome::CopyIn(CopyIn::begin(
                    columns,
                    |pieces| async move {
                        let tag = sent(&forwarded.remote, pieces).await?;
                        session.ended(&forwarded).await?;
                        unfinished.end();
                        Ok(tag)
                    },
                )));
            }
            other => return Err(damaged(&format!("{other:?}"))),
        };
        self.ended(&forwarded).await?;
        Ok(outcome)
    }
}

/// The name of the cursor that a statement declares.
fn declared(statement: &Statement) -> Result<Option<String>> {
    let Parsed::Statement(parsed) = &statement.parsed else {
        return Ok(None);
    };
    let Sql::Declare { stmts } = &**parsed else {
        return Ok(None);
    };
    let name = stmts.first().and_then(|declared| declared.names.first());
    name.map(folded).transpose()
}

/// What a client may ask of a cursor before it fetches from it.
async fn columns_of_cursor(remote: &Remote, name: &str) -> Result<SchemaRef> {
    let ask = Ask::Prepare(Asked {
        within: remote.within(),
        settings: None,
        text: format!("fetch next from \"{}\"", name.replace('"', "\"\"")),
        place: 0,
        is_prepared: true,
    });
    let mut answer = remote.ask(&ask, &[]).await?;
    answer.expected().await?;
    match answer.expected().await? {
        (Told::Columns, columns) => schema_from_bytes(&columns),
        (other, _) => Err(damaged(&format!("{other:?}"))),
    }
}

/// What is written to a file is no change of the database.
fn writes_file(statement: &Statement) -> bool {
    matches!(&statement.parsed, Parsed::Statement(parsed) if matches!(
        **parsed,
        Sql::Copy { to: true, target: CopyTarget::File { .. }, .. }
    ))
}

/// Hands on what a client sends.
async fn sent(remote: &Remote, mut pieces: Pieces) -> Result<Tag> {
    loop {
        match pieces.recv().await {
            Some(Piece::Bytes(mut bytes)) => {
                while !bytes.is_empty() {
                    let piece = bytes.split_to(bytes.len().min(PIECE_BYTES_MAX));
                    send(remote, &piece).await?;
                }
            }
            Some(Piece::End) => return finish(remote, None).await,
            Some(Piece::Fail(reason)) => {
                // It is undone there, whatever is said.
                _ = finish(remote, Some(reason.clone())).await;
                return Err(canceled(&reason));
            }
            None => return Err(canceled("its client has gone")),
        }
    }
}

async fn send(remote: &Remote, bytes: &[u8]) -> Result<()> {
    let answered = remote.ask_one(&Ask::Piece(remote.within()), bytes).await?;
    match answered.0 {
        Told::Taken => Ok(()),
        other => Err(damaged(&format!("{other:?}"))),
    }
}

async fn send_batch(remote: &Remote, batch: RecordBatch) -> Result<()> {
    for piece in pieces_of(batch)? {
        send(remote, &piece).await?;
    }
    Ok(())
}

async fn finish(remote: &Remote, failed: Option<String>) -> Result<Tag> {
    let within = remote.within();
    let ask = Ask::Finish { within, failed };
    match remote.ask_one(&ask, &[]).await?.0 {
        Told::Done(tag) => Ok(tag),
        other => Err(Error::new(
            SqlState::InternalError,
            format!("what was sent is not done, but {other:?}"),
        )),
    }
}

//! Data that a client streams for a forwarded statement.

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::messages::rows_from_bytes;
use crate::answers::tag::Tag;
use crate::copy::{BatchesIn, CopyIn, canceled};
use crate::session::client::Session;
use crate::{Error, Result, SqlState};

/// Batches that wait for the statement.
const AHEAD: usize = 2;

/// The statement that takes it.
pub(super) enum Incoming {
    Copy(CopyIn),
    Batches(Batches),
}

/// The rows of an insert.
pub(super) struct Batches {
    sender: Option<mpsc::Sender<Result<RecordBatch>>>,
    task: JoinHandle<Result<u64>>,
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Batches {
    /// Begins to insert into a table, of some schema, what comes for these columns.
    pub(super) fn begin(
        session: Session,
        (schema, table, columns): (Option<String>, String, Vec<String>),
    ) -> Self {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let batches = futures::stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        });
        let batches = BatchesIn {
            schema,
            table,
            columns,
            batches: batches.boxed(),
        };
        Self {
            sender: Some(sender),
            task: tokio::spawn(async move { session.insert_batches(batches).await }),
        }
    }

    async fn send(&mut self, batch: Result<RecordBatch>) -> Result<()> {
        let sent = match &self.sender {
            Some(sender) => sender.send(batch).await.is_ok(),
            None => false,
        };
        match sent {
            true => Ok(()),
            false => self.end().await.map(drop),
        }
    }

    async fn end(&mut self) -> Result<u64> {
        self.sender = None;
        let done = (&mut self.task).await;
        done.unwrap_or_else(|error| Err(Error::new(SqlState::InternalError, error.to_string())))
    }
}

impl Incoming {
    /// Takes a piece.
    ///
    /// # Errors
    /// When the statement has failed: why.
    pub(super) async fn send(&mut self, bytes: Bytes) -> Result<()> {
        match self {
            Self::Copy(copy) => copy.send(bytes).await,
            Self::Batches(batches) => batches.send(rows_from_bytes(&bytes)).await,
        }
    }

    /// All was sent, or whoever sends gives up for this reason.
    ///
    /// # Errors
    /// When the statement fails, which is undone then.
    pub(super) async fn finish(self, failed: Option<String>) -> Result<Tag> {
        match (self, failed) {
            (Self::Copy(copy), None) => copy.finish().await,
            (Self::Copy(copy), Some(reason)) => Err(copy.fail(&reason).await),
            (Self::Batches(mut batches), None) => batches.end().await.map(Tag::Insert),
            (Self::Batches(mut batches), Some(reason)) => {
                // Its own words come back.
                _ = batches.send(Err(canceled(&reason))).await;
                batches.end().await.map(Tag::Insert)
            }
        }
    }
}

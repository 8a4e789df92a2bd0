//! The streams of `COPY ... FROM STDIN` and `COPY ... TO STDOUT`, for protocols.
//!
//! ```text
//! client --- chunks ---> CopyIn --- spooled ---> records -> rows -> the table    finish: done, and committed
//!                                                                                unless a transaction is open
//! client <--- chunks --- CopyOut <--- one at a time --- rows of a query          nothing is made before it is asked for
//! ```
//!
//! Chunks are cut anywhere on the way in, and end with a row on the way out.

use std::fmt;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::answers::tag::Tag;
use crate::{Error, Result, SqlState};

/// Chunks that may wait for the statement.
const CHUNKS_WAITING: usize = 4;

/// What the client sends.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// All was sent.
    End,
    /// The client gives up, for this reason.
    Fail(String),
}

/// Where that comes out.
pub(crate) type Pieces = mpsc::Receiver<Piece>;

/// Takes the data of `COPY ... FROM STDIN`.
///
/// A task of its own keeps the chunks, in memory and then in a file, and runs the statement when
/// all are there: before that it has no writers' turn. It is done when [`finish`](Self::finish)
/// says so; if this is dropped before, nothing is done, as with [`fail`](Self::fail). Nothing else
/// may be asked of the session in between.
pub struct CopyIn {
    columns: usize,
    sender: mpsc::Sender<Piece>,
    task: Task,
}

/// A task that ends when nobody waits for it any more.
struct Task(JoinHandle<Result<Tag>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for CopyIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyIn")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl CopyIn {
    /// Begins with what makes the statement's future out of its input.
    pub(crate) fn begin<W>(columns: usize, work: impl FnOnce(Pieces) -> W) -> Self
    where
        W: Future<Output = Result<Tag>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
        Self {
            columns,
            sender,
            task: Task(tokio::spawn(work(receiver))),
        }
    }

    /// The number of columns, for PostgreSQL's `CopyInResponse`.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Sends a chunk; waits while the statement has enough of them.
    ///
    /// # Errors
    /// The error that ended the statement. The statement is undone, and there is nothing more to
    /// send or to finish.
    pub fn send(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            match self.sender.send(Piece::Bytes(bytes)).await {
                Ok(()) => Ok(()),
                Err(_) => Err(match (&mut self.task.0).await {
                    Ok(Err(error)) => error,
                    Ok(Ok(_)) => Error::new(
                        SqlState::BadCopyFileFormat,
                        "received copy data after the end of the data",
                    ),
                    Err(error) => Error::new(SqlState::InternalError, error.to_string()),
                }),
            }
        })
    }

    /// Ends the data and returns the tag; the rows are committed unless a transaction is open.
    ///
    /// # Errors
    /// When the statement fails, which is undone then.
    pub async fn finish(self) -> Result<Tag> {
        self.end(Piece::End).await
    }

    /// Aborts the statement, and returns the error for the client (57014).
    pub async fn fail(self, reason: &str) -> Error {
        match self.end(Piece::Fail(reason.to_owned())).await {
            Err(error) => error,
            Ok(_) => canceled(reason),
        }
    }

    async fn end(mut self, piece: Piece) -> Result<Tag> {
        // Where it has failed before, the task says why.
        let _ = self.sender.send(piece).await;
        let done = (&mut self.task.0).await;
        done.unwrap_or_else(|error| Err(Error::new(SqlState::InternalError, error.to_string())))
    }
}

/// The client gave up.
pub(crate) fn canceled(reason: &str) -> Error {
    Error::new(
        SqlState::QueryCanceled,
        format!("COPY from stdin failed: {reason}"),
    )
}

/// Some rows of `COPY ... TO STDOUT` as bytes. A line of names before them counts as one.
#[derive(Debug, Clone)]
pub struct CopyRows {
    pub(crate) bytes: Bytes,
    /// Where each ends.
    pub(crate) ends: Vec<usize>,
    /// How many of them are rows of the query.
    pub(crate) count: u64,
}

impl CopyRows {
    /// All of them behind each other.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The number of rows, without the line of names.
    pub fn rows(&self) -> u64 {
        self.count
    }

    /// Each by itself, with the end of its line: what PostgreSQL sends as one message, and some of
    /// its clients count upon.
    pub fn each(&self) -> impl Iterator<Item = Bytes> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let rows = starts.zip(&self.ends);
        rows.map(|(start, end)| self.bytes.slice(start..*end))
    }
}

/// Gives the data of `COPY ... TO STDOUT`.
pub struct CopyOut {
    columns: usize,
    chunks: BoxStream<'static, Result<CopyRows>>,
    rows: u64,
}

impl fmt::Debug for CopyOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyOut")
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl CopyOut {
    pub(crate) fn new(columns: usize, chunks: BoxStream<'static, Result<CopyRows>>) -> Self {
        Self {
            columns,
            chunks,
            rows: 0,
        }
    }

    /// How many columns a row has: what PostgreSQL's `CopyOutResponse` tells, each of them as text.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The next rows; `None` at the end. Nothing runs while nobody asks; dropping it stops the
    /// query.
    ///
    /// # Errors
    /// When the query fails. There is nothing after it.
    pub async fn next(&mut self) -> Option<Result<CopyRows>> {
        let rows = self.chunks.next().await?;
        if let Ok(rows) = &rows {
            self.rows += rows.count;
        }
        Some(rows)
    }

    /// The tag so far.
    pub fn tag(&self) -> Tag {
        Tag::Copy(self.rows)
    }
}

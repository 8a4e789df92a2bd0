//! A session's transaction in the writing process, seen from the session.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;

use super::messages::{
    Ask, Opening, SettingValues, Told, Within, damaged, from_bytes, rows_from_bytes,
    schema_from_bytes, to_bytes,
};
use super::{ForwardAnswer, ForwardCalls, MESSAGE_BYTES_MAX};
use crate::copy::CopyRows;
use crate::{Error, Result, SqlState};

/// How long it is tried to reach whoever writes: a new one is there after a second or two.
const OPEN_TIME: Duration = Duration::from_secs(5);
const TRY_EVERY: Duration = Duration::from_millis(50);

/// See the module. The transaction ends with it.
pub(crate) struct Remote {
    calls: Arc<dyn ForwardCalls>,
    process: String,
    within: Within,
    /// As they were told last.
    settings: Mutex<SettingValues>,
    /// The answer to [`Ask::Open`], for as long as the transaction is wanted. Where it ends first,
    /// so has the transaction.
    open: Mutex<ForwardAnswer>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

/// What was answered, message by message.
pub(super) struct Answer {
    messages: ForwardAnswer,
}

impl Remote {
    /// Begins a transaction where the database is written. None as soon as `is_here` says that this
    /// is here now.
    ///
    /// # Errors
    /// When whoever writes is not found for some seconds (57P03), or refuses; nothing was done.
    pub(super) async fn open(
        calls: Arc<dyn ForwardCalls>,
        opening: Opening,
        is_here: impl Fn() -> bool,
    ) -> Result<Option<Self>> {
        let passport = opening.passport.clone();
        let request = to_bytes(&Ask::Open(opening), &[])?;
        let began = Instant::now();
        let mut last = "it is not known who does".to_owned();
        while !is_here() {
            if let Some(process) = calls.writer() {
                match opened(calls.as_ref(), &process, request.clone()).await {
                    Ok(Ok((session, open))) => {
                        return Ok(Some(Self {
                            calls,
                            process,
                            within: Within { session, passport },
                            settings: Mutex::default(),
                            // It may be asked again after its end.
                            open: Mutex::new(open.fuse().boxed()),
                        }));
                    }
                    Ok(Err(refused)) => return Err(refused),
                    Err(away) => last = away,
                }
            }
            if began.elapsed() >= OPEN_TIME {
                let words = "whoever writes this database cannot be reached";
                let error = Error::new(SqlState::CannotConnectNow, words).with_detail(last);
                return Err(error.with_hint("Nothing was changed; try again."));
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
        Ok(None)
    }

    /// What messages about the transaction name it by.
    pub(super) fn within(&self) -> Within {
        self.within.clone()
    }

    /// Fails where the call that opened the transaction has ended: nothing more is asked in it,
    /// whoever answers under the same name by now.
    fn require_open(&self) -> Result<()> {
        match self.open.lock().next().now_or_never() {
            None => Ok(()),
            Some(Some(Err(reason))) => Err(lost(&reason)),
            Some(Some(Ok(_)) | None) => Err(lost("The call that opened it has ended.")),
        }
    }

    /// The settings, if they are others than those that were told last.
    pub(super) fn changed(&self, settings: SettingValues) -> Option<SettingValues> {
        let mut told = self.settings.lock();
        if *told == settings {
            return None;
        }
        told.clone_from(&settings);
        Some(settings)
    }

    /// Asks something within the transaction.
    pub(super) async fn ask(&self, ask: &Ask, behind: &[u8]) -> Result<Answer> {
        let request = to_bytes(ask, behind)?;
        if request.len() > MESSAGE_BYTES_MAX {
            let words = format!(
                "a statement and its values have {} bytes, and go to another process in {MESSAGE_BYTES_MAX} at most",
                request.len()
            );
            let error = Error::new(SqlState::ProgramLimitExceeded, words);
            return Err(error.with_hint("Ask the process that writes, or use COPY."));
        }
        self.require_open()?;
        let messages = self.calls.call(&self.process, request).await;
        let messages = messages.map_err(|reason| lost(&reason))?;
        Ok(Answer { messages })
    }

    /// Asks what has one message as its answer.
    pub(super) async fn ask_one(&self, ask: &Ask, behind: &[u8]) -> Result<(Told, Bytes)> {
        self.ask(ask, behind).await?.expected().await
    }

    /// Commits, and returns once the commit is here, too.
    ///
    /// # Errors
    /// When nothing was committed; and when it is not known whether it was (08007).
    pub(crate) async fn commit(&self) -> Result<()> {
        self.require_open()?;
        let request = to_bytes(&Ask::Commit(self.within()), &[])?;
        let unknown = |reason: String| {
            let words = "the process that writes was lost while it committed";
            Error::new(SqlState::TransactionResolutionUnknown, words)
                .with_detail(reason)
                .with_hint("Look whether the change was made before it is tried again.")
        };
        let answer = self.calls.call(&self.process, request).await;
        let mut messages = answer.map_err(unknown)?;
        let message = match messages.next().await {
            Some(message) => message.map_err(unknown)?,
            None => return Err(unknown("its answer is empty".to_owned())),
        };
        match from_bytes(message)?.0 {
            Told::Committed(commit) => {
                self.calls.wait_for(commit).await;
                Ok(())
            }
            Told::Failed(error) => Err(error),
            other => Err(damaged(&format!("{other:?}"))),
        }
    }
}

/// The session, or why it is refused; else why it may be opened elsewhere.
type Opened = Result<Result<(u64, ForwardAnswer)>, String>;

async fn opened(calls: &dyn ForwardCalls, process: &str, request: Bytes) -> Opened {
    let mut open = calls.call(process, request).await?;
    let message = open.next().await.unwrap_or(Err("nothing".to_owned()))?;
    let (told, _) = from_bytes(message).map_err(|error| error.to_string())?;
    match told {
        Told::Opened(session) => Ok(Ok((session, open))),
        Told::Failed(error) => Ok(Err(error)),
        _ => Err(format!("{process} does not write")),
    }
}

/// The transaction went with the process that had it.
fn lost(reason: &str) -> Error {
    Error::new(
        SqlState::SerializationFailure,
        "the process that writes was lost, and the transaction with it",
    )
    .with_detail(format!("Nothing of it was committed. {reason}"))
    .with_hint("The transaction might succeed if retried.")
}

impl Answer {
    /// The next message, which has to be there: answers say where they end.
    pub(super) async fn expected(&mut self) -> Result<(Told, Bytes)> {
        let message = self.messages.next().await;
        let message = message.ok_or_else(|| damaged(&"the answer is cut off"))?;
        match from_bytes(message.map_err(|reason| lost(&reason))?)? {
            (Told::Failed(error), _) => Err(error),
            told => Ok(told),
        }
    }

    /// The rows that follow.
    pub(super) fn rows(self) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
        futures::stream::try_unfold(self, |mut answer| async move {
            Ok(match answer.expected().await? {
                (Told::End, _) => None,
                (Told::Rows, behind) => Some((rows_from_bytes(&behind)?, answer)),
                (other, _) => return Err(damaged(&format!("{other:?}"))),
            })
        })
    }

    /// The bytes of rows that follow.
    pub(super) fn copied(self) -> impl Stream<Item = Result<CopyRows>> + Send + 'static {
        futures::stream::try_unfold(self, |mut answer| async move {
            Ok(match answer.expected().await? {
                (Told::End, _) => None,
                (Told::Copied { ends, count }, bytes) => {
                    let rows = CopyRows { bytes, ends, count };
                    Some((rows, answer))
                }
                (other, _) => return Err(damaged(&format!("{other:?}"))),
            })
        })
    }

    /// All rows that follow, with the schema that was told before them.
    pub(super) async fn all_rows(self, schema: &Bytes) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let schema = schema_from_bytes(schema)?;
        Ok((schema, self.rows().try_collect().await?))
    }
}

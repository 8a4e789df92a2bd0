//! The rows that a worker gives: run once, read as often as there are readers.

use std::sync::Arc;

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::error::Error;
use crate::language::Translation;
use crate::messages::Sender;
use crate::network::NetworkError;

/// Messages that wait for a single reader.
const AHEAD: usize = 4;

type Message = std::result::Result<Bytes, String>;

/// What messages are made of, and where.
pub(crate) struct Source {
    pub(crate) rows: SendableRecordBatchStream,
    pub(crate) translation: Arc<dyn Translation>,
    pub(crate) pool: Arc<dyn MemoryPool>,
    pub(crate) threads: Handle,
}

/// Ends a task when nobody waits for it any more.
#[derive(Debug)]
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Messages that several read.
pub(crate) struct Kept {
    messages: Mutex<KeptMessages>,
    /// How many there are, and whether that is all.
    state: watch::Receiver<(usize, bool)>,
    _running: Running,
}

struct KeptMessages {
    all: Vec<Message>,
    reservation: MemoryReservation,
}

/// Runs what one reader reads, as fast as it reads.
pub(crate) fn for_one(
    source: Source,
) -> BoxStream<'static, std::result::Result<Bytes, NetworkError>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let threads = source.threads.clone();
    let task = threads.spawn(async move {
        let mut messages = messages(source);
        while let Some(message) = messages.next().await {
            if sender.send(message).await.is_err() {
                return;
            }
        }
    });
    let running = Running(task.abort_handle());
    stream::unfold((receiver, running), |(mut receiver, running)| async {
        let message = receiver.recv().await?;
        Some((message.map_err(NetworkError::Said), (receiver, running)))
    })
    .boxed()
}

impl Kept {
    /// Runs what several read, to its end, and keeps it.
    pub(crate) fn begin(source: Source) -> Arc<Self> {
        let (sender, state) = watch::channel((0, false));
        let reservation =
            MemoryConsumer::new("rows that several workers read").register(&source.pool);
        let threads = source.threads.clone();
        Arc::new_cyclic(|kept: &std::sync::Weak<Self>| {
            let kept = kept.clone();
            let task = threads.spawn(async move {
                let mut messages = messages(source);
                let mut count = 0;
                while let Some(message) = messages.next().await {
                    let Some(kept) = kept.upgrade() else {
                        return;
                    };
                    let has_failed = kept.keep(message);
                    count += 1;
                    _ = sender.send((count, false));
                    if has_failed {
                        break;
                    }
                }
                _ = sender.send((count, true));
            });
            Self {
                messages: Mutex::new(KeptMessages {
                    all: Vec::new(),
                    reservation,
                }),
                state,
                _running: Running(task.abort_handle()),
            }
        })
    }

    /// Keeps a message, and says whether it is the last one because something failed.
    fn keep(&self, message: Message) -> bool {
        let mut messages = self.messages.lock();
        let bytes = message.as_ref().map_or(0, Bytes::len);
        let message = match messages.reservation.try_grow(bytes) {
            Ok(()) => message,
            Err(error) => Err(Error::to_text(&error)),
        };
        let has_failed = message.is_err();
        messages.all.push(message);
        has_failed
    }

    /// All messages, from the first on.
    pub(crate) fn read(
        self: &Arc<Self>,
    ) -> BoxStream<'static, std::result::Result<Bytes, NetworkError>> {
        let state = self.state.clone();
        stream::unfold(
            (Arc::clone(self), state, 0),
            |(kept, mut state, at)| async move {
                loop {
                    let (count, is_all) = *state.borrow_and_update();
                    if at < count {
                        let message = kept.messages.lock().all.get(at).cloned()?;
                        let message = message.map_err(NetworkError::Said);
                        return Some((message, (kept, state, at + 1)));
                    }
                    if is_all {
                        return None;
                    }
                    // The task ended without a word: it was given up.
                    if state.changed().await.is_err() {
                        let given_up = NetworkError::Said("the query was given up".to_owned());
                        return Some((Err(given_up), (kept, state, usize::MAX)));
                    }
                }
            },
        )
        .boxed()
    }
}

/// The messages of rows: an end, or an error, is the last one.
fn messages(source: Source) -> BoxStream<'static, Message> {
    let made: Result<Sender> = Sender::new(&source.rows.schema(), source.translation.outgoing());
    let sender = match made {
        Ok(sender) => sender,
        Err(error) => return stream::iter([Err(Error::to_text(&error))]).boxed(),
    };
    stream::unfold(Some((source.rows, sender)), |state| async move {
        let (mut rows, mut sender) = state?;
        loop {
            let message: Result<Bytes, DataFusionError> = match rows.next().await {
                None => return Some((Ok(sender.end()), None)),
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => sender.rows(&batch),
                Some(Err(error)) => Err(error),
            };
            return Some(match message {
                Ok(message) => (Ok(message), Some((rows, sender))),
                Err(error) => (Err(Error::to_text(&error)), None),
            });
        }
    })
    .boxed()
}

//! The output of a worker's stage: computed once, read by several readers.

use std::sync::Arc;

use arrow::array::RecordBatch;
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

use crate::error::{Error, of_network};
use crate::language::{Incoming, Translation};
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

/// What is made of a batch: the message, and for readers in this process the note and the batch
/// itself. An end, or an error, has no rows.
#[derive(Clone)]
struct Made {
    message: Message,
    rows: Option<(Bytes, RecordBatch)>,
}

/// Rows that several read.
pub(crate) struct Kept {
    messages: Arc<KeptMessages>,
    /// How many there are, and whether that is all.
    state: watch::Receiver<(usize, bool)>,
    _running: Running,
}

/// As many as there are so far, and what holds their memory.
struct KeptMessages {
    all: Mutex<Vec<Made>>,
    reservation: MemoryReservation,
}

/// Runs what one reader reads, as fast as it reads.
pub(crate) fn for_one(
    source: Source,
) -> BoxStream<'static, std::result::Result<Bytes, NetworkError>> {
    let threads = source.threads.clone();
    let messages = made(source).map(|made| made.message.map_err(NetworkError::Said));
    ahead_of_reader(&threads, messages.boxed())
}

/// The same for a reader in this process: rows that are not written down in between. What they mean
/// to the reader may be something else, as in another process: it may have a plan of its own.
pub(crate) fn for_one_here(
    source: Source,
    mut incoming: Box<dyn Incoming>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let mut outgoing = source.translation.outgoing();
    let rows = source.rows.map(move |batch| {
        let batch = batch?;
        incoming.learn(&outgoing.note(&batch)?)?;
        incoming.batch(batch)
    });
    ahead_of_reader(&source.threads, rows.boxed())
}

/// Makes items in a task of their own, a few more than are read.
fn ahead_of_reader<T: Send + 'static>(
    threads: &Handle,
    mut items: BoxStream<'static, T>,
) -> BoxStream<'static, T> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let task = threads.spawn(async move {
        while let Some(item) = items.next().await {
            if sender.send(item).await.is_err() {
                return;
            }
        }
    });
    let running = Running(task.abort_handle());
    stream::unfold((receiver, running), |(mut receiver, running)| async {
        let item = receiver.recv().await?;
        Some((item, (receiver, running)))
    })
    .boxed()
}

impl Kept {
    /// Runs what several read, to its end, and keeps it.
    pub(crate) fn begin(source: Source) -> Self {
        let (sender, state) = watch::channel((0, false));
        let reservation =
            MemoryConsumer::new("rows that several workers read").register(&source.pool);
        let messages = Arc::new(KeptMessages {
            all: Mutex::default(),
            reservation,
        });
        let (threads, kept) = (source.threads.clone(), Arc::clone(&messages));
        let task = threads.spawn(async move {
            let mut made = made(source);
            let mut count = 0;
            while let Some(made) = made.next().await {
                kept.keep(made);
                count += 1;
                _ = sender.send((count, false));
            }
            _ = sender.send((count, true));
        });
        Self {
            messages,
            state,
            _running: Running(task.abort_handle()),
        }
    }

    /// All messages, from the first on.
    pub(crate) fn read(
        self: &Arc<Self>,
    ) -> BoxStream<'static, std::result::Result<Bytes, NetworkError>> {
        let all = self.all();
        all.map(|made| made.message.map_err(NetworkError::Said))
            .boxed()
    }

    /// All rows, from the first on, for a reader in this process.
    pub(crate) fn read_here(
        self: &Arc<Self>,
        here: String,
        mut incoming: Box<dyn Incoming>,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let rows = self.all().filter_map(move |made| {
            let batch = match (made.message, made.rows) {
                (Err(text), _) => Some(Err(of_network(&here, NetworkError::Said(text)))),
                (Ok(_), None) => None,
                (Ok(_), Some((note, batch))) => {
                    let known = incoming.learn(&note);
                    Some(known.and_then(|()| incoming.batch(batch)))
                }
            };
            std::future::ready(batch)
        });
        rows.boxed()
    }

    fn all(self: &Arc<Self>) -> BoxStream<'static, Made> {
        let state = self.state.clone();
        stream::unfold(
            (Arc::clone(self), state, 0),
            |(kept, mut state, at)| async move {
                loop {
                    let (count, is_all) = *state.borrow_and_update();
                    if at < count {
                        let made = kept.messages.all.lock().get(at).cloned()?;
                        return Some((made, (kept, state, at + 1)));
                    }
                    if is_all {
                        return None;
                    }
                    // The task ended without a word: it was given up.
                    if state.changed().await.is_err() {
                        let given_up = failed("the query was given up".to_owned());
                        return Some((given_up, (kept, state, usize::MAX)));
                    }
                }
            },
        )
        .boxed()
    }
}

impl KeptMessages {
    /// Keeps a message and its rows, which are about as large; an error in its place if there is no
    /// room, with which its readers end.
    fn keep(&self, made: Made) {
        let bytes = made.message.as_ref().map_or(0, Bytes::len);
        let made = match self.reservation.try_grow(2 * bytes) {
            Ok(()) => made,
            Err(error) => failed(Error::to_text(&error)),
        };
        self.all.lock().push(made);
    }
}

fn failed(text: String) -> Made {
    Made {
        message: Err(text),
        rows: None,
    }
}

/// What is made of rows: an end, or an error, is the last one.
fn made(source: Source) -> BoxStream<'static, Made> {
    let sender: Result<Sender> = Sender::new(&source.rows.schema(), source.translation.outgoing());
    let sender = match sender {
        Ok(sender) => sender,
        Err(error) => return stream::iter([failed(Error::to_text(&error))]).boxed(),
    };
    stream::unfold(Some((source.rows, sender)), |state| async move {
        let (mut rows, mut sender) = state?;
        loop {
            let made: Result<Made, DataFusionError> = match rows.next().await {
                None => {
                    let end = Made {
                        message: Ok(sender.end()),
                        rows: None,
                    };
                    return Some((end, None));
                }
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => sender.rows(&batch).map(|(message, note)| Made {
                    message: Ok(message),
                    rows: Some((note, batch)),
                }),
                Some(Err(error)) => Err(error),
            };
            return Some(match made {
                Ok(made) => (made, Some((rows, sender))),
                Err(error) => (failed(Error::to_text(&error)), None),
            });
        }
    })
    .boxed()
}

//! Bulk loads shared among the nodes of a cluster (`orrery_loader`): the writing node coordinates,
//! the others parse.
//!
//! ```text
//! a large document ── bulk load ── blocks of text ──> other nodes: parse, sort   LoadHelp::answer
//!                        ^                                  |
//!                        └──────────── batches <────────────┘                    NodeWorker
//! ```
//!
//! A helping node reserves memory of its engine while it works, and spills to its temporary
//! directory beyond that. A node that cannot help, or is lost, only costs time: another node, or
//! the coordinator, does its share.

use std::fmt;
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use orrery_distributed::{Answer, Network};
use orrery_loader::{LoadWorker, LoadWorkers, WorkPieces, WorkerPlace, answer_load_request};
use orrery_sparql::Engine;
use orrery_storage::io::LocalFileSystem;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::cluster::nodes::{Cluster, Work};

/// Smallest document, in bytes, that is shared among nodes.
const HELPED_BYTES_MIN: u64 = 8 << 20;
/// Bytes of text per request.
const REQUEST_BYTES: usize = 2 << 20;
/// Memory of a node for a share of a load: this fraction of its total, within these bounds.
const MEMORY_PART: u64 = 8;
const MEMORY_BYTES_MIN: u64 = 64 << 20;
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Messages of an answer that may wait for the network.
const AHEAD: usize = 4;
/// Bytes per message of an answer.
const MESSAGE_BYTES: usize = 256 << 10;

/// This node's help for loads of other nodes.
pub struct LoadHelp {
    engine: Arc<Engine>,
    threads: Handle,
    /// Number of shares done.
    answered: AtomicU64,
}

impl fmt::Debug for LoadHelp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadHelp").finish_non_exhaustive()
    }
}

impl LoadHelp {
    /// Creates the help of a node that computes on these threads.
    pub fn new(engine: &Arc<Engine>, threads: &Handle) -> Self {
        Self {
            engine: Arc::clone(engine),
            threads: threads.clone(),
            answered: AtomicU64::new(0),
        }
    }

    /// Number of shares of other nodes' loads done here.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Registers this node as a helper of the others.
    pub fn answer(self: &Arc<Self>, cluster: &dyn Cluster) -> Result<(), String> {
        let help = Arc::clone(self);
        cluster.answer(
            Work::Loads,
            Arc::new(move |request| help.answer_one(request)),
        )
    }

    fn answer_one(self: &Arc<Self>, request: Bytes) -> BoxStream<'static, Result<Bytes, String>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let help = Arc::clone(self);
        self.threads.spawn_blocking(move || {
            let mut messages = Messages {
                sender,
                bytes: Vec::new(),
            };
            match help.done(&request, &mut messages) {
                Ok(()) => _ = help.answered.fetch_add(1, Ordering::Relaxed),
                Err(error) => {
                    tracing::debug!("a share of a load is not done here: {error}");
                    // A receiver that is gone needs no error.
                    _ = messages.sender.blocking_send(Err(error));
                }
            }
        });
        stream::unfold(receiver, |mut receiver| async move {
            let message = receiver.recv().await?;
            Some((message, receiver))
        })
        .boxed()
    }

    fn done(&self, request: &[u8], messages: &mut Messages) -> Result<(), String> {
        let options = self.engine.options();
        let part = options.memory_bytes / MEMORY_PART;
        let memory_bytes = part.clamp(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX);
        let memory = self.engine.hold_memory("a share of another node's load");
        let held = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        memory.resize(held).map_err(|error| error.to_string())?;
        let directory = tempfile::Builder::new()
            .prefix("load-share-")
            .tempdir_in(&options.temp_dir)
            .map_err(|error| error.to_string())?;
        let place = WorkerPlace {
            files: Arc::new(LocalFileSystem),
            directory: directory.path().join("stage"),
            memory_bytes,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        };
        answer_load_request(request, &place, messages).map_err(|error| error.to_string())?;
        messages.flush().map_err(|error| error.to_string())
    }

    /// The other nodes, as workers for a document of this many bytes; none if there are none or
    /// sharing does not pay.
    pub fn others(&self, cluster: Option<&Arc<dyn Cluster>>, bytes: u64) -> Option<LoadWorkers> {
        let network = cluster
            .filter(|_| bytes >= HELPED_BYTES_MIN)?
            .network(Work::Loads);
        let here = network.here();
        let mut others: Vec<Arc<dyn LoadWorker>> = Vec::new();
        for member in network.members() {
            if member != here {
                others.push(Arc::new(NodeWorker {
                    network: Arc::clone(&network),
                    member,
                    threads: self.threads.clone(),
                }));
            }
        }
        let pieces = WorkPieces {
            request_bytes: REQUEST_BYTES,
            ..WorkPieces::default()
        };
        // Sorting rows elsewhere costs the coordinator about as much as it saves (decision 0064).
        (!others.is_empty()).then(|| LoadWorkers::new(others, false, pieces))
    }
}

/// A writer that sends an answer as messages.
struct Messages {
    sender: mpsc::Sender<Result<Bytes, String>>,
    bytes: Vec<u8>,
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= MESSAGE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let message = Bytes::from(std::mem::take(&mut self.bytes));
        let sent = self.sender.blocking_send(Ok(message));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads the answer"))
    }
}

/// Another node, as a worker of a load.
struct NodeWorker {
    network: Arc<dyn Network>,
    member: String,
    threads: Handle,
}

impl LoadWorker for NodeWorker {
    fn name(&self) -> String {
        format!("node {}", self.member)
    }

    fn request(&self, request: Vec<u8>) -> io::Result<Box<dyn Read + Send>> {
        let calling = self.network.call(&self.member, request.into());
        let answer = self.threads.block_on(calling).map_err(io::Error::other)?;
        Ok(Box::new(AnswerReader {
            answer,
            threads: self.threads.clone(),
            message: Bytes::new(),
        }))
    }
}

/// A reader of an answer's bytes. The transport bounds how long it waits.
struct AnswerReader {
    answer: Answer,
    threads: Handle,
    message: Bytes,
}

impl Read for AnswerReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.message.is_empty() {
            match self.threads.block_on(self.answer.next()) {
                Some(Ok(message)) => self.message = message,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let bytes = self.message.len().min(out.len());
        out[..bytes].copy_from_slice(&self.message.split_to(bytes));
        Ok(bytes)
    }
}

//! The query log: one line of JSON per query, update or SQL request, written after its end.
//!
//! ```text
//! request -> QueryRecord -- its end --> bounded channel
//!     -> one thread: shape, JSON, files by day and size
//! ```
//!
//! - **No request waits**: an entry that finds the channel full is dropped and counted, and the
//!   number is written as soon as there is room.
//! - **A failing disk** costs entries, which are counted, too; the server's log reports the first
//!   failure, and the disk is tried again after `RETRY_AFTER`.
//! - **Its size is bounded**: the oldest files are removed when all together would exceed the
//!   bound.
//! - **No secrets**: `Authorization` is never read; names and passwords in URLs of a text are
//!   struck out before it is written.
//!
//! Without a log, the cost per request is one check. `orrery_query_log` defines the format of
//! entries.

mod files;
mod message;
mod options;
mod record;
mod strike;
#[cfg(test)]
mod tests;
mod writer;

pub use options::{QUERY_LOG_BYTES_MIN, QueryLogOptions};
pub use record::{AtCommit, QueryRecord};

use crate::query_log::files::LocalFiles;
use crate::query_log::message::{Counts, Message, bytes_of};
use crate::query_log::writer::Writer;
use orrery_query_log::{Entry, Time};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Entries that may wait for the writer.
const WAITING_MAX: usize = 8192;
/// Bytes of texts that may wait for the writer.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// The client's address: that of the connection, or as a trusted proxy reports it; in the
/// extensions of requests where it is needed.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The sending side of the query log.
#[derive(Debug)]
pub struct QueryLog {
    sender: SyncSender<Message>,
    counts: Arc<Counts>,
    slow: Option<Duration>,
    /// None once the thread has ended.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl QueryLog {
    /// Opens the directory, and starts the writing thread.
    ///
    /// # Errors
    /// When the directory cannot be created or read.
    pub fn start(options: &QueryLogOptions) -> io::Result<Self> {
        let directory = &options.directory;
        let files = LocalFiles::open(directory.clone());
        let writer = files.and_then(|files| {
            let clock = Box::new(Time::now);
            Writer::new(Box::new(files), clock, options)
        });
        let writer = writer.map_err(|error| {
            let text = format!("the query log in {}: {error}", directory.display());
            io::Error::new(error.kind(), text)
        })?;
        Self::with_writer(writer, options.slow)
    }

    fn with_writer(writer: Writer, slow: Option<Duration>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let counts = Arc::new(Counts::default());
        let of_writer = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("orrery-query-log".to_owned());
        let thread = thread.spawn(move || writer.run(&receiver, &of_writer))?;
        Ok(Self {
            sender,
            counts,
            slow,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// Sends an entry to the writing thread, if there is room.
    fn add(&self, entry: Box<Entry>) {
        let bytes = bytes_of(&entry);
        let counts = &self.counts;
        let before = counts.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_sent = before + bytes <= WAITING_BYTES_MAX
            && match self.sender.try_send(Message::Entry(entry)) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
            };
        if !is_sent {
            counts.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            counts.dropped.fetch_add(1, Ordering::Relaxed);
            counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Entries lost since the start.
    pub fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::Relaxed)
    }

    /// Writes all waiting entries, including those of requests that are ending, and stops the
    /// thread. Blocks.
    pub fn finish(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.take() else {
            return;
        };
        // A closed channel, or a thread that panicked, has nothing left to write.
        if self.sender.send(Message::Finish).is_ok() && writer.join().is_err() {
            tracing::error!("the query log's thread has panicked; its last entries are lost");
        }
    }
}

//! Messages from requests to the query log's writer, and the counters that both share.

use orrery_query_log::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes counted for an entry beside its texts.
const ENTRY_BYTES: usize = 512;

/// Whether all requests have brought their entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finished {
    All,
    NotAll,
}

/// Counters shared by records and the writer.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) waiting_bytes: AtomicUsize,
    /// Lost entries that the log does not mention yet.
    pub(crate) dropped: AtomicU64,
    /// Entries lost since the start.
    pub(crate) lost: AtomicU64,
    /// Requests that have not ended.
    pub(crate) open: AtomicUsize,
}

/// A message of the channel.
#[derive(Debug)]
pub(crate) enum Message {
    Entry(Box<Entry>),
    /// The end: only entries of requests that are ending may follow.
    Finish,
}

/// Bytes counted for a waiting entry.
pub(crate) fn bytes_of(entry: &Entry) -> usize {
    ENTRY_BYTES + entry.text.len() + entry.plan.as_ref().map_or(0, String::len)
}

impl Counts {
    /// Counts an entry that the writer has taken out.
    pub(crate) fn taken(&self, entry: &Entry) {
        let bytes = bytes_of(entry);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether all requests have ended.
    pub(crate) fn finished(&self) -> Finished {
        match self.open.load(Ordering::Acquire) {
            0 => Finished::All,
            _ => Finished::NotAll,
        }
    }
}

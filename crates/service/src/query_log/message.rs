//! What requests tell the thread that writes, and what is counted between them.

use orrery_query_log::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What an entry is counted as beside its texts.
const ENTRY_BYTES: usize = 512;

/// Whether requests may still bring entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finished {
    All,
    NotAll,
}

/// What records and the writer tell each other.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) waiting_bytes: AtomicUsize,
    /// Entries that were lost and are not written as such.
    pub(crate) dropped: AtomicU64,
    /// All that were lost since the start.
    pub(crate) lost: AtomicU64,
    /// Requests that are not at their end.
    pub(crate) open: AtomicUsize,
}

/// What goes through the channel.
#[derive(Debug)]
pub(crate) enum Message {
    Entry(Box<Entry>),
    /// No more are to come but those of requests that are ending.
    Finish,
}

/// What an entry is counted as while it waits.
pub(crate) fn bytes_of(entry: &Entry) -> usize {
    ENTRY_BYTES + entry.text.len() + entry.plan.as_ref().map_or(0, String::len)
}

impl Counts {
    /// The writer has taken an entry out.
    pub(crate) fn taken(&self, entry: &Entry) {
        let bytes = bytes_of(entry);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether all requests are at their end.
    pub(crate) fn finished(&self) -> Finished {
        match self.open.load(Ordering::Acquire) {
            0 => Finished::All,
            _ => Finished::NotAll,
        }
    }
}

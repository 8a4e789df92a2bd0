//! Counters of requests to the store.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::CacheCounts;

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// An object is put, or a part of one.
    Put,
    /// An object is put only if there is none, or only in place of one that is known.
    PutIf,
    /// An object, or a range of one, is read.
    Get,
    /// What there is of an object is asked: its length, its time.
    Head,
    /// The objects below a name are listed.
    List,
    /// An object is deleted.
    Delete,
}

impl RequestKind {
    /// All of them, in the order of [`ObjectCounts::requests`].
    pub const ALL: [Self; 6] = [
        Self::Put,
        Self::PutIf,
        Self::Get,
        Self::Head,
        Self::List,
        Self::Delete,
    ];

    /// Its name, for figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::PutIf => "put_if",
            Self::Get => "get",
            Self::Head => "head",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }
}

/// Counters of an object store's requests, and of the cache.
#[derive(Debug, Clone)]
pub struct ObjectCounts {
    /// Requests by [`RequestKind::ALL`], each try counted.
    pub requests: [u64; RequestKind::ALL.len()],
    /// Requests that ended with an error or without an answer. An object that is not there, or a
    /// condition that did not hold, is an answer.
    pub failed: u64,
    /// Requests that were made once more.
    pub retried: u64,
    /// Bytes of objects that were put.
    pub bytes_sent: u64,
    /// Bytes of objects that were read.
    pub bytes_received: u64,
    /// What the cache holds and did.
    pub cache: CacheCounts,
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    requests: [AtomicU64; RequestKind::ALL.len()],
    failed: AtomicU64,
    retried: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
}

impl Counting {
    pub(crate) fn asked(&self, kind: RequestKind) {
        add(&self.requests[kind as usize], 1);
    }

    pub(crate) fn failed(&self) {
        add(&self.failed, 1);
    }

    pub(crate) fn retried(&self) {
        add(&self.retried, 1);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.bytes_sent, bytes as u64);
    }

    pub(crate) fn received(&self, bytes: usize) {
        add(&self.bytes_received, bytes as u64);
    }

    /// The figures now.
    pub(crate) fn now(&self, cache: CacheCounts) -> ObjectCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ObjectCounts {
            requests: RequestKind::ALL.map(|kind| of(&self.requests[kind as usize])),
            failed: of(&self.failed),
            retried: of(&self.retried),
            bytes_sent: of(&self.bytes_sent),
            bytes_received: of(&self.bytes_received),
            cache,
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

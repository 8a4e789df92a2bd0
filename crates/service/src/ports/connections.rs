//! The connections of a listener, counted for whoever watches the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub struct Connections {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// One that is open, until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<Connections>);

impl Connections {
    /// Counts one that was accepted.
    pub fn accept(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Counts one that was turned away before it could ask anything.
    pub fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Those that are open.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Those that were ever accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Those that were turned away.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

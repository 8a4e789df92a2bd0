//! A counter of the touches of one node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sum that all executions of a node add to.
#[derive(Clone, Debug, Default)]
pub(crate) struct TouchCounter(Arc<AtomicU64>);

/// What one of its users has counted and not added yet: where partitions count row by row, they
/// would wait for each other's caches.
#[derive(Debug)]
pub(crate) struct LocalTouches {
    counter: TouchCounter,
    count: u64,
}

/// Touches that may be missing in the sum for a while.
const LOCAL_MAX: u64 = 4_096;

impl TouchCounter {
    /// The sum so far.
    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, touches: u64) {
        self.0.fetch_add(touches, Ordering::Relaxed);
    }

    /// For one user.
    pub(crate) fn local(&self) -> LocalTouches {
        LocalTouches {
            counter: self.clone(),
            count: 0,
        }
    }
}

impl LocalTouches {
    #[inline]
    pub(crate) fn add(&mut self, touches: u64) {
        self.count += touches;
        if self.count >= LOCAL_MAX {
            self.counter.add(std::mem::take(&mut self.count));
        }
    }
}

impl Drop for LocalTouches {
    fn drop(&mut self) {
        self.counter.add(self.count);
    }
}

//! The flag that a session's commit has begun.
//!
//! A commit that has begun goes on, whoever waits for it, so no client may be told that it was
//! canceled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A look at the commits of a session, for whoever might stop its statements.
#[derive(Debug, Clone, Default)]
pub struct Committing(Arc<AtomicUsize>);

impl Committing {
    /// Whether one has begun and is not done: its statement has to be waited for.
    pub fn is_begun(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Begins a commit, which is over when the returned guard is dropped.
    #[must_use]
    pub fn begin(&self) -> Begun {
        self.0.fetch_add(1, Ordering::AcqRel);
        Begun(Arc::clone(&self.0))
    }
}

/// A commit that has begun.
#[derive(Debug)]
pub struct Begun(Arc<AtomicUsize>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

//! The busy-thread limit of an engine's queries.
//!
//! Every running query counts as one, whatever happens: queries are never held up here. What a
//! query may have beyond that, threads that share its work, comes out of what the others leave of
//! the machine; under load each query works on one thread, and they do not fight for the cores.
//! Nothing waits and nothing is handed over: who has an extra thread asks now and then whether
//! there are still enough ([`Workers::is_crowded`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the threads at work; see the module's documentation.
#[derive(Debug)]
pub struct Workers {
    threads: usize,
    busy: AtomicUsize,
}

/// A thread at work, until dropped.
#[derive(Debug)]
pub struct Busy {
    workers: Arc<Workers>,
}

impl Workers {
    /// For this many threads, at least one.
    pub fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            threads: threads.max(1),
            busy: AtomicUsize::new(0),
        })
    }

    /// As many threads as the machine has cores.
    pub fn of_machine() -> Arc<Self> {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// How many threads may be busy.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Counts a query that runs, even if there are too many.
    pub fn begin_query(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy {
            workers: Arc::clone(self),
        }
    }

    /// Counts a further thread of a query, if one is free.
    pub fn try_extra(self: &Arc<Self>) -> Option<Busy> {
        let take = |busy: usize| (busy < self.threads).then_some(busy + 1);
        self.busy
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .ok()
            .map(|_| Busy {
                workers: Arc::clone(self),
            })
    }

    /// Whether more threads are busy than there should be: then extra ones are to stop.
    pub fn is_crowded(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > self.threads
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.workers.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_threads_come_out_of_what_the_queries_leave() {
        let workers = Workers::new(2);
        let query = workers.begin_query();
        let extra = workers.try_extra();
        assert!(extra.is_some());
        assert!(workers.try_extra().is_none());
        assert!(!workers.is_crowded());
        let other = workers.begin_query();
        assert!(workers.is_crowded());
        drop(extra);
        assert!(!workers.is_crowded());
        assert!(workers.try_extra().is_none());
        drop((query, other));
        assert!(workers.try_extra().is_some());
    }
}

//! The thread pool that queries run on, separate from the HTTP threads.
//!
//! A query computes for long stretches between two awaits: one call into an operator may sort or
//! aggregate millions of rows. On the HTTP threads that would delay `/health` and all connections;
//! on a pool of one thread per core, two heavy queries would delay all cheap ones. So there are as
//! many threads as queries may run, and the operating system shares the cores among them
//! preemptively: a point query that wakes up beside a heavy one gets its time slice at once. Idle
//! threads cost nothing but address space. `docs/decisions/0007-query-threads.md` has the figures.

use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

/// Stack size of a query thread: operators call each other as deep as the query is nested. Pages
/// that are never touched cost nothing.
pub const STACK_BYTES: usize = 16 << 20;

/// A runtime for queries, shut down without waiting when dropped.
#[derive(Debug)]
pub struct QueryThreads {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl QueryThreads {
    /// Starts the threads for this many concurrent queries.
    pub fn start(queries_running_max: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            // One for the transaction with the writers' turn, and one more than can be busy: a
            // thread must be free for the timeouts.
            .worker_threads(queries_running_max + 2)
            .thread_name("orrery-query")
            .thread_stack_size(STACK_BYTES)
            // SERVICE talks to other machines from here.
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// A handle to the threads' tokio runtime.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for QueryThreads {
    /// Dropping a runtime would wait for its threads, which async code must not do.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

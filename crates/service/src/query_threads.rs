//! The threads that queries run on, apart from those that speak HTTP.
//!
//! A query computes for long stretches between two awaits: one call into an operator
//! may sort or aggregate millions of rows. On the HTTP threads that would hold up
//! `/health` and everyone's connection. On a pool of one thread per core, two heavy queries
//! would hold up every cheap one. So there are as many threads as queries may run, and the
//! operating system, which can interrupt, shares the cores among them: a
//! point query that wakes up beside a heavy one gets its time slice at once. Threads without
//! work cost nothing but address space. `docs/decisions/0007-query-threads.md` has the figures.

use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

/// Stack of a thread that runs queries: operators call each other as deep as the query is nested.
/// Pages that are never touched cost nothing.
pub const STACK_BYTES: usize = 16 << 20;

/// A runtime for queries, given up without waiting when dropped.
#[derive(Debug)]
pub struct QueryThreads {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl QueryThreads {
    /// Threads for this many queries at a time.
    pub fn start(queries_running_max: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            // One for who has the writers' turn, and one more than can be busy: somebody must watch the clock for the timeouts.
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

    /// Where tokio runs on these threads.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for QueryThreads {
    /// Dropping a runtime waits for its threads, which async code may not do.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

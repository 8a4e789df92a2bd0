//! The runtime threads of store requests, and blocking waits for them.
//!
//! The storage's code is synchronous, and runs on threads of other runtimes too, where waiting for
//! a future is forbidden. So requests run as tasks of a runtime of their own, one for the process,
//! and whoever wants an answer waits at a channel.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Asked, ObjectError};

const WORKER_THREADS: usize = 2;

/// The runtime for all databases of the process. It ends with the process.
pub(crate) fn handle() -> Asked<Handle> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .thread_name("object-store")
            .enable_all()
            .build()
    });
    match runtime {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(error) => Err(ObjectError::Task {
            what: error.to_string(),
        }),
    }
}

/// Runs a future there, and waits for its outcome on this thread. Not to be called from a task of
/// that runtime.
pub(crate) fn wait<T: Send + 'static>(
    runtime: &Handle,
    future: impl Future<Output = Asked<T>> + Send + 'static,
) -> Asked<T> {
    let (sender, receiver) = sync_channel(1);
    runtime.spawn(async move {
        // Whoever waited may have gone.
        let _ignored = sender.send(future.await);
    });
    receiver.recv().unwrap_or_else(|_| {
        Err(ObjectError::Task {
            what: "it panicked, or the process is ending".to_owned(),
        })
    })
}

//! Joining of threads, with their panics as errors.

use std::thread;

/// What a thread gave; its panic is ours.
pub(crate) fn joined<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

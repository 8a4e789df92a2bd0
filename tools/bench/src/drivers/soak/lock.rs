//! Locks that survive panicked threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that panicked leaves what it held as it was.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

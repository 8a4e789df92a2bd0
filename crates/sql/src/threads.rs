//! Work that must not keep other tasks waiting.

use crate::{Error, Result, SqlState};

/// Does what may wait for the disk or for others where no other task is kept waiting by it.
pub(crate) async fn on_own_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::new(SqlState::InternalError, error.to_string())))
}

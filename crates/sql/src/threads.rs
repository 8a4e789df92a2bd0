//! Work that must not keep other tasks waiting.

use crate::stopping::StopOnDrop;
use crate::{Error, Result, SqlState};

/// Does what may wait for the disk or for others, or compute for long, where no other task is kept waiting by it. Functions that it calls end when what is returned is dropped.
pub(crate) async fn on_own_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let stop = StopOnDrop::default();
    let to_name = stop.to_name();
    let done = tokio::task::spawn_blocking(move || {
        let _named = to_name.named();
        work()
    });
    let done = done.await;
    drop(stop);
    done.unwrap_or_else(|error| Err(Error::new(SqlState::InternalError, error.to_string())))
}

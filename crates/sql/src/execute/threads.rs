//! Heavy work moved to other threads, so that tasks do not wait.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::execute::stopping::{StopOnDrop, require_somebody_here};
use crate::{Error, Result, SqlState};

/// Does what may wait for the disk or for others, or compute for long, where no other task is kept
/// waiting by it. Functions that it calls end when what is returned is dropped, and so does what
/// asks [`require_waited_for`].
pub(crate) async fn on_own_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let done = Arc::new(Mutex::new(None));
    let place = Arc::clone(&done);
    boxed_on_own_thread(Box::new(move || *place.lock() = Some(work()))).await?;
    let done = done.lock().take();
    done.unwrap_or_else(|| Err(Error::new(SqlState::InternalError, "the work was not done")))
}

/// The untyped part of [`on_own_thread`], whose work stores its own result: a task for each type of
/// work would compile a copy of the runtime's task code.
fn boxed_on_own_thread(work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let stop = StopOnDrop::default();
        let to_name = stop.to_name();
        let done = tokio::task::spawn_blocking(move || {
            let _named = to_name.named();
            work();
        });
        let done = done.await;
        drop(stop);
        done.map_err(|error| Error::new(SqlState::InternalError, error.to_string()))
    })
}

/// For work on such a thread that no plan does: to be asked every few milliseconds.
///
/// # Errors
/// When nobody waits for it any more.
pub(crate) fn require_waited_for() -> Result<()> {
    require_somebody_here().map_err(|error| Error::of_run(&error))
}

/// The same for work that waits for others in between: it ends there, too, when what is returned is
/// dropped.
pub(crate) async fn waiting_on_own_thread<R, W>(
    work: impl FnOnce() -> W + Send + 'static,
) -> Result<R>
where
    R: Send + 'static,
    W: Future<Output = Result<R>>,
{
    let (held, is_dropped) = oneshot::channel::<Infallible>();
    let threads = Handle::current();
    let done = on_own_thread(move || {
        threads.block_on(async {
            tokio::select! {
                biased;
                _ = is_dropped => Err(Error::new(
                    SqlState::QueryCanceled,
                    "nobody waits for this statement any more",
                )),
                done = work() => done,
            }
        })
    });
    let done = done.await;
    drop(held);
    done
}

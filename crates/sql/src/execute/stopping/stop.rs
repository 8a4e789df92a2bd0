//! The stop flag of an execution, and the threads that watch it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{Result, exec_err};
use datafusion::execution::TaskContext;

/// Whether an execution is over, for who cannot be told otherwise.
#[derive(Debug, Default)]
pub(super) struct Stop(AtomicBool);

impl Stop {
    pub(super) fn require_not_set(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => exec_err!("nobody waits for these rows any more"),
            false => Ok(()),
        }
    }
}

thread_local! {
    /// Of what this thread is at.
    static CURRENT: RefCell<Option<Arc<Stop>>> = const { RefCell::new(None) };
}

/// Names a Stop to its thread until it is dropped.
#[derive(Debug)]
pub(crate) struct Named {
    before: Option<Arc<Stop>>,
}

impl Named {
    pub(super) fn new(stop: &Arc<Stop>) -> Self {
        let before = CURRENT.replace(Some(Arc::clone(stop)));
        Self { before }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// # Errors
/// When nobody waits any more for what this thread is at, as far as that was named to it.
pub(crate) fn require_somebody_here() -> Result<()> {
    CURRENT.with_borrow(|stop| stop.as_ref().map_or(Ok(()), |stop| stop.require_not_set()))
}

/// A Stop for who has to name it to a thread.
#[derive(Debug, Clone)]
pub(crate) struct ToName(Arc<Stop>);

impl ToName {
    /// That of the execution of a task.
    pub(crate) fn of(task: &TaskContext) -> Option<Self> {
        task.session_config().get_extension().map(Self)
    }

    pub(crate) fn named(&self) -> Named {
        Named::new(&self.0)
    }

    /// # Errors
    /// When nobody waits any more.
    pub(crate) fn require_somebody(&self) -> Result<()> {
        self.0.require_not_set()
    }
}

/// Ends an execution, or what a thread is at, when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(Arc<Stop>);

impl StopOnDrop {
    pub(super) fn stop(&self) -> &Arc<Stop> {
        &self.0
    }

    pub(crate) fn to_name(&self) -> ToName {
        ToName(Arc::clone(&self.0))
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

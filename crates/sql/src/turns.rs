//! The door before the threads of queries, as listeners see it.

use std::any::Any;

use futures::future::BoxFuture;

/// The right to compute, given up when dropped.
pub type Turn = Box<dyn Any + Send>;

/// Who may compute now: the door before the query threads.
pub trait Turns: Send + Sync + 'static {
    /// Waits for a turn; one sentence where there is none to be had.
    fn turn(&self) -> BoxFuture<'_, Result<Turn, String>>;
}

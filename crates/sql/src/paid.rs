//! A statement that whoever asks pays for while it works: what listeners for clients hold to, as requests over HTTP do.
//!
//! ```text
//! session.set_spending(Some(paid.spending()))
//! select! { done = statement and its rows => ..., error = paid.exceeded() => the statement is dropped, the client told }
//! ```

use std::sync::Arc;

use futures::future::BoxFuture;
use orrery_runtime::Spending;

use crate::Error;

/// See the module.
pub trait PaidStatement: Send + Sync {
    /// What counts it, and where its memory comes from: for [`Session::set_spending`](crate::Session::set_spending).
    fn spending(&self) -> Arc<Spending>;

    /// Rows that its answer may have.
    fn rows_max(&self) -> Option<u64>;

    /// Charges for what is done from now on, and ends when nothing is left. To be polled beside all of the statement and its rows; what was done since the last look is charged when it
    /// is dropped.
    fn exceeded(&self) -> BoxFuture<'static, Error>;
}

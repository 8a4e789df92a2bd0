//! A session's scope, found by rules by query in one state.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use orrery_storage::Snapshot;

use crate::catalog::scope::SqlScope;

/// A scope that rules by query have found in one state.
pub struct RuledScope {
    /// The state in which they found it.
    pub state: Arc<Snapshot>,
    /// What they find in another one; everything if none.
    pub scope_in: ScopeIn,
}

/// What rules by query find in a state.
pub type ScopeIn =
    Box<dyn Fn(Arc<Snapshot>) -> BoxFuture<'static, Option<Arc<SqlScope>>> + Send + Sync>;

impl fmt::Debug for RuledScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuledScope").finish_non_exhaustive()
    }
}

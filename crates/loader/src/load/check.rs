//! A check of the new state by the caller of a load, before it becomes visible.

use orrery_storage::{Snapshot, StateCheck};
use std::fmt;
use std::sync::Arc;

/// A check of the state that a load or a bulk update publishes.
#[derive(Clone)]
pub struct LoadCheck(Arc<LoadChecker>);

type LoadChecker =
    dyn Fn(&Arc<Snapshot>, &Arc<Snapshot>) -> orrery_storage::Result<()> + Send + Sync;

impl LoadCheck {
    /// A check by a function of the state before and the new one; its error refuses the load.
    pub fn new(
        check: impl Fn(&Arc<Snapshot>, &Arc<Snapshot>) -> orrery_storage::Result<()>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn for_state<'a>(&self) -> StateCheck<'a> {
        let check = Arc::clone(&self.0);
        StateCheck::new(move |before, after| check(before, after))
    }
}

/// Two are the same that are one.
impl PartialEq for LoadCheck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LoadCheck {}

impl fmt::Debug for LoadCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoadCheck")
    }
}

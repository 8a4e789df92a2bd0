//! States without the quads that some askers do not see, kept beside the state that they are of.
//!
//! To make one reads the column of the graph, and looks at the name of each graph; whoever asks again within the same state finds it here. It goes with
//! its state: the next commit begins without any.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Result;
use crate::read_scope::GraphNames;

/// How many are kept: of so many askers with rights of their own at a time.
const KEPT_MAX: usize = 64;

/// See the module; the last used are the first.
#[derive(Debug)]
pub(crate) struct ScopedStates<S> {
    kept: Mutex<VecDeque<Kept<S>>>,
}

/// What a list of graphs shows.
type Kept<S> = (Arc<GraphNames>, Arc<S>);

impl<S> Default for ScopedStates<S> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
        }
    }
}

impl<S> ScopedStates<S> {
    /// The state for a list of graphs: the one that is kept for this very list, or a new one.
    pub(crate) fn of(
        &self,
        graphs: &Arc<GraphNames>,
        make: impl FnOnce() -> Result<Arc<S>>,
    ) -> Result<Arc<S>> {
        if let Some(found) = self.find(graphs) {
            return Ok(found);
        }
        // Others need not wait; who asks for the same meanwhile makes it, too.
        let made = make()?;
        let mut kept = self.kept.lock();
        kept.truncate(KEPT_MAX - 1);
        kept.push_front((Arc::clone(graphs), Arc::clone(&made)));
        Ok(made)
    }

    fn find(&self, graphs: &Arc<GraphNames>) -> Option<Arc<S>> {
        let mut kept = self.kept.lock();
        let place = kept.iter().position(|(of, _)| Arc::ptr_eq(of, graphs))?;
        let found = kept.remove(place)?;
        let state = Arc::clone(&found.1);
        kept.push_front(found);
        Some(state)
    }
}

//! A cache of filtered snapshots beside the snapshot that they come from.
//!
//! A further request in the same state finds the filtered snapshot here. It goes with its state:
//! the next commit begins without any, and makes them from what is cached beside the files
//! ([`crate::snapshots::shown_files`]).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::Result;
use crate::access::by_list::ByList;
use crate::access::read_scope::GraphNames;

/// See the module. Each with the bytes that it takes, those that several share counted for each.
#[derive(Debug)]
pub(crate) struct ScopedStates<S> {
    kept: Mutex<ByList<(Arc<S>, u64)>>,
}

impl<S> Default for ScopedStates<S> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
        }
    }
}

impl<S> ScopedStates<S> {
    /// The state for a list of graphs: the one that is kept for the same graphs, or a new one, with
    /// the bytes that it takes.
    pub(crate) fn of(
        &self,
        graphs: &Arc<GraphNames>,
        make: impl FnOnce() -> Result<(Arc<S>, u64)>,
    ) -> Result<Arc<S>> {
        if let Some((found, _)) = self.kept.lock().find(graphs) {
            return Ok(found);
        }
        // Others need not wait; who asks for the same meanwhile makes it, too.
        let made = make()?;
        let state = Arc::clone(&made.0);
        let mut kept = self.kept.lock();
        kept.add(graphs, made);
        kept.shrink(|(_, bytes)| *bytes);
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::by_list::{BYTES_MAX, KEPT_LEAST, KEPT_MAX};

    fn list(number: usize) -> Arc<GraphNames> {
        let name = orrery_term::Term::iri(format!("x:{number}"));
        Arc::new(GraphNames {
            named: [name].into(),
            ..GraphNames::default()
        })
    }

    /// Asks for lists; which of them had to be made.
    fn made(states: &ScopedStates<usize>, lists: &[usize], bytes: u64) -> Vec<usize> {
        let mut made = Vec::new();
        for &number in lists {
            let make = || {
                made.push(number);
                Ok((Arc::new(number), bytes))
            };
            assert_eq!(*states.of(&list(number), make).unwrap(), number);
        }
        made
    }

    #[test]
    fn equal_lists_have_one_state() {
        let states = ScopedStates::default();
        assert_eq!(made(&states, &[1, 2, 1, 2, 3], 10), [1, 2, 3]);
    }

    #[test]
    fn what_is_kept_is_bounded_by_number_and_bytes() {
        let states = ScopedStates::default();
        let many: Vec<usize> = (0..=KEPT_MAX).collect();
        assert_eq!(made(&states, &many, 0), many);
        assert_eq!(made(&states, &[KEPT_MAX, 1], 0), Vec::<usize>::new());
        assert_eq!(made(&states, &[0], 0), [0], "it was not asked for longest");

        let states = ScopedStates::default();
        let share = BYTES_MAX / 8;
        let eight: Vec<usize> = (0..8).collect();
        assert_eq!(made(&states, &eight, share), eight);
        assert_eq!(made(&states, &eight, share), Vec::<usize>::new());
        assert_eq!(made(&states, &[8, 0], share), [8, 0]);

        // Large ones, too, up to some.
        let states = ScopedStates::default();
        let few: Vec<usize> = (0..KEPT_LEAST).collect();
        assert_eq!(made(&states, &few, BYTES_MAX), few);
        assert_eq!(made(&states, &few, BYTES_MAX), Vec::<usize>::new());
        assert_eq!(made(&states, &[KEPT_LEAST, 0], BYTES_MAX), [KEPT_LEAST, 0]);
    }
}

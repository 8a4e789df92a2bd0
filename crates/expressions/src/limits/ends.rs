//! The deadline and cancellation of evaluation.
//!
//! A stream is dropped when its time is over or nobody waits; a call within a batch cannot be. So
//! functions ask here between two pieces of work of a millisecond or so.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::error::{Error, Result};

/// When evaluation is over; as long as nothing is said, never.
#[derive(Debug, Default)]
pub(crate) struct Ends(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    time: Option<(Duration, Instant)>,
    waiting: Option<Weak<()>>,
}

impl Ends {
    /// From now on for this long, and as long as somebody holds on to what is given, or to what was
    /// given to an earlier run that is not over.
    pub(crate) fn begin(&self, limit: Option<Duration>) -> Arc<()> {
        let mut state = self.0.write();
        let waiting = state.waiting.as_ref().and_then(Weak::upgrade);
        let waiting = waiting.unwrap_or_default();
        *state = State {
            time: limit.map(|limit| (limit, Instant::now())),
            waiting: Some(Arc::downgrade(&waiting)),
        };
        waiting
    }

    /// # Errors
    /// When the time is over or nobody waits any more.
    pub(crate) fn check(&self) -> Result<()> {
        let state = self.0.read();
        if let Some((limit, start)) = state.time
            && start.elapsed() >= limit
        {
            return Err(Error::OutOfTime { limit });
        }
        match &state.waiting {
            Some(waiting) if waiting.strong_count() == 0 => Err(Error::NobodyWaits),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_nobody_waits_or_the_time_has_passed() {
        let ends = Ends::default();
        assert!(ends.check().is_ok());
        let first = ends.begin(Some(Duration::from_secs(3_600)));
        let second = ends.begin(None);
        drop(second);
        assert!(ends.check().is_ok(), "the first run goes on");
        drop(first);
        assert!(matches!(ends.check(), Err(Error::NobodyWaits)));
        let _third = ends.begin(Some(Duration::ZERO));
        assert!(matches!(ends.check(), Err(Error::OutOfTime { .. })));
    }
}

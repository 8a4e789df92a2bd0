//! Cooperative yielding: when a stream gives way to others.
//!
//! A stream that always has a batch ready never returns to the scheduler: the consumer's loop goes
//! round and round inside one poll, and a timeout set around it never fires. So our streams count
//! the time themselves and now and then say "not yet" although they could go on.

use std::time::{Duration, Instant};

/// How long a stream may go on giving batches before it gives way.
const TURN_TIME_MAX: Duration = Duration::from_millis(5);

/// The time since a stream last gave way.
#[derive(Debug)]
pub struct Pace {
    since: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

impl Pace {
    /// From now on.
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
        }
    }

    /// Whether to give way now. The caller then wakes its task and returns `Pending`.
    pub fn must_give_way(&mut self, now: Instant) -> bool {
        let is_due = now.duration_since(self.since) >= TURN_TIME_MAX;
        if is_due {
            self.since = now;
        }
        is_due
    }
}

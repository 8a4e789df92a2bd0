//! The clock, which stamps commits and expires history; tests replace it.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock; tests put one of their own in its place.
pub trait Clock: Debug + Send + Sync {
    /// Microseconds since the beginning of 1970, UTC.
    fn now_us(&self) -> i64;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_us(&self) -> i64 {
        // Before 1970 or past the year 290,000 the clock is wrong anyway.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
    }
}

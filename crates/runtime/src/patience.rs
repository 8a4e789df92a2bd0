//! The planning deadline, and the cancellation of planning.
//!
//! Planning has no place at which it could be dropped as a stream can: it asks here, often, and
//! ends itself. The clock is looked at once in `LOOKS_PER_CLOCK` questions, which are a few
//! instructions each.
//!
//! What planning itself takes in hand, such as literals that a search finds, is paid for here as it
//! is done.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::spending::Spending;

/// Questions for which the clock is looked at once. Between two of them lies less than a
/// millisecond, mostly much less.
const LOOKS_PER_CLOCK: u32 = 32;

/// How long a query may still be planned. Without limits, as by default, for ever.
#[derive(Debug, Default)]
pub struct Patience {
    limit: Option<(Duration, Instant)>,
    /// Gone when nobody waits for the plan.
    waiting: Option<Weak<()>>,
    /// Who pays for what planning takes in hand.
    spending: Option<Arc<Spending>>,
    looks: AtomicU32,
    is_over: AtomicBool,
    is_planned: AtomicBool,
}

impl Patience {
    /// From now on for this long, and while somebody holds on to `waiting`.
    pub fn new(limit: Option<Duration>, waiting: Option<Weak<()>>) -> Self {
        Self {
            limit: limit.map(|limit| (limit, Instant::now())),
            waiting,
            ..Self::default()
        }
    }

    /// The same where somebody pays for what planning takes in hand.
    #[must_use]
    pub fn paid_by(mut self, spending: Option<Arc<Spending>>) -> Self {
        self.spending = spending;
        self
    }

    /// Pays for touches that planning has done.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn spend(&self, touches: u64) -> Result<()> {
        let spending = self.spending.as_ref();
        spending.map_or(Ok(()), |spending| spending.spend(touches))
    }

    /// Whether it has come to an end; once it has, it stays so.
    pub fn is_over(&self) -> bool {
        let is_bounded = self.limit.is_some() || self.waiting.is_some();
        if !is_bounded || self.is_planned.load(Ordering::Relaxed) {
            return false;
        }
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if looks % LOOKS_PER_CLOCK == LOOKS_PER_CLOCK - 1 && self.has_ended() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        self.is_over.load(Ordering::Relaxed)
    }

    /// Fails when it has come to an end.
    pub fn check(&self) -> Result<()> {
        match self.is_over() {
            false => Ok(()),
            true => Err(Error::OutOfTime {
                limit: self.limit.map(|(limit, _)| limit).unwrap_or_default(),
            }),
        }
    }

    /// The plan is there: what is compiled while it runs has the time of the run.
    pub fn end_planning(&self) {
        self.is_planned.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        let is_late = self
            .limit
            .is_some_and(|(limit, start)| start.elapsed() >= limit);
        let waiting = self.waiting.as_ref();
        is_late || waiting.is_some_and(|waiting| waiting.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn looks_until_over(patience: &Patience) -> Option<u32> {
        (1..=3 * LOOKS_PER_CLOCK).find(|_| patience.check().is_err())
    }

    #[test]
    fn it_ends_with_the_time_or_with_those_who_wait() {
        assert_eq!(looks_until_over(&Patience::default()), None);
        let no_time = Patience::new(Some(Duration::ZERO), None);
        assert_eq!(looks_until_over(&no_time), Some(LOOKS_PER_CLOCK));
        assert!(no_time.is_over(), "and stays so");
        no_time.end_planning();
        assert_eq!(looks_until_over(&no_time), None);
        let waiting = Arc::new(());
        let hour = Some(Duration::from_secs(3_600));
        let patience = Patience::new(hour, Some(Arc::downgrade(&waiting)));
        assert_eq!(looks_until_over(&patience), None);
        drop(waiting);
        assert!(looks_until_over(&patience).is_some());
    }
}

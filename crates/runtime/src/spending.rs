//! The spending of one request: touches over all its plans, and the source of its memory.
//!
//! ```text
//! a plan begins --watch--> looked at while it runs --its stream is dropped--> what it cost is kept, and the plan goes
//! ```
//!
//! Whoever runs plans tells them here, and whoever charges for them asks [`Touched::touches`] every
//! so often. A plan counts by itself as it works (`orrery_operators`, `orrery_sql`), so that this
//! costs a lock for each plan and each look, and nothing for a row. A request that nobody charges
//! has none.
//!
//! What no plan does is told by [`Spending::spend`]: searches while a query is planned, quads and
//! rows that are changed. Whoever charges may give a limit ([`Spending::limit_by`]), which is asked
//! each time, so that such work ends where nothing is left.
//!
//! A plan may outlive its request: rows of a cursor, of which a later one takes more. It goes on to
//! count where it began, and [`Paused`] has the later one pay for what is done then; the later
//! one's limit is asked then, too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use datafusion_execution::memory_pool::MemoryPool;

use crate::error::{Error, Result};

/// What tells how often it took a row in hand, while it does.
pub trait Touched: Send + Sync {
    /// The touches so far. They never become fewer.
    fn touches(&self) -> u64;
}

impl<T: Touched + ?Sized> Touched for Arc<T> {
    fn touches(&self) -> u64 {
        (**self).touches()
    }
}

/// Says, of all touches of a request so far, whether something is left.
type Limit = Box<dyn Fn(u64) -> Result<(), String> + Send + Sync>;

/// See the module.
pub struct Spending {
    counted: Mutex<Counted>,
    limit: OnceLock<Limit>,
    memory: Option<Arc<dyn MemoryPool>>,
}

#[derive(Default)]
struct Counted {
    /// Of all that has ended.
    ended: u64,
    running: BTreeMap<u64, Box<dyn Touched>>,
    last: u64,
    /// Of what has ended, what was spent on the change.
    changed: u64,
    /// Who has taken it up last.
    taken_up_by: Weak<Spending>,
}

impl Spending {
    /// Of a request that has not begun. Its operators take memory from this pool; from that of all
    /// without one.
    pub fn new(memory: Option<Arc<dyn MemoryPool>>) -> Arc<Self> {
        Arc::new(Self {
            counted: Mutex::default(),
            limit: OnceLock::new(),
            memory,
        })
    }

    /// Where the request's operators take memory from, if not from the pool of all.
    pub fn memory(&self) -> Option<&Arc<dyn MemoryPool>> {
        self.memory.as_ref()
    }

    /// Counts a plan that begins, until what is returned is dropped. Drop that after the plan's
    /// stream.
    #[must_use]
    pub fn watch(self: &Arc<Self>, plan: impl Touched + 'static) -> Watched {
        let mut counted = self.counted();
        counted.last += 1;
        let number = counted.last;
        counted.running.insert(number, Box::new(plan));
        drop(counted);
        Watched {
            spending: Arc::clone(self),
            number,
        }
    }

    /// Asks this of the touches so far whenever something is spent: whether something is left, or
    /// what the client is told. Only the first limit counts.
    pub fn limit_by(&self, limit: impl Fn(u64) -> Result<(), String> + Send + Sync + 'static) {
        // Who comes second has no say.
        let _ = self.limit.set(Box::new(limit));
    }

    /// Whether there is a limit, so that work is worth being told in portions.
    pub fn is_limited(&self) -> bool {
        self.limit.get().is_some()
    }

    /// Counts what no plan does, where it cannot be stopped.
    pub fn add(&self, touches: u64) {
        self.counted().ended += touches;
    }

    /// Counts what no plan does, as soon as a portion of it is done.
    ///
    /// # Errors
    /// [`Error::OverBudget`] where nothing is left then: no more is to be done, and what was done
    /// is not to be kept.
    pub fn spend(&self, touches: u64) -> Result<()> {
        self.add(touches);
        self.ask()?;
        let later = self.counted().taken_up_by.upgrade();
        later.map_or(Ok(()), |later| later.ask())
    }

    /// Whether something is left.
    fn ask(&self) -> Result<()> {
        let left = match self.limit.get() {
            Some(limit) => limit(self.touches()),
            None => Ok(()),
        };
        left.map_err(|words| Error::OverBudget { words })
    }

    /// The same of quads that a change brings or takes away; [`Spending::changed`] is the sum of
    /// them.
    ///
    /// # Errors
    /// As [`Spending::spend`].
    pub fn spend_on_change(&self, quads: u64) -> Result<()> {
        self.counted().changed += quads;
        self.spend(quads)
    }

    /// The same of a change that comes to so much altogether, as far as that was not spent yet.
    ///
    /// # Errors
    /// As [`Spending::spend`].
    pub fn spend_on_change_up_to(&self, total: u64) -> Result<()> {
        let mut counted = self.counted();
        let more = total.saturating_sub(counted.changed);
        counted.changed += more;
        drop(counted);
        self.spend(more)
    }

    /// A change is made from its beginning, perhaps once more.
    pub fn begin_change(&self) {
        self.counted().changed = 0;
    }

    /// What was spent on the change that is made, or was made last.
    pub fn changed(&self) -> u64 {
        self.counted().changed
    }

    /// Notes how far it is, for what goes on in a later request.
    #[must_use]
    pub fn pause(self: &Arc<Self>) -> Paused {
        Paused {
            spending: Arc::clone(self),
            before: self.touches(),
        }
    }

    /// Counts what goes on here of an earlier request, until what is returned is dropped; none
    /// where it is the same, which counts it anyway.
    #[must_use]
    pub fn resume(self: &Arc<Self>, paused: &Paused) -> Option<Watched> {
        // To look at itself it would wait for itself.
        if Arc::ptr_eq(self, &paused.spending) {
            return None;
        }
        paused.spending.counted().taken_up_by = Arc::downgrade(self);
        Some(self.watch(paused.clone()))
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Touched for Spending {
    fn touches(&self) -> u64 {
        let counted = self.counted();
        let running = counted.running.values().map(|plan| plan.touches());
        running.fold(counted.ended, u64::saturating_add)
    }
}

impl fmt::Debug for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spending")
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// What goes on in a later request.
#[derive(Debug, Clone)]
pub struct Paused {
    spending: Arc<Spending>,
    /// What somebody has paid for.
    before: u64,
}

impl Paused {
    /// The same, as far as it is now.
    #[must_use]
    pub fn again(&self) -> Self {
        self.spending.pause()
    }
}

impl Touched for Paused {
    fn touches(&self) -> u64 {
        self.spending.touches().saturating_sub(self.before)
    }
}

/// A plan that runs.
#[derive(Debug)]
pub struct Watched {
    spending: Arc<Spending>,
    number: u64,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut counted = self.spending.counted();
        // In one step: whoever looks meanwhile sees neither none of it nor twice as much.
        let ended = counted.running.remove(&self.number);
        counted.ended += ended.as_ref().map_or(0, |plan| plan.touches());
        // What goes with the plan may have watched others.
        drop(counted);
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Counter(Arc<AtomicU64>);

    impl Touched for Counter {
        fn touches(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn what_runs_and_what_has_ended_counts_once() {
        let spending = Spending::new(None);
        let counter = Arc::new(AtomicU64::new(3));
        let first = spending.watch(Counter(Arc::clone(&counter)));
        let second = spending.watch(Counter(Arc::default()));
        assert_eq!(spending.touches(), 3);
        counter.store(7, Ordering::Relaxed);
        spending.spend(10).unwrap();
        assert_eq!(spending.touches(), 17);
        drop(first);
        assert_eq!(spending.touches(), 17);
        counter.store(100, Ordering::Relaxed);
        assert_eq!(spending.touches(), 17);
        drop(second);
        assert_eq!(spending.touches(), 17);
        assert_eq!(Arc::strong_count(&counter), 1);
    }

    #[test]
    fn what_is_spent_ends_where_nothing_is_left_and_counts_nevertheless() {
        let spending = Spending::new(None);
        assert!(spending.spend(100).is_ok() && !spending.is_limited());
        spending.limit_by(|touches| match touches < 150 {
            true => Ok(()),
            false => Err("used up".to_owned()),
        });
        let counter = Arc::new(AtomicU64::new(0));
        let _plan = spending.watch(Counter(Arc::clone(&counter)));
        assert!(spending.spend(49).is_ok());
        counter.store(1, Ordering::Relaxed);
        let refused = spending.spend(0).unwrap_err();
        assert!(matches!(&refused, Error::OverBudget { words } if words == "used up"));
        assert!(spending.spend(10).is_err());
        assert_eq!(spending.touches(), 160);
    }

    #[test]
    fn a_change_is_paid_for_once_however_often_its_sum_is_told() {
        let spending = Spending::new(None);
        for (total, expected) in [(10, 10), (7, 10), (25, 25), (25, 25)] {
            spending.spend_on_change_up_to(total).unwrap();
            assert_eq!(spending.touches(), expected);
        }
        // The next one.
        spending.begin_change();
        spending.spend_on_change_up_to(5).unwrap();
        assert_eq!((spending.touches(), spending.changed()), (30, 5));
    }

    #[test]
    fn what_goes_on_later_is_within_the_limit_of_who_takes_it_up() {
        let [first, later] = [(); 2].map(|()| Spending::new(None));
        first.spend(1_000).unwrap();
        later.limit_by(|touches| match touches < 10 {
            true => Ok(()),
            false => Err("used up".to_owned()),
        });
        let paused = first.pause();
        let _resumed = later.resume(&paused);
        first.spend(9).unwrap();
        assert!(first.spend(1).is_err());
        assert_eq!(later.touches(), 10);
    }

    #[test]
    fn what_goes_on_later_is_counted_by_who_takes_it_up() {
        let first = Spending::new(None);
        let counter = Arc::new(AtomicU64::new(3));
        let plan = first.watch(Counter(Arc::clone(&counter)));
        let paused = first.pause();
        assert!(first.resume(&paused).is_none());
        let second = Spending::new(None);
        let resumed = second.resume(&paused);
        assert!(resumed.is_some());
        counter.store(10, Ordering::Relaxed);
        assert_eq!((first.touches(), second.touches()), (10, 7));
        drop(resumed);
        let third = Spending::new(None);
        let resumed = third.resume(&paused.again());
        counter.store(12, Ordering::Relaxed);
        drop(plan);
        drop(resumed);
        assert_eq!((second.touches(), third.touches()), (7, 2));
    }
}

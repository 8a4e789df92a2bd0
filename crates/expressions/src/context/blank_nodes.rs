//! The numbers of blank nodes that a query creates.
//!
//! ```text
//! first, step 3:   0 . . 3 . . 6      who made the plan
//!                  . 1 . . 4 . .      part 1, in another process
//!                  . . 2 . . 5 .      part 2
//! ```
//!
//! Where parts of a plan run in several processes, each takes every so-many-th number: none meets
//! another's, however many each takes.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Numbers that are dealt further apart than this would run out too soon.
const STEP_MAX: u64 = 1 << 24;
/// Where numbers begin at most: far from the end of those that an id can hold.
const FIRST_MAX: u64 = 1 << 47;

/// Every so-many-th number from a first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlankNodeNumbers {
    pub(crate) first: u64,
    pub(crate) step: u64,
}

impl BlankNodeNumbers {
    /// What one part takes of them where they are dealt to so many others beside part 0; nothing if
    /// there are too few.
    pub(crate) fn share(self, part: u32, others: u32) -> Option<Self> {
        let step = self.step.checked_mul(u64::from(others) + 1)?;
        let first = self.first.checked_add(self.step * u64::from(part))?;
        let is_enough = part <= others && step <= STEP_MAX && self.step > 0 && first < FIRST_MAX;
        is_enough.then_some(Self { first, step })
    }
}

/// Gives numbers out, one at a time, on all threads.
#[derive(Debug)]
pub(super) struct BlankNodeCounter {
    next: AtomicU64,
    step: AtomicU64,
    /// To how many others numbers were dealt last, and which.
    dealt: Mutex<Option<(u32, BlankNodeNumbers)>>,
}

impl BlankNodeCounter {
    pub(super) fn new(numbers: BlankNodeNumbers) -> Self {
        Self {
            next: AtomicU64::new(numbers.first),
            step: AtomicU64::new(numbers.step),
            dealt: Mutex::new(None),
        }
    }

    /// A number that was not given out before.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        let step = self.step.load(Ordering::Relaxed);
        self.next.fetch_add(step, Ordering::Relaxed)
    }

    /// Gives the numbers that are left, for others to take their shares of, and keeps the share of
    /// part 0. Nobody may take a number meanwhile. Dealt to as many again, they are the same:
    /// several plans of one query, or the same one once more.
    pub(super) fn deal(&self, others: u32) -> Option<BlankNodeNumbers> {
        let mut dealt = self.dealt.lock();
        if let Some((to, all)) = *dealt
            && to == others
        {
            return Some(all);
        }
        let all = BlankNodeNumbers {
            first: self.next.load(Ordering::Relaxed),
            step: self.step.load(Ordering::Relaxed),
        };
        // The last share first: it begins the furthest away.
        all.share(others, others)?;
        let own = all.share(0, others)?;
        self.step.store(own.step, Ordering::Relaxed);
        *dealt = Some((others, all));
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn parts_of_parts_never_take_the_same_number() {
        let own = BlankNodeCounter::new(BlankNodeNumbers { first: 7, step: 1 });
        let mut seen: HashSet<u64> = (0..3).map(|_| own.next()).collect();
        let mut counters = Vec::new();
        for others in [2, 0, 5] {
            let all = own.deal(others).unwrap();
            let shares = (1..=others).map(|part| all.share(part, others).unwrap());
            counters.extend(shares.map(BlankNodeCounter::new));
        }
        // A part that deals its own out again.
        let all = counters[0].deal(1).unwrap();
        counters.push(BlankNodeCounter::new(all.share(1, 1).unwrap()));
        counters.push(own);
        for counter in &counters {
            assert!((0..1_000).all(|_| seen.insert(counter.next())));
        }
        assert_eq!(seen.len(), 3 + counters.len() * 1_000);
    }

    #[test]
    fn numbers_are_not_dealt_until_none_are_left() {
        let own = BlankNodeCounter::new(BlankNodeNumbers { first: 0, step: 1 });
        let deals = (0..100).take_while(|number| own.deal(1 + number % 2).is_some());
        let deals = deals.count() as u32;
        let step = 2_u64.pow(deals.div_ceil(2)) * 3_u64.pow(deals / 2);
        assert!(step <= STEP_MAX && step * 3 > STEP_MAX, "{deals}");
    }

    #[test]
    fn dealt_again_numbers_are_the_same() {
        let own = BlankNodeCounter::new(BlankNodeNumbers { first: 7, step: 1 });
        let all = own.deal(3).unwrap();
        assert_eq!((own.next(), own.next()), (7, 11));
        assert_eq!(own.deal(3), Some(all));
        assert_eq!(own.next(), 15);
        let others: Vec<u64> = (1..=3)
            .map(|part| all.share(part, 3).unwrap().first)
            .collect();
        assert_eq!(others, [8, 9, 10]);
    }

    #[test]
    fn damaged_numbers_are_none() {
        let damaged = BlankNodeNumbers {
            first: u64::MAX,
            step: u64::MAX,
        };
        assert_eq!(damaged.share(1, 1), None);
        assert_eq!(BlankNodeNumbers { first: 0, step: 0 }.share(0, 0), None);
    }
}

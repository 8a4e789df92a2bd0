//! The memory of one request, which tells whether a refusal is its own or due to others.
//!
//! A request that was refused memory is told to try again only where others are the reason, for a
//! client takes that word and asks for ever. What others hold is known in the moment of the refusal
//! and not after: what the request itself held is given back bit by bit, by tasks that end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion_common::Result;
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use crate::exhausted::is_of_account;

/// Others are a reason where they hold more than one part of so many.
const OTHERS_PART: usize = 8;

/// The pool of one request: all that it reserves is reserved in another, and counted.
#[derive(Debug)]
pub struct OwnShare {
    of_all: Arc<dyn MemoryPool>,
    held_bytes: AtomicUsize,
    is_refused_for_others: AtomicBool,
}

impl OwnShare {
    /// Nothing yet, of a pool that others use, too.
    pub fn of(of_all: &Arc<dyn MemoryPool>) -> Arc<Self> {
        Arc::new(Self {
            of_all: Arc::clone(of_all),
            held_bytes: AtomicUsize::new(0),
            is_refused_for_others: AtomicBool::new(false),
        })
    }

    /// Whether so much of a pool is held that who is refused may be told that others are the
    /// reason.
    pub fn is_much_held(of_all: &Arc<dyn MemoryPool>) -> bool {
        match of_all.memory_limit() {
            MemoryLimit::Finite(limit) => of_all.reserved() > limit / OTHERS_PART,
            MemoryLimit::Infinite | MemoryLimit::Unknown => false,
        }
    }

    /// Whether the last refusal would have been none, for all that is known, if nobody else had
    /// held anything.
    pub fn is_refused_for_others(&self) -> bool {
        self.is_refused_for_others.load(Ordering::Relaxed)
    }

    fn note_refusal(&self, additional: usize) {
        let MemoryLimit::Finite(limit) = self.of_all.memory_limit() else {
            return;
        };
        let held = self.held_bytes.load(Ordering::Relaxed);
        let others = self.of_all.reserved().saturating_sub(held);
        let would_fit_alone = held.saturating_add(additional) <= limit;
        self.is_refused_for_others.store(
            would_fit_alone && others > limit / OTHERS_PART,
            Ordering::Relaxed,
        );
    }

    fn note_shrunk(&self, bytes: usize) {
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl fmt::Display for OwnShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held_bytes.load(Ordering::Relaxed);
        write!(f, "{held} bytes of {}", self.of_all)
    }
}

impl MemoryPool for OwnShare {
    fn name(&self) -> &'static str {
        "request"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.of_all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.of_all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.held_bytes.fetch_add(additional, Ordering::Relaxed);
        self.of_all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.of_all.shrink(reservation, shrink);
        self.note_shrunk(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // Counted first: what is its own is never taken for another's.
        self.held_bytes.fetch_add(additional, Ordering::Relaxed);
        let grown = self.of_all.try_grow(reservation, additional);
        if let Err(error) = &grown {
            self.note_shrunk(additional);
            // What an account may have is no matter of what others hold.
            if !is_of_account(&error.to_string()) {
                self.note_refusal(additional);
            }
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.of_all.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.of_all.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use datafusion_execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn a_refusal_is_for_others_only_where_these_hold_what_is_missing() {
        let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1_000));
        let share = OwnShare::of(&all);
        let pool = Arc::clone(&share) as Arc<dyn MemoryPool>;
        let own = MemoryConsumer::new("own").register(&pool);
        own.try_grow(900).unwrap();
        own.try_grow(200).unwrap_err();
        assert!(!share.is_refused_for_others(), "nobody else holds anything");
        own.shrink(500);
        let other = MemoryConsumer::new("other").register(&all);
        other.try_grow(500).unwrap();
        own.try_grow(200).unwrap_err();
        assert!(share.is_refused_for_others());
        own.try_grow(700).unwrap_err();
        assert!(!share.is_refused_for_others(), "it would not fit alone");
        other.shrink(490);
        own.try_grow(595).unwrap_err();
        assert!(
            !share.is_refused_for_others(),
            "others hold next to nothing"
        );
        drop((own, other));
        assert_eq!(all.reserved(), 0);
        assert_eq!(share.held_bytes.load(Ordering::Relaxed), 0);
    }
}

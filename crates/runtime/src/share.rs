//! A memory limit for one part of a plan, within the pool of all.
//!
//! Operators that spill take what they can get while they merge what they have spilled: of two
//! sorts at once, the one that is done first can leave the other too little to go on with. Where
//! each has a share, none waits for what another holds.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// What is reserved here is reserved in the pool of all, too.
#[derive(Debug)]
pub(crate) struct Share {
    own: GreedyMemoryPool,
    of_all: Arc<dyn MemoryPool>,
}

impl Share {
    pub(crate) fn of(of_all: &Arc<dyn MemoryPool>, bytes: usize) -> Self {
        Self {
            own: GreedyMemoryPool::new(bytes),
            of_all: Arc::clone(of_all),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.own, self.of_all)
    }
}

impl MemoryPool for Share {
    fn name(&self) -> &'static str {
        "share"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.of_all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.of_all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.of_all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.of_all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own.try_grow(reservation, additional)?;
        let grown = self.of_all.try_grow(reservation, additional);
        if grown.is_err() {
            self.own.shrink(reservation, additional);
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_ends_at_its_own_bound_and_at_that_of_all() {
        let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let share = || -> Arc<dyn MemoryPool> { Arc::new(Share::of(&all, 60)) };
        let first = MemoryConsumer::new("first").register(&share());
        let second = MemoryConsumer::new("second").register(&share());
        assert!(first.try_grow(61).is_err());
        first.try_grow(60).unwrap();
        assert!(first.try_grow(1).is_err());
        assert!(second.try_grow(50).is_err());
        second.try_grow(40).unwrap();
        assert_eq!(all.reserved(), 100);
        first.shrink(30);
        second.try_grow(20).unwrap();
        assert_eq!(all.reserved(), 90);
        drop((first, second));
        assert_eq!(all.reserved(), 0);
    }
}

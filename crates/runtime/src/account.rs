//! The memory share of one account, for all its requests together.
//!
//! ```text
//! operator --try_grow--> share of the user's account --> share of the key's --> the pool of all
//!              refused by any: it spills, or the request fails and says by whose bound
//! ```
//!
//! A share is divided as the pool of all is: what cannot spill takes what there is, and those that
//! can have equal parts of the rest. It is a bound and no promise: nothing is set aside for an
//! account, so that one that asks for nothing takes nothing from others.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use orrery_storage::ByteCount;

use crate::exhausted::{self, OF_ACCOUNT};

/// Of one account, for all of its requests.
#[derive(Debug)]
pub struct AccountShare {
    pool: FairSpillPool,
    bytes: usize,
}

impl AccountShare {
    /// So many bytes.
    pub fn new(bytes: u64) -> Arc<Self> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Arc::new(Self {
            pool: FairSpillPool::new(bytes),
            bytes,
        })
    }

    /// What may be held of it.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// What is held.
    pub fn held_bytes(&self) -> usize {
        self.pool.reserved()
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // An error without its text: it spills, mostly.
        self.pool
            .try_grow(reservation, additional)
            .map_err(|_refused| {
                DataFusionError::ResourcesExhausted(format!(
                    "{} more needed for {}, of the {}{OF_ACCOUNT}",
                    ByteCount(additional as u64),
                    exhausted::part(reservation.consumer().name()),
                    ByteCount(self.bytes as u64),
                ))
            })
    }
}

/// The pool of a request that is held to the shares of accounts: what is reserved here is reserved
/// in each of them, and in the pool of all.
#[derive(Debug)]
pub struct WithinShares {
    shares: Vec<Arc<AccountShare>>,
    of_all: Arc<dyn MemoryPool>,
}

impl WithinShares {
    /// Of a request with these accounts; none where nothing is shared.
    pub fn pool(
        shares: Vec<Arc<AccountShare>>,
        of_all: &Arc<dyn MemoryPool>,
    ) -> Option<Arc<dyn MemoryPool>> {
        if shares.is_empty() {
            return None;
        }
        let of_all = Arc::clone(of_all);
        Some(Arc::new(Self { shares, of_all }))
    }
}

impl fmt::Display for WithinShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shares of {}", self.shares.len(), self.of_all)
    }
}

impl MemoryPool for WithinShares {
    fn name(&self) -> &'static str {
        "account"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shares
            .iter()
            .for_each(|share| share.pool.register(consumer));
        self.of_all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shares
            .iter()
            .for_each(|share| share.pool.unregister(consumer));
        self.of_all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shares
            .iter()
            .for_each(|share| share.pool.grow(reservation, additional));
        self.of_all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shares
            .iter()
            .for_each(|share| share.pool.shrink(reservation, shrink));
        self.of_all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let give_back = |count: usize| {
            for share in &self.shares[..count] {
                share.pool.shrink(reservation, additional);
            }
        };
        for (number, share) in self.shares.iter().enumerate() {
            if let Err(refused) = share.try_grow(reservation, additional) {
                give_back(number);
                return Err(refused);
            }
        }
        let grown = self.of_all.try_grow(reservation, additional);
        if grown.is_err() {
            give_back(self.shares.len());
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.of_all.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        let least = self.shares.iter().map(|share| share.bytes).min();
        match (least, self.of_all.memory_limit()) {
            (Some(least), MemoryLimit::Finite(of_all)) => MemoryLimit::Finite(least.min(of_all)),
            (Some(least), _) => MemoryLimit::Finite(least),
            (None, of_all) => of_all,
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_execution::memory_pool::GreedyMemoryPool;

    use super::*;
    use crate::exhausted::is_of_account;

    #[test]
    fn requests_of_an_account_hold_so_much_together_and_others_go_on() {
        let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let (user, key) = (AccountShare::new(60), AccountShare::new(30));
        let of_user = WithinShares::pool(vec![Arc::clone(&user)], &all).unwrap();
        let of_both = vec![Arc::clone(&user), Arc::clone(&key)];
        let of_both = WithinShares::pool(of_both, &all).unwrap();
        assert!(WithinShares::pool(Vec::new(), &all).is_none());

        let first = MemoryConsumer::new("HashJoinInput").register(&of_user);
        let second = MemoryConsumer::new("second").register(&of_both);
        first.try_grow(40).unwrap();
        let refused = second.try_grow(25).unwrap_err();
        let DataFusionError::ResourcesExhausted(words) = &refused else {
            panic!("{refused}");
        };
        assert!(is_of_account(words), "{words}");
        // What one of them refused is held of none.
        assert_eq!((key.held_bytes(), user.held_bytes()), (0, 40));
        second.try_grow(20).unwrap();
        assert_eq!((key.held_bytes(), user.held_bytes()), (20, 60));
        assert_eq!(all.reserved(), 60);
        assert!(first.try_grow(1).is_err());
        // The refusal of all is none of the account's.
        let other = MemoryConsumer::new("other").register(&all);
        first.shrink(10);
        other.try_grow(45).unwrap();
        let refused = first.try_grow(6).unwrap_err().to_string();
        assert!(!is_of_account(&refused), "{refused}");
        assert_eq!(user.held_bytes(), 50);
        drop((first, second, other));
        assert_eq!((key.held_bytes(), user.held_bytes()), (0, 0));
        assert_eq!(all.reserved(), 0);
    }

    #[test]
    fn those_that_spill_have_equal_parts_of_a_share() {
        let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1_000));
        let share = AccountShare::new(60);
        let pool = WithinShares::pool(vec![Arc::clone(&share)], &all).unwrap();
        let sort = |name: &str| {
            let consumer = MemoryConsumer::new(name).with_can_spill(true);
            consumer.register(&pool)
        };
        let (one, other) = (sort("one"), sort("other"));
        one.try_grow(30).unwrap();
        assert!(one.try_grow(1).is_err());
        other.try_grow(30).unwrap();
        drop(other);
        one.try_grow(30).unwrap();
    }
}

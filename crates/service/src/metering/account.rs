//! The account of one user, key or address: its running requests, its budget of touches, its memory
//! shares.
//!
//! A budget is a token bucket: it holds as many touches as the limit says and is refilled at an
//! even rate. A query's cost is taken out while the query runs, so that concurrent queries share
//! one budget. The bucket may be overdrawn by what is done between two checks; the next query waits
//! until that is refilled.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use orrery_access::{Budget, Limits};
use orrery_sparql::AccountShare;

use super::exceeded::Exceeded;

/// An account, shared by the requests that are charged to it.
#[derive(Debug)]
pub(super) struct Account {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    running: u32,
    /// Touches taken out and not refilled yet. At or above the budget, nothing is left.
    used: f64,
    /// Time of the last refill.
    refilled: Instant,
    /// Touches refilled per second.
    rate: f64,
    /// Memory held by the requests, by limit. One user may have several limits: a token brings
    /// groups that a password does not.
    shares: Vec<Arc<AccountShare>>,
}

impl Account {
    pub(super) fn new(now: Instant) -> Self {
        let state = State {
            running: 0,
            used: 0.0,
            refilled: now,
            rate: 0.0,
            shares: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Counts a request that begins, unless the limit of concurrent requests or the budget is
    /// reached.
    pub(super) fn enter(&self, limits: &Limits, now: Instant) -> Result<(), Exceeded> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(max) = limits.concurrent
            && state.running >= max
        {
            return Err(Exceeded::Concurrent { max });
        }
        state.require_cost(limits, now)?;
        state.running += 1;
        Ok(())
    }

    /// Counts a request that has ended.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running = state.running.saturating_sub(1);
    }

    /// Takes touches out of the budget.
    ///
    /// # Errors
    /// When nothing is left afterwards.
    pub(super) fn take(&self, touches: u64, limits: &Limits, now: Instant) -> Result<(), Exceeded> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = limits.cost {
            state.refill(budget, now);
            state.used += touches as f64;
        }
        state.require_cost(limits, now)
    }

    /// Checks that this many touches are left, before they are spent; takes nothing out.
    ///
    /// # Errors
    /// When fewer are left.
    pub(super) fn afford(
        &self,
        touches: u64,
        limits: &Limits,
        now: Instant,
    ) -> Result<(), Exceeded> {
        let Some(budget) = limits.cost else {
            return Ok(());
        };
        if touches > budget.touches {
            return Err(Exceeded::TooDear {
                needed: touches,
                touches: budget.touches,
                seconds: budget.seconds,
            });
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.refill(budget, now);
        let over = state.used + touches as f64 - budget.touches as f64;
        if over <= 0.0 {
            return Ok(());
        }
        let wait = Duration::try_from_secs_f64(over / rate(budget));
        Err(Exceeded::Cost {
            touches: budget.touches,
            seconds: budget.seconds,
            wait: wait.unwrap_or(Duration::MAX),
        })
    }

    /// The memory share of requests with these limits, if memory is limited; requests with another
    /// limit have a share of their own.
    pub(super) fn share(&self, limits: &Limits) -> Option<Arc<AccountShare>> {
        let bytes = limits.memory?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let shares = &mut state.shares;
        shares.retain(|share| share.bytes() == bytes || Arc::strong_count(share) > 1);
        if let Some(known) = shares.iter().find(|share| share.bytes() == bytes) {
            return Some(Arc::clone(known));
        }
        let share = AccountShare::new(bytes);
        shares.push(Arc::clone(&share));
        Some(share)
    }

    /// Whether the account is in the state of a new one, so that it may be dropped.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(state.refilled);
        let holds_memory = state.shares.iter().any(|it| Arc::strong_count(it) > 1);
        state.running == 0 && !holds_memory && state.used <= passed.as_secs_f64() * state.rate
    }
}

impl State {
    fn refill(&mut self, budget: Budget, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled);
        self.used = (self.used - passed.as_secs_f64() * rate(budget)).max(0.0);
        self.refilled = now;
        self.rate = rate(budget);
    }

    fn require_cost(&mut self, limits: &Limits, now: Instant) -> Result<(), Exceeded> {
        let Some(budget) = limits.cost else {
            return Ok(());
        };
        self.refill(budget, now);
        let over = self.used - budget.touches as f64;
        if over < 0.0 {
            return Ok(());
        }
        let wait = Duration::try_from_secs_f64(over / rate(budget));
        Err(Exceeded::Cost {
            touches: budget.touches,
            seconds: budget.seconds,
            wait: wait.unwrap_or(Duration::MAX),
        })
    }
}

/// Touches refilled per second.
fn rate(budget: Budget) -> f64 {
    budget.touches as f64 / budget.seconds.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        concurrent: Some(2),
        time_ms: None,
        rows: None,
        bytes: None,
        memory: None,
        cost: Some(Budget {
            touches: 1_000,
            seconds: 100,
        }),
    };

    #[test]
    fn as_many_run_as_may() {
        let now = Instant::now();
        let account = Account::new(now);
        account.enter(&LIMITS, now).unwrap();
        account.enter(&LIMITS, now).unwrap();
        let refused = account.enter(&LIMITS, now);
        assert_eq!(refused, Err(Exceeded::Concurrent { max: 2 }));
        account.leave();
        account.enter(&LIMITS, now).unwrap();
        // A request with other limits.
        account.enter(&Limits::default(), now).unwrap();
    }

    #[test]
    fn a_budget_is_refilled_evenly_and_made_up_for_first() {
        let now = Instant::now();
        let account = Account::new(now);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(account.take(999, &LIMITS, now).is_ok());
        let Err(Exceeded::Cost { wait, .. }) = account.take(501, &LIMITS, now) else {
            panic!("1,500 of 1,000");
        };
        assert_eq!(wait, Duration::from_secs(50));
        assert!(account.enter(&LIMITS, at(49)).is_err());
        assert!(account.enter(&LIMITS, at(51)).is_ok());
        // Ten a second, and never more than the whole budget.
        assert!(account.take(11, &LIMITS, at(51)).is_err());
        assert!(account.take(999, &LIMITS, at(10_000)).is_ok());
        assert!(account.take(1, &LIMITS, at(10_000)).is_err());
    }

    #[test]
    fn requests_with_one_bound_share_it_also_beside_those_with_another() {
        let now = Instant::now();
        let account = Account::new(now);
        let share = |bytes| {
            let memory = Some(bytes);
            account.share(&Limits { memory, ..LIMITS }).unwrap()
        };
        let (of_password, of_token) = (share(1_000), share(2_000));
        assert_eq!((of_password.bytes(), of_token.bytes()), (1_000, 2_000));
        for _ in 0..3 {
            assert!(Arc::ptr_eq(&of_password, &share(1_000)));
            assert!(Arc::ptr_eq(&of_token, &share(2_000)));
        }
        assert!(account.share(&LIMITS).is_none());
        drop(of_token);
        assert!(!account.is_idle(now));
        // A share that no request holds is dropped when others are asked for.
        assert!(Arc::ptr_eq(&of_password, &share(1_000)));
        assert_eq!(account.state.lock().unwrap().shares.len(), 1);
        drop(of_password);
        assert!(account.is_idle(now));
    }

    #[test]
    fn an_account_is_idle_when_a_new_one_would_say_the_same() {
        let now = Instant::now();
        let account = Account::new(now);
        assert!(account.is_idle(now));
        account.enter(&LIMITS, now).unwrap();
        assert!(!account.is_idle(now));
        account.leave();
        account.take(45, &LIMITS, now).unwrap();
        assert!(!account.is_idle(now));
        // Ten a second: idle once these 45 are refilled, not once the whole budget would be.
        assert!(!account.is_idle(now + Duration::from_secs(4)));
        assert!(account.is_idle(now + Duration::from_secs(5)));
    }
}

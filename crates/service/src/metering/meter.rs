//! The limits of one running request, over all accounts that it is charged to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_access::Limits;
use orrery_sparql::AccountShare;

use super::account::Account;
use super::exceeded::Exceeded;

/// A request, counted in its accounts until this is dropped.
#[derive(Debug)]
pub struct Meter {
    payers: Vec<(Arc<Account>, Limits)>,
}

impl Meter {
    /// Enters all accounts, or none.
    pub(super) fn enter(payers: Vec<(Arc<Account>, Limits)>) -> Result<Self, Exceeded> {
        let now = Instant::now();
        for (number, (account, limits)) in payers.iter().enumerate() {
            if let Err(exceeded) = account.enter(limits, now) {
                for (entered, _) in &payers[..number] {
                    entered.leave();
                }
                return Err(exceeded);
            }
        }
        Ok(Self { payers })
    }

    /// Takes the touches since the last call out of all budgets.
    ///
    /// # Errors
    /// When a budget has nothing left.
    pub fn take(&self, touches: u64) -> Result<(), Exceeded> {
        let now = Instant::now();
        let mut taken = Ok(());
        for (account, limits) in &self.payers {
            taken = taken.and(account.take(touches, limits, now));
        }
        taken
    }

    /// Checks that all budgets have this many touches left, before they are spent.
    ///
    /// # Errors
    /// When a budget has fewer.
    pub fn afford(&self, touches: u64) -> Result<(), Exceeded> {
        let now = Instant::now();
        let mut payers = self.payers.iter();
        payers.try_for_each(|(account, limits)| account.afford(touches, limits, now))
    }

    /// Whether any account has a budget of touches.
    pub(super) fn has_budget(&self) -> bool {
        self.payers.iter().any(|(_, limits)| limits.cost.is_some())
    }

    /// Time limit of the request.
    pub fn time_max(&self) -> Option<Duration> {
        let least = self.least(|limits| limits.time_ms);
        least.map(Duration::from_millis)
    }

    /// Limit of rows of the answer.
    pub fn rows_max(&self) -> Option<u64> {
        self.least(|limits| limits.rows)
    }

    /// The accounts' memory shares that bound the request's operators, beside the memory of all
    /// queries.
    pub fn shares(&self) -> Vec<Arc<AccountShare>> {
        let payers = self.payers.iter();
        payers
            .filter_map(|(account, limits)| account.share(limits))
            .collect()
    }

    /// Limit of bytes of the answer.
    pub fn bytes_max(&self) -> Option<u64> {
        self.least(|limits| limits.bytes)
    }

    /// Fails for an answer longer than its limit.
    pub fn require_bytes(&self, bytes: u64) -> Result<(), Exceeded> {
        match self.bytes_max() {
            Some(max) if bytes > max => Err(Exceeded::Bytes { max }),
            _ => Ok(()),
        }
    }

    fn least(&self, of: impl Fn(&Limits) -> Option<u64>) -> Option<u64> {
        self.payers
            .iter()
            .filter_map(|(_, limits)| of(limits))
            .min()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        for (account, _) in &self.payers {
            account.leave();
        }
    }
}

//! What a request may use, while it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_access::Limits;
use orrery_sparql::AccountShare;

use super::account::Account;
use super::exceeded::Exceeded;

/// A request that is counted in its accounts until this is dropped.
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

    /// Takes what was done since the last time out of the budgets.
    ///
    /// # Errors
    /// When one of them has nothing left.
    pub fn take(&self, touches: u64) -> Result<(), Exceeded> {
        let now = Instant::now();
        let mut taken = Ok(());
        for (account, limits) in &self.payers {
            taken = taken.and(account.take(touches, limits, now));
        }
        taken
    }

    /// Whether so much is left of all budgets, before it is done.
    ///
    /// # Errors
    /// When one of them has less.
    pub fn afford(&self, touches: u64) -> Result<(), Exceeded> {
        let now = Instant::now();
        let mut payers = self.payers.iter();
        payers.try_for_each(|(account, limits)| account.afford(touches, limits, now))
    }

    /// Whether what is done may be more than there is.
    pub(super) fn has_budget(&self) -> bool {
        self.payers.iter().any(|(_, limits)| limits.cost.is_some())
    }

    /// How long the request may take.
    pub fn time_max(&self) -> Option<Duration> {
        let least = self.least(|limits| limits.time_ms);
        least.map(Duration::from_millis)
    }

    /// Rows that the answer may have.
    pub fn rows_max(&self) -> Option<u64> {
        self.least(|limits| limits.rows)
    }

    /// What the request's operators are held to, beside the memory of all.
    pub fn shares(&self) -> Vec<Arc<AccountShare>> {
        let payers = self.payers.iter();
        payers
            .filter_map(|(account, limits)| account.share(limits))
            .collect()
    }

    /// Bytes that the answer may have.
    pub fn bytes_max(&self) -> Option<u64> {
        self.least(|limits| limits.bytes)
    }

    /// Fails for an answer that is longer than it may be.
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

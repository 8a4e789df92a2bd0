//! Payment of a request that runs several plans, such as an update or an SQL statement, charged
//! while it works.

use std::sync::Arc;

use orrery_sparql::{MemoryPool, OwnShare, Spending, Touched as _};

use super::cost_watch::CostWatch;
use super::exceeded::Exceeded;
use super::meter::Meter;
use super::till::Till;
use crate::record::StatementRecord;

/// The counter of a request's work, and the accounts that pay for it.
#[derive(Debug)]
pub struct Payment {
    spending: Arc<Spending>,
    /// The memory pool of the spending, which knows how much the request holds.
    own_share: Arc<OwnShare>,
    till: Arc<Till>,
}

impl Payment {
    /// Creates the payment of a request that takes its memory from this pool. Work that spends ends
    /// when the meter's budget is used up, with the message of `words`; without a budget nothing is
    /// checked while the request works, and no work is split for that.
    pub fn new(
        memory: &Arc<dyn MemoryPool>,
        meter: Option<Arc<Meter>>,
        record: Option<Arc<StatementRecord>>,
        words: impl Fn(Exceeded) -> String + Send + Sync + 'static,
    ) -> Self {
        let own_share = OwnShare::of(memory);
        let spending = Spending::new(Some(Arc::clone(&own_share) as _));
        let has_budget = meter.as_ref().is_some_and(|meter| meter.has_budget());
        let till = Arc::new(Till::new(meter, record));
        if has_budget {
            Self::limit(&spending, &till, words);
        }
        Self {
            spending,
            own_share,
            till,
        }
    }

    fn limit(
        spending: &Spending,
        till: &Arc<Till>,
        words: impl Fn(Exceeded) -> String + Send + Sync + 'static,
    ) {
        // A weak reference: a session keeps the spending of its last statement, and with the till
        // it would keep a place among its account's requests.
        let asked = Arc::downgrade(till);
        spending.limit_by(move |touches| {
            let Some(till) = asked.upgrade() else {
                // The request has ended; later work on its rows is paid for by its own request.
                return Ok(());
            };
            let _ = till.pay_up_to(touches);
            till.exceeded()
                .map_or(Ok(()), |exceeded| Err(words(exceeded)))
        });
    }

    /// The counter, for code that runs plans.
    pub fn spending(&self) -> &Arc<Spending> {
        &self.spending
    }

    /// The memory that this request holds.
    pub fn own_share(&self) -> &Arc<OwnShare> {
        &self.own_share
    }

    /// Touches so far.
    pub fn touches(&self) -> u64 {
        self.spending.touches()
    }

    /// A watch that charges for touches not paid for yet.
    pub fn watch(&self) -> CostWatch {
        let (spending, till) = (Arc::clone(&self.spending), Arc::clone(&self.till));
        CostWatch::of_till(Box::new(spending), till)
    }

    /// The limit that work has passed when it could not report so itself.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.till.exceeded()
    }

    /// Runs work that can be cancelled and charges for it; fails if the budget is used up.
    pub async fn while_paid<T, E: From<Exceeded>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut cost = self.watch();
        let done = tokio::select! {
            biased;
            done = work => done,
            exceeded = cost.exceeded() => Err(exceeded.into()),
        };
        // The work is dropped by now, and has counted everything it did.
        cost.settle();
        match self.exceeded() {
            Some(exceeded) => Err(exceeded.into()),
            None => done,
        }
    }

    /// Charges for quads that a change added or removed, as far as they were not charged while it
    /// was made.
    pub fn charge(&self, quads: u64) {
        self.spending
            .add(quads.saturating_sub(self.spending.changed()));
        // The change is made; if the budget is empty, the next request is refused.
        let _ = self.till.pay_up_to(self.touches());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use orrery_access::{Budget, Limits};
    use orrery_sparql::{Engine, EngineOptions};
    use orrery_storage::Database;

    use super::*;
    use crate::metering::account::Account;

    const BUDGET: Budget = Budget {
        touches: 100,
        seconds: 3_600,
    };

    fn payment(limits: Option<Limits>) -> Payment {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::create_or_open(directory.path().join("db")).unwrap();
        let engine = Engine::new(Arc::new(database), EngineOptions::default()).unwrap();
        let meter = limits.map(|limits| {
            let account = Arc::new(Account::new(Instant::now()));
            Arc::new(Meter::enter(vec![(account, limits)]).unwrap())
        });
        let memory = engine.runtime().memory().operators();
        Payment::new(memory, meter, None, |exceeded| exceeded.to_string())
    }

    #[test]
    fn only_a_budget_is_asked_while_work_goes_on() {
        let with_cost = |cost| Limits {
            rows: Some(10),
            cost,
            ..Limits::default()
        };
        for limits in [None, Some(with_cost(None))] {
            let free = payment(limits);
            assert!(!free.spending().is_limited());
            free.spending().spend(1_000_000).unwrap();
            assert_eq!((free.touches(), free.exceeded()), (1_000_000, None));
        }
        let held = payment(Some(with_cost(Some(BUDGET))));
        assert!(held.spending().is_limited());
        held.spending().spend(99).unwrap();
        assert!(held.spending().spend(2).is_err());
        assert!(held.exceeded().is_some());
    }
}

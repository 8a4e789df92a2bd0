//! A request that pays while it works, in whatever it runs: updates, statements of SQL.

use std::sync::Arc;

use orrery_sparql::{MemoryPool, OwnShare, Spending, Touched as _};

use super::cost_watch::CostWatch;
use super::exceeded::Exceeded;
use super::meter::Meter;
use super::till::Till;
use crate::record::StatementRecord;

/// What counts a request's work, and whose it is.
#[derive(Debug)]
pub struct Payment {
    spending: Arc<Spending>,
    /// The pool that the spending has, which knows what the request holds.
    own_share: Arc<OwnShare>,
    till: Arc<Till>,
}

impl Payment {
    /// Of a request that takes its memory from this pool. Whatever spends of it ends where the meter says that nothing is left, with these words; where there is no budget, nothing is asked
    /// while it works, and nothing is done in portions for that.
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
        // Not held: a session keeps the spending of its last statement, and with the till a place among the requests of its account.
        let asked = Arc::downgrade(till);
        spending.limit_by(move |touches| {
            let Some(till) = asked.upgrade() else {
                // The request has ended; what is done with its rows later is paid for by who does it.
                return Ok(());
            };
            let _ = till.pay_up_to(touches);
            till.exceeded()
                .map_or(Ok(()), |exceeded| Err(words(exceeded)))
        });
    }

    /// What counts, for whoever runs plans.
    pub fn spending(&self) -> &Arc<Spending> {
        &self.spending
    }

    /// What the request holds of the memory, apart from others.
    pub fn own_share(&self) -> &Arc<OwnShare> {
        &self.own_share
    }

    /// What was done until now, in touches.
    pub fn touches(&self) -> u64 {
        self.spending.touches()
    }

    /// Looks at what is done, and was not paid for yet.
    pub fn watch(&self) -> CostWatch {
        let (spending, till) = (Arc::clone(&self.spending), Arc::clone(&self.till));
        CostWatch::of_till(Box::new(spending), till)
    }

    /// Why work was ended that could not say it itself: nothing was left when it spent more.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.till.exceeded()
    }

    /// What work comes to that can still be given up, charged while it goes on and for its rest, unless it costs more than there is.
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
        // What ran is gone, and has told all that it did.
        cost.settle();
        match self.exceeded() {
            Some(exceeded) => Err(exceeded.into()),
            None => done,
        }
    }

    /// Charges for quads that a change has brought or taken away, as far as they were not paid for while it was made.
    pub fn charge(&self, quads: u64) {
        self.spending
            .add(quads.saturating_sub(self.spending.changed()));
        // It is done; the next request is told that nothing is left.
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

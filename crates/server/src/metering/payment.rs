//! A request that pays while it works, in whatever it runs: updates, statements of SQL.

use std::sync::Arc;

use orrery_sparql::{MemoryPool, OwnShare, Spending, Touched as _};

use super::cost_watch::CostWatch;
use super::exceeded::Exceeded;
use super::meter::Meter;
use crate::access_log::AccessRecord;

/// What counts a request's work, and whose it is.
#[derive(Debug)]
pub(crate) struct Payment {
    spending: Arc<Spending>,
    /// The pool that the spending has, which knows what the request holds.
    own_share: Arc<OwnShare>,
    /// None where nothing is limited.
    meter: Option<Arc<Meter>>,
    /// None where it comes by another way than HTTP.
    record: Option<Arc<AccessRecord>>,
}

impl Payment {
    /// Of a request that takes its memory from this pool.
    pub(crate) fn new(
        memory: &Arc<dyn MemoryPool>,
        meter: Option<Arc<Meter>>,
        record: Option<Arc<AccessRecord>>,
    ) -> Self {
        let own_share = OwnShare::of(memory);
        Self {
            spending: Spending::new(Some(Arc::clone(&own_share) as _)),
            own_share,
            meter,
            record,
        }
    }

    /// What counts, for whoever runs plans.
    pub(crate) fn spending(&self) -> &Arc<Spending> {
        &self.spending
    }

    /// What the request holds of the memory, apart from others.
    pub(crate) fn own_share(&self) -> &Arc<OwnShare> {
        &self.own_share
    }

    /// What was done until now, in touches.
    pub(crate) fn touches(&self) -> u64 {
        self.spending.touches()
    }

    /// Looks at what is done from now on.
    pub(crate) fn watch(&self) -> CostWatch {
        let (spending, meter) = (Arc::clone(&self.spending), self.meter.clone());
        CostWatch::new(Box::new(spending), meter, self.record.clone())
    }

    /// What work comes to, charged while it goes on and for its rest, unless it costs more than there is.
    pub(crate) async fn while_paid<T, E: From<Exceeded>>(
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
        done
    }

    /// Charges for what no watch sees: quads and rows that an update has changed.
    pub(crate) fn charge(&self, touches: u64) {
        self.spending.add(touches);
        if let Some(record) = &self.record {
            record.add_touches(touches);
        }
        if let Some(meter) = &self.meter {
            // It is done; the next request is told that nothing is left.
            let _ = meter.take(touches);
        }
    }
}

//! Looks at what a query costs while it runs, and charges for it: every so often, and at its end, however it ends.

use std::sync::Arc;
use std::time::Duration;

use orrery_sparql::Touched;
use tokio::time::Instant;

use super::exceeded::Exceeded;
use super::meter::Meter;
use super::till::Till;
use crate::record::StatementRecord;

/// How often what a query costs is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// See the module.
pub struct CostWatch {
    reader: Box<dyn Touched>,
    till: Arc<Till>,
    /// Nothing is done any more that would cost something.
    is_settled: bool,
    next_look: Instant,
}

impl CostWatch {
    /// Of what is done from now on.
    pub fn new(
        reader: Box<dyn Touched>,
        meter: Option<Arc<Meter>>,
        record: Option<Arc<StatementRecord>>,
    ) -> Self {
        let till = Till::new(meter, record).beginning_at(reader.touches());
        Self::of_till(reader, Arc::new(till))
    }

    /// Of what was not paid for yet.
    pub(super) fn of_till(reader: Box<dyn Touched>, till: Arc<Till>) -> Self {
        Self {
            reader,
            till,
            is_settled: false,
            next_look: Instant::now() + LOOK_EVERY,
        }
    }

    /// Charges for the rest of a query that has ended, and tells all that it cost, in touches.
    pub fn settle(&mut self) -> u64 {
        // The answer is made; the next request is told that nothing is left.
        let _ = self.charge();
        self.is_settled = true;
        self.till.paid()
    }

    /// Ends when the query costs more than there is.
    pub async fn exceeded(&mut self) -> Exceeded {
        loop {
            tokio::time::sleep_until(self.next_look).await;
            if let Err(exceeded) = self.look() {
                return exceeded;
            }
        }
    }

    /// Fails if the query costs more than there is, as far as it is time to look again: for those that are never waited for.
    pub fn look(&mut self) -> Result<(), Exceeded> {
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + LOOK_EVERY;
        self.charge()
    }

    /// Fails for an answer that is longer than it may be.
    pub fn require_bytes(&self, bytes: u64) -> Result<(), Exceeded> {
        let meter = self.till.meter();
        meter.map_or(Ok(()), |meter| meter.require_bytes(bytes))
    }

    /// Takes what was done since the last time out of the budgets.
    fn charge(&mut self) -> Result<(), Exceeded> {
        self.till.pay_up_to(self.reader.touches())
    }
}

impl Drop for CostWatch {
    fn drop(&mut self) {
        if !self.is_settled {
            // Nobody is left to be told; the next request is.
            let _ = self.charge();
        }
    }
}

//! Watches the cost of a running query, and charges for it: periodically, and at the query's end,
//! however it ends.

use std::sync::Arc;
use std::time::Duration;

use orrery_sparql::Touched;
use tokio::time::Instant;

use super::exceeded::Exceeded;
use super::meter::Meter;
use super::till::Till;
use crate::record::StatementRecord;

/// Interval between two looks at a query's cost.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The cost of one query, charged as it grows.
pub struct CostWatch {
    reader: Box<dyn Touched>,
    till: Arc<Till>,
    /// Whether the query is over and fully charged.
    is_settled: bool,
    next_look: Instant,
}

impl CostWatch {
    /// Watches the touches made from now on.
    pub fn new(
        reader: Box<dyn Touched>,
        meter: Option<Arc<Meter>>,
        record: Option<Arc<StatementRecord>>,
    ) -> Self {
        let till = Till::new(meter, record).beginning_at(reader.touches());
        Self::of_till(reader, Arc::new(till))
    }

    /// Watches the touches that the till has not charged yet.
    pub(super) fn of_till(reader: Box<dyn Touched>, till: Arc<Till>) -> Self {
        Self {
            reader,
            till,
            is_settled: false,
            next_look: Instant::now() + LOOK_EVERY,
        }
    }

    /// Charges for the rest of a query that has ended; returns the query's whole cost in touches.
    pub fn settle(&mut self) -> u64 {
        // The answer is complete; if the budget is empty, the next request is refused.
        let _ = self.charge();
        self.is_settled = true;
        self.till.paid()
    }

    /// Completes when the query has used up the budget.
    pub async fn exceeded(&mut self) -> Exceeded {
        loop {
            tokio::time::sleep_until(self.next_look).await;
            if let Err(exceeded) = self.look() {
                return exceeded;
            }
        }
    }

    /// Charges if it is time to, and fails if the budget is used up; for callers that never wait.
    pub fn look(&mut self) -> Result<(), Exceeded> {
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + LOOK_EVERY;
        self.charge()
    }

    /// Fails for an answer longer than its limit.
    pub fn require_bytes(&self, bytes: u64) -> Result<(), Exceeded> {
        let meter = self.till.meter();
        meter.map_or(Ok(()), |meter| meter.require_bytes(bytes))
    }

    /// Charges for the touches since the last charge.
    fn charge(&mut self) -> Result<(), Exceeded> {
        self.till.pay_up_to(self.reader.touches())
    }
}

impl Drop for CostWatch {
    fn drop(&mut self) {
        if !self.is_settled {
            // The query is over; if the budget is empty, the next request is refused.
            let _ = self.charge();
        }
    }
}

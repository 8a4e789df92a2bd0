//! The till of one request: charges each touch once, whether a watch or the work itself reports it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::exceeded::Exceeded;
use super::meter::Meter;
use crate::record::StatementRecord;

/// The touches of a request that were charged.
#[derive(Debug)]
pub(super) struct Till {
    /// None if the sender has no limits.
    meter: Option<Arc<Meter>>,
    /// None if the request has no record.
    record: Option<Arc<StatementRecord>>,
    paid: AtomicU64,
    /// The limit that was passed, if any.
    exceeded: Mutex<Option<Exceeded>>,
}

impl Till {
    pub(super) fn new(meter: Option<Arc<Meter>>, record: Option<Arc<StatementRecord>>) -> Self {
        Self {
            meter,
            record,
            paid: AtomicU64::new(0),
            exceeded: Mutex::default(),
        }
    }

    /// Starts at this many touches, which are charged elsewhere.
    pub(super) fn beginning_at(self, touches: u64) -> Self {
        self.paid.store(touches, Ordering::Relaxed);
        self
    }

    /// Charges for touches up to this total that were not charged yet.
    ///
    /// # Errors
    /// When nothing is left afterwards.
    pub(super) fn pay_up_to(&self, touches: u64) -> Result<(), Exceeded> {
        let before = self.paid.fetch_max(touches, Ordering::Relaxed);
        let more = touches.saturating_sub(before);
        if let Some(record) = &self.record {
            record.add_touches(more);
        }
        let paid = self.meter.as_ref().map_or(Ok(()), |meter| meter.take(more));
        if let Err(exceeded) = paid
            && exceeded.is_overdrawn()
        {
            let mut said = self.exceeded.lock().unwrap_or_else(PoisonError::into_inner);
            *said = Some(exceeded);
        }
        paid
    }

    /// Touches charged so far.
    pub(super) fn paid(&self) -> u64 {
        self.paid.load(Ordering::Relaxed)
    }

    /// The limit that was passed, if any. Using a budget up to its last touch does not pass it.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        *self.exceeded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request's limits.
    pub(super) fn meter(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }
}

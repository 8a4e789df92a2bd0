//! Where one request's work is paid for, each touch once, whoever looks: a watch every so often, or the work itself when it spends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::exceeded::Exceeded;
use super::meter::Meter;
use crate::record::StatementRecord;

/// See the module.
#[derive(Debug)]
pub(super) struct Till {
    /// None where nothing is limited.
    meter: Option<Arc<Meter>>,
    /// None where it is not a request of HTTP.
    record: Option<Arc<StatementRecord>>,
    paid: AtomicU64,
    /// What was said when more was done than there was.
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

    /// The same, where so many touches are no business of this one.
    pub(super) fn beginning_at(self, touches: u64) -> Self {
        self.paid.store(touches, Ordering::Relaxed);
        self
    }

    /// Pays for what was not paid for yet of so many touches.
    ///
    /// # Errors
    /// When nothing is left then.
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

    /// All that was paid for.
    pub(super) fn paid(&self) -> u64 {
        self.paid.load(Ordering::Relaxed)
    }

    /// What was said when more was done than there was, if that was so. What uses up all to the last touch is done.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        *self.exceeded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the request may use.
    pub(super) fn meter(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }
}

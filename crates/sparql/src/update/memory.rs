//! The memory count of a transaction's changes.

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use orrery_storage::ChangeMemory;

use crate::engine::Engine;

/// A part of the memory of an engine's operators.
#[derive(Debug)]
pub(super) struct EngineMemory {
    reservation: MemoryReservation,
    limit_bytes: u64,
}

impl EngineMemory {
    pub(super) fn new(engine: &Engine) -> Self {
        let consumer = MemoryConsumer::new("changes of an update");
        Self {
            reservation: consumer.register(engine.memory_pool()),
            limit_bytes: engine.options().memory_bytes,
        }
    }
}

impl ChangeMemory for EngineMemory {
    fn try_grow(&mut self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.reservation.try_grow(bytes).is_ok())
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }
}

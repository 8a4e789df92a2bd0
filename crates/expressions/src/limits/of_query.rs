//! The limits of one query, shared by all its expressions.

use std::sync::Arc;

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use super::ends::Ends;

/// The limits of one query; what its expressions may take.
#[derive(Debug)]
pub(crate) struct Limits {
    pool: Arc<dyn MemoryPool>,
    pub(crate) ends: Ends,
}

impl Limits {
    /// Values are counted against this pool; time has no end yet.
    pub(crate) fn new(pool: Arc<dyn MemoryPool>) -> Self {
        let ends = Ends::default();
        Self { pool, ends }
    }

    /// Nothing yet of what values will be counted with.
    pub(super) fn new_reservation(&self) -> MemoryReservation {
        MemoryConsumer::new("values of a batch").register(&self.pool)
    }
}

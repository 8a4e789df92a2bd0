//! The account whose memory file reads are charged to.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::execution::memory_pool::MemoryPool;
use orrery_runtime::Spending;

/// That of who asks; of everyone, where none is said.
pub(super) fn pool_of(state: &dyn Session) -> Arc<dyn MemoryPool> {
    let spending = state.config().get_extension::<Spending>();
    let of_who_pays = spending.as_ref().and_then(|spending| spending.memory());
    Arc::clone(of_who_pays.unwrap_or(&state.runtime_env().memory_pool))
}

//! Memory reservations for function results.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use orrery_runtime::FUNCTION_RESULT;
use orrery_storage::ByteCount;

use crate::{Error, SqlState};

/// Results up to this need not be asked for: they are as large as other batches on their way, for
/// which each query has set memory aside.
pub(super) const SMALL_BYTES: u64 = 4 << 20;
/// The texts and bytes of one column of a batch are addressed by 31 bits.
const RESULT_BYTES_MAX: u64 = (1 << 31) - (1 << 20);

/// Asks for the memory of a result of so many bytes, until what is returned is dropped; `None` for
/// a small one.
pub(super) fn asked_for(
    pool: &Arc<dyn MemoryPool>,
    name: &str,
    bytes: u64,
    copies: u64,
) -> Result<Option<MemoryReservation>> {
    if bytes <= SMALL_BYTES {
        return Ok(None);
    }
    if bytes > RESULT_BYTES_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!(
                "what {name} is to give for the rows of one batch may take {}, and {} may be: ask for shorter values or fewer elements",
                ByteCount(bytes),
                ByteCount(RESULT_BYTES_MAX)
            ),
        )
        .into());
    }
    let reservation = MemoryConsumer::new(FUNCTION_RESULT).register(pool);
    reservation.try_grow((bytes * copies) as usize)?;
    Ok(Some(reservation))
}

//! Runs a query a second time if it ran out of memory before any of its answer was sent.
//!
//! ```text
//! first try -> out of memory -> the narrow lane -> wait for memory that is given back -> second try
//!                                                                                      | out of memory
//!                                      others hold the missing memory: 503, with Retry-After
//!                                      they do not:                    507, with what is missing
//! ```
//!
//! The service decides when the second try begins (`orrery_service::second_try`); this module knows
//! that nothing was sent, and how to restart the work.

use crate::answer::output::{Output, Stop};
use orrery_service::admission::AdmissionPermit;
use orrery_service::errors::ServiceError;
use orrery_service::second_try::SecondTry;
use orrery_sparql::{MemoryPool, OwnShare};
use std::sync::Arc;

/// Work that can restart as long as nothing was sent.
pub(crate) trait Tried {
    /// The admission permit of the request.
    fn turn(&self) -> &AdmissionPermit;

    /// The memory pool of all requests.
    fn memory(&self) -> Arc<dyn MemoryPool>;

    /// Counts the request's memory apart from now on, and discards the notes of the first try.
    fn begin_again(&mut self) -> Arc<OwnShare>;

    /// Does the work, and writes its answer to the output.
    fn produce(&self, output: &mut Output) -> impl Future<Output = Result<(), Stop>> + Send;
}

/// Does the work; if it runs out of memory before anything was sent, does it once more in the
/// narrow lane.
pub(crate) async fn produce_within_memory(
    job: &mut impl Tried,
    output: &mut Output,
) -> Result<(), Stop> {
    let first = job.produce(output).await;
    if !is_out_of_memory(&first) || !output.can_restart() {
        return first;
    }
    output.restart();
    let memory = job.memory();
    let second = SecondTry::of_turn(job.turn(), &memory);
    match output.wait(second).await {
        Ok(second) => output.hold_until_sent(second?),
        Err(Stop::Failed(ServiceError::Timeout { .. })) => return Err(busy()),
        Err(stop) => return Err(stop),
    }
    // Whether others hold the memory is known only at the moment of the refusal.
    let own = job.begin_again();
    let second = job.produce(output).await;
    match is_out_of_memory(&second) && own.is_refused_for_others() {
        true => Err(busy()),
        false => second,
    }
}

fn is_out_of_memory(ended: &Result<(), Stop>) -> bool {
    matches!(ended, Err(Stop::Failed(ServiceError::OutOfMemory { .. })))
}

fn busy() -> Stop {
    Stop::Failed(ServiceError::MemoryBusy {
        message: "other queries hold the memory that this one needs; try again in a moment"
            .to_owned(),
    })
}

//! A second try for what ran out of memory before anything of its answer was sent.
//!
//! ```text
//! first try -> out of memory -> the narrow lane -> what others give back, the first try too -> second try
//!                                                                                               | out of memory:
//!                                              others hold what is missing: 503, with Retry-After
//!                                              they do not:                 507, with what is missing
//! ```
//!
//! What a request held is given back bit by bit, by tasks that end after its answer was sent. So a second try begins when next to
//! nothing is held, or after a moment: what is held during it is its own, or that of requests that do run.

use crate::answer::output::{Output, Stop};
use orrery_service::admission::AdmissionPermit;
use orrery_service::errors::ServiceError;
use orrery_sparql::{MemoryPool, OwnShare};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait for memory that is given back. What runs looks at least every 10 ms whether it goes on, so that
/// what has ended is gone long before, on a busy machine, too.
const GIVEN_BACK_MAX: Duration = Duration::from_secs(1);
/// How often it is looked.
const LOOK_STEP: Duration = Duration::from_millis(5);

/// Work that can be begun anew as long as nothing was sent.
pub(crate) trait Tried {
    /// Its turn among all requests.
    fn turn(&self) -> &AdmissionPermit;

    /// What all requests take their memory from.
    fn memory(&self) -> Arc<dyn MemoryPool>;

    /// What the request holds of the memory, counted apart from now on; forgets what the first try has noted.
    fn begin_again(&mut self) -> Arc<OwnShare>;

    /// Does it.
    fn produce(&self, output: &mut Output) -> impl Future<Output = Result<(), Stop>> + Send;
}

/// Does the work; once more, apart from others of its kind, if it ran out of memory before anything was sent.
pub(crate) async fn produce_within_memory(
    job: &mut impl Tried,
    output: &mut Output,
) -> Result<(), Stop> {
    let first = job.produce(output).await;
    if !is_out_of_memory(&first) || !output.can_restart() {
        return first;
    }
    tracing::debug!("out of memory; once more in the narrow lane");
    output.restart();
    let _lane = match output.wait(job.turn().narrow_lane()).await {
        Ok(lane) => lane?,
        Err(Stop::Failed(ServiceError::Timeout { .. })) => return Err(busy()),
        Err(stop) => return Err(stop),
    };
    output.wait(given_back(job.memory())).await?;
    // Whether others are the reason is known in the moment of the refusal only.
    let own = job.begin_again();
    let second = job.produce(output).await;
    match is_out_of_memory(&second) && own.is_refused_for_others() {
        true => Err(busy()),
        false => second,
    }
}

/// Waits until next to nothing of the memory is held, or for a moment.
async fn given_back(memory: Arc<dyn MemoryPool>) {
    let end = Instant::now() + GIVEN_BACK_MAX;
    while OwnShare::is_much_held(&memory) && Instant::now() < end {
        tokio::time::sleep(LOOK_STEP).await;
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

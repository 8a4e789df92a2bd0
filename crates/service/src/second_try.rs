//! The second try of a query that ran out of memory before any of its answer was sent.
//!
//! ```text
//! first try -> out of memory -> the narrow lane -> wait until memory is given back -> second try
//! ```
//!
//! Queries that ran out of memory beside others may succeed with fewer of their kind, so they then
//! run one after the other. Tasks give a failed statement's memory back bit by bit as they end. So
//! a second try begins when next to nothing is held, or after a moment. Each protocol runs its
//! statement again by itself; it knows what it has sent.

use std::sync::Arc;
use std::time::Duration;

use orrery_sparql::{MemoryPool, OwnShare};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::admission::AdmissionPermit;
use crate::errors::ServiceError;
use crate::service::Service;

/// Longest wait for memory to be given back. Running tasks check at least every 10 ms whether they
/// must end, so that ended ones are gone long before, on a busy machine, too.
const GIVEN_BACK_MAX: Duration = Duration::from_secs(1);
/// Interval between checks of the memory.
const LOOK_STEP: Duration = Duration::from_millis(5);

/// Longest wait of a port's statement for the lane: it holds a turn meanwhile, which others want.
const LANE_WAIT_MAX: Duration = Duration::from_secs(2);

/// The right to a second try; held until its first rows are there, or it has failed.
#[derive(Debug)]
pub struct SecondTry {
    _lane: OwnedSemaphorePermit,
}

impl SecondTry {
    /// Waits for the right. `memory`: the pool of all queries.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn of_turn(
        turn: &AdmissionPermit,
        memory: &Arc<dyn MemoryPool>,
    ) -> Result<Self, ServiceError> {
        Self::in_lane(turn.narrow_lane(), memory).await
    }

    async fn in_lane(
        lane: &Arc<Semaphore>,
        memory: &Arc<dyn MemoryPool>,
    ) -> Result<Self, ServiceError> {
        tracing::debug!("out of memory; once more in the narrow lane");
        let lane = Arc::clone(lane).acquire_owned().await;
        let lane = lane.map_err(|_closed| ServiceError::Stopping)?;
        let end = Instant::now() + GIVEN_BACK_MAX;
        while OwnShare::is_much_held(memory) && Instant::now() < end {
            tokio::time::sleep(LOOK_STEP).await;
        }
        Ok(Self { _lane: lane })
    }
}

impl Service {
    /// Waits for the right to a second try of a statement that has its turn.
    ///
    /// # Errors
    /// When the server stops, or others have theirs for long.
    pub async fn second_try(&self) -> Result<SecondTry, ServiceError> {
        let memory = self.engine.runtime().memory().operators();
        let second = SecondTry::in_lane(self.admission.narrow_lane(), memory);
        let second = tokio::time::timeout(LANE_WAIT_MAX, second).await;
        second.unwrap_or_else(|_elapsed| {
            let message = "other statements have their second try; try again in a moment";
            Err(ServiceError::MemoryBusy {
                message: message.to_owned(),
            })
        })
    }
}

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
//!
//! A statement that waits for its second try holds no turn: others run meanwhile.

use std::sync::Arc;
use std::time::Duration;

use orrery_sparql::{MemoryPool, OwnShare};
use orrery_sql::{Session, Turn};
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
        turn.leave();
        let second = Self::in_lane(turn.narrow_lane(), memory).await?;
        turn.again().await?;
        Ok(second)
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
    /// Waits for the right to a second try of a statement of a session, and for a new turn of it.
    ///
    /// # Errors
    /// When the server stops, or there is no turn to be had.
    pub async fn second_try(&self, session: &Session) -> Result<(SecondTry, Turn), ServiceError> {
        session.leave_place();
        let memory = self.engine.runtime().memory().operators();
        let second = SecondTry::in_lane(self.admission.narrow_lane(), memory).await?;
        Ok((second, self.turn_of(session).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Admission;
    use datafusion_execution::memory_pool::UnboundedMemoryPool;

    #[tokio::test]
    async fn who_waits_for_a_second_try_holds_no_turn() {
        let admission = Admission::new(1, 1);
        let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let first = admission.turn().await.unwrap();
        let lane = Arc::clone(admission.narrow_lane()).acquire_owned().await;
        let second = SecondTry::of_turn(&first, &memory);
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(admission.running(), 0);
        let other = admission.turn().await.unwrap();
        drop(lane);
        // The lane is free, and the one turn is another's.
        assert!(futures::poll!(&mut second).is_pending());
        drop(other);
        let _second = second.await.unwrap();
        assert_eq!(admission.running(), 1);
        assert!(
            Arc::clone(admission.narrow_lane())
                .try_acquire_owned()
                .is_err()
        );
    }
}

//! Admission control: bounds how many queries run at the same time, and how many may wait for a
//! turn.
//!
//! A running query holds memory and a thread, so the number of queries is bounded. Some more may
//! wait a moment; a client beyond that bound is refused at once rather than queued for long.
//!
//! A statement that waits for another statement's work holds no turn. All changes wait for the
//! transaction that has the writers' turn, so that transaction has a place of its own beside the
//! others ([`Admission::turn_of_writer`]).
//!
//! A query that ran out of memory beside others may succeed with fewer of its kind: such queries
//! have their second try one after the other, in the *narrow lane*.

use crate::errors::ServiceError;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest wait for a turn.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Bounds on the queries that run and wait.
#[derive(Debug)]
pub struct Admission {
    running: Arc<Semaphore>,
    running_max: usize,
    waiting: Semaphore,
    waiting_max: usize,
    narrow: Arc<Semaphore>,
    /// The place of the transaction that has the writers' turn.
    writer: Arc<Semaphore>,
}

/// The right to run a query; held while the query runs.
#[derive(Debug)]
pub struct AdmissionPermit {
    /// None while the query waits for its second try.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    running: Arc<Semaphore>,
    narrow: Arc<Semaphore>,
}

impl AdmissionPermit {
    /// Gives the turn back while its query waits for others.
    pub(crate) fn leave(&self) {
        drop(self.permit.lock().take());
    }

    /// Waits for a turn again, for as long as the caller waits.
    pub(crate) async fn again(&self) -> Result<(), ServiceError> {
        let permit = Arc::clone(&self.running).acquire_owned().await;
        let permit = permit.map_err(|_closed| ServiceError::Stopping)?;
        *self.permit.lock() = Some(permit);
        Ok(())
    }

    /// The lock of the narrow lane; its holder may have a second try (see `second_try`).
    pub(crate) fn narrow_lane(&self) -> &Arc<Semaphore> {
        &self.narrow
    }
}

impl Admission {
    /// Creates the bounds for this many running and this many waiting queries.
    pub fn new(running_max: usize, waiting_max: usize) -> Self {
        Self {
            running: Arc::new(Semaphore::new(running_max)),
            running_max,
            waiting: Semaphore::new(waiting_max),
            waiting_max,
            narrow: Arc::new(Semaphore::new(1)),
            writer: Arc::new(Semaphore::new(1)),
        }
    }

    /// The lock of the narrow lane; its holder may have a second try (see `second_try`).
    pub(crate) fn narrow_lane(&self) -> &Arc<Semaphore> {
        &self.narrow
    }

    /// Waits for a turn, for `WAIT_MAX` at most.
    pub async fn turn(&self) -> Result<AdmissionPermit, ServiceError> {
        let busy = || ServiceError::Busy {
            running_max: self.running_max,
        };
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(self.of(permit));
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        let acquired =
            tokio::time::timeout(WAIT_MAX, Arc::clone(&self.running).acquire_owned()).await;
        match acquired {
            Ok(Ok(permit)) => Ok(self.of(permit)),
            Ok(Err(_closed)) => Err(ServiceError::Stopping),
            Err(_elapsed) => Err(busy()),
        }
    }

    /// Gives a turn to the transaction that has the writers' turn, even if others wait.
    pub async fn turn_of_writer(&self) -> Result<AdmissionPermit, ServiceError> {
        match Arc::clone(&self.writer).try_acquire_owned() {
            Ok(permit) => Ok(self.of(permit)),
            Err(_) => self.turn().await,
        }
    }

    fn of(&self, permit: OwnedSemaphorePermit) -> AdmissionPermit {
        AdmissionPermit {
            permit: Mutex::new(Some(permit)),
            running: Arc::clone(&self.running),
            narrow: Arc::clone(&self.narrow),
        }
    }

    /// Number of queries that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting_max - self.waiting.available_permits()
    }

    /// Number of queries that may run at the same time.
    pub fn running_max(&self) -> usize {
        self.running_max
    }

    /// Number of queries that run now, including those whose answer is still being sent.
    pub fn running(&self) -> usize {
        self.running_max - self.running.available_permits()
    }
}

//! How many queries run at once, and how many may wait for their turn.
//!
//! A query holds memory and a thread, so their number is bounded. Some more may wait
//! a moment; beyond that a client is better told at once to come back than kept
//! in a growing line.
//!
//! What waits for another's work holds no turn. A transaction that has the writers' turn is waited for by all who change something, so it
//! has one more place than there are ([`Admission::turn_of_writer`]).
//!
//! A query that ran out of memory beside others may do well with fewer of its kind: such queries have their
//! second try one after the other, in the *narrow lane*.

use crate::errors::ServiceError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest wait for a turn.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// The door to the query threads.
#[derive(Debug)]
pub struct Admission {
    running: Arc<Semaphore>,
    running_max: usize,
    waiting: Semaphore,
    waiting_max: usize,
    narrow: Arc<Semaphore>,
    /// The place of who has the writers' turn.
    writer: Arc<Semaphore>,
}

/// Held while a query runs.
#[derive(Debug)]
pub struct AdmissionPermit {
    _permit: OwnedSemaphorePermit,
    narrow: Arc<Semaphore>,
}

impl AdmissionPermit {
    /// The narrow lane, when nobody else is in it.
    pub async fn narrow_lane(&self) -> Result<OwnedSemaphorePermit, ServiceError> {
        let lane = Arc::clone(&self.narrow).acquire_owned().await;
        lane.map_err(|_closed| ServiceError::Stopping)
    }
}

impl Admission {
    /// For so many queries that run, and so many that wait, at the same time.
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

    /// A turn, now or within a moment.
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

    /// A turn for who has the writers' turn, whoever else waits.
    pub async fn turn_of_writer(&self) -> Result<AdmissionPermit, ServiceError> {
        match Arc::clone(&self.writer).try_acquire_owned() {
            Ok(permit) => Ok(self.of(permit)),
            Err(_) => self.turn().await,
        }
    }

    fn of(&self, permit: OwnedSemaphorePermit) -> AdmissionPermit {
        AdmissionPermit {
            _permit: permit,
            narrow: Arc::clone(&self.narrow),
        }
    }

    /// Queries that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting_max - self.waiting.available_permits()
    }

    /// Queries that may run at the same time.
    pub fn running_max(&self) -> usize {
        self.running_max
    }

    /// Queries that run now, also those whose answer is still on its way.
    pub fn running(&self) -> usize {
        self.running_max - self.running.available_permits()
    }
}

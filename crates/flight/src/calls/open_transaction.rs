//! An open transaction: a session whose statements run one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_sql::Session;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tonic::{Code, Status};

use crate::refusal::refusal;

/// A transaction that a client has begun; dropping it without an end rolls it back.
pub(crate) struct OpenTransaction {
    pub(crate) session: Session,
    at_work: Arc<Mutex<()>>,
    is_over: AtomicBool,
}

impl OpenTransaction {
    /// Begins a transaction in a session.
    pub(crate) fn begin(session: Session) -> Self {
        session.begin_block();
        Self {
            session,
            at_work: Arc::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Refuses further statements.
    pub(crate) fn note_end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Waits for the previous statement to end.
    pub(crate) async fn enter(&self) -> Result<OwnedMutexGuard<()>, Status> {
        let guard = Arc::clone(&self.at_work).lock_owned().await;
        match self.is_over.load(Ordering::Acquire) {
            false => Ok(guard),
            true => Err(over()),
        }
    }
}

/// The error for a transaction that does not exist.
pub(crate) fn over() -> Status {
    refusal(
        Code::NotFound,
        "25P01",
        "there is no such transaction: it was ended, by its client or because it was not used for too long",
    )
}

//! A statement at PostgreSQL's or Flight SQL's port that is charged while it runs. The ports know
//! nothing of accounts, so a separate task watches the cost.
//!
//! ```text
//! enter -> task: charges every 20 ms -> budget used up: tells the port, which ends the statement
//!       -> held beside the statement's turn; dropped: the rest is charged before the next begins
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::AbortHandle;

use super::cost_watch::{CostWatch, LOOK_EVERY};
use super::exceeded::Exceeded;

/// A statement, counted in its accounts until this is dropped.
pub struct PaidStatement {
    /// Holds the meter; none once the statement is over.
    cost: Arc<Mutex<Option<CostWatch>>>,
    task: AbortHandle,
}

impl PaidStatement {
    /// Charges for what is done from now on; calls `say` once when the budget is used up.
    pub fn new(cost: CostWatch, say: impl FnOnce(Exceeded) + Send + 'static) -> Self {
        let cost = Arc::new(Mutex::new(Some(cost)));
        let task = tokio::spawn(until_exceeded(Arc::clone(&cost), say));
        Self {
            task: task.abort_handle(),
            cost,
        }
    }
}

async fn until_exceeded(cost: Arc<Mutex<Option<CostWatch>>>, say: impl FnOnce(Exceeded) + Send) {
    let exceeded = loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut cost = cost.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cost) = cost.as_mut() else {
            return;
        };
        if let Err(exceeded) = cost.look() {
            break exceeded;
        }
    };
    say(exceeded);
}

impl Drop for PaidStatement {
    fn drop(&mut self) {
        self.task.abort();
        // Here and not in the task: the sender of the next statement has paid for this one.
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        drop(cost.take());
    }
}

//! A statement at the port of PostgreSQL or Flight SQL that is paid for while it works. The ports know nothing of accounts, so that a task of its own looks at it.
//!
//! ```text
//! enter -> task: every 20 ms what was done is taken out of the budgets -> nothing is left: the port is told, and ends the statement
//!       -> held beside the statement's turn; dropped: the rest is charged before the next statement may begin
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::AbortHandle;

use super::cost_watch::{CostWatch, LOOK_EVERY};
use super::exceeded::Exceeded;

/// Counts a statement in its accounts until this is dropped.
pub struct PaidStatement {
    /// With the meter; none when the statement is over.
    cost: Arc<Mutex<Option<CostWatch>>>,
    task: AbortHandle,
}

impl PaidStatement {
    /// Of what is done from now on; says once when it costs more than there is.
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
        // Here and not in the task: whoever sends the next statement has paid for this one.
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        drop(cost.take());
    }
}

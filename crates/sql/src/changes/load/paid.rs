//! The charge for bulk-loaded rows, batch by batch before each is written.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use orrery_runtime::Spending;
use orrery_storage::table::TableState;

use crate::Result;

/// See the module.
pub(super) struct Paid {
    spending: Option<Arc<Spending>>,
    by: PaidBy,
    rows: u64,
}

enum PaidBy {
    /// What a definition reads and writes: each twice.
    All,
    /// Those that come to so many others, once. That there are others is an affair of the files.
    New { before: u64 },
}

impl Paid {
    /// As a part of what is paid for elsewhere.
    pub(super) fn nothing() -> Self {
        Self {
            spending: None,
            by: PaidBy::All,
            rows: 0,
        }
    }

    /// All that a definition goes through.
    pub(super) fn for_all(task: &TaskContext) -> Self {
        Self {
            spending: task.session_config().get_extension(),
            by: PaidBy::All,
            rows: 0,
        }
    }

    /// Those that come to a table.
    pub(super) fn for_new(before: &TableState, task: &TaskContext) -> Self {
        Self::for_rows(before.rows(), task)
    }

    /// For those behind the first `before`.
    pub(super) fn for_rows(before: u64, task: &TaskContext) -> Self {
        Self {
            by: PaidBy::New { before },
            ..Self::for_all(task)
        }
    }

    /// Pays for rows that are about to be written.
    ///
    /// # Errors
    /// When nothing is left.
    pub(super) fn take(&mut self, rows: u64) -> Result<()> {
        self.rows += rows;
        let Some(spending) = &self.spending else {
            return Ok(());
        };
        match self.by {
            PaidBy::All => spending.spend_on_change(2 * rows)?,
            PaidBy::New { before } => {
                spending.spend_on_change_up_to(self.rows.saturating_sub(before))?;
            }
        }
        Ok(())
    }
}

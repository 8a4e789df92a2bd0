//! A query whose rows are fetched in parts.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::EmptyRecordBatchStream;
use futures::TryStreamExt;
use orrery_runtime::Paused;

use crate::catalog::scope::SqlScope;
use crate::transactions::waiting_rows::{HeldRows, WaitingRows};
use crate::{Error, Result};

/// A query that is read in portions.
pub(crate) struct Cursor {
    rows: SendableRecordBatchStream,
    /// What was computed and not asked for.
    left: Option<RecordBatch>,
    /// What its query was planned to see.
    scope: Option<Arc<SqlScope>>,
    /// How far it is, where somebody pays for it.
    pub(crate) paused: Option<Paused>,
    /// What it holds while it waits; none after its last row.
    pub(crate) held: Option<HeldRows>,
    /// Of the batch that was computed last.
    waiting: WaitingRows,
    is_done: bool,
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}

impl Cursor {
    pub(crate) fn new(
        rows: SendableRecordBatchStream,
        scope: Option<Arc<SqlScope>>,
        paused: Option<Paused>,
        held: HeldRows,
    ) -> Self {
        Self {
            rows,
            left: None,
            scope,
            paused,
            held: Some(held),
            waiting: WaitingRows::default(),
            is_done: false,
        }
    }

    pub(crate) fn scope(&self) -> Option<&Arc<SqlScope>> {
        self.scope.as_ref()
    }

    pub(crate) fn columns(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// What its plan holds; none after the last row.
    pub(crate) fn waiting(&self) -> Option<WaitingRows> {
        (!self.is_done).then_some(self.waiting)
    }

    /// The next rows, one batch of so many at most; none at the end.
    pub(crate) async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        let batch = match self.left.take() {
            Some(left) => Some(left),
            None => {
                let next = self.rows.try_next().await;
                let next = next.map_err(|error| Error::of_run(&error))?;
                match &next {
                    Some(batch) => self.waiting = WaitingRows::of(batch.columns()),
                    None => {
                        // What it was computed with is given back at once.
                        self.rows = Box::pin(EmptyRecordBatchStream::new(self.rows.schema()));
                        self.is_done = true;
                    }
                }
                next
            }
        };
        Ok(batch.map(|batch| {
            let rows = batch.num_rows().min(rows_max);
            if rows < batch.num_rows() {
                self.left = Some(batch.slice(rows, batch.num_rows() - rows));
            }
            batch.slice(0, rows)
        }))
    }
}

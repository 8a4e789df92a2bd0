//! A query whose rows are taken some at a time.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use crate::scope::Sight;
use crate::{Error, Result, SqlState};

/// A query that is read in portions.
pub(crate) struct Cursor {
    rows: SendableRecordBatchStream,
    /// What was computed and not asked for.
    left: Option<RecordBatch>,
    /// What its session saw when it was declared; everything if none.
    sight: Option<Arc<Sight>>,
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}

impl Cursor {
    pub(crate) fn new(rows: SendableRecordBatchStream, sight: Option<Arc<Sight>>) -> Self {
        Self {
            rows,
            left: None,
            sight,
        }
    }

    /// Fails where its session sees something else by now: nothing is read with a right that was taken.
    pub(crate) fn require_sight(&self, now: Option<&Arc<Sight>>) -> Result<()> {
        let is_same = match (&self.sight, now) {
            (None, None) => true,
            (Some(then), Some(now)) => then.sees_like(now),
            _ => false,
        };
        match is_same {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::InsufficientPrivilege,
                "permission denied for the cursor: what may be read is not what it was when it was declared",
            )
            .with_hint("Declare it anew.")),
        }
    }

    pub(crate) fn columns(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// The next rows, one batch of so many at most; none at the end.
    pub(crate) async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        let batch = match self.left.take() {
            Some(left) => Some(left),
            None => {
                let next = self.rows.try_next().await;
                next.map_err(|error| Error::of_run(&error))?
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

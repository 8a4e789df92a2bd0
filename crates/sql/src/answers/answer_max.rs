//! The length limit of an answer: rows up to the limit, then an error.
//!
//! ```text
//! rows of a query -> BoundedAnswer: as many rows and bytes of values as there may be -> whoever sends them, at once or in portions
//!                                   the next one -> 53400, in the words of who sets the bound
//! ```
//!
//! What is counted belongs to the query, so that portions of a portal and a `FETCH` after the other
//! come to one answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt, ready};

use crate::listener::users::{AnswerBound, AnswerMax, Denied};
use crate::values::sizes::bytes_of_values;
use crate::{Error, SqlState};

/// See the module.
pub(crate) struct BoundedAnswer {
    rows: SendableRecordBatchStream,
    max: Arc<dyn AnswerMax>,
    rows_left: Option<u64>,
    bytes_left: Option<u64>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// It goes on.
    Within,
    /// The rows that may be were handed on.
    Over(AnswerBound),
    /// That was said.
    Told,
}

impl BoundedAnswer {
    pub(crate) fn new(rows: SendableRecordBatchStream, max: Arc<dyn AnswerMax>) -> Self {
        Self {
            rows,
            rows_left: max.rows(),
            bytes_left: max.bytes(),
            max,
            state: State::Within,
        }
    }

    /// So much of a batch as may be handed on; notes if that is not all of it.
    fn within(&mut self, batch: RecordBatch) -> RecordBatch {
        let mut batch = batch;
        if let Some(left) = &mut self.rows_left {
            let rows = batch.num_rows() as u64;
            if rows > *left {
                self.state = State::Over(AnswerBound::Rows(self.max.rows().unwrap_or(u64::MAX)));
                batch = batch.slice(0, *left as usize);
            }
            *left -= batch.num_rows() as u64;
        }
        if let Some(left) = &mut self.bytes_left {
            let bytes = bytes_of_values(&batch);
            if bytes > *left {
                self.state = State::Over(AnswerBound::Bytes(self.max.bytes().unwrap_or(u64::MAX)));
                batch = batch.slice(0, 0);
            }
            *left = left.saturating_sub(bytes);
        }
        self.max
            .taken(batch.num_rows() as u64, bytes_of_values(&batch));
        batch
    }
}

/// The bounds of one answer that is of several queries, one after the other: each may be as long as
/// those before it have left.
#[derive(Debug)]
pub struct WholeAnswer {
    max: Arc<dyn AnswerMax>,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl WholeAnswer {
    /// Of which nothing was handed on yet.
    pub fn new(max: Arc<dyn AnswerMax>) -> Self {
        Self {
            max,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }
}

impl AnswerMax for WholeAnswer {
    fn rows(&self) -> Option<u64> {
        let taken = self.rows.load(Ordering::Relaxed);
        self.max.rows().map(|max| max.saturating_sub(taken))
    }

    fn bytes(&self) -> Option<u64> {
        let taken = self.bytes.load(Ordering::Relaxed);
        self.max.bytes().map(|max| max.saturating_sub(taken))
    }

    fn too_long(&self, bound: AnswerBound) -> Denied {
        // In the words of the whole, not of what was left.
        self.max.too_long(match bound {
            AnswerBound::Rows(left) => AnswerBound::Rows(self.max.rows().unwrap_or(left)),
            AnswerBound::Bytes(left) => AnswerBound::Bytes(self.max.bytes().unwrap_or(left)),
        })
    }

    fn taken(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.max.taken(rows, bytes);
    }
}

impl Stream for BoundedAnswer {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = &mut *self;
        match answer.state {
            State::Within => {
                let next = ready!(answer.rows.poll_next_unpin(context));
                let Some(Ok(batch)) = next else {
                    return Poll::Ready(next);
                };
                let batch = answer.within(batch);
                if batch.num_rows() > 0 || matches!(answer.state, State::Within) {
                    return Poll::Ready(Some(Ok(batch)));
                }
            }
            State::Over(_) => {}
            State::Told => return Poll::Ready(None),
        }
        let State::Over(bound) = std::mem::replace(&mut answer.state, State::Told) else {
            return Poll::Ready(None);
        };
        let words = answer.max.too_long(bound).to_string();
        let refused = Error::new(SqlState::ConfigurationLimitExceeded, words);
        Poll::Ready(Some(Err(refused.into())))
    }
}

impl RecordBatchStream for BoundedAnswer {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int32Array;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::*;

    #[derive(Debug)]
    struct Max {
        rows: Option<u64>,
        bytes: Option<u64>,
    }

    impl AnswerMax for Max {
        fn rows(&self) -> Option<u64> {
            self.rows
        }

        fn bytes(&self) -> Option<u64> {
            self.bytes
        }

        fn too_long(&self, bound: AnswerBound) -> Denied {
            Denied::UsedUp(format!("{bound:?}"))
        }
    }

    /// The lengths of the batches that come of two with four numbers each, and the refusal behind
    /// them.
    async fn answered(rows: Option<u64>, bytes: Option<u64>) -> (Vec<usize>, Option<String>) {
        let column = || Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as _;
        let batch = || RecordBatch::try_from_iter([("n", column())]).unwrap();
        let all = futures::stream::iter([Ok(batch()), Ok(batch())]);
        let all = RecordBatchStreamAdapter::new(batch().schema(), all);
        let mut answer = BoundedAnswer::new(Box::pin(all), Arc::new(Max { rows, bytes }));
        let mut lengths = Vec::new();
        let mut refused = None;
        while let Some(next) = answer.next().await {
            assert!(refused.is_none());
            match next {
                Ok(batch) => lengths.push(batch.num_rows()),
                Err(error) => {
                    let error = Error::of_run(&error);
                    assert_eq!(error.state, SqlState::ConfigurationLimitExceeded);
                    refused = Some(error.to_string());
                }
            }
        }
        (lengths, refused)
    }

    #[tokio::test]
    async fn as_many_rows_and_bytes_come_as_may_and_then_a_refusal() {
        let refused = |words: &str| Some(words.to_owned());
        assert_eq!(answered(None, None).await, (vec![4, 4], None));
        assert_eq!(answered(Some(8), Some(32)).await, (vec![4, 4], None));
        assert_eq!(
            answered(Some(7), None).await,
            (vec![4, 3], refused("Rows(7)"))
        );
        assert_eq!(answered(Some(4), None).await, (vec![4], refused("Rows(4)")));
        assert_eq!(answered(Some(0), None).await, (vec![], refused("Rows(0)")));
        assert_eq!(
            answered(None, Some(31)).await,
            (vec![4], refused("Bytes(31)"))
        );
        assert_eq!(answered(None, Some(1)).await, (vec![], refused("Bytes(1)")));
        // The bytes of the rows that may be are what counts.
        assert_eq!(
            answered(Some(1), Some(4)).await,
            (vec![1], refused("Rows(1)"))
        );
    }
}

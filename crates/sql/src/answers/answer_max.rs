//! The length limit of an answer: rows up to the limit, then an error.
//!
//! ```text
//! rows of a query -> BoundedAnswer: rows and bytes of values up to the limit -> the protocol, at once or in portions
//!                                   the next row -> 53400, in the words of whoever set the limit
//! ```
//!
//! The count belongs to the query, so that successive portions of a portal, or successive
//! `FETCH`es, are one answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt, ready};

use crate::values::sizes::bytes_of_values;
use crate::{Error, SqlState};

/// The words for an answer that has come to a bound.
type Words = Arc<dyn Fn(AnswerBound) -> String + Send + Sync>;

/// How long an answer may be, and what the client is told when it would be longer.
#[derive(Clone)]
pub struct AnswerMax {
    rows: Option<u64>,
    bytes: Option<u64>,
    words: Words,
    /// What was handed on already, where several queries share one limit.
    taken: Option<Arc<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// To which bound an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBound {
    /// It has more rows than this.
    Rows(u64),
    /// It has more bytes of values ([`bytes_of_values`]) than this.
    Bytes(u64),
}

impl fmt::Debug for AnswerMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerMax")
            .field("rows", &self.rows)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl AnswerMax {
    /// A limit of rows and of bytes of values ([`bytes_of_values`]), each unlimited if `None`;
    /// `words` make the message at a limit.
    pub fn new(
        rows: Option<u64>,
        bytes: Option<u64>,
        words: impl Fn(AnswerBound) -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            rows,
            bytes,
            words: Arc::new(words),
            taken: None,
        }
    }

    /// The same for all queries together that are run with what is returned.
    #[must_use]
    pub fn of_several(self) -> Self {
        Self {
            taken: Some(Arc::default()),
            ..self
        }
    }

    /// Rows and bytes that are left.
    fn left(&self) -> (Option<u64>, Option<u64>) {
        let taken = self.taken.as_ref().map_or((0, 0), |taken| {
            (
                taken.rows.load(Ordering::Relaxed),
                taken.bytes.load(Ordering::Relaxed),
            )
        });
        (
            self.rows.map(|max| max.saturating_sub(taken.0)),
            self.bytes.map(|max| max.saturating_sub(taken.1)),
        )
    }

    /// So many were handed on.
    fn take(&self, rows: u64, bytes: u64) {
        if let Some(taken) = &self.taken {
            taken.rows.fetch_add(rows, Ordering::Relaxed);
            taken.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// See the module.
pub(crate) struct BoundedAnswer {
    rows: SendableRecordBatchStream,
    max: AnswerMax,
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
    pub(crate) fn new(rows: SendableRecordBatchStream, max: AnswerMax) -> Self {
        let (rows_left, bytes_left) = max.left();
        Self {
            rows,
            rows_left,
            bytes_left,
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
                self.state = State::Over(AnswerBound::Rows(self.max.rows.unwrap_or(u64::MAX)));
                batch = batch.slice(0, *left as usize);
            }
            *left -= batch.num_rows() as u64;
        }
        if let Some(left) = &mut self.bytes_left {
            let bytes = bytes_of_values(&batch);
            if bytes > *left {
                self.state = State::Over(AnswerBound::Bytes(self.max.bytes.unwrap_or(u64::MAX)));
                batch = batch.slice(0, 0);
            }
            *left = left.saturating_sub(bytes);
        }
        if self.max.taken.is_some() {
            self.max
                .take(batch.num_rows() as u64, bytes_of_values(&batch));
        }
        batch
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
        let words = (answer.max.words)(bound);
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

    /// The batch lengths of an answer of two batches with four numbers each, and the refusal after
    /// them.
    async fn answered(rows: Option<u64>, bytes: Option<u64>) -> (Vec<usize>, Option<String>) {
        let column = || Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as _;
        let batch = || RecordBatch::try_from_iter([("n", column())]).unwrap();
        let all = futures::stream::iter([Ok(batch()), Ok(batch())]);
        let all = RecordBatchStreamAdapter::new(batch().schema(), all);
        let mut answer = BoundedAnswer::new(
            Box::pin(all),
            AnswerMax::new(rows, bytes, |bound| format!("{bound:?}")),
        );
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
    #[tokio::test]
    async fn several_queries_are_one_answer_where_they_share_their_bounds() {
        let column = || Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as _;
        let batch = || RecordBatch::try_from_iter([("n", column())]).unwrap();
        let max = AnswerMax::new(Some(6), None, |bound| format!("{bound:?}")).of_several();
        let mut lengths = Vec::new();
        for _ in 0..2 {
            let all = futures::stream::iter([Ok(batch())]);
            let all = RecordBatchStreamAdapter::new(batch().schema(), all);
            let mut answer = BoundedAnswer::new(Box::pin(all), max.clone());
            while let Some(next) = answer.next().await {
                // In the words of the whole, not of what was left.
                lengths.push(
                    next.map_err(|error| Error::of_run(&error).to_string())
                        .map(|it| it.num_rows()),
                );
            }
        }
        assert_eq!(lengths, [Ok(4), Ok(2), Err("Rows(6)".to_owned())]);
    }
}

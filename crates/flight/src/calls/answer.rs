//! A streamed answer between its statement and its client: a task computes, and a few batches wait.
//!
//! ```text
//!   rows of a session -> task: turn, time, cancel -> at most two batches -> DoGet
//! ```
//!
//! A statement needs a place among those who compute only while a client fetches: answers that
//! nobody fetches keep no one out. It is counted all the time, and its time runs.
//!
//! The task ends when all rows were taken, when time is up, when the budget is used up, when it is
//! canceled, and when no client is left to take the rows; the statement ends with it. Its last
//! message says that all rows were there: without it, the answer is incomplete.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use orrery_service::record::{Ending, StatementRecord};
use orrery_sql::{HeldRows, Spent, SqlScope, Turn, bytes_of_values, spent};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::life::{Stage, reached};
use crate::refusal::{ending_of, killed, out_of_time, refusal, shutting_down, used_up};

/// Most batches that wait for the client.
const BATCHES_WAITING: usize = 2;

/// Rows on their way to a client.
pub(crate) type Batches = BoxStream<'static, Result<RecordBatch, Status>>;

/// The permit to compute, with its time limit and its budget.
pub(crate) struct Time {
    pub(crate) turn: Turn,
    /// Counts the statement until it is dropped.
    pub(crate) counted: Turn,
    pub(crate) bounds: Bounds,
}

/// Waits for a place among those who compute, once a client fetches.
pub(crate) type Again = BoxFuture<'static, Result<Turn, Status>>;

/// The limits that end a statement.
pub(crate) struct Bounds {
    pub(crate) until: Instant,
    /// Completes when the budget is used up; none where nothing is limited.
    pub(crate) spent: Option<Spent>,
}

/// What a statement holds until its rows are fetched.
pub(crate) struct Unfetched {
    /// The scope when it was asked, where that was not everything.
    pub(crate) scope: Option<Arc<SqlScope>>,
    /// The memory of batches that are computed already.
    pub(crate) held: Option<HeldRows>,
}

/// A streamed answer that can be fetched once.
pub(crate) struct Answer {
    schema: SchemaRef,
    /// The scope when it was asked, where that was not everything.
    scope: Option<Arc<SqlScope>>,
    receiver: Mutex<Option<mpsc::Receiver<Piece>>>,
    /// The memory of batches computed before the fetch; from then on the query is like any other.
    held: Mutex<Option<HeldRows>>,
    cancel: Arc<Notify>,
    fetched: Arc<Notify>,
}

enum Piece {
    Rows(RecordBatch),
    Failure(Status),
    /// All rows were sent.
    End,
}

impl Answer {
    /// Starts the task, which computes the rows when they are fetched.
    pub(crate) fn start(
        schema: SchemaRef,
        rows: Batches,
        time: Time,
        again: Again,
        unfetched: Unfetched,
        watched: Option<Arc<StatementRecord>>,
        stage: watch::Receiver<Stage>,
    ) -> Arc<Self> {
        let (sender, receiver) = mpsc::channel(BATCHES_WAITING);
        let cancel = Arc::new(Notify::new());
        let fetched = Arc::new(Notify::new());
        tokio::spawn(compute(
            sent_when_fetched(
                rows,
                Arc::clone(&fetched),
                again,
                sender.clone(),
                watched.clone(),
            ),
            time,
            sender,
            Arc::clone(&cancel),
            watched,
            stage,
        ));
        Arc::new(Self {
            schema,
            scope: unfetched.scope,
            receiver: Mutex::new(Some(receiver)),
            held: Mutex::new(unfetched.held),
            cancel,
            fetched,
        })
    }

    pub(crate) fn scope(&self) -> Option<&Arc<SqlScope>> {
        self.scope.as_ref()
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Ends the statement, with an error for whoever takes its rows.
    pub(crate) fn cancel(&self) {
        self.cancel.notify_one();
    }

    /// Takes the rows; possible once.
    pub(crate) fn take(&self) -> Option<Batches> {
        let receiver = self.receiver.lock().take()?;
        drop(self.held.lock().take());
        self.fetched.notify_one();
        let rows = futures::stream::unfold(Some(receiver), |receiver| async {
            let mut receiver = receiver?;
            match receiver.recv().await {
                Some(Piece::Rows(batch)) => Some((Ok(batch), Some(receiver))),
                Some(Piece::Failure(status)) => Some((Err(status), None)),
                Some(Piece::End) => None,
                None => {
                    let lost = refusal(Code::Internal, "XX000", "the rest of the answer is lost");
                    Some((Err(lost), None))
                }
            }
        });
        Some(rows.boxed())
    }
}

async fn compute(
    work: impl Future<Output = Option<Status>>,
    time: Time,
    sender: mpsc::Sender<Piece>,
    cancel: Arc<Notify>,
    watched: Option<Arc<StatementRecord>>,
    mut stage: watch::Receiver<Stage>,
) {
    let Time {
        turn,
        counted,
        bounds,
    } = time;
    // The statement has begun; the rest is computed once a client fetches.
    drop(turn);
    let failure = tokio::select! {
        // Work that finds its client gone ends, too, and has no failure to tell.
        biased;
        () = sender.closed() => return,
        failure = work => failure,
        () = is_killed(watched.as_ref()) => Some(killed()),
        () = tokio::time::sleep_until(bounds.until) => Some(out_of_time()),
        message = spent(bounds.spent.as_ref()) => Some(used_up(message)),
        () = cancel.notified() => Some(refusal(
            Code::Cancelled,
            "57014",
            "canceling statement due to user request",
        )),
        () = reached(&mut stage, Stage::Over) => Some(shutting_down()),
    };
    // Others may compute while the client takes the last message.
    drop(counted);
    if let Some(watched) = watched {
        watched.ended(failure.as_ref().map_or(Ending::Done, ending_of));
    }
    let last = failure.map_or(Piece::End, Piece::Failure);
    // A client that has left does not need it.
    let _ = sender.send(last).await;
}

/// Completes when an administrator ends the statement.
pub(crate) async fn is_killed(watched: Option<&Arc<StatementRecord>>) {
    match watched {
        Some(watched) => watched.killed().await,
        None => std::future::pending().await,
    }
}

/// Waits for the fetch and for a place, then sends all rows; returns the error that ended them.
async fn sent_when_fetched(
    rows: Batches,
    fetched: Arc<Notify>,
    again: Again,
    sender: mpsc::Sender<Piece>,
    watched: Option<Arc<StatementRecord>>,
) -> Option<Status> {
    fetched.notified().await;
    let _turn = match again.await {
        Ok(turn) => turn,
        Err(status) => return Some(status),
    };
    sent(rows, &sender, watched.as_ref()).await
}

/// Sends all rows; returns the error that ended them.
async fn sent(
    mut rows: Batches,
    sender: &mpsc::Sender<Piece>,
    watched: Option<&Arc<StatementRecord>>,
) -> Option<Status> {
    while let Some(batch) = rows.next().await {
        match batch {
            Ok(batch) => {
                if let Some(watched) = watched {
                    watched.add(batch.num_rows() as u64, bytes_of_values(&batch));
                }
                // A client that has left is noticed elsewhere.
                sender.send(Piece::Rows(batch)).await.ok()?;
            }
            Err(status) => return Some(status),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::FutureExt as _;

    use arrow::array::{ArrayRef, Int32Array};

    use super::*;

    fn batch() -> RecordBatch {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    }

    /// Counts drops: of a permit that was released, of rows that are no longer computed.
    struct Noted(Arc<AtomicUsize>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn started(
        rows: Batches,
        time: Duration,
        turn: &Arc<AtomicUsize>,
    ) -> (Arc<Answer>, watch::Sender<Stage>) {
        let (sender, stage) = watch::channel(Stage::Serving);
        let time = Time {
            turn: Box::new(Noted(Arc::clone(turn))),
            counted: Box::new(()),
            bounds: Bounds {
                until: Instant::now() + time,
                spent: None,
            },
        };
        (
            Answer::start(
                batch().schema(),
                rows,
                time,
                async { Ok(Box::new(()) as Turn) }.boxed(),
                Unfetched {
                    scope: None,
                    held: None,
                },
                None,
                stage,
            ),
            sender,
        )
    }

    fn endless(dropped: &Arc<AtomicUsize>) -> Batches {
        let noted = Noted(Arc::clone(dropped));
        futures::stream::repeat_with(move || {
            let _ = &noted;
            Ok(batch())
        })
        .boxed()
    }

    #[tokio::test]
    async fn all_rows_come_and_the_turn_is_given_up() {
        let turn = Arc::default();
        let rows = futures::stream::iter((0..9).map(|_| Ok(batch()))).boxed();
        let (answer, _stage) = started(rows, Duration::from_secs(60), &turn);
        let taken: Vec<_> = answer.take().unwrap().collect().await;
        assert_eq!(taken.len(), 9);
        assert!(taken.iter().all(Result::is_ok));
        assert_eq!(turn.load(Ordering::SeqCst), 1);
        assert!(answer.take().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_nobody_fetches_has_no_place() {
        let (turn, rows) = (Arc::default(), Arc::default());
        let (answer, _stage) = started(endless(&rows), Duration::from_secs(60), &turn);
        let given_up = async {
            while turn.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), given_up).await;
        assert!(waited.is_ok(), "it holds the place");
        // Still there, and computed now.
        assert_eq!(rows.load(Ordering::SeqCst), 0);
        assert!(answer.take().unwrap().next().await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_any_more_is_not_computed() {
        let (turn, rows) = (Arc::default(), Arc::default());
        let (answer, _stage) = started(endless(&rows), Duration::from_secs(60), &turn);
        let mut taken = answer.take().unwrap();
        assert!(taken.next().await.unwrap().is_ok());
        drop(taken);
        while turn.load(Ordering::SeqCst) == 0 || rows.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn time_a_wish_and_the_end_of_the_server_end_it_with_a_failure() {
        for end in ["time", "wish", "server"] {
            let (turn, rows) = (Arc::default(), Arc::default());
            let time = match end {
                "time" => Duration::ZERO,
                _ => Duration::from_secs(60),
            };
            let (answer, stage) = started(endless(&rows), time, &turn);
            match end {
                "wish" => answer.cancel(),
                "server" => stage.send(Stage::Over).unwrap(),
                _ => {}
            }
            let taken: Vec<_> = answer.take().unwrap().collect().await;
            let code = taken.last().unwrap().as_ref().unwrap_err().code();
            let expected = match end {
                "time" => Code::DeadlineExceeded,
                "wish" => Code::Cancelled,
                _ => Code::Unavailable,
            };
            assert_eq!(code, expected, "{end}");
            assert_eq!(rows.load(Ordering::SeqCst), 1, "{end}");
        }
    }
}

//! The path of every change: one thread makes the changes, one waits for the disk.
//!
//! ```text
//!  handlers --bounded queue--> orrery-write: begin, change, commit (into the log's buffer)
//!                                  |  pending commits
//!                                  '-> orrery-sync: wait until they are durable, answer
//! ```
//!
//! The storage has one writer at a time anyway; a queue before it is fair, bounded, and needs no
//! thread per waiting client. While one fdatasync runs, the next transactions go on; they all share
//! the fdatasync after it. A change that exceeds memory is made a second time, in a way that puts
//! insertions on the disk and ends in a new base (`orrery_loader::commit_in_bulk`); other changes
//! wait until then. A change whose client has left before its turn is skipped; after that the
//! change is made, whether or not the client reads the answer.

pub mod feeds;
pub mod freshness;
pub mod seat;

use crate::errors::ServiceError;
use crate::metrics::Metrics;
use orrery_loader::{BulkCommit, CompactOptions, LoadCheck, SilentProgress, commit_in_bulk};
use orrery_storage::{CommitOptions, PendingCommit, Transaction, Writer};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Stack size of the writing thread: plans are as deep as on the query threads.
const STACK_BYTES: usize = 16 << 20;
/// Commits that may wait for the disk; beyond, the writing thread waits too.
const COMMITS_WAITING_MAX: usize = 1024;
/// Bytes of request bodies in memory at the same time, however much memory there is, and the unit
/// in which they are counted.
const BODIES_BYTES_MAX: usize = 256 << 20;
const BODY_UNIT_BYTES: usize = 1 << 10;

/// How long a stopping server waits for running changes.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The new commit, or the current one if nothing was changed.
    pub number: u64,
    /// Quads that were added.
    pub added: u64,
    /// Quads that were removed.
    pub removed: u64,
}

/// A change: works on the transaction, and returns how to commit it. It gets the query threads, on
/// which parts of a large `WHERE` run. Called a second time, on another transaction, if the changes
/// of the first exceeded memory.
pub type Change =
    Box<dyn FnMut(&mut Transaction, &Handle) -> Result<CommitOptions, ServiceError> + Send>;

/// A change that takes its transaction and commits it by itself. It is made once, and fails if it
/// exceeds memory.
pub type WholeChange =
    Box<dyn FnOnce(Transaction, &Handle) -> Result<PendingCommit, ServiceError> + Send>;

struct Job {
    work: Work,
    answer: Answer,
}

enum Work {
    Change(Change),
    Whole(WholeChange),
}

type Answer = oneshot::Sender<Result<Committed, ServiceError>>;

/// The queue of changes before the writer.
#[derive(Debug)]
pub struct Writes {
    /// None once the server stops.
    jobs: Option<mpsc::Sender<Job>>,
    jobs_max: usize,
    bodies: Arc<Semaphore>,
    body_units_max: u32,
    writer: Writer,
    /// Disconnected when both threads have ended.
    ended: Mutex<Receiver<()>>,
}

impl Writes {
    /// Starts both threads; they end with this value. `bodies_bytes_max`: limit of all bodies
    /// together; `bulk`: options of a change that exceeds memory, and the check of its result.
    pub fn start(
        writer: Writer,
        jobs_max: usize,
        bodies_bytes_max: usize,
        (bulk, check): (CompactOptions, Option<LoadCheck>),
        query_threads: Handle,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let body_units = bodies_bytes_max.min(BODIES_BYTES_MAX) / BODY_UNIT_BYTES;
        let body_units_max = u32::try_from(body_units.max(1)).unwrap_or(u32::MAX);
        let (jobs, queue) = mpsc::channel(jobs_max);
        let (commits, pending) = mpsc::channel(COMMITS_WAITING_MAX);
        let of_thread = writer.clone();
        let (alive, ended) = std::sync::mpsc::channel();
        let also_alive = alive.clone();
        Builder::new()
            .name("orrery-write".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                write(
                    &of_thread,
                    (&bulk, check.as_ref()),
                    (&query_threads, &metrics),
                    queue,
                    &commits,
                );
                drop((of_thread, alive));
            })?;
        Builder::new()
            .name("orrery-sync".to_owned())
            .spawn(move || {
                sync(pending);
                drop(also_alive);
            })?;
        Ok(Self {
            jobs: Some(jobs),
            jobs_max,
            bodies: Arc::new(Semaphore::new(body_units_max as usize)),
            body_units_max,
            writer,
            ended: Mutex::new(ended),
        })
    }

    /// The writer itself, for loads, which bypass the queue.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Changes that wait for their turn.
    pub fn waiting(&self) -> usize {
        let jobs = self.jobs.as_ref();
        jobs.map_or(0, |jobs| jobs.max_capacity() - jobs.capacity())
    }

    /// Bytes of bodies held now, and the limit.
    pub fn body_bytes(&self) -> (u64, u64) {
        let bytes = |units: usize| (units * BODY_UNIT_BYTES) as u64;
        let all = self.body_units_max as usize;
        let free = self.bodies.available_permits();
        (bytes(all - free.min(all)), bytes(all))
    }

    /// Waits for room for the body of a request.
    pub async fn body_room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ServiceError> {
        let units = u32::try_from(bytes / BODY_UNIT_BYTES + 1).unwrap_or(u32::MAX);
        Arc::clone(&self.bodies)
            .acquire_many_owned(units.min(self.body_units_max))
            .await
            .map_err(|_closed| ServiceError::Stopping)
    }

    /// Makes a change, and returns when it is as durable as requested.
    pub async fn make(&self, change: Change) -> Result<Committed, ServiceError> {
        self.work(Work::Change(change)).await
    }

    /// The same for a change that commits by itself.
    pub async fn make_whole(&self, change: WholeChange) -> Result<Committed, ServiceError> {
        self.work(Work::Whole(change)).await
    }

    async fn work(&self, work: Work) -> Result<Committed, ServiceError> {
        let (answer, committed) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(ServiceError::Stopping)?;
        jobs.try_send(Job { work, answer })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => ServiceError::WritesBusy {
                    waiting_max: self.jobs_max,
                },
                mpsc::error::TrySendError::Closed(_) => ServiceError::Stopping,
            })?;
        committed.await.unwrap_or_else(|_dropped| {
            Err(ServiceError::Internal {
                message: "the change ended without an answer".to_owned(),
            })
        })
    }
}

impl Drop for Writes {
    /// Waits for running changes, so that the writer, which is dropped with this value, can sync
    /// its last commits to the disk.
    fn drop(&mut self) {
        self.jobs = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(STOP_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("a change is still under way and is given up");
        }
    }
}

/// The loop of the writing thread.
fn write(
    writer: &Writer,
    bulk: (&CompactOptions, Option<&LoadCheck>),
    (query_threads, metrics): (&Handle, &Metrics),
    mut jobs: mpsc::Receiver<Job>,
    commits: &mpsc::Sender<(PendingCommit, Answer)>,
) {
    while let Some(Job { work, answer }) = jobs.blocking_recv() {
        if answer.is_closed() {
            continue;
        }
        let work = std::panic::AssertUnwindSafe(|| match work {
            Work::Change(change) => committed(writer, bulk, query_threads, change),
            Work::Whole(change) => Ok(Made::Pending(change(writer.begin()?, query_threads)?)),
        });
        let result = std::panic::catch_unwind(work).unwrap_or_else(|_| {
            metrics.note_panic();
            Err(ServiceError::Internal {
                message: "the change panicked and was rolled back".to_owned(),
            })
        });
        match result {
            // No wait for the disk, so the answer is not queued behind those that wait.
            Ok(Made::Pending(pending)) if pending.is_done() => finish(pending, answer),
            // The sync thread ends after this one.
            Ok(Made::Pending(pending)) => drop(commits.blocking_send((pending, answer))),
            Ok(Made::Committed(committed)) => drop(answer.send(Ok(committed))),
            Err(error) => drop(answer.send(Err(error))),
        }
    }
}

/// The result of a change that was made.
enum Made {
    /// The change is in the log, perhaps not on the disk yet.
    Pending(PendingCommit),
    /// The change is on the disk.
    Committed(Committed),
}

fn committed(
    writer: &Writer,
    (bulk, check): (&CompactOptions, Option<&LoadCheck>),
    query_threads: &Handle,
    mut change: Change,
) -> Result<Made, ServiceError> {
    let mut transaction = writer.begin()?;
    match change(&mut transaction, query_threads) {
        Ok(options) => return Ok(Made::Pending(transaction.commit(options)?)),
        // The changes so far are dropped, and made again where insertions can go to the disk.
        Err(ServiceError::TransactionMemory { .. }) => drop(transaction),
        Err(error) => return Err(error),
    }
    let change = |transaction: &mut Transaction| change(transaction, query_threads);
    match commit_in_bulk(writer, bulk, check, &SilentProgress, change)? {
        BulkCommit::InLog(pending) => Ok(Made::Pending(pending)),
        BulkCommit::InBase {
            number,
            added,
            removed,
        } => Ok(Made::Committed(Committed {
            number,
            added,
            removed,
        })),
    }
}

/// The loop of the thread that waits for the disk. A wait for one commit covers all earlier ones.
fn sync(mut commits: mpsc::Receiver<(PendingCommit, Answer)>) {
    while let Some((pending, answer)) = commits.blocking_recv() {
        finish(pending, answer);
    }
}

/// Waits until a commit is done, and answers.
fn finish(pending: PendingCommit, answer: Answer) {
    let (added, removed) = (pending.added(), pending.removed());
    let result = pending.wait().map(|number| Committed {
        number,
        added,
        removed,
    });
    // The client may have left.
    let _ = answer.send(result.map_err(ServiceError::from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::io::testing::{FailingFileSystem, RecordingFileSystem};
    use orrery_storage::{Database, Durability, WriterOptions};
    use orrery_term::{Term, TermId};

    fn insertion(name: &'static str, durability: Durability) -> Change {
        Box::new(move |transaction, _| {
            let term = transaction.intern(&Term::iri(format!("http://example.org/{name}")))?;
            transaction.insert(&mut vec![[term, term, term, TermId::DEFAULT_GRAPH]])?;
            Ok(CommitOptions {
                durability,
                ..CommitOptions::default()
            })
        })
    }

    #[test]
    fn a_relaxed_change_is_answered_while_a_durable_one_before_it_waits_for_the_disk() {
        let disk = FailingFileSystem::over(&RecordingFileSystem::new());
        let file_system = Arc::new(disk.clone());
        let database = Arc::new(Database::create_or_open_with(file_system, "/db").unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let writes = Writes::start(
            writer,
            8,
            1 << 20,
            (CompactOptions::default(), None),
            runtime.handle().clone(),
            Arc::default(),
        )
        .unwrap();
        runtime.block_on(async {
            let held = disk.hold_syncs();
            let mut durable = std::pin::pin!(writes.make(insertion("a", Durability::Durable)));
            assert!(futures::poll!(durable.as_mut()).is_pending());
            let relaxed = writes.make(insertion("b", Durability::Relaxed)).await;
            assert_eq!(relaxed.unwrap().number, 2);
            assert!(futures::poll!(durable.as_mut()).is_pending());
            // No reader sees the durable change before it is on the disk, nor what came after it.
            assert_eq!(database.snapshot().commit(), 0);
            drop(held);
            assert_eq!(durable.await.unwrap().number, 1);
            assert_eq!(database.snapshot().commit(), 2);
        });
    }

    #[test]
    fn a_change_whose_commit_may_or_may_not_be_there_is_told_as_such() {
        let disk = FailingFileSystem::over(&RecordingFileSystem::new());
        let file_system = Arc::new(disk.clone());
        let database = Arc::new(Database::create_or_open_with(file_system, "/db").unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let writes = Writes::start(
            writer,
            8,
            1 << 20,
            (CompactOptions::default(), None),
            runtime.handle().clone(),
            Arc::default(),
        )
        .unwrap();
        runtime.block_on(async {
            let held = disk.hold_syncs();
            let mut durable = std::pin::pin!(writes.make(insertion("a", Durability::Durable)));
            assert!(futures::poll!(durable.as_mut()).is_pending());
            // The durable change is in the log: later changes follow in order.
            let relaxed = writes.make(insertion("b", Durability::Relaxed)).await;
            assert_eq!(relaxed.unwrap().number, 2);
            disk.fail_from(0, orrery_storage::io::testing::Fault::Io);
            drop(held);
            let told = durable.await.unwrap_err().to_string();
            assert!(
                told.contains("not known whether the change was made"),
                "{told}"
            );
            // The later change was not made.
            let later = writes.make(insertion("c", Durability::Durable)).await;
            let told = later.unwrap_err().to_string();
            assert!(told.contains("has stopped writing"), "{told}");
        });
    }
}

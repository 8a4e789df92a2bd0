//! The queue of numbered morsels from which a leaf's partitions take work.
//!
//! The partitions of one execution take the pieces from one queue, and who is done with one takes
//! the next, so that a slow piece holds up nobody. The first partition that comes works in any
//! case; each further one works while the engine has a thread to spare ([`Workers`]), else it waits
//! and asks again whenever another one takes a piece. One whose thread is wanted elsewhere stops
//! taking and waits likewise.
//!
//! Partitions in several processes have no queue in common: each takes its share of the pieces,
//! which follows from its number ([`Dealing::Shares`]).

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use orrery_runtime::{Busy, Workers};
use parking_lot::Mutex;

/// The spread of a leaf's work over partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Number of partitions.
    pub partitions: usize,
    /// Which pieces each of them takes.
    pub dealing: Dealing,
}

/// The way in which partitions get pieces of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// Whoever has time takes the next piece from one queue. All partitions are in one process.
    Queue,
    /// Pieces of so many rows go to all partitions in turn, whatever the load: for tests.
    Turns(u64),
    /// Each partition has one share, which follows from its number, the number of partitions and
    /// the data alone: nothing has to be asked of other partitions, which may be in other
    /// processes. A share of slow rows holds up the others.
    Shares,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} partitions", self.partitions)?;
        match self.dealing {
            Dealing::Queue | Dealing::Turns(_) => Ok(()),
            Dealing::Shares => write!(f, ", a share each"),
        }
    }
}

/// The pieces of one execution.
#[derive(Debug)]
pub(crate) struct Pieces {
    count: usize,
    queue: Mutex<PieceQueue>,
    workers: Arc<Workers>,
    /// How many partitions the pieces are dealt out to in turn, if they are.
    dealt_to: Option<usize>,
}

#[derive(Debug, Default)]
struct PieceQueue {
    next: usize,
    /// Partitions that are at work.
    active: usize,
    waiting: Vec<Waker>,
}

impl Pieces {
    /// So many pieces in one queue, or dealt out in turn to so many partitions.
    pub(crate) fn new(count: usize, workers: Arc<Workers>, dealt_to: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            count,
            queue: Mutex::default(),
            workers,
            dealt_to,
        })
    }

    /// Whether all have been taken from the queue.
    pub(crate) fn are_taken(&self) -> bool {
        self.dealt_to.is_none() && self.queue.lock().next >= self.count
    }
}

/// What allows a partition to work.
#[derive(Debug)]
enum PartitionRole {
    /// Nothing: it waits, or is done.
    Outside,
    /// It is the one that works in any case.
    First,
    /// The engine has a thread for it.
    Extra(#[expect(dead_code, reason = "counts while it lives")] Busy),
}

/// The pieces that one partition takes.
#[derive(Debug)]
pub(crate) struct PieceReader {
    pieces: Arc<Pieces>,
    role: PartitionRole,
    /// The next piece, where they are dealt out.
    next_dealt: usize,
}

impl PieceReader {
    /// For a partition; of the same one there may not be two.
    pub(crate) fn new(pieces: Arc<Pieces>, partition: usize) -> Self {
        Self {
            pieces,
            role: PartitionRole::Outside,
            next_dealt: partition,
        }
    }

    /// The next piece of this partition.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        if let Some(partitions) = self.pieces.dealt_to {
            let piece = self.next_dealt;
            self.next_dealt += partitions;
            return Poll::Ready((piece < self.pieces.count).then_some(piece));
        }
        let pieces = Arc::clone(&self.pieces);
        let mut queue = pieces.queue.lock();
        let piece = queue.next;
        if piece >= pieces.count {
            self.leave(&mut queue);
            return Poll::Ready(None);
        }
        if matches!(self.role, PartitionRole::Extra(_)) && pieces.workers.is_crowded() {
            self.leave(&mut queue);
        }
        if matches!(self.role, PartitionRole::Outside) {
            self.role = if queue.active == 0 {
                PartitionRole::First
            } else if let Some(busy) = pieces.workers.try_extra() {
                PartitionRole::Extra(busy)
            } else {
                let waker = cx.waker();
                if !queue.waiting.iter().any(|other| other.will_wake(waker)) {
                    queue.waiting.push(waker.clone());
                }
                return Poll::Pending;
            };
            queue.active += 1;
        }
        queue.next += 1;
        // There may be a thread by now for those who wait; after the last piece there is nothing to
        // wait for.
        queue.waiting.drain(..).for_each(Waker::wake);
        Poll::Ready(Some(piece))
    }

    fn leave(&mut self, queue: &mut PieceQueue) {
        if !matches!(self.role, PartitionRole::Outside) {
            self.role = PartitionRole::Outside;
            queue.active -= 1;
            queue.waiting.drain(..).for_each(Waker::wake);
        }
    }
}

impl Drop for PieceReader {
    fn drop(&mut self) {
        let pieces = Arc::clone(&self.pieces);
        self.leave(&mut pieces.queue.lock());
    }
}

/// What the partitions of each execution under way have in common. An execution is known by its
/// task context, which all its partitions are given.
#[derive(Debug)]
pub(crate) struct Executions<T>(Mutex<Vec<Execution<T>>>);

#[derive(Debug)]
struct Execution<T> {
    owner: Weak<TaskContext>,
    common: Arc<T>,
    is_claimed: Vec<bool>,
}

impl<T> Default for Executions<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Executions<T> {
    /// What a partition of an execution has in common with the others; the first one that asks has
    /// it made.
    pub(crate) fn claim(
        &self,
        context: &Arc<TaskContext>,
        (partition, partitions): (usize, usize),
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut executions = self.0.lock();
        executions.retain(|execution| execution.owner.strong_count() > 0);
        let is_own = |execution: &Execution<T>| execution.owner.as_ptr() == Arc::as_ptr(context);
        let at = match executions.iter().position(is_own) {
            Some(at) => at,
            None => {
                executions.push(Execution {
                    owner: Arc::downgrade(context),
                    common: Arc::new(make()?),
                    is_claimed: vec![false; partitions],
                });
                executions.len() - 1
            }
        };
        let execution = &mut executions[at];
        // A second reader of the same partition would miss what the first one took.
        if std::mem::replace(&mut execution.is_claimed[partition], true) {
            return internal_err!("partition {partition} of a queue is read twice");
        }
        Ok(Arc::clone(&execution.common))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(reader: &mut PieceReader) -> Poll<Option<usize>> {
        reader.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_partition_waits_while_the_engine_has_no_thread_for_it() {
        let workers = Workers::new(2);
        let _query = workers.begin_query();
        let pieces = Pieces::new(9, Arc::clone(&workers), None);
        let reader = |partition| PieceReader::new(Arc::clone(&pieces), partition);
        let (mut first, mut second) = (reader(0), reader(1));
        assert_eq!(taken(&mut first), Poll::Ready(Some(0)));
        assert_eq!(taken(&mut second), Poll::Ready(Some(1)));
        // Another query comes, and the extra thread steps back until it is gone.
        let other = workers.begin_query();
        assert_eq!(taken(&mut second), Poll::Pending);
        assert_eq!(taken(&mut first), Poll::Ready(Some(2)));
        assert_eq!(taken(&mut second), Poll::Pending);
        drop(other);
        assert_eq!(taken(&mut second), Poll::Ready(Some(3)));
        // Whoever is left works in any case.
        let others = [workers.begin_query(), workers.begin_query()];
        drop(first);
        assert_eq!(taken(&mut second), Poll::Ready(Some(4)));
        drop(others);
        for piece in 5..9 {
            assert_eq!(taken(&mut second), Poll::Ready(Some(piece)));
        }
        assert_eq!(taken(&mut second), Poll::Ready(None));
        assert_eq!(taken(&mut reader(2)), Poll::Ready(None));
    }

    #[test]
    fn pieces_dealt_in_turn_go_to_each_partition_by_its_number() {
        let pieces = Pieces::new(5, Workers::new(1), Some(2));
        let of = |partition| {
            let mut reader = PieceReader::new(Arc::clone(&pieces), partition);
            let next = |_| match taken(&mut reader) {
                Poll::Ready(piece) => piece,
                Poll::Pending => panic!("it waits for nobody"),
            };
            (0..4).map(next).collect::<Vec<_>>()
        };
        assert_eq!(of(0), [Some(0), Some(2), Some(4), None]);
        assert_eq!(of(1), [Some(1), Some(3), None, None]);
    }
}

//! Morsels: the rows of a pattern's first step in pieces, which the partitions of one execution take
//! from one queue.
//!
//! ```text
//! rows of step 1:  [ 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 ]     partition 0 takes 0, 2, 3, 5 ...
//!                                                        partition 1 takes 1, 4, 6 ...
//! ```
//!
//! Who is done with one takes the next, so that a slow morsel holds up nobody (after Leis et al., "Morsel-driven
//! parallelism", SIGMOD 2014). The first partition that comes works in any case; each further one works while
//! the engine has a thread to spare ([`Workers`]), else it waits and asks again whenever another
//! one takes a morsel. One whose thread is wanted elsewhere stops taking and waits likewise.
//!
//! Partitions in several processes have no queue in common: each takes its share of the rows, which follows from its number
//! ([`Dealing::Shares`]).
//!
//! Each row is in exactly one morsel, or share. Where equal triples of several graphs are to match once, no boundary
//! falls between two of them.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use orrery_runtime::{Busy, Workers};
use orrery_storage::{Cursor, RowRange};
use orrery_term::TermId;
use parking_lot::Mutex;

use super::cursors::seek_ranges;
use super::pipeline::VECTOR_ROWS_MAX;
use super::program::{Key, StepProgram};
use crate::solutions::storage_error;

/// Rows of a vector of a permutation; boundaries fall between two of them where morsels are large.
const ALIGNMENT_ROWS: u64 = 1_024;
/// Smaller morsels are not aligned.
const ALIGNED_ROWS_MIN: u64 = 8 * ALIGNMENT_ROWS;
/// Morsels for each partition, where there are rows enough.
const MORSELS_PER_PARTITION: u64 = 6;
/// The smallest morsels of a pattern that only scans.
const SCANNED_ROWS_MIN: u64 = 50_000;

/// The same, and the smallest morsels, where all that follows is looked up in memory: that costs no more in short vectors, and of a
/// few rows some may have most of the matches.
const MORSELS_PER_PARTITION_IN_MEMORY: u64 = 64;
const IN_MEMORY_ROWS_MIN: u64 = 64;

/// What follows the first step, whose rows are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FurtherSteps {
    /// Nothing.
    None,
    /// Some steps look up in permutations.
    InPermutations,
    /// All steps look up in memory.
    InMemory,
}

/// How the work of a pattern is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Number of partitions.
    pub partitions: usize,
    /// Which rows each of them takes.
    pub dealing: Dealing,
}

/// How rows are dealt to partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// Whoever has time takes the next morsel from one queue. All partitions are in one process.
    Queue,
    /// Morsels of so many rows go to all partitions in turn, whatever the load: for tests.
    Turns(u64),
    /// Each partition has one share, which follows from its number, the number of partitions and the data alone: nothing has to be
    /// asked of other partitions, which may be in other processes. A share of slow rows holds up the others.
    Shares,
}

/// The rows that a step without columns of an earlier chunk walks, ascending.
pub(super) fn first_ranges(step: &StepProgram, seeker: &mut Cursor) -> Result<Vec<RowRange>> {
    let constants = step.prefix.iter().map(|key| match key {
        Key::Constant(term) => Some(*term),
        Key::Column(_) => None,
    });
    let Some(prefix) = constants.collect::<Option<Vec<TermId>>>() else {
        return internal_err!("the first step of a pattern that is spread depends on an input");
    };
    let mut ranges = Vec::new();
    seek_ranges(step, &prefix, seeker, &mut ranges)?;
    ranges.retain(|range| !range.is_empty());
    Ok(ranges)
}

/// The morsels of one execution.
#[derive(Debug)]
pub(super) struct Morsels {
    ranges: Vec<RowRange>,
    queue: Mutex<MorselQueue>,
    workers: Arc<Workers>,
    /// How many partitions the morsels are dealt out to in turn, if they are.
    dealt_to: Option<usize>,
}

#[derive(Debug, Default)]
struct MorselQueue {
    next: usize,
    /// Partitions that are at work.
    active: usize,
    waiting: Vec<Waker>,
}

impl Morsels {
    /// Cuts the rows of a first step.
    pub(super) fn cut(
        step: &StepProgram,
        further: FurtherSteps,
        spread: Spread,
        workers: Arc<Workers>,
    ) -> Result<Self> {
        let mut cursor = step.index.cursor();
        let ranges = first_ranges(step, &mut cursor)?;
        let rows = ranges.iter().map(|range| range.len()).sum();
        let piece = match spread.dealing {
            Dealing::Turns(rows) => rows.max(1),
            Dealing::Queue | Dealing::Shares => piece_rows(rows, spread.partitions as u64, further),
        };
        let mut pieces = Vec::new();
        for range in ranges {
            let mut start = range.start;
            while start < range.end {
                let end = boundary(step, &mut cursor, start + piece, range)?;
                pieces.push(RowRange::new(start, end));
                start = end;
            }
        }
        Ok(Self {
            ranges: pieces,
            queue: Mutex::default(),
            workers,
            dealt_to: match spread.dealing {
                Dealing::Turns(_) => Some(spread.partitions),
                Dealing::Queue | Dealing::Shares => None,
            },
        })
    }

    /// The rows of a first step that are the share of one partition.
    pub(super) fn share(
        step: &StepProgram,
        (partition, partitions): (usize, usize),
        workers: Arc<Workers>,
    ) -> Result<MorselReader> {
        let mut cursor = step.index.cursor();
        let ranges = first_ranges(step, &mut cursor)?;
        let rows: u64 = ranges.iter().map(|range| range.len()).sum();
        // In wide numbers, so that the shares of however many rows are alike.
        let rows_before = |share: usize| -> u64 {
            (u128::from(rows) * share as u128 / partitions.max(1) as u128) as u64
        };
        let (first, last) = (rows_before(partition), rows_before(partition + 1));
        let mut own = Vec::new();
        let mut before = 0;
        for range in ranges {
            let mut cut = |rows: u64| match rows.saturating_sub(before) {
                0 => Ok(range.start),
                rows => boundary(step, &mut cursor, range.start + rows, range),
            };
            let (start, end) = (cut(first)?, cut(last)?);
            before += range.len();
            if start < end {
                own.push(RowRange::new(start, end));
            }
        }
        let morsels = Self {
            ranges: own,
            queue: Mutex::default(),
            workers,
            dealt_to: Some(1),
        };
        Ok(MorselReader {
            morsels: Arc::new(morsels),
            role: PartitionRole::Outside,
            next_dealt: 0,
        })
    }
}

/// How long morsels are. Look-ups of a long vector of keys cost less than those of two short ones
/// (see [`VECTOR_ROWS_MAX`]), so morsels of a join are no shorter than that as long as
/// every partition gets one.
fn piece_rows(rows: u64, partitions: u64, further: FurtherSteps) -> u64 {
    let (least, morsels) = match further {
        FurtherSteps::None => (SCANNED_ROWS_MIN, MORSELS_PER_PARTITION),
        FurtherSteps::InPermutations => (VECTOR_ROWS_MAX as u64, MORSELS_PER_PARTITION),
        FurtherSteps::InMemory => (IN_MEMORY_ROWS_MIN, MORSELS_PER_PARTITION_IN_MEMORY),
    };
    let share = rows.div_ceil(partitions);
    let piece = rows.div_ceil(partitions * morsels).max(least.min(share));
    piece.max(1)
}

/// Where a morsel that should end at a row ends.
fn boundary(step: &StepProgram, cursor: &mut Cursor, end: u64, range: RowRange) -> Result<u64> {
    if end >= range.end {
        return Ok(range.end);
    }
    if step.merge.is_some() {
        // The graph is the last column, so equal triples stand together.
        let mut triple = Vec::with_capacity(3);
        for column in 0..3 {
            let last = RowRange::new(end - 1, end);
            cursor
                .read(last, column, &mut triple)
                .map_err(storage_error)?;
        }
        let triple: Vec<TermId> = triple.into_iter().map(TermId::from_bits).collect();
        let equal = cursor.seek(&triple).map_err(storage_error)?;
        return Ok(equal.end.clamp(end, range.end));
    }
    if !end.is_multiple_of(ALIGNMENT_ROWS) && end - range.start >= ALIGNED_ROWS_MIN {
        return Ok(end.next_multiple_of(ALIGNMENT_ROWS).min(range.end));
    }
    Ok(end)
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

/// The morsels that one partition takes.
#[derive(Debug)]
pub(super) struct MorselReader {
    morsels: Arc<Morsels>,
    role: PartitionRole,
    /// The next morsel, where they are dealt out.
    next_dealt: usize,
}

impl MorselReader {
    /// The next morsel of this partition.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<RowRange>> {
        if let Some(partitions) = self.morsels.dealt_to {
            let range = self.morsels.ranges.get(self.next_dealt).copied();
            self.next_dealt += partitions;
            return Poll::Ready(range);
        }
        let morsels = Arc::clone(&self.morsels);
        let mut queue = morsels.queue.lock();
        let Some(&range) = morsels.ranges.get(queue.next) else {
            self.leave(&mut queue);
            return Poll::Ready(None);
        };
        if matches!(self.role, PartitionRole::Extra(_)) && morsels.workers.is_crowded() {
            self.leave(&mut queue);
        }
        if matches!(self.role, PartitionRole::Outside) {
            self.role = if queue.active == 0 {
                PartitionRole::First
            } else if let Some(busy) = morsels.workers.try_extra() {
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
        // There may be a thread by now for those who wait; after the last morsel there is nothing to
        // wait for.
        queue.waiting.drain(..).for_each(Waker::wake);
        Poll::Ready(Some(range))
    }

    fn leave(&mut self, queue: &mut MorselQueue) {
        if !matches!(self.role, PartitionRole::Outside) {
            self.role = PartitionRole::Outside;
            queue.active -= 1;
            queue.waiting.drain(..).for_each(Waker::wake);
        }
    }
}

impl Drop for MorselReader {
    fn drop(&mut self) {
        let morsels = Arc::clone(&self.morsels);
        self.leave(&mut morsels.queue.lock());
    }
}

/// The queues of the executions under way. An execution is known by its task context, which all its
/// partitions are given.
#[derive(Debug, Default)]
pub(super) struct Executions(Mutex<Vec<Execution>>);

#[derive(Debug)]
struct Execution {
    owner: Weak<TaskContext>,
    morsels: Arc<Morsels>,
    is_claimed: Vec<bool>,
}

impl Executions {
    /// The morsels of a partition of an execution; the first one that asks has them cut.
    pub(super) fn reader(
        &self,
        context: &Arc<TaskContext>,
        (partition, partitions): (usize, usize),
        cut: impl FnOnce() -> Result<Morsels>,
    ) -> Result<MorselReader> {
        let mut executions = self.0.lock();
        executions.retain(|execution| execution.owner.strong_count() > 0);
        let is_own = |execution: &Execution| execution.owner.as_ptr() == Arc::as_ptr(context);
        let at = match executions.iter().position(is_own) {
            Some(at) => at,
            None => {
                executions.push(Execution {
                    owner: Arc::downgrade(context),
                    morsels: Arc::new(cut()?),
                    is_claimed: vec![false; partitions],
                });
                executions.len() - 1
            }
        };
        let execution = &mut executions[at];
        // A second reader of the same partition would miss what the first one took.
        if std::mem::replace(&mut execution.is_claimed[partition], true) {
            return internal_err!("partition {partition} of a pattern is read twice");
        }
        Ok(MorselReader {
            morsels: Arc::clone(&execution.morsels),
            role: PartitionRole::Outside,
            next_dealt: partition,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn morsels_are_long_for_look_ups_and_many_for_scans() {
        let look_ups = FurtherSteps::InPermutations;
        assert_eq!(piece_rows(10_000_000, 2, look_ups), 833_334);
        assert_eq!(piece_rows(570_000, 2, look_ups), VECTOR_ROWS_MAX as u64);
        assert_eq!(piece_rows(100_000, 2, look_ups), 50_000);
        assert_eq!(piece_rows(300_000, 2, FurtherSteps::None), SCANNED_ROWS_MIN);
        assert_eq!(piece_rows(3, 2, look_ups), 2);
        assert_eq!(piece_rows(0, 2, look_ups), 1);
    }

    #[test]
    fn morsels_are_short_where_look_ups_are_made_in_memory() {
        assert_eq!(piece_rows(12_800, 2, FurtherSteps::InMemory), 100);
        assert_eq!(
            piece_rows(1_000, 2, FurtherSteps::InMemory),
            IN_MEMORY_ROWS_MIN
        );
        assert_eq!(piece_rows(3, 2, FurtherSteps::InMemory), 2);
    }

    fn reader(morsels: &Arc<Morsels>) -> MorselReader {
        MorselReader {
            morsels: Arc::clone(morsels),
            role: PartitionRole::Outside,
            next_dealt: 0,
        }
    }

    fn taken(reader: &mut MorselReader) -> Poll<Option<u64>> {
        let mut context = Context::from_waker(Waker::noop());
        let next = reader.poll_next(&mut context);
        next.map(|range| range.map(|range| range.start))
    }

    #[test]
    fn a_partition_waits_while_the_engine_has_no_thread_for_it() {
        let workers = Workers::new(2);
        let _query = workers.begin_query();
        let morsels = Arc::new(Morsels {
            ranges: (0..9).map(|row| RowRange::new(row, row + 1)).collect(),
            queue: Mutex::default(),
            workers: Arc::clone(&workers),
            dealt_to: None,
        });
        let (mut first, mut second) = (reader(&morsels), reader(&morsels));
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
        for row in 5..9 {
            assert_eq!(taken(&mut second), Poll::Ready(Some(row)));
        }
        assert_eq!(taken(&mut second), Poll::Ready(None));
        assert_eq!(taken(&mut reader(&morsels)), Poll::Ready(None));
    }
}

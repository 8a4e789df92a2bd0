//! The memory pool of queries.
//!
//! ```text
//!   memory_bytes = | operators: the rest          | adjacencies 1/8 | on its way 1/4       | not counted 1/8, at least 64 MiB |
//!                  | hash tables, sorted runs,    | values of hot   | chunks of patterns,  | the process itself, pages of the |
//!                  | computed terms; spills       | predicates      | batches, answers     | allocator, growing tables        |
//! ```
//!
//! *Operators* reserve what they keep in a fair pool that makes those that can spill do so. What is
//! *on its way* between operators and to the client has a pool of its own, so that a large sort,
//! which may take all that operators have, never keeps a small query from starting: each query
//! reserves its [`working_set_bytes`] before it runs, and waits a moment where there is no room.
//! Patterns work on chunks as large as that pool allows.
//!
//! Reservations are estimates: a table doubles before it is counted, an allocator keeps pages.
//! Where the process as a whole has to stay within the budget, [`ProcessBoundPool`] looks at what
//! the process really holds, and refuses growth beyond it, as if that much were reserved.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
    TrackConsumersPool,
};
use datafusion_physical_plan::execution_plan::EmissionType;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use orrery_storage::ByteCount;

use crate::error::Error;
use crate::exhausted;

/// Parts of the memory, of so many.
const PARTS: u64 = 8;
const ON_THE_WAY_PARTS: u64 = 2;
const UNCOUNTED_PARTS: u64 = 1;
/// Most of a sort's or an aggregation's growth that it counts too late does not depend on the
/// budget.
const UNCOUNTED_BYTES_MIN: u64 = 64 << 20;

/// Adjacencies take one part of so many of the rest: an eighth of the whole, less where that is
/// little.
const ADJACENCIES_PART: u64 = 5;
/// What is kept there beside adjacencies works with so much at least: a part of an index of texts
/// in memory takes some megabytes before it holds a text.
const ADJACENCIES_BYTES_MIN: u64 = 32 << 20;
/// That minimum is no more than one part of so many of the rest.
const ADJACENCIES_PART_MAX: u64 = 4;

/// Consumers that an out-of-memory error names.
const CONSUMERS_NAMED: std::num::NonZeroUsize = std::num::NonZeroUsize::MIN.saturating_add(2);

/// Decoded terms, and the buffers of the answer.
const ANSWER_BYTES: usize = 2 << 20;
/// What a sort, an aggregation or a join uses beside what it counts: buffers of spilled runs,
/// tables that grow, pages that its thread's allocator keeps.
const KEEPER_BYTES: usize = 4 << 20;
/// One query's working set is at most this part of what may be on its way, so that it always fits.
const WORKING_SET_PART_MAX: usize = 4;
/// How often a query that waits for room for its working set looks.
const WAIT_STEP: Duration = Duration::from_millis(10);

/// Who asks for the result of a function before it is made: its size is as somebody has written it,
/// so that none of it is assured.
pub const FUNCTION_RESULT: &str = "the result of a function";
/// What is as large as this is asked for with a look at the process of this moment.
const FRESH_LOOK_BYTES: usize = 4 << 20;

/// How long a look at the process's memory is good for.
const SAMPLE_AGE_MAX: Duration = Duration::from_millis(10);
/// One part of so many of the operators' memory can be had whatever else the process holds.
const ASSURED_PART: usize = 2;

/// What is held of a pool, and what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    /// Reserved now.
    pub used_bytes: usize,
    /// All of it.
    pub max_bytes: usize,
}

/// What is held of the parts of an engine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFigures {
    /// What operators keep, and bodies of requests.
    pub operators: PoolFigures,
    /// What is on its way.
    pub on_the_way: PoolFigures,
    /// What adjacencies may take.
    pub adjacencies_max_bytes: u64,
    /// What the process holds that is not pages of files, where the system tells.
    pub process_bytes: Option<usize>,
}

/// The two pools of an engine.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What operators keep.
    operators: Arc<dyn MemoryPool>,
    /// What is on its way.
    on_the_way: Arc<dyn MemoryPool>,
    on_the_way_bytes: usize,
    /// What adjacencies may take.
    adjacencies_bytes: u64,
}

impl Memory {
    /// Divides so many bytes. `is_process_bound`: the process as a whole is to stay within them.
    pub fn new(memory_bytes: u64, is_process_bound: bool) -> Self {
        let part = memory_bytes / PARTS;
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let on_the_way = part * ON_THE_WAY_PARTS;
        let uncounted = (part * UNCOUNTED_PARTS).max(UNCOUNTED_BYTES_MIN.min(memory_bytes / 2));
        let rest = memory_bytes - on_the_way - uncounted;
        let adjacencies_bytes =
            (rest / ADJACENCIES_PART).max(ADJACENCIES_BYTES_MIN.min(rest / ADJACENCIES_PART_MAX));
        let operators = bytes(rest - adjacencies_bytes);
        let on_the_way_bytes = bytes(on_the_way);
        let pool = ProcessBoundPool {
            inner: FairSpillPool::new(operators),
            assured_bytes: operators / ASSURED_PART,
            process: is_process_bound.then(|| ProcessMemory::new(bytes(memory_bytes))),
        };
        Self {
            operators: Arc::new(TrackConsumersPool::new(pool, CONSUMERS_NAMED)),
            on_the_way: Arc::new(GreedyMemoryPool::new(on_the_way_bytes)),
            on_the_way_bytes,
            adjacencies_bytes,
        }
    }

    /// The pool of what operators keep.
    pub fn operators(&self) -> &Arc<dyn MemoryPool> {
        &self.operators
    }

    /// The pool of what is on its way.
    pub fn on_the_way(&self) -> &Arc<dyn MemoryPool> {
        &self.on_the_way
    }

    /// What adjacencies may take.
    pub fn adjacencies_bytes(&self) -> u64 {
        self.adjacencies_bytes
    }

    /// All that is reserved.
    pub fn reserved_bytes(&self) -> usize {
        self.operators.reserved() + self.on_the_way.reserved()
    }

    /// What is held of each part now.
    pub fn figures(&self) -> MemoryFigures {
        let operators_max = match self.operators.memory_limit() {
            MemoryLimit::Finite(limit) => limit,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        MemoryFigures {
            operators: PoolFigures {
                used_bytes: self.operators.reserved(),
                max_bytes: operators_max,
            },
            on_the_way: PoolFigures {
                used_bytes: self.on_the_way.reserved(),
                max_bytes: self.on_the_way_bytes,
            },
            adjacencies_max_bytes: self.adjacencies_bytes,
            process_bytes: anonymous_bytes(),
        }
    }

    /// Reserves what a plan needs to run, waiting for so long at most if there is no room.
    pub async fn working_set(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        batch_rows: usize,
        wait_max: Duration,
    ) -> std::result::Result<MemoryReservation, Error> {
        let end = Instant::now() + wait_max;
        let bytes = working_set_bytes(plan.as_ref(), batch_rows);
        loop {
            if let Some(reservation) = self.try_working_set(bytes) {
                return Ok(reservation);
            }
            if Instant::now() >= end {
                return Err(Error::Busy);
            }
            tokio::time::sleep(WAIT_STEP).await;
        }
    }

    fn try_working_set(&self, bytes: usize) -> Option<MemoryReservation> {
        let bytes = bytes.min(self.on_the_way_bytes / WORKING_SET_PART_MAX);
        let reservation = MemoryConsumer::new("working set").register(&self.on_the_way);
        reservation.try_grow(bytes).ok()?;
        Some(reservation)
    }
}

/// What a plan has on its way: a batch of ids at each node, what operators that keep rows use
/// beside, and the answer. A node that several others read counts once: its readers may be read by
/// several again, so that the ways to it double each time.
fn working_set_bytes(plan: &dyn ExecutionPlan, batch_rows: usize) -> usize {
    let mut bytes = ANSWER_BYTES;
    let mut nodes = vec![plan];
    let mut entered = HashSet::new();
    while let Some(node) = nodes.pop() {
        if !entered.insert(std::ptr::from_ref(node).cast::<()>()) {
            continue;
        }
        bytes += node.schema().fields().len() * batch_rows * size_of::<u64>();
        if node.pipeline_behavior() == EmissionType::Final || node.children().len() > 1 {
            bytes += KEEPER_BYTES;
        }
        nodes.extend(node.children().into_iter().map(AsRef::as_ref));
    }
    bytes
}

/// Memory of an engine that is held for something beside its queries, such as the body of a
/// request. It is given back when this value is dropped.
#[derive(Debug)]
pub struct HeldMemory {
    reservation: MemoryReservation,
}

impl HeldMemory {
    pub(crate) fn of(pool: &Arc<dyn MemoryPool>, what: &str) -> Self {
        Self {
            reservation: MemoryConsumer::new(what).register(pool),
        }
    }

    /// Holds so much from now on; fails, and holds what it held, where there is not so much.
    pub fn resize(&self, bytes: usize) -> std::result::Result<(), Error> {
        Ok(self.reservation.try_resize(bytes)?)
    }

    /// What is held.
    pub fn bytes(&self) -> usize {
        self.reservation.size()
    }
}

/// A fair pool that also looks at what the process holds.
#[derive(Debug)]
struct ProcessBoundPool {
    inner: FairSpillPool,
    /// Growth up to this sum is never refused for what the process holds.
    assured_bytes: usize,
    process: Option<ProcessMemory>,
}

impl fmt::Display for ProcessBoundPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl MemoryPool for ProcessBoundPool {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.inner.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.inner.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.inner.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.inner.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let is_assured = || {
            reservation.consumer().name() != FUNCTION_RESULT
                && self.inner.reserved().saturating_add(additional) <= self.assured_bytes
        };
        if let Some(process) = &self.process
            && additional > 0
            && !is_assured()
            && process.would_exceed(additional)
        {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} more for {} would make the process larger than it may be",
                ByteCount(additional as u64),
                exhausted::part(reservation.consumer().name())
            )));
        }
        self.inner.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.inner.memory_limit()
    }
}

/// The memory of this process that is not pages of mapped files, looked at now and then.
#[derive(Debug)]
struct ProcessMemory {
    limit_bytes: usize,
    start: Instant,
    /// When it was last looked at, in microseconds since the start.
    looked_us: AtomicU64,
    bytes: AtomicUsize,
}

impl ProcessMemory {
    fn new(memory_bytes: usize) -> Self {
        let memory = Self {
            limit_bytes: memory_bytes,
            start: Instant::now(),
            looked_us: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
        };
        memory.look();
        memory
    }

    fn would_exceed(&self, additional: usize) -> bool {
        let now_us = self.start.elapsed().as_micros() as u64;
        let looked_us = self.looked_us.load(Ordering::Relaxed);
        let is_old = u128::from(now_us - looked_us.min(now_us)) > SAMPLE_AGE_MAX.as_micros();
        if additional >= FRESH_LOOK_BYTES {
            self.looked_us.store(now_us, Ordering::Relaxed);
            self.look();
        } else if is_old
            // One thread looks, the others go on with what was seen last.
            && self
                .looked_us
                .compare_exchange(looked_us, now_us, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.look();
        }
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes.saturating_add(additional) > self.limit_bytes
    }

    fn look(&self) {
        // Systems without this file have no bound but the reservations.
        let bytes = anonymous_bytes().unwrap_or(0);
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// `RssAnon` of this process.
fn anonymous_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion_physical_plan::empty::EmptyExec;
    use datafusion_physical_plan::union::UnionExec;

    use super::*;

    fn pool(process: Option<ProcessMemory>) -> Arc<dyn MemoryPool> {
        Arc::new(ProcessBoundPool {
            inner: FairSpillPool::new(1_000),
            assured_bytes: 250,
            process,
        })
    }

    #[test]
    fn a_process_that_is_too_large_gets_only_what_is_assured() {
        let full = pool(Some(ProcessMemory::new(1)));
        let reservation = MemoryConsumer::new("test").register(&full);
        reservation.try_grow(250).unwrap();
        reservation.try_grow(0).unwrap();
        assert!(reservation.try_grow(1).is_err());
        reservation.shrink(10);
        reservation.try_grow(10).unwrap();

        let free = pool(Some(ProcessMemory::new(usize::MAX)));
        let reservation = MemoryConsumer::new("test").register(&free);
        reservation.try_grow(1_000).unwrap();
        assert!(reservation.try_grow(1).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_process_holds_is_seen() {
        let before = anonymous_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let with_block = anonymous_bytes().unwrap();
        assert!(with_block > before + (32 << 20), "{before} {with_block}");
        drop(block);
    }

    #[test]
    fn a_query_beyond_what_may_be_on_its_way_has_no_room() {
        let memory = Memory::new(8 << 20, false);
        let plan = EmptyExec::new(Arc::new(Schema::empty()));
        let bytes = working_set_bytes(&plan, 8_192);
        let next = || memory.try_working_set(bytes);
        let mut held: Vec<_> = (0..WORKING_SET_PART_MAX).map(|_| next().unwrap()).collect();
        assert_eq!(memory.reserved_bytes(), 2 << 20);
        assert!(next().is_none());
        held.pop();
        assert!(next().is_some());
    }

    #[test]
    fn what_several_nodes_read_counts_once() {
        const UNIONS: usize = 60;
        let mut plan: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        let leaf_bytes = working_set_bytes(plan.as_ref(), 8_192);
        for _ in 0..UNIONS {
            let twice = UnionExec::try_new(vec![Arc::clone(&plan), plan]).unwrap();
            plan = Arc::new(CoalescePartitionsExec::new(twice));
        }
        let bytes = working_set_bytes(plan.as_ref(), 8_192);
        assert_eq!(bytes, leaf_bytes + UNIONS * KEEPER_BYTES);
    }
}

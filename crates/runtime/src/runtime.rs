//! The runtime of an engine: made once, shared by all of its queries.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use tokio::sync::Semaphore;

use crate::adjacencies::Adjacencies;
use crate::error::Result;
use crate::memory::{HeldMemory, Memory};
use crate::share::Share;
use crate::workers::Workers;

/// Threads that may wait for a turn as a writer.
const WAITING_THREADS: usize = 1;

/// What a sort keeps for merging what it has spilled: one part of so many of what operators may
/// keep, and at most so many bytes. DataFusion's figure is the second alone, more than there is
/// where memory is small.
const MERGING_PART: usize = 8;
const MERGING_BYTES_MAX: usize = 10 << 20;

/// What a runtime may use.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Memory that all queries together may hold.
    pub memory_bytes: u64,
    /// Whether the process as a whole is to stay within `memory_bytes`.
    pub is_process_bound: bool,
    /// Where spilled runs go.
    pub temp_dir: PathBuf,
    /// Rows in one batch between operators.
    pub batch_rows: usize,
    /// Busy-thread limit of all queries together.
    pub threads: usize,
}

/// What all queries of an engine share; see the crate's documentation.
pub struct Runtime {
    memory: Memory,
    memory_bytes: u64,
    /// Settings, memory pool and place for spills, the same for every query: making one takes
    /// longer than a point query.
    task: Arc<TaskContext>,
    workers: Arc<Workers>,
    adjacencies: Arc<Adjacencies>,
    turns: Arc<Semaphore>,
    processes: OnceLock<Arc<orrery_distributed::Workers>>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("memory", &self.memory)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Divides the memory, and finds the place for spills.
    pub fn new(options: &RuntimeOptions) -> Result<Self> {
        let memory = Memory::new(options.memory_bytes, options.is_process_bound);
        let spills = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![options.temp_dir.clone()]));
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(memory.operators()))
            .with_disk_manager_builder(spills)
            .build_arc()?;
        let merging = memory.figures().operators.max_bytes / MERGING_PART;
        let session = SessionConfig::new()
            .with_batch_size(options.batch_rows)
            .with_sort_spill_reservation_bytes(merging.min(MERGING_BYTES_MAX))
            .with_target_partitions(1);
        Ok(Self {
            workers: Workers::new(options.threads),
            adjacencies: Arc::new(Adjacencies::new(memory.adjacencies_bytes())),
            turns: Arc::new(Semaphore::new(WAITING_THREADS)),
            memory,
            processes: OnceLock::new(),
            memory_bytes: options.memory_bytes,
            task: task_context(session, environment),
        })
    }

    /// The pools.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The threads that all queries share.
    pub fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    /// The processes that large queries are divided among, this one included; none if it is alone.
    pub fn processes(&self) -> Option<&Arc<orrery_distributed::Workers>> {
        self.processes.get()
    }

    /// Says once with whom large queries are divided.
    pub fn divide_among(&self, processes: Arc<orrery_distributed::Workers>) {
        _ = self.processes.set(processes);
    }

    /// Partitions that a large plan is made for: as many as there are threads, or more where
    /// processes divide it.
    pub fn partitions(&self) -> usize {
        let threads = self.workers.threads();
        self.processes().map_or(threads, |processes| {
            threads.max(processes.partitions(threads))
        })
    }

    /// The adjacencies in memory, which all queries share.
    pub fn adjacencies(&self) -> &Arc<Adjacencies> {
        &self.adjacencies
    }

    /// Who may wait for a turn as a writer on a thread of its own. All others wait for this, which
    /// takes no thread: whoever has the turn needs one to go on, and they would have them all.
    pub fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// What a query runs with: batches of so many rows if it asks for that.
    pub fn task(&self, batch_rows: Option<usize>) -> Arc<TaskContext> {
        match batch_rows {
            Some(rows) => {
                let session = self.task.session_config().clone().with_batch_size(rows);
                task_context(session, self.task.runtime_env())
            }
            None => Arc::clone(&self.task),
        }
    }

    /// The same for one execution alone, by which its parts know that they belong together.
    pub fn task_of_its_own(task: &TaskContext) -> Arc<TaskContext> {
        task_context(task.session_config().clone(), task.runtime_env())
    }

    /// The same for a part of a plan that may keep so many bytes of what all may.
    pub fn task_with_share(task: &TaskContext, bytes: usize) -> Arc<TaskContext> {
        let share: Arc<dyn MemoryPool> = Arc::new(Share::of(task.memory_pool(), bytes));
        Self::task_with_pool(task, &share)
    }

    /// The same whose operators take memory from this pool.
    pub fn task_with_pool(task: &TaskContext, pool: &Arc<dyn MemoryPool>) -> Arc<TaskContext> {
        let environment = environment_with_pool(&task.runtime_env(), pool);
        task_context(task.session_config().clone(), environment)
    }

    /// Memory for something beside the queries, called `what` where memory runs out; nothing at
    /// first.
    pub fn hold_memory(&self, what: &str) -> HeldMemory {
        HeldMemory::of(self.memory.operators(), what)
    }

    /// Bytes of spilled runs that are on the disk now.
    pub fn spilled_bytes(&self) -> u64 {
        self.task.runtime_env().disk_manager.used_disk_space()
    }

    /// All that it may use.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

/// An environment with another pool.
pub fn environment_with_pool(
    environment: &RuntimeEnv,
    pool: &Arc<dyn MemoryPool>,
) -> Arc<RuntimeEnv> {
    let mut environment = environment.clone();
    environment.memory_pool = Arc::clone(pool);
    Arc::new(environment)
}

/// Without the functions and the session's name of DataFusion's own front ends, which no plan of
/// ours looks up.
fn task_context(session: SessionConfig, runtime: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        None,
        String::new(),
        session,
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        runtime,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_share_the_pools_and_may_have_batches_of_their_own_size() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes: 64 << 20,
            is_process_bound: false,
            temp_dir: directory.path().to_owned(),
            batch_rows: 1_024,
            threads: 3,
        })
        .unwrap();
        assert_eq!(runtime.workers().threads(), 3);
        assert_eq!(runtime.task(None).session_config().batch_size(), 1_024);
        let small = runtime.task(Some(2));
        assert_eq!(small.session_config().batch_size(), 2);
        let held = runtime.hold_memory("the body of a request");
        held.resize(1_000).unwrap();
        assert_eq!(small.memory_pool().reserved(), 1_000);
        assert_eq!(runtime.memory().reserved_bytes(), 1_000);
        assert!(held.resize(1 << 30).is_err());
        drop(held);
        assert_eq!(runtime.memory().reserved_bytes(), 0);
        let own = Runtime::task_of_its_own(&small);
        assert!(!Arc::ptr_eq(&own, &small));
        assert_eq!(own.session_config().batch_size(), 2);
    }
}

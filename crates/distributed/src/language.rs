//! The interface to a query language: decoding of plans, properties of nodes and rows.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use futures::future::BoxFuture;

type OfPlan<T> = fn(&Arc<dyn ExecutionPlan>) -> T;

/// A language's rules about its plan nodes.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Whether a node is to be taken with all that stands below it.
    pub is_leaf: OfPlan<bool>,
    /// Whether a leaf's partitions are shares of its rows that do not depend on other partitions.
    pub is_dealt: OfPlan<bool>,
    /// Whether a node works on each partition of its inputs by itself, and gives the same whichever
    /// others there are. Exchanges, unions and hash joins that collect their build side are known
    /// without it.
    pub is_by_partition: OfPlan<bool>,
    /// Whether a node belongs to who reads its rows, and has to stand where they are read.
    pub is_with_reader: OfPlan<bool>,
    /// Rows that a node handles, as far as that is expected; 0 where nothing is known.
    pub rows: OfPlan<f64>,
    /// What a node is, in words that are the same in all processes that made the same plan.
    pub label: OfPlan<String>,
    /// The same of the rows that a leaf reads: by this they are given to the same workers again.
    pub extent: OfPlan<String>,
    /// Whether equal values of columns have equal hashes in all processes.
    pub may_divide_by_hash: bool,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rules")
    }
}

/// The translation of rows with process-local values for another process.
pub trait Translation: Send + Sync {
    /// For the rows of one partition that go out, in order.
    fn outgoing(&self) -> Box<dyn Outgoing>;

    /// For the rows of one partition that come in, in the same order.
    fn incoming(&self) -> Box<dyn Incoming>;
}

/// The sender's side of the translation.
pub trait Outgoing: Send {
    /// What goes before a batch.
    fn note(&mut self, batch: &RecordBatch) -> Result<Bytes>;
}

/// The reader's side of the translation.
pub trait Incoming: Send {
    /// Takes what went before the next batches.
    fn learn(&mut self, note: &Bytes) -> Result<()>;

    /// The batch as it is to be read here.
    fn batch(&mut self, batch: RecordBatch) -> Result<RecordBatch>;
}

/// Counts the touches of parts of a plan.
pub type OfParts = Arc<dyn Fn(&[Arc<dyn ExecutionPlan>]) -> u64 + Send + Sync>;

/// A plan that was made of its description.
pub struct WorkerPlan {
    /// The whole plan.
    pub plan: Arc<dyn ExecutionPlan>,
    /// What it runs with: its own for this query.
    pub task: Arc<TaskContext>,
    /// What its nodes are.
    pub rules: Rules,
    /// What its rows mean.
    pub translation: Arc<dyn Translation>,
    /// What these parts of it have cost here so far, in touches.
    pub touches: OfParts,
    /// What ends with the query here.
    pub ends: Option<Ends>,
}

/// What is dropped when a query is closed: by it the language ends what goes on without a pause.
pub type Ends = Box<dyn std::any::Any + Send + Sync>;

/// The execution of a process's part of a plan.
pub struct OwnPart {
    /// What it runs with.
    pub task: Arc<TaskContext>,
    /// What parts of the plan have cost so far, in touches, beside what the nodes of the plan
    /// itself count: these are known where it was asked.
    pub touches: OfParts,
    /// What ends with the query here.
    pub ends: Option<Ends>,
}

/// How the process that was asked runs its part of the plan that it has, as part of the execution
/// of a task.
pub type OwnParts = Box<dyn Fn(&TaskContext) -> OwnPart + Send + Sync>;

/// A query language, which decodes its plans.
pub trait Language: Send + Sync {
    /// The plan that is described, for one of the processes that run it, counted from 1. It has to
    /// be the same one as where the description was made, or there has to be an error
    /// ([`Error::OtherPlan`](crate::Error::OtherPlan), where another process may do better).
    fn plan(&self, description: Bytes, process: u32) -> BoxFuture<'static, Result<WorkerPlan>>;

    /// Where plans run.
    fn threads(&self) -> tokio::runtime::Handle;
}

//! The node that selects a worker's own partitions of rows that every worker has.
//!
//! ```text
//! DividedHereExec: partitions 2, 5 ── others are dropped
//! └ RepartitionExec: by hash, 16 partitions
//!   └ KeysExec        sees all rows, and tells scans of this process their keys
//!     └ ExchangeExec, read by all
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use orrery_plan_node::node_methods;

/// Some of the partitions into which rows are divided here.
#[derive(Debug)]
pub(crate) struct DividedHereExec {
    input: Arc<dyn ExecutionPlan>,
    picks: Vec<usize>,
    /// Whether those are given up that nobody reads: their rows would wait for ever.
    has_begun: AtomicBool,
    properties: Arc<PlanProperties>,
}

impl DividedHereExec {
    /// All partitions of rows, divided so.
    pub(crate) fn all(rows: Arc<dyn ExecutionPlan>, division: Partitioning) -> Result<Self> {
        let picks = (0..division.partition_count()).collect();
        let divided = RepartitionExec::try_new(rows, division)?;
        Ok(Self::new(Arc::new(divided), picks))
    }

    /// The same, of which these are read.
    pub(crate) fn picked(&self, picks: &[usize]) -> Self {
        Self::new(Arc::clone(&self.input), picks.to_vec())
    }

    fn new(input: Arc<dyn ExecutionPlan>, picks: Vec<usize>) -> Self {
        let given = input.properties().as_ref().clone();
        // A worker's partitions are not the ones that the hash would give to so many.
        let partitioning = Partitioning::UnknownPartitioning(picks.len());
        Self {
            properties: Arc::new(given.with_partitioning(partitioning)),
            input,
            picks,
            has_begun: AtomicBool::new(false),
        }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.picks.clone())
    }
}

impl DisplayAs for DividedHereExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DividedHereExec: {} partitions", self.picks.len())
    }
}

impl ExecutionPlan for DividedHereExec {
    node_methods!("DividedHereExec", over input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let pick = self.picks.get(partition);
        let pick = pick.ok_or_else(|| internal_datafusion_err!("partition {partition} of none"))?;
        let rows = self.input.execute(*pick, Arc::clone(&context))?;
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            let all = self.input.properties().partitioning.partition_count();
            for other in (0..all).filter(|other| !self.picks.contains(other)) {
                drop(self.input.execute(other, Arc::clone(&context))?);
            }
        }
        Ok(rows)
    }
}

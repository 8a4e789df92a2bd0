//! The execution of a grouping: rows into a table of groups, and out as batches.
//!
//! ```text
//! batch -> table                   until the input ends -> batches
//!          no memory: a partial one gives its states, and begins anew
//!                     else states -> parts on the disk; each is read as if it were the input
//!          very many groups by several keys, with small states: states and the rest of the input -> DataFusion's aggregation
//! ```
//!
//! A table of whole keys, as DataFusion's, is quicker then than one for each key and pair, and a
//! partial aggregation that finds a new group in nearly every row only makes work for the final
//! one.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateMode;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::group_parts::GroupParts;
use super::group_table::{GroupTable, over};
use crate::node_metrics::NodeMetrics;
use crate::nodes::StreamExec;

/// Groups by several keys from which DataFusion's table of whole keys is quicker: with three
/// million it took half of the time of ours.
const GROUPS_OF_SEVERAL_KEYS_MAX: usize = if cfg!(test) { 20_000 } else { 500_000 };
/// Groups from which a partial aggregation looks whether it makes its input smaller.
const PARTIAL_GROUPS_MIN: usize = if cfg!(test) { 2_000 } else { 100_000 };
/// A batch of states on the disk is as large, about: it is read whole.
const SPILLED_BATCH_BYTES: usize = 1 << 20;

/// What runs.
pub(super) struct Execution {
    pub(super) context: Arc<TaskContext>,
    pub(super) metrics: ExecutionPlanMetricsSet,
    pub(super) partition: usize,
}

/// Batches that are made as they are taken.
type Ready = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Where batches come from.
enum Source {
    /// The input or a part on the disk: to be counted in.
    Ungrouped(SendableRecordBatchStream),
    /// An aggregation that has gone on with what was here.
    Grouped(SendableRecordBatchStream),
}

/// See the module's documentation.
pub(super) struct GroupStream {
    /// What is read, until it ends.
    source: Option<Source>,
    table: GroupTable,
    /// If not all fit into memory.
    parts: Option<GroupParts>,
    /// What goes out before more is read.
    ready: Ready,
    execution: Execution,
    baseline: NodeMetrics,
}

impl GroupStream {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        table: GroupTable,
        execution: Execution,
    ) -> Self {
        Self {
            source: Some(Source::Ungrouped(input)),
            table,
            parts: None,
            ready: Box::new(std::iter::empty()),
            baseline: NodeMetrics::new(&execution.metrics, execution.partition),
            execution,
        }
    }

    /// The groups.
    pub(super) fn batches(self) -> SendableRecordBatchStream {
        let schema = self.table.aggregate().schema();
        let batches = futures::stream::try_unfold(self, Self::next);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }

    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        loop {
            if let Some(batch) = self.next_ready()? {
                return Ok(Some((batch, self)));
            }
            match &mut self.source {
                None => {
                    if !self.begin_part()? {
                        return Ok(None);
                    }
                }
                Some(Source::Ungrouped(batches)) => {
                    let batch = batches.next().await.transpose()?;
                    let elapsed = self.baseline.elapsed_compute().clone();
                    let _timer = elapsed.timer();
                    match batch {
                        Some(batch) => self.count_in(&batch)?,
                        None => self.end_source()?,
                    }
                }
                Some(Source::Grouped(groups)) => {
                    let Some(batch) = groups.next().await.transpose()? else {
                        return Ok(None);
                    };
                    self.baseline.record_output(batch.num_rows());
                    return Ok(Some((batch, self)));
                }
            }
        }
    }

    fn next_ready(&mut self) -> Result<Option<RecordBatch>> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let batch = self.ready.next().transpose()?;
        if let Some(batch) = &batch {
            self.baseline.record_output(batch.num_rows());
        }
        Ok(batch)
    }

    fn count_in(&mut self, batch: &RecordBatch) -> Result<()> {
        self.table.add(batch)?;
        if self.is_better_elsewhere() {
            return self.hand_over();
        }
        match self.table.reserve() {
            Ok(()) => Ok(()),
            Err(refused) => self.make_room(refused),
        }
    }

    /// There is no memory for the groups: they go.
    fn make_room(&mut self, refused: DataFusionError) -> Result<()> {
        if self.table.is_partial() {
            return self.give_groups();
        }
        let can_divide = self.parts.as_ref().is_none_or(GroupParts::can_divide);
        match can_divide && self.table.len() > 1 {
            true => self.write_groups(),
            false => Err(refused),
        }
    }

    /// The input or a part has ended.
    fn end_source(&mut self) -> Result<()> {
        self.source = None;
        if self.parts.as_ref().is_some_and(GroupParts::is_writing) {
            self.write_groups()?;
            if let Some(parts) = &mut self.parts {
                parts.end_writing()?;
            }
            return Ok(());
        }
        self.give_groups()
    }

    /// Begins to read the next part; whether there is one.
    fn begin_part(&mut self) -> Result<bool> {
        let Some(parts) = &mut self.parts else {
            return Ok(false);
        };
        let Some(states) = parts.next_part()? else {
            return Ok(false);
        };
        self.table.begin_with_states();
        self.source = Some(Source::Ungrouped(states));
        Ok(true)
    }

    /// The groups of the table go out.
    fn give_groups(&mut self) -> Result<()> {
        let batch_rows = self.execution.context.session_config().batch_size();
        self.ready = Box::new(self.table.output()?.batches(batch_rows));
        Ok(())
    }

    /// The groups of the table go to the disk.
    fn write_groups(&mut self) -> Result<()> {
        let (groups, bytes) = (self.table.len(), self.table.bytes());
        let batch_rows = self.execution.context.session_config().batch_size();
        let rows = groups.saturating_mul(SPILLED_BATCH_BYTES) / bytes.max(1);
        let states = self.table.states()?;
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => {
                let Execution {
                    context,
                    metrics,
                    partition,
                } = &self.execution;
                let metrics = SpillMetrics::new(metrics, *partition);
                let (schema, keys) = (states.schema(), self.table.key_columns());
                let parts = GroupParts::new(context.runtime_env(), metrics, schema, keys);
                self.parts.insert(parts)
            }
        };
        for batch in states.batches(rows.clamp(1, batch_rows)) {
            parts.append(&batch?)?;
        }
        Ok(())
    }

    /// Whether there are so many groups that DataFusion's aggregation is quicker.
    fn is_better_elsewhere(&self) -> bool {
        if self.table.key_columns() < 2 || self.parts.is_some() || !self.table.has_small_states() {
            return false;
        }
        let (groups, rows) = (self.table.len(), self.table.rows());
        let is_nearly_each_row_new = groups > rows - rows / 5;
        groups > GROUPS_OF_SEVERAL_KEYS_MAX
            || (self.table.is_partial() && groups > PARTIAL_GROUPS_MIN && is_nearly_each_row_new)
    }

    /// The groups so far as states, and the rest of the input, through DataFusion's aggregation.
    fn hand_over(&mut self) -> Result<()> {
        let Some(Source::Ungrouped(rest)) = self.source.take() else {
            return internal_err!("groups without an input");
        };
        let context = &self.execution.context;
        let batch_rows = context.session_config().batch_size();
        let aggregate = Arc::clone(self.table.aggregate());
        let states = self.table.states()?;
        // It counts what it is given, all at once.
        let states = states.uncounted();
        let schema = states.schema();
        let rest = match aggregate.mode() {
            AggregateMode::Final => rest,
            _ => {
                let input = Arc::new(StreamExec::new(rest));
                over(&aggregate, AggregateMode::Partial, input)?.execute(0, Arc::clone(context))?
            }
        };
        let states = futures::stream::iter(states.batches(batch_rows)).chain(rest);
        let states: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(schema, states));
        let groups = match aggregate.mode() {
            AggregateMode::Partial => states,
            _ => {
                let input = Arc::new(StreamExec::new(states));
                over(&aggregate, AggregateMode::Final, input)?.execute(0, Arc::clone(context))?
            }
        };
        self.source = Some(Source::Grouped(groups));
        Ok(())
    }
}

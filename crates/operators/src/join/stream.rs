//! The execution of a join: build the right side, then probe with left batches; or block by block
//! ([`super::spill`]).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arrow::array::{Array, RecordBatch, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};
use orrery_runtime::Pace;
use orrery_term::TermId;

use super::build::{BuildSide, NO_ROW, TABLE_BYTES_PER_ROW};
use super::compiled::{CompiledJoin, MergedColumn, OutputColumn};
use super::probe::{Probe, ProbeRules, RowPairs};
use super::specification::JoinMode;
use super::spill::{Passes, Spill};
use crate::node_metrics::NodeMetrics;
use crate::pattern::Chunk;
use crate::solutions::{gather, id_columns, solution_batch};
use crate::spill_file::OpenFile;

/// How long a poll may work before it gives way.
const POLL_TIME_MAX: Duration = Duration::from_millis(1);

/// What a collected right row needs beside its columns: its number, a place in a table, and its
/// copy while a column is put together.
const ROW_BYTES: usize = size_of::<u64>() + size_of::<u32>() + TABLE_BYTES_PER_ROW;

/// The right side, or a block of it, while it is collected.
struct CollectedRows {
    batches: Vec<RecordBatch>,
    rows: usize,
    reservation: MemoryReservation,
}

enum JoinPhase {
    /// The right side goes to memory.
    Collect(CollectedRows),
    /// It goes to the disk, because it does not fit. A block may take half of what did.
    Spill {
        file: OpenFile,
        block_bytes_max: usize,
    },
    /// The next block of it comes from there.
    Block(CollectedRows),
    Probe(BuildSide),
    Ended,
}

/// The stream of a [`super::SolutionJoinExec`].
pub(super) struct JoinStream {
    plan: Arc<CompiledJoin>,
    left: SendableRecordBatchStream,
    right: SendableRecordBatchStream,
    phase: JoinPhase,
    probe: Option<Probe>,
    spill: Spill,
    /// If the right side is on the disk.
    passes: Option<Passes>,
    /// What others are made like.
    reservation: MemoryReservation,
    baseline: NodeMetrics,
    pace: Pace,
}

impl JoinStream {
    pub(super) fn new(
        plan: Arc<CompiledJoin>,
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        spill: Spill,
        reservation: MemoryReservation,
        baseline: NodeMetrics,
    ) -> Self {
        Self {
            plan,
            left,
            right,
            phase: JoinPhase::Collect(CollectedRows::new(&reservation)),
            probe: None,
            spill,
            passes: None,
            reservation,
            baseline,
            pace: Pace::new(),
        }
    }

    /// Takes one more batch of the right side, or ends the collection.
    fn poll_collect(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let next = ready!(self.right.poll_next_unpin(cx)).transpose();
        Poll::Ready(next.and_then(|batch| match batch {
            Some(batch) => self.collect(batch),
            None => self.end_collection(),
        }))
    }

    fn collect(&mut self, batch: RecordBatch) -> Result<()> {
        match &mut self.phase {
            JoinPhase::Collect(collection) => {
                let Err(batch) = collection.add(batch, usize::MAX) else {
                    return Ok(());
                };
                let mut file = self.spill.right_file()?;
                let block_bytes_max = collection.reservation.size() / 2;
                for batch in collection.batches.drain(..).chain([batch]) {
                    file.append(&batch)?;
                }
                self.phase = JoinPhase::Spill {
                    file,
                    block_bytes_max,
                };
            }
            JoinPhase::Spill { file, .. } => {
                file.append(&batch)?;
            }
            JoinPhase::Block(_) | JoinPhase::Probe(_) | JoinPhase::Ended => {}
        }
        Ok(())
    }

    fn end_collection(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.phase, JoinPhase::Ended) {
            JoinPhase::Collect(collection) => {
                let build = self.build(collection)?;
                let gives_nothing = match self.plan.specification.mode {
                    JoinMode::Inner | JoinMode::Semi => build.groups.is_empty(),
                    JoinMode::Left | JoinMode::Anti | JoinMode::Minus(_) | JoinMode::Mark(_) => {
                        false
                    }
                };
                if !gives_nothing {
                    self.phase = JoinPhase::Probe(build);
                }
            }
            JoinPhase::Spill {
                file,
                block_bytes_max,
            } => {
                let matched = self.reservation.new_empty();
                self.passes = Some(self.spill.passes(file, block_bytes_max, matched)?);
                self.phase = JoinPhase::Block(CollectedRows::new(&self.reservation));
            }
            JoinPhase::Block(_) | JoinPhase::Probe(_) | JoinPhase::Ended => {}
        }
        Ok(())
    }

    /// Takes one more batch of the right side on the disk, or ends the block.
    fn poll_block(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let (JoinPhase::Block(collection), Some(passes)) = (&mut self.phase, &mut self.passes)
        else {
            return Poll::Ready(Ok(()));
        };
        let next = match passes.held.take() {
            Some(batch) => Some(batch),
            None => ready!(passes.right.poll_next_unpin(cx)).transpose()?,
        };
        match next {
            Some(batch) => {
                let Err(batch) = collection.add(batch, passes.block_bytes_max) else {
                    return Poll::Ready(Ok(()));
                };
                if collection.rows == 0 {
                    // Not even one batch: whatever refuses that says why.
                    let bytes = bytes_of(&batch);
                    collection.reservation.try_grow(bytes)?;
                    collection.rows += batch.num_rows();
                    collection.batches.push(batch);
                    return Poll::Ready(Ok(()));
                }
                passes.held = Some(batch);
            }
            None => passes.is_last = true,
        }
        if let JoinPhase::Block(collection) = std::mem::replace(&mut self.phase, JoinPhase::Ended) {
            self.phase = JoinPhase::Probe(self.build(collection)?);
        }
        Poll::Ready(Ok(()))
    }

    fn build(&self, collection: CollectedRows) -> Result<BuildSide> {
        let batches = collection.batches.iter().map(id_columns);
        BuildSide::new(
            batches.collect::<Result<_>>()?,
            collection.rows,
            self.plan.right_columns,
            self.plan.right_shared.clone(),
            collection.reservation,
        )
    }

    /// Takes the next left batch, or ends the pass.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let next = ready!(self.left.poll_next_unpin(cx)).transpose();
        Poll::Ready(next.and_then(|batch| match batch {
            Some(batch) => self.begin_probe(&batch),
            None => self.end_pass(),
        }))
    }

    fn begin_probe(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = id_columns(batch)?;
        let mut probe = Probe::new(columns, batch.num_rows(), &self.plan.left_shared);
        if let Some(passes) = &mut self.passes {
            passes.begin_batch(&self.spill, batch)?;
            passes.recall(&mut probe.matched);
        }
        self.probe = Some(probe);
        Ok(())
    }

    fn end_pass(&mut self) -> Result<()> {
        // The block's memory is for the next one.
        self.phase = JoinPhase::Ended;
        if let Some(passes) = self.passes.as_mut().filter(|passes| !passes.is_last) {
            self.left = passes.next_pass(&self.spill)?;
            self.phase = JoinPhase::Block(CollectedRows::new(&self.reservation));
        }
        Ok(())
    }

    /// Works on the current left batch: an output batch, or nothing when it is finished or the time
    /// is up (then the batch is still there).
    fn work(&mut self, deadline: Instant) -> Result<Option<RecordBatch>> {
        let mode = &self.plan.specification.mode;
        let rules = ProbeRules {
            is_existence: mode.is_existence(),
            first_decides: mode.is_existence() && self.plan.filters.is_empty(),
            counted: matches!(mode, JoinMode::Minus(_)).then_some(&self.plan.counted),
        };
        while let (JoinPhase::Probe(build), Some(probe)) = (&mut self.phase, &mut self.probe) {
            let (pairs, is_exhausted) = probe.advance(build, &self.plan.left_shared, rules)?;
            let output = merge(&self.plan, build, probe, &pairs)?;
            if is_exhausted {
                let unmerged = self.finish_probe()?;
                return match (output, unmerged) {
                    (Some(a), Some(b)) => Ok(Some(concat_batches(&self.plan.schema, [&a, &b])?)),
                    (a, b) => Ok(a.or(b)),
                };
            }
            if output.is_some() || Instant::now() >= deadline {
                return Ok(output);
            }
        }
        Ok(None)
    }

    /// Ends the current left batch: what the mode says of rows with or without a match.
    fn finish_probe(&mut self) -> Result<Option<RecordBatch>> {
        let Some(probe) = self.probe.take() else {
            return Ok(None);
        };
        if let Some(passes) = &mut self.passes {
            let is_kept = self.plan.specification.mode != JoinMode::Inner;
            passes.end_batch(&probe.matched, is_kept)?;
            if !passes.is_last {
                return Ok(None);
            }
        }
        let of = |wanted: bool| -> Vec<u32> {
            let rows = probe.matched.iter().enumerate();
            rows.filter(|(_, matched)| **matched == wanted)
                .map(|(row, _)| row as u32)
                .collect()
        };
        let rows = match &self.plan.specification.mode {
            JoinMode::Inner => return Ok(None),
            JoinMode::Left | JoinMode::Anti | JoinMode::Minus(_) => of(false),
            JoinMode::Semi => of(true),
            JoinMode::Mark(_) => (0..probe.rows as u32).collect(),
        };
        if rows.is_empty() {
            return Ok(None);
        }
        let marks = || {
            let matched = rows.iter().map(|&row| probe.matched[row as usize]);
            UInt64Array::from_iter_values(matched.map(|matched| TermId::boolean(matched).bits()))
        };
        let columns = self.plan.output.iter().map(|column| match column {
            OutputColumn::Left(column) => gather(&probe.columns[*column], &rows),
            OutputColumn::Mark => Ok(marks()),
            OutputColumn::NotLeft => Ok(UInt64Array::new_null(rows.len())),
        });
        let columns = columns.collect::<Result<_>>()?;
        solution_batch(&self.plan.schema, columns, rows.len()).map(Some)
    }
}

impl CollectedRows {
    fn new(like: &MemoryReservation) -> Self {
        Self {
            batches: Vec::new(),
            rows: 0,
            reservation: like.new_empty(),
        }
    }

    /// Adds a batch, or gives it back if there is no room.
    fn add(
        &mut self,
        batch: RecordBatch,
        bytes_max: usize,
    ) -> std::result::Result<(), RecordBatch> {
        let bytes = bytes_of(&batch);
        let is_full = self.reservation.size() + bytes > bytes_max
            || self.rows + batch.num_rows() >= NO_ROW as usize;
        if is_full || self.reservation.try_grow(bytes).is_err() {
            return Err(batch);
        }
        self.rows += batch.num_rows();
        self.batches.push(batch);
        Ok(())
    }
}

/// What the rows of a batch need as part of the right side.
fn bytes_of(batch: &RecordBatch) -> usize {
    batch.num_rows() * (batch.num_columns() * size_of::<u64>() + ROW_BYTES)
}

/// Applies the filters to pairs, notes the left rows that matched, and makes the merged solutions.
fn merge(
    plan: &CompiledJoin,
    build: &BuildSide,
    probe: &mut Probe,
    pairs: &RowPairs,
) -> Result<Option<RecordBatch>> {
    if pairs.left.is_empty() {
        return Ok(None);
    }
    let columns = plan.merged.iter().map(|column| match column {
        MergedColumn::Left(column) => gather(&probe.columns[*column], &pairs.left),
        MergedColumn::Right(column) => gather(&build.columns[*column], &pairs.right),
        MergedColumn::Both { left, right } => {
            coalesce(&probe.columns[*left], &build.columns[*right], pairs)
        }
    });
    let mut columns = columns.collect::<Result<Vec<UInt64Array>>>()?;
    let rows = pairs.left.len();
    let numbers = pairs.left.iter().map(|&row| u64::from(row));
    columns.push(UInt64Array::from_iter_values(numbers));
    let mut chunk = Chunk { columns, rows };
    for filter in &plan.filters {
        chunk = filter.apply(chunk)?;
    }
    plan.dropped.add((rows - chunk.rows) as u64);
    let Some(left_rows) = chunk.columns.pop() else {
        return Err(DataFusionError::Internal("no row numbers".to_owned()));
    };
    for &row in left_rows.values() {
        probe.matched[row as usize] = true;
    }
    if plan.specification.mode.is_existence() || chunk.rows == 0 {
        return Ok(None);
    }
    let columns = plan.merged_output.iter().map(|column| match column {
        Some(column) => chunk.columns[*column].clone(),
        None => UInt64Array::new_null(chunk.rows),
    });
    solution_batch(&plan.schema, columns.collect(), chunk.rows).map(Some)
}

/// The left values, or the right ones where those are unbound.
fn coalesce(left: &UInt64Array, right: &UInt64Array, pairs: &RowPairs) -> Result<UInt64Array> {
    if left.null_count() == 0 {
        return gather(left, &pairs.left);
    }
    let value = |column: &UInt64Array, row: u32| {
        let row = row as usize;
        column.is_valid(row).then(|| column.value(row))
    };
    let rows = pairs.left.iter().zip(&pairs.right);
    let values = rows
        .map(|(&left_row, &right_row)| value(left, left_row).or_else(|| value(right, right_row)));
    Ok(values.collect())
}

impl JoinStream {
    /// One step forward: an output batch, or nothing yet.
    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Instant,
    ) -> Poll<Result<Option<RecordBatch>>> {
        match &self.phase {
            JoinPhase::Ended => Poll::Ready(Ok(None)),
            JoinPhase::Collect(_) | JoinPhase::Spill { .. } => {
                self.poll_collect(cx).map_ok(|()| None)
            }
            JoinPhase::Block(_) => self.poll_block(cx).map_ok(|()| None),
            JoinPhase::Probe(_) if self.probe.is_none() => self.poll_left(cx).map_ok(|()| None),
            JoinPhase::Probe(_) => {
                let start = Instant::now();
                let output = self.work(deadline);
                self.baseline.elapsed_compute().add_elapsed(start);
                Poll::Ready(output)
            }
        }
    }
}

impl Stream for JoinStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let start = Instant::now();
        let deadline = start + POLL_TIME_MAX;
        if this.pace.must_give_way(start) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        while !matches!(this.phase, JoinPhase::Ended) {
            match ready!(this.poll_step(cx, deadline)) {
                Ok(Some(batch)) => {
                    this.baseline.record_output(batch.num_rows());
                    return Poll::Ready(Some(Ok(batch)));
                }
                Ok(None) if Instant::now() >= deadline => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Ok(None) => {}
                Err(error) => {
                    this.phase = JoinPhase::Ended;
                    this.probe = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }
}

impl RecordBatchStream for JoinStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

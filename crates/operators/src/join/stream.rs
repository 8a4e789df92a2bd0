//! Runs a join: first the right side to its end, then the left side batch by batch.

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
use datafusion_physical_plan::metrics::BaselineMetrics;
use futures::{Stream, StreamExt};
use orrery_term::TermId;

use super::JoinMode;
use super::build::BuildSide;
use super::plan::{JoinPlan, MergedColumn, OutputColumn};
use super::probe::{Pairs, Probe, ProbeRules};
use crate::pace::Pace;
use crate::pattern::Chunk;
use crate::solutions::{gather, id_columns, solution_batch};

/// How long a poll may work before it gives way.
const POLL_TIME_MAX: Duration = Duration::from_millis(1);

/// The right side while it is collected.
struct Collection {
    input: SendableRecordBatchStream,
    batches: Vec<Vec<UInt64Array>>,
    rows: usize,
    reservation: MemoryReservation,
}

enum Phase {
    Collect(Collection),
    Probe(BuildSide),
    Ended,
}

/// The stream of a [`super::SolutionJoinExec`].
pub(super) struct JoinStream {
    plan: Arc<JoinPlan>,
    left: SendableRecordBatchStream,
    phase: Phase,
    probe: Option<Probe>,
    baseline: BaselineMetrics,
    pace: Pace,
}

impl JoinStream {
    pub(super) fn new(
        plan: Arc<JoinPlan>,
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        reservation: MemoryReservation,
        baseline: BaselineMetrics,
    ) -> Self {
        Self {
            plan,
            left,
            phase: Phase::Collect(Collection {
                input: right,
                batches: Vec::new(),
                rows: 0,
                reservation,
            }),
            probe: None,
            baseline,
            pace: Pace::new(),
        }
    }

    /// Takes one more batch of the right side, or ends the collection.
    fn poll_collect(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Phase::Collect(collection) = &mut self.phase else {
            return Poll::Ready(Ok(()));
        };
        let next = ready!(collection.input.poll_next_unpin(cx));
        Poll::Ready(match next {
            Some(Ok(batch)) => collection.add(&batch),
            Some(Err(error)) => Err(error),
            None => self.end_collection(),
        })
    }

    fn end_collection(&mut self) -> Result<()> {
        let Phase::Collect(collection) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Ok(());
        };
        let build = BuildSide::new(
            collection.batches,
            collection.rows,
            self.plan.right_columns,
            self.plan.right_shared.clone(),
            collection.reservation,
        )?;
        let gives_nothing = match self.plan.specification.mode {
            JoinMode::Inner | JoinMode::Semi => build.groups.is_empty(),
            JoinMode::Left | JoinMode::Anti | JoinMode::Minus(_) | JoinMode::Mark(_) => false,
        };
        if !gives_nothing {
            self.phase = Phase::Probe(build);
        }
        Ok(())
    }

    /// Works on the current left batch: an output batch, or nothing when it is finished or the time is up
    /// (then the batch is still there).
    fn work(&mut self, deadline: Instant) -> Result<Option<RecordBatch>> {
        let mode = &self.plan.specification.mode;
        let rules = ProbeRules {
            is_existence: mode.is_existence(),
            first_decides: mode.is_existence() && self.plan.filters.is_empty(),
            counted: matches!(mode, JoinMode::Minus(_)).then_some(&self.plan.counted),
        };
        while let (Phase::Probe(build), Some(probe)) = (&mut self.phase, &mut self.probe) {
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

impl Collection {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.reservation
            .try_grow(batch.num_rows() * batch.num_columns() * size_of::<u64>())?;
        self.rows += batch.num_rows();
        self.batches.push(id_columns(batch)?);
        Ok(())
    }
}

/// Applies the filters to pairs, notes the left rows that matched, and makes the merged solutions.
fn merge(
    plan: &JoinPlan,
    build: &BuildSide,
    probe: &mut Probe,
    pairs: &Pairs,
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
fn coalesce(left: &UInt64Array, right: &UInt64Array, pairs: &Pairs) -> Result<UInt64Array> {
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
            Phase::Ended => Poll::Ready(Ok(None)),
            Phase::Collect(_) => self.poll_collect(cx).map_ok(|()| None),
            Phase::Probe(_) if self.probe.is_none() => {
                match ready!(self.left.poll_next_unpin(cx)) {
                    Some(batch) => Poll::Ready(batch.and_then(|batch| {
                        let columns = id_columns(&batch)?;
                        let shared = &self.plan.left_shared;
                        self.probe = Some(Probe::new(columns, batch.num_rows(), shared));
                        Ok(None)
                    })),
                    None => {
                        self.phase = Phase::Ended;
                        Poll::Ready(Ok(None))
                    }
                }
            }
            Phase::Probe(_) => {
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
        while !matches!(this.phase, Phase::Ended) {
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
                    this.phase = Phase::Ended;
                    this.probe = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        this.baseline.done();
        Poll::Ready(None)
    }
}

impl RecordBatchStream for JoinStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

//! The execution of a spatial join: build the right side, then probe with left batches.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{RecordBatch, UInt64Array};
use datafusion_common::Result;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use orrery_runtime::Pace;

use super::compiled::{CompiledPlaces, Side};
use super::kept::{KeptPlaces, ReadShapes, first_piece, read_shapes};
use crate::context::QueryContext;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{gather, id_columns, solution_batch};

/// Pairs that are put into one batch at most.
const PAIRS_MAX: usize = 8_192;

/// The pairs of rows.
pub(super) struct Pairs {
    plan: Arc<CompiledPlaces>,
    context: Arc<QueryContext>,
    left: SendableRecordBatchStream,
    right: Option<(SendableRecordBatchStream, MemoryReservation)>,
    kept: Option<KeptPlaces>,
    asked: Option<Asked>,
    /// What is left of a large batch of the left side.
    rest: Option<RecordBatch>,
    baseline: NodeMetrics,
    pace: Pace,
}

/// A batch of the left side, and how far it is.
struct Asked {
    columns: Vec<UInt64Array>,
    read: ReadShapes,
    row: usize,
    /// The shape whose matches are known.
    of: Option<u32>,
    /// Room for what might match.
    candidates: Vec<u32>,
    /// The rows of the right side that it has, and how many of these were given to the row.
    matches: Vec<u32>,
    given: usize,
}

impl Pairs {
    pub(super) fn new(
        plan: Arc<CompiledPlaces>,
        context: Arc<QueryContext>,
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        reservation: MemoryReservation,
        baseline: NodeMetrics,
    ) -> Self {
        Self {
            plan,
            context,
            left,
            right: Some((right, reservation)),
            kept: None,
            asked: None,
            rest: None,
            baseline,
            pace: Pace::new(),
        }
    }

    /// The next pairs; none after the last.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some((right, reservation)) = self.right.take() {
            let (column, nearness) = (self.plan.right_column, self.plan.condition.nearness);
            let kept = KeptPlaces::collect(right, column, nearness, &self.context, reservation);
            self.kept = Some(kept.await?);
        }
        let Some(kept) = &self.kept else {
            return Ok(None);
        };
        if kept.shapes.is_empty() {
            return Ok(None);
        }
        loop {
            let asked = match &mut self.asked {
                Some(asked) => asked,
                None => {
                    let whole = match self.rest.take() {
                        Some(batch) => Some(batch),
                        None => self.left.next().await.transpose()?,
                    };
                    let Some(whole) = whole else {
                        return Ok(None);
                    };
                    let (batch, rest) = first_piece(whole);
                    self.rest = rest;
                    let columns = id_columns(&batch)?;
                    let read = read_shapes(&columns[self.plan.left_column], &self.context)?;
                    self.asked.insert(Asked::new(columns, read))
                }
            };
            let start = Instant::now();
            let pairs = asked.advance(kept, &self.plan, &mut self.pace);
            let batch = match pairs.left.is_empty() {
                true => None,
                false => Some(merged(&self.plan, asked, kept, &pairs)?),
            };
            self.baseline.elapsed_compute().add_elapsed(start);
            if asked.row == asked.read.of_rows.len() {
                self.asked = None;
            }
            if let Some(batch) = batch {
                self.baseline.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            if pairs.is_tired {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Rows of both sides that belong together.
#[derive(Default)]
struct RowPairs {
    left: Vec<u32>,
    right: Vec<u32>,
    /// Whether others have to have their turn.
    is_tired: bool,
}

impl Asked {
    fn new(columns: Vec<UInt64Array>, read: ReadShapes) -> Self {
        Self {
            columns,
            read,
            row: 0,
            of: None,
            candidates: Vec::new(),
            matches: Vec::new(),
            given: 0,
        }
    }

    /// The next pairs, as many as go into a batch.
    fn advance(&mut self, kept: &KeptPlaces, plan: &CompiledPlaces, pace: &mut Pace) -> RowPairs {
        let mut pairs = RowPairs::default();
        while self.row < self.read.of_rows.len() {
            let Some(shape) = self.read.of_rows[self.row] else {
                self.row += 1;
                continue;
            };
            if self.of != Some(shape) {
                self.find(shape, kept, plan);
            }
            let room = PAIRS_MAX - pairs.left.len();
            let more = &self.matches[self.given..];
            let more = &more[..more.len().min(room)];
            pairs.left.extend(more.iter().map(|_| self.row as u32));
            pairs.right.extend_from_slice(more);
            self.given += more.len();
            if self.given == self.matches.len() {
                (self.row, self.given) = (self.row + 1, 0);
            }
            pairs.is_tired = pace.must_give_way(Instant::now());
            if pairs.left.len() == PAIRS_MAX || pairs.is_tired {
                break;
            }
        }
        pairs
    }

    /// The rows that a shape of this batch has.
    fn find(&mut self, shape: u32, kept: &KeptPlaces, plan: &CompiledPlaces) {
        let condition = &plan.condition;
        let left = &self.read.shapes[shape as usize];
        kept.candidates(left, condition.nearness, &mut self.candidates);
        self.of = Some(shape);
        self.matches.clear();
        let mut dropped = 0;
        for candidate in &self.candidates {
            match condition.holds(left, &kept.shapes[*candidate as usize]) {
                true => self.matches.extend_from_slice(kept.rows_of(*candidate)),
                false => dropped += 1,
            }
        }
        plan.dropped.add(dropped);
    }
}

fn merged(
    plan: &CompiledPlaces,
    asked: &Asked,
    kept: &KeptPlaces,
    pairs: &RowPairs,
) -> Result<RecordBatch> {
    let columns = plan.output.iter().map(|side| match side {
        Side::Left(column) => gather(&asked.columns[*column], &pairs.left),
        Side::Right(column) => gather(&kept.columns[*column], &pairs.right),
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    solution_batch(&plan.schema, columns, pairs.left.len())
}

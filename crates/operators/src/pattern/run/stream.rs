//! The stream of a pattern's output batches.
//!
//! Every poll works for about a millisecond at most and then returns to the scheduler, so that
//! other queries get their turn and a dropped or timed-out query stops soon.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arrow::array::{Array, RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};
use orrery_runtime::Pace;
use orrery_storage::RowRange;
use orrery_term::TermId;

use crate::node_metrics::NodeMetrics;
use crate::pattern::chunk::{Chunk, row_numbers};
use crate::pattern::found_ids::Published;
use crate::pattern::program::OutputColumn;
use crate::pattern::run::compiled::CompiledPattern;
use crate::pattern::run::distinct_rows::distinct_rows;
use crate::pattern::run::morsel::MorselReader;
use crate::pattern::run::optional;
use crate::pattern::run::pipeline::{Pipeline, PipelineProgress, VectorRows};
use crate::pattern::specification::PatternMode;
use crate::solutions::{gather, id_columns, solution_batch};

/// How long a poll may work before it gives way.
const POLL_TIME_MAX: Duration = Duration::from_millis(1);
/// Longer input batches are cut.
const INPUT_ROWS_MAX: usize = 65_536;
/// At most so many variables of an input may be unbound in some of its rows and join with the
/// pattern.
const PARTLY_BOUND_MAX: usize = 64;

/// Where the rows to extend come from.
pub(crate) enum PatternInput {
    /// One row without variables, still to come.
    EmptyRow,
    /// One row without variables for each morsel.
    Morsels(MorselReader),
    /// A child plan.
    Stream(SendableRecordBatchStream),
    /// There is no more.
    Ended,
}

/// Which variables are unbound, and the rows in which just these are; no list means all rows.
type RowGroup = (Vec<bool>, Option<Vec<u32>>);

/// An input batch being worked on.
struct CurrentBatch {
    columns: Vec<UInt64Array>,
    rows: usize,
    /// For each row whether a match was found; empty under [`PatternMode::Inner`].
    matched: Vec<bool>,
    /// Rows whose turn is still to come.
    groups: Vec<RowGroup>,
    /// Rows that were not worked on, each with the equal row that tells whether it matches.
    same: Vec<(u32, u32)>,
    /// The pipeline at work.
    active: Option<usize>,
}

impl CurrentBatch {
    /// One of each kind of these rows (all rows without a list), as far as the columns tell.
    fn take_distinct(&mut self, rows: Option<Vec<u32>>, columns: &[usize]) -> Vec<u32> {
        let rows = rows.unwrap_or_else(|| (0..self.rows as u32).collect());
        let columns: Vec<&UInt64Array> = columns
            .iter()
            .map(|&column| &self.columns[column])
            .collect();
        let mut distinct = distinct_rows(&columns, rows);
        self.same.append(&mut distinct.same);
        distinct.rows
    }
}

/// The stream of a [`crate::pattern::PatternExec`].
pub(crate) struct PatternStream {
    plan: Arc<CompiledPattern>,
    /// What others publish in this execution, for each place of the specification.
    found: Vec<Option<Published>>,
    input: PatternInput,
    /// The rest of an input batch that was too long.
    rest: Option<RecordBatch>,
    baseline: NodeMetrics,
    pace: Pace,
    vector_rows: VectorRows,
    batch: Option<CurrentBatch>,
    /// What came of an input batch that was done at once.
    at_once: Option<RecordBatch>,
    /// Whether batches can be done at once, as far as the specification tells.
    may_be_at_once: bool,
    /// The rows of the first step that count, where they are spread over partitions.
    within: Option<RowRange>,
    /// Kept over input batches for their cursors, by which variables are unbound.
    pipelines: Vec<(Vec<bool>, Pipeline)>,
    /// Input variables that the pattern joins on.
    join_columns: Vec<usize>,
    /// Rows that may still come out.
    remaining: usize,
}

impl PatternStream {
    pub(crate) fn new(
        plan: Arc<CompiledPattern>,
        found: Vec<Option<Published>>,
        input: PatternInput,
        baseline: NodeMetrics,
    ) -> Result<Self> {
        let specification = &plan.specification;
        let join_columns = (0..plan.input_variables.len())
            .filter(|&column| {
                let name = &plan.input_variables[column];
                let mut steps = specification.steps.iter();
                steps.any(|step| step.pattern.variables().contains(&name))
            })
            .collect();
        Ok(Self {
            vector_rows: VectorRows::new(
                specification.vector_rows,
                specification.fetch,
                plan.bound_program()?,
                plan.context.on_the_way_pool(),
            ),
            remaining: specification.fetch.unwrap_or(usize::MAX),
            may_be_at_once: optional::may_be_at_once(&plan),
            at_once: None,
            plan,
            found,
            input,
            rest: None,
            baseline,
            pace: Pace::new(),
            batch: None,
            within: None,
            pipelines: Vec::new(),
            join_columns,
        })
    }

    /// Works on the current batch: an output batch, or nothing when it is finished or the time is
    /// up (then the batch is still there).
    fn work(&mut self, deadline: Instant) -> Result<Option<RecordBatch>> {
        while let Some(batch) = &mut self.batch {
            let Some(active) = batch.active else {
                match batch.groups.pop() {
                    Some((unbound, rows)) => self.start_group(unbound, rows)?,
                    None => return self.finish_batch(),
                }
                continue;
            };
            let matched = self
                .plan
                .specification
                .mode
                .is_existence()
                .then_some(&batch.matched[..]);
            let pipeline = &mut self.pipelines[active].1;
            let progress = pipeline.advance(
                &mut self.vector_rows,
                matched,
                &self.plan.counters,
                deadline,
            )?;
            match progress {
                PipelineProgress::Chunk(chunk) => {
                    if let Some(output) = self.accept(active, chunk)? {
                        return Ok(Some(output));
                    }
                }
                PipelineProgress::Working => return Ok(None),
                PipelineProgress::Exhausted => batch.active = None,
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn start_group(&mut self, unbound: Vec<bool>, rows: Option<Vec<u32>>) -> Result<()> {
        let Some(batch) = &mut self.batch else {
            return Ok(());
        };
        let active = match self.pipelines.iter().position(|(mask, _)| *mask == unbound) {
            Some(active) => active,
            None => {
                let program = self.plan.program(&unbound)?;
                self.pipelines.push((
                    unbound,
                    Pipeline::new(program, &self.plan.context, &self.found),
                ));
                self.pipelines.len() - 1
            }
        };
        let pipeline = &mut self.pipelines[active].1;
        let rows = match self.plan.specification.mode.is_existence() {
            true => Some(batch.take_distinct(rows, &pipeline.program.entry_columns)),
            false => rows,
        };
        let chunk = entry_chunk(batch, rows.as_deref(), pipeline)?;
        pipeline.start(chunk, self.within)?;
        batch.active = Some(active);
        Ok(())
    }

    /// Takes matches of the last step.
    fn accept(&mut self, active: usize, chunk: Chunk) -> Result<Option<RecordBatch>> {
        let Some(batch) = &mut self.batch else {
            return Ok(None);
        };
        let program = &self.pipelines[active].1.program;
        let numbers = program
            .row_number
            .map(|column| chunk.columns[column].values());
        if let Some(numbers) = numbers {
            for &number in numbers.iter() {
                batch.matched[number as usize] = true;
            }
        }
        if self.plan.specification.mode.is_existence() {
            return Ok(None);
        }
        let rows: Option<Vec<u32>> =
            numbers.map(|numbers| numbers.iter().map(|&number| number as u32).collect());
        let columns = program
            .output
            .iter()
            .map(|column| match (column, &rows) {
                (OutputColumn::Chunk(column), _) => Ok(chunk.columns[*column].clone()),
                (OutputColumn::Input(column), Some(rows)) => gather(&batch.columns[*column], rows),
                (OutputColumn::Input(_), None) | (OutputColumn::Unbound, _) => {
                    Ok(UInt64Array::new_null(chunk.rows))
                }
            })
            .collect::<Result<_>>()?;
        solution_batch(&self.plan.schema, columns, chunk.rows).map(Some)
    }

    /// Ends the current batch: what its mode says of rows with or without a match.
    fn finish_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut batch) = self.batch.take() else {
            return Ok(None);
        };
        for &(row, equal) in &batch.same {
            batch.matched[row as usize] = batch.matched[equal as usize];
        }
        let of = |wanted: bool| -> Vec<u32> {
            let rows = batch.matched.iter().enumerate();
            rows.filter(|(_, matched)| **matched == wanted)
                .map(|(row, _)| row as u32)
                .collect()
        };
        match &self.plan.specification.mode {
            PatternMode::Inner => Ok(None),
            PatternMode::Optional | PatternMode::Anti => self.input_rows(&batch, &of(false), None),
            PatternMode::Semi => self.input_rows(&batch, &of(true), None),
            PatternMode::Mark(mark) => {
                let all: Vec<u32> = (0..batch.rows as u32).collect();
                self.input_rows(&batch, &all, Some(mark))
            }
        }
    }

    /// Rows of the input as output, new variables unbound, and the mark if there is one.
    fn input_rows(
        &self,
        batch: &CurrentBatch,
        rows: &[u32],
        mark: Option<&Arc<str>>,
    ) -> Result<Option<RecordBatch>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let column_of = |name: &Arc<str>| {
            if mark == Some(name) {
                let marks = rows.iter().map(|&row| {
                    let matched = batch.matched[row as usize];
                    TermId::boolean(matched).bits()
                });
                return Ok(UInt64Array::from_iter_values(marks));
            }
            let mut inputs = self.plan.input_variables.iter();
            match inputs.position(|variable| variable == name) {
                Some(column) => gather(&batch.columns[column], rows),
                None => Ok(UInt64Array::new_null(rows.len())),
            }
        };
        let columns = self.plan.specification.output.iter().map(column_of);
        let columns = columns.collect::<Result<_>>()?;
        solution_batch(&self.plan.schema, columns, rows.len()).map(Some)
    }

    /// Makes a batch the current one.
    fn begin_batch(&mut self, batch: RecordBatch) -> Result<()> {
        let batch = if batch.num_rows() > INPUT_ROWS_MAX {
            self.rest = Some(batch.slice(INPUT_ROWS_MAX, batch.num_rows() - INPUT_ROWS_MAX));
            batch.slice(0, INPUT_ROWS_MAX)
        } else {
            batch
        };
        let rows = batch.num_rows();
        let columns = id_columns(&batch)?;
        let matched = match &self.plan.specification.mode {
            PatternMode::Inner => Vec::new(),
            PatternMode::Optional
            | PatternMode::Semi
            | PatternMode::Anti
            | PatternMode::Mark(_) => vec![false; rows],
        };
        let groups = group_by_unbound(&columns, rows, &self.join_columns)?;
        let is_all_bound =
            matches!(groups.as_slice(), [(unbound, None)] if !unbound.contains(&true));
        if self.may_be_at_once && is_all_bound {
            let vector_rows = &self.vector_rows;
            let bounds = optional::Bounds {
                wanted: self.remaining,
                has_room: |rows, row_bytes| vector_rows.has_room(rows, row_bytes),
            };
            self.at_once = optional::at_once(&self.plan, &columns, rows, bounds)?;
            if self.at_once.is_some() {
                return Ok(());
            }
        }
        self.batch = Some(CurrentBatch {
            columns,
            rows,
            matched,
            groups,
            same: Vec::new(),
            active: None,
        });
        Ok(())
    }

    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Some(Ok(rest)));
        }
        match &mut self.input {
            PatternInput::EmptyRow => {
                self.input = PatternInput::Ended;
                Poll::Ready(Some(empty_row()))
            }
            PatternInput::Morsels(reader) => {
                self.within = ready!(reader.poll_next(cx));
                if self.within.is_none() {
                    self.input = PatternInput::Ended;
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(empty_row()))
            }
            PatternInput::Stream(stream) => {
                let batch = ready!(stream.poll_next_unpin(cx));
                if batch.is_none() {
                    self.input = PatternInput::Ended;
                }
                Poll::Ready(batch)
            }
            PatternInput::Ended => Poll::Ready(None),
        }
    }

    /// Cuts an output batch to the rows still wanted.
    fn limit(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows().min(self.remaining);
        self.remaining -= rows;
        self.baseline.record_output(rows);
        if self.remaining == 0 {
            self.stop();
        }
        if rows < batch.num_rows() {
            batch.slice(0, rows)
        } else {
            batch
        }
    }

    /// Lets go of everything.
    fn stop(&mut self) {
        self.input = PatternInput::Ended;
        self.rest = None;
        self.batch = None;
        self.pipelines.clear();
        self.vector_rows.release();
        self.remaining = 0;
    }
}

impl Stream for PatternStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let elapsed = this.baseline.elapsed_compute().clone();
        let mut start = Instant::now();
        let deadline = start + POLL_TIME_MAX;
        if this.pace.must_give_way(start) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        while this.remaining > 0 {
            if this.batch.is_some() {
                let output = this.work(deadline);
                match output {
                    Ok(Some(output)) => {
                        let output = this.limit(output);
                        elapsed.add_elapsed(start);
                        return Poll::Ready(Some(Ok(output)));
                    }
                    Ok(None) if this.batch.is_some() => {
                        elapsed.add_elapsed(start);
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        this.stop();
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                continue;
            }
            elapsed.add_elapsed(start);
            let input = ready!(this.poll_input(cx));
            start = Instant::now();
            let begun = match input {
                Some(Ok(batch)) => this.begin_batch(batch),
                Some(Err(error)) => Err(error),
                None => break,
            };
            if let Err(error) = begun {
                this.stop();
                return Poll::Ready(Some(Err(error)));
            }
            if let Some(output) = this.at_once.take() {
                let output = this.limit(output);
                elapsed.add_elapsed(start);
                return Poll::Ready(Some(Ok(output)));
            }
        }
        this.stop();
        Poll::Ready(None)
    }
}

impl RecordBatchStream for PatternStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

/// One row without variables.
fn empty_row() -> Result<RecordBatch> {
    let schema = Arc::new(arrow::datatypes::Schema::empty());
    solution_batch(&schema, Vec::new(), 1)
}

/// The columns of the input rows that a program starts with.
fn entry_chunk(batch: &CurrentBatch, rows: Option<&[u32]>, pipeline: &Pipeline) -> Result<Chunk> {
    let program = &pipeline.program;
    let mut columns: Vec<UInt64Array> = program
        .entry_columns
        .iter()
        .map(|&column| match rows {
            Some(rows) => gather(&batch.columns[column], rows),
            None => Ok(batch.columns[column].clone()),
        })
        .collect::<Result<_>>()?;
    if program.counts_rows {
        columns.push(match rows {
            Some(rows) => UInt64Array::from_iter_values(rows.iter().map(|&row| u64::from(row))),
            None => row_numbers(batch.rows),
        });
    }
    Ok(Chunk {
        columns,
        rows: rows.map_or(batch.rows, <[u32]>::len),
    })
}

/// Sorts rows by which of the variables that join are unbound in them.
fn group_by_unbound(
    columns: &[UInt64Array],
    rows: usize,
    join_columns: &[usize],
) -> Result<Vec<RowGroup>> {
    let partly_bound: Vec<usize> = join_columns
        .iter()
        .copied()
        .filter(|&column| columns[column].null_count() > 0)
        .collect();
    if partly_bound.is_empty() {
        return Ok(vec![(vec![false; columns.len()], None)]);
    }
    if partly_bound.len() > PARTLY_BOUND_MAX {
        return Err(DataFusionError::NotImplemented(format!(
            "more than {PARTLY_BOUND_MAX} variables that are bound in some solutions only join with one pattern"
        )));
    }
    let mut groups: Vec<(u64, Vec<u32>)> = Vec::new();
    for row in 0..rows {
        let mut mask = 0u64;
        for (bit, &column) in partly_bound.iter().enumerate() {
            mask |= u64::from(columns[column].is_null(row)) << bit;
        }
        match groups.iter_mut().find(|(group, _)| *group == mask) {
            Some((_, rows)) => rows.push(row as u32),
            None => groups.push((mask, vec![row as u32])),
        }
    }
    let unbound_of = |mask: u64| {
        let mut unbound = vec![false; columns.len()];
        for (bit, &column) in partly_bound.iter().enumerate() {
            unbound[column] = mask >> bit & 1 == 1;
        }
        unbound
    };
    Ok(groups
        .into_iter()
        .map(|(mask, rows)| (unbound_of(mask), Some(rows)))
        .collect())
}

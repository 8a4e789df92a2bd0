//! The stream of rows of one scan partition.
//!
//! ```text
//! morsel -> vectors that zones do not rule out -> chunks of a batch's rows
//! chunk  -> conditions, each on the rows that are left -> numbers of rows, collected to a batch -> the given columns of these
//! ```
//!
//! Columns that conditions do not name are read for rows that pass alone. New rows are decoded
//! piece by piece, and put between the file's where they belong. A condition that only spares work
//! above is left out once most rows have passed it.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{FilterBuilder, interleave};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::utils::split_conjunction;
use futures::Stream;
use orrery_column::VECTOR_ROWS;
use orrery_runtime::Pace;
use orrery_storage::table::ProjectionFile;

use super::condition::Condition;
use super::failed;
use super::hint::Dynamic;
use super::left::{Left, not_deleted};
use super::morsels::Morsels;
use super::new_rows::NewRows;
use super::number_test::Scratch;
use super::plan::{AskedKeys, Counts, Plan, ScannedRows};

/// After so many rows it is looked at how many a hint has let pass.
const HINT_ROWS_MIN: u64 = 32 * 1024;
/// Where at least one row of so many of a chunk passes, its columns are read whole and filtered.
const DENSE: usize = 4;

/// A hint that can change while the scan runs, as it was found last.
struct Hint {
    source: Arc<dyn PhysicalExpr>,
    generation: Option<u64>,
    conditions: Vec<Condition>,
    /// Keys that say the same, each with its column: then the conditions only rule out vectors.
    keys: Vec<AskedKeys>,
    seen: u64,
    passed: u64,
}

/// Reads morsel after morsel, batch by batch.
pub(super) struct ScanStream {
    plan: Arc<Plan>,
    hints: Vec<Hint>,
    /// Keys of joins that come without a hint.
    keys: Vec<AskedKeys>,
    morsels: Arc<Morsels>,
    /// What is left of the present morsel, and where it ends.
    chunks: Vec<Range<u64>>,
    new: NewRows,
    /// A batch that stands behind the one that was given last.
    ready: Option<RecordBatch>,
    /// Rows of the file that pass and were not given yet.
    pending: Vec<u64>,
    batch_rows: usize,
    limit: Option<usize>,
    rows: ScannedRows,
    scratch: Scratch,
    counts: Counts,
    pace: Pace,
    is_done: bool,
}

/// What a step of the scan came to.
enum Step {
    Batch(RecordBatch),
    Nothing,
    End,
}

impl ScanStream {
    pub(super) fn new(
        plan: Arc<Plan>,
        morsels: Arc<Morsels>,
        batch_rows: usize,
        limit: Option<usize>,
        counts: Counts,
    ) -> Self {
        let hints = plan.dynamic.iter().map(|dynamic| Hint {
            source: Arc::clone(&dynamic.0),
            generation: None,
            conditions: Vec::new(),
            keys: Vec::new(),
            seen: 0,
            passed: 0,
        });
        Self {
            hints: hints.collect(),
            keys: Vec::new(),
            plan,
            morsels,
            chunks: Vec::new(),
            new: NewRows::default(),
            ready: None,
            pending: Vec::new(),
            batch_rows: batch_rows.max(1),
            limit,
            rows: ScannedRows::All,
            scratch: Scratch::default(),
            counts,
            pace: Pace::new(),
            is_done: false,
        }
    }

    /// The same that looks at some rows alone.
    pub(super) fn of(self, rows: ScannedRows) -> Self {
        Self { rows, ..self }
    }

    /// Rows of a chunk, at most.
    pub(super) fn chunk_rows(&self) -> usize {
        self.batch_rows + VECTOR_ROWS
    }

    /// The next chunk of the file of which rows pass, and which; in place of batches.
    pub(super) fn next_selected(&mut self) -> Result<Option<(Range<u64>, Left)>> {
        let plan = Arc::clone(&self.plan);
        let Some(file) = plan.projection.file() else {
            return Ok(None);
        };
        loop {
            if let Some(rows) = self.chunks.pop() {
                let count = (rows.end - rows.start) as usize;
                self.counts.rows_looked_at.add(count);
                let left = self.left(file, rows.clone())?;
                return Ok(Some((rows, left)));
            }
            match self.morsels.take() {
                Some(morsel) => self.begin(morsel)?,
                None => return Ok(None),
            };
        }
    }

    fn step(&mut self) -> Result<Step> {
        if self.is_done || self.limit == Some(0) {
            return Ok(Step::End);
        }
        if let Some(batch) = self.ready.take() {
            return Ok(Step::Batch(batch));
        }
        if let Some(chunk) = self.next_chunk() {
            return self.chunk(chunk);
        }
        if !self.new.is_done() {
            let until = self
                .new
                .positions
                .len()
                .min(self.new.next + self.batch_rows);
            let range = self.new.next..until;
            self.new.next = until;
            let slice = |column: &ArrayRef| column.slice(range.start, range.len());
            let columns: Vec<ArrayRef> = self.new.columns.iter().map(slice).collect();
            return Ok(Step::Batch(self.plan.batch(&columns, range.len())?));
        }
        if self.new.is_unread() {
            return self.read_new();
        }
        match self.morsels.take() {
            Some(morsel) => self.begin(morsel),
            None => {
                self.is_done = true;
                match self.pending.is_empty() {
                    true => Ok(Step::End),
                    false => self.flush(),
                }
            }
        }
    }

    /// The next chunk, up to the first new row that is not read yet. None where that stands before
    /// it.
    fn next_chunk(&mut self) -> Option<Range<u64>> {
        let read_until = self.new.read_until();
        let chunk = self.chunks.pop()?;
        if read_until >= chunk.end {
            return Some(chunk);
        }
        let until = read_until.max(chunk.start);
        self.chunks.push(until..chunk.end);
        (chunk.start < until).then_some(chunk.start..until)
    }

    /// Chooses the chunks of a morsel.
    fn begin(&mut self, morsel: Range<u64>) -> Result<Step> {
        self.renew_hints()?;
        let plan = Arc::clone(&self.plan);
        if self.rows != ScannedRows::File {
            self.new = NewRows::new(&plan, morsel.clone());
        }
        let file = plan.projection.file();
        let Some(file) = file.filter(|_| self.rows != ScannedRows::New) else {
            return Ok(Step::Nothing);
        };
        let vector_rows = VECTOR_ROWS as u64;
        let end = morsel.end.min(file.rows());
        let mut start = morsel.start;
        let mut chunks: Vec<Range<u64>> = Vec::new();
        while start < end {
            let vector = start / vector_rows;
            let until = ((vector + 1) * vector_rows).min(end);
            let vector = vector as usize;
            let is_left = self.is_left(vector);
            if is_left && self.is_hinted(vector) {
                match chunks.last_mut() {
                    Some(last)
                        if last.end == start && last.end - last.start < self.batch_rows as u64 =>
                    {
                        last.end = until;
                    }
                    _ => chunks.push(start..until),
                }
            } else {
                self.counts.vectors_skipped.add(1);
                if is_left {
                    self.counts.rows_spared.add((until - start) as usize);
                }
            }
            start = until;
        }
        if file.is_cold() {
            let conditions = plan.conditions.iter();
            let mut columns: Vec<usize> = conditions
                .flat_map(|condition| condition.places().iter().copied())
                .collect();
            if columns.is_empty() {
                columns.extend(&plan.read);
            }
            columns.sort_unstable();
            columns.dedup();
            file.will_read(chunks.iter().cloned(), &columns);
        }
        chunks.reverse();
        self.chunks = chunks;
        Ok(Step::Nothing)
    }

    /// Whether the scan's own conditions leave a vector.
    fn is_left(&self, vector: usize) -> bool {
        let mut fixed = self.plan.conditions.iter();
        fixed.all(|condition| condition.zones.may_pass(vector))
    }

    /// Whether hints leave it, too.
    fn is_hinted(&self, vector: usize) -> bool {
        let mut hints = self.hints.iter().flat_map(|hint| &hint.conditions);
        hints.all(|condition| condition.zones.may_pass(vector))
    }

    /// Takes hints as they are now.
    fn renew_hints(&mut self) -> Result<()> {
        for hint in &mut self.hints {
            let generation = Dynamic::generation(&hint.source);
            if hint.generation == Some(generation) {
                continue;
            }
            hint.generation = Some(generation);
            (hint.seen, hint.passed) = (0, 0);
            let current = Dynamic::current(&hint.source)?;
            let current =
                split_conjunction(&current)
                    .into_iter()
                    .map(|part| match &self.plan.own_range {
                        Some(range) => range.of(part, &self.plan.ids),
                        None => Arc::clone(part),
                    });
            let current: Vec<_> = current.collect();
            let parts = current.iter().flat_map(split_conjunction);
            // What is always true, as a hint is before it is known, is none.
            let parts = parts.filter(|part| part.downcast_ref::<Literal>().is_none());
            let conditions = parts.map(|part| {
                Condition::new(
                    part,
                    &self.plan.ids,
                    &self.plan.projection,
                    self.plan.ranges.rows,
                )
            });
            hint.conditions = conditions.collect::<Result<_>>()?;
            let filter = hint.source.expression_id();
            let of_hint = self.plan.keys.iter();
            let of_hint = of_hint.filter(|keys| keys.filter == filter && keys.bits.is_complete());
            hint.keys = of_hint.filter_map(|keys| self.plan.asked(keys)).collect();
        }
        if self.keys.is_empty() {
            let alone = self.plan.keys.iter();
            let alone = alone.filter(|keys| keys.filter.is_none() && keys.bits.is_complete());
            self.keys = alone.filter_map(|keys| self.plan.asked(keys)).collect();
        }
        Ok(())
    }

    fn chunk(&mut self, rows: Range<u64>) -> Result<Step> {
        let plan = Arc::clone(&self.plan);
        let Some(file) = plan.projection.file() else {
            return Ok(Step::Nothing);
        };
        self.counts
            .rows_looked_at
            .add((rows.end - rows.start) as usize);
        let left = self.left(file, rows.clone())?;
        if !self.new.is_done() {
            let numbers = left.numbers(rows.clone());
            return self.between_new(file, &numbers, rows.end);
        }
        let (count, passed) = ((rows.end - rows.start) as usize, left.len(&rows));
        let mask = match &left {
            Left::All => Some(None),
            Left::Mask(mask) if passed * DENSE >= count => Some(Some(mask)),
            Left::Mask(_) | Left::Rows(_) => None,
        };
        if let Some(mask) = mask {
            let mut columns = file.read(rows, &plan.read).map_err(failed)?;
            if let Some(mask) = mask {
                let mask = BooleanArray::new(mask.clone(), None);
                let filter = FilterBuilder::new(&mask).optimize().build();
                let kept = columns.iter().map(|column| filter.filter(column));
                columns = kept.collect::<Result<_, _>>()?;
            }
            let batch = plan.batch(&columns, passed)?;
            if self.pending.is_empty() {
                return Ok(Step::Batch(batch));
            }
            self.ready = Some(batch);
            return self.flush();
        }
        self.pending.append(&mut left.numbers(rows));
        let enough = self.limit.unwrap_or(usize::MAX).min(self.batch_rows);
        match self.pending.len() >= enough {
            true => self.flush(),
            false => Ok(Step::Nothing),
        }
    }

    /// The rows of the file that were collected.
    fn flush(&mut self) -> Result<Step> {
        let Some(file) = self.plan.projection.file() else {
            return Ok(Step::Nothing);
        };
        let columns = file.take(&self.pending, &self.plan.read).map_err(failed)?;
        let batch = self.plan.batch(&columns, self.pending.len())?;
        self.pending.clear();
        Ok(Step::Batch(batch))
    }

    /// Rows of the file with the new ones that stand before them and before `end`.
    fn between_new(&mut self, file: &ProjectionFile, rows: &[u64], end: u64) -> Result<Step> {
        const FILE: usize = 0;
        const NEW: usize = 1;
        let stored = file.take(rows, &self.plan.read).map_err(failed)?;
        let new = &mut self.new;
        let mut order = Vec::with_capacity(rows.len());
        let mut until = |row: u64, order: &mut Vec<(usize, usize)>| {
            while new
                .positions
                .get(new.next)
                .is_some_and(|position| *position <= row)
            {
                order.push((NEW, new.next));
                new.next += 1;
            }
        };
        for (number, row) in rows.iter().enumerate() {
            until(*row, &mut order);
            order.push((FILE, number));
        }
        if let Some(last) = end.checked_sub(1) {
            until(last, &mut order);
        }
        let pairs = stored.iter().zip(&new.columns);
        let columns = pairs.map(|(stored, new)| interleave(&[&**stored, &**new], &order));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        match order.is_empty() {
            true => Ok(Step::Nothing),
            false => Ok(Step::Batch(self.plan.batch(&columns, order.len())?)),
        }
    }

    /// Those of a chunk that pass.
    fn left(&mut self, file: &ProjectionFile, rows: Range<u64>) -> Result<Left> {
        let plan = Arc::clone(&self.plan);
        let mut left = not_deleted(&plan.projection, rows.clone());
        let mut scratch = std::mem::take(&mut self.scratch);
        // Keys that few rows have come before conditions that read further columns.
        let selective = self.keys().filter(|(keys, _)| keys.is_selective());
        let others = self.keys().filter(|(keys, _)| !keys.is_selective());
        for (_, test) in selective {
            left = left.and_numbers(test, file, rows.clone(), &mut scratch)?;
        }
        for test in &plan.tests {
            left = left.and_numbers(test, file, rows.clone(), &mut scratch)?;
        }
        let conditions = plan.conditions_in_order();
        for condition in conditions.filter(|condition| condition.numbers.is_none()) {
            left = left.and(condition, file, rows.clone())?;
        }
        for (_, test) in others {
            left = left.and_numbers(test, file, rows.clone(), &mut scratch)?;
        }
        self.scratch = scratch;
        let hints = self.hints.iter_mut();
        for hint in hints.filter(|hint| hint.keys.is_empty()) {
            let is_useless = hint.seen >= HINT_ROWS_MIN && hint.passed * 4 > hint.seen * 3;
            if is_useless {
                continue;
            }
            hint.seen += left.len(&rows) as u64;
            for condition in &hint.conditions {
                left = left.and(condition, file, rows.clone())?;
            }
            hint.passed += left.len(&rows) as u64;
        }
        Ok(left)
    }

    /// The keys that are asked for, each with its column.
    fn keys(&self) -> impl Iterator<Item = &AskedKeys> {
        let of_hints = self.hints.iter().flat_map(|hint| &hint.keys);
        of_hints.chain(&self.keys)
    }

    /// The next piece of new rows.
    fn read_new(&mut self) -> Result<Step> {
        let looked_at = self.new.read(&self.plan, self.batch_rows)?;
        self.counts.rows_looked_at.add(looked_at);
        // What is pending stands before them.
        match self.new.is_done() || self.pending.is_empty() {
            true => Ok(Step::Nothing),
            false => self.flush(),
        }
    }

    fn limited(&mut self, batch: RecordBatch) -> RecordBatch {
        let Some(limit) = &mut self.limit else {
            return batch;
        };
        let rows = batch.num_rows().min(*limit);
        *limit -= rows;
        batch.slice(0, rows)
    }
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.counts.baseline.elapsed_compute().clone();
        let timer = time.timer();
        let next = loop {
            match self.step() {
                Ok(Step::Batch(batch)) if batch.num_rows() > 0 => {
                    break Poll::Ready(Some(Ok(self.limited(batch))));
                }
                Ok(Step::Batch(_) | Step::Nothing) => {}
                Ok(Step::End) => break Poll::Ready(None),
                Err(error) => {
                    self.is_done = true;
                    break Poll::Ready(Some(Err(error)));
                }
            }
            if self.pace.must_give_way(Instant::now()) {
                context.waker().wake_by_ref();
                break Poll::Pending;
            }
        };
        timer.done();
        self.counts.baseline.record_poll(next)
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

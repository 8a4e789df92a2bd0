//! The execution of dense aggregation in one partition: chunks in, batches of groups out.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::{Stream, StreamExt};
use orrery_runtime::Pace;
use orrery_storage::table::SomeRows;

use super::super::left::Left;
use super::super::stream::ScanStream;
use super::lanes::Numbers;
use super::plan::DensePlan;
use super::tables::GroupTables;

/// Where at least one row of so many of a chunk passes, all of it is computed.
const DENSE: usize = 8;

/// Gives the states of groups.
pub(super) struct DenseStream {
    plan: Arc<DensePlan>,
    scan: ScanStream,
    rest: Option<SendableRecordBatchStream>,
    tables: GroupTables,
    /// Used again for each chunk.
    groups: Vec<u32>,
    buffer: Vec<i64>,
    numbers: Numbers,
    /// The groups that have rows, and how many of these were given; `None` while rows come.
    found: Option<(Vec<u32>, usize)>,
    batch_rows: usize,
    metrics: BaselineMetrics,
    pace: Pace,
    _memory: MemoryReservation,
}

impl DenseStream {
    pub(super) fn new(
        plan: Arc<DensePlan>,
        scan: ScanStream,
        rest: Option<SendableRecordBatchStream>,
        memory: MemoryReservation,
        batch_rows: usize,
        metrics: BaselineMetrics,
    ) -> Self {
        Self {
            tables: plan.tables(scan.chunk_rows()),
            plan,
            scan,
            rest,
            groups: Vec::new(),
            buffer: Vec::new(),
            numbers: Numbers::default(),
            found: None,
            batch_rows: batch_rows.max(1),
            metrics,
            pace: Pace::new(),
            _memory: memory,
        }
    }

    /// A chunk of rows that pass, into the tables.
    fn add(&mut self, chunk: Range<u64>, left: Left) -> Result<()> {
        let count = (chunk.end - chunk.start) as usize;
        match left {
            Left::All => self.add_rows(&SomeRows::Range(chunk), None),
            Left::Mask(mask) if mask.count_set_bits() * DENSE >= count => {
                self.add_rows(&SomeRows::Range(chunk), Some(&mask))
            }
            left => {
                let rows = left.numbers(chunk);
                match rows.is_empty() {
                    true => Ok(()),
                    false => self.add_rows(&SomeRows::Ascending(&rows), None),
                }
            }
        }
    }

    fn add_rows(&mut self, rows: &SomeRows<'_>, mask: Option<&BooleanBuffer>) -> Result<()> {
        let (plan, file) = (&self.plan, &self.plan.file);
        plan.lanes.compute(file, rows, &mut self.numbers)?;
        if plan.groups.is_one() && mask.is_none() {
            let count = match rows {
                SomeRows::Range(rows) => (rows.end - rows.start) as usize,
                SomeRows::Ascending(rows) => rows.len(),
            };
            self.tables.add_all(count, &self.numbers);
            return Ok(());
        }
        plan.groups
            .number(file, rows, &mut self.buffer, &mut self.groups)?;
        if let Some(mask) = mask {
            // Rows that do not pass go to the place behind all groups.
            let none = plan.groups.count() as u32;
            let groups = &mut self.groups;
            (!mask).set_indices().for_each(|row| groups[row] = none);
        }
        self.tables.add(&self.groups, &self.numbers);
        Ok(())
    }

    /// The next batch of groups.
    fn give(&mut self) -> Option<Result<RecordBatch>> {
        let (groups, given) = self.found.as_mut()?;
        let until = groups.len().min(*given + self.batch_rows);
        let range = *given..until;
        *given = until;
        match range.is_empty() {
            true => None,
            false => Some(self.plan.batch(&self.tables, &groups[range])),
        }
    }
}

impl Stream for DenseStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let time = this.metrics.elapsed_compute().clone();
        let timer = time.timer();
        while this.found.is_none() {
            let added = match this.scan.next_selected() {
                Ok(Some((chunk, left))) => this.add(chunk, left),
                Ok(None) => {
                    // Without columns to group by there is one group, also of no rows.
                    let found = match this.plan.groups.is_one() {
                        true => vec![0],
                        false => this.tables.found(),
                    };
                    this.found = Some((found, 0));
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = added {
                this.found = Some((Vec::new(), 0));
                this.rest = None;
                return Poll::Ready(Some(Err(error)));
            }
            if this.pace.must_give_way(Instant::now()) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        if let Some(batch) = this.give() {
            timer.done();
            return this.metrics.record_poll(Poll::Ready(Some(batch)));
        }
        timer.done();
        match &mut this.rest {
            Some(rest) => rest.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for DenseStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

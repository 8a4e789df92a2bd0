//! The rows that one partition of a scan gives.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::Stream;
use orrery_storage::table::{ColumnId, Projection};

use super::failed;
use super::morsels::Morsels;

/// Reads morsel after morsel, batch by batch.
pub(super) struct ScanStream {
    projection: Projection,
    /// The projection's columns that are read, ascending, and where each given column is among them.
    read: Vec<usize>,
    given: Vec<usize>,
    schema: SchemaRef,
    morsels: Arc<Morsels>,
    morsel: Range<u64>,
    batch_rows: u64,
    limit: Option<usize>,
    metrics: BaselineMetrics,
}

impl ScanStream {
    pub(super) fn new(
        projection: Projection,
        columns: &[ColumnId],
        schema: SchemaRef,
        morsels: Arc<Morsels>,
        batch_rows: usize,
        limit: Option<usize>,
        metrics: BaselineMetrics,
    ) -> Self {
        let layout = projection.layout();
        let places: Vec<usize> = columns
            .iter()
            .filter_map(|id| layout.position(*id))
            .collect();
        let mut read = places.clone();
        read.sort_unstable();
        read.dedup();
        let given = places
            .iter()
            .filter_map(|place| read.binary_search(place).ok());
        Self {
            given: given.collect(),
            read,
            projection,
            schema,
            morsels,
            morsel: 0..0,
            batch_rows: batch_rows.max(1) as u64,
            limit,
            metrics,
        }
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, DataFusionError> {
        if self.limit == Some(0) {
            return Ok(None);
        }
        loop {
            if self.morsel.is_empty() {
                match self.morsels.take() {
                    Some(morsel) => self.morsel = morsel,
                    None => return Ok(None),
                }
            }
            let end = self.morsel.end.min(self.morsel.start + self.batch_rows);
            let positions = self.morsel.start..end;
            self.morsel.start = end;
            let batch = self.read(positions)?;
            if batch.num_rows() > 0 {
                return Ok(Some(self.limited(batch)));
            }
        }
    }

    fn read(&self, positions: Range<u64>) -> Result<RecordBatch, DataFusionError> {
        let any_column = [0];
        // Without columns the first one is read, to count its rows.
        let wanted = if self.read.is_empty() {
            &any_column[..]
        } else {
            &self.read
        };
        let columns = self.projection.read(positions, wanted).map_err(failed)?;
        let rows = columns.first().map_or(0, |column| column.len());
        let given = self.given.iter().map(|&place| Arc::clone(&columns[place]));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, given.collect(), &options);
        Ok(batch?)
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
    type Item = Result<RecordBatch, DataFusionError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.metrics.elapsed_compute().clone();
        let timer = time.timer();
        let next = self.next().transpose();
        timer.done();
        self.metrics.record_poll(Poll::Ready(next))
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

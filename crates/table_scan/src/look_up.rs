//! Look-ups of full rows through an index that lacks some columns.
//!
//! ```text
//! positions of the index -> primary keys, sorted -> places in the primary projection -> rows -> conditions -> batch
//! ```
//!
//! For few rows only: each costs a search. They come in the order of the primary key within a
//! batch, and in none between batches.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::RecordBatchStream;
use futures::Stream;
use orrery_storage::Result as StorageResult;
use orrery_storage::table::{KeyRows, Projection, RowPlace};

use super::failed;
use super::morsels::Morsels;
use super::plan::{Counts, Plan, columns_of};

/// Reads morsel after morsel of the index.
pub(super) struct LookUpStream {
    /// Over the primary projection.
    plan: Arc<Plan>,
    index: Projection,
    /// Where the columns of the primary key are in the index, in the key's order.
    key: Vec<usize>,
    morsels: Arc<Morsels>,
    limit: Option<usize>,
    counts: Counts,
}

impl LookUpStream {
    pub(super) fn new(
        plan: Arc<Plan>,
        index: Projection,
        morsels: Arc<Morsels>,
        limit: Option<usize>,
        counts: Counts,
    ) -> Result<Self> {
        let key = plan.projection.layout().key().iter();
        let key: Option<Vec<usize>> = key.map(|of| index.layout().position(of.id)).collect();
        let key = key.ok_or_else(|| {
            DataFusionError::Internal("an index lacks a column of the primary key".to_owned())
        })?;
        Ok(Self {
            plan,
            index,
            key,
            morsels,
            limit,
            counts,
        })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.limit != Some(0) {
            let Some(positions) = self.morsels.take() else {
                return Ok(None);
            };
            let places = self.places(positions)?;
            self.counts.rows_looked_at.add(places.len());
            let batch = self.rows(&places)?;
            if batch.num_rows() > 0 {
                let rows = batch.num_rows().min(self.limit.unwrap_or(usize::MAX));
                self.limit = self.limit.map(|limit| limit - rows);
                return Ok(Some(batch.slice(0, rows)));
            }
        }
        Ok(None)
    }

    /// Where the rows are in the primary projection.
    fn places(&self, positions: Range<u64>) -> Result<Vec<RowPlace>> {
        let mut wanted = self.key.clone();
        wanted.sort_unstable();
        let read = self.of_index(positions, &wanted).map_err(failed)?;
        let columns = self
            .key
            .iter()
            .filter_map(|place| wanted.binary_search(place).ok());
        let columns: Vec<ArrayRef> = columns.map(|place| Arc::clone(&read[place])).collect();
        let mut keys = KeyRows::default();
        let primary = &self.plan.projection;
        primary
            .keys()
            .encode_rows(&columns, &mut keys)
            .map_err(failed)?;
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|one, other| keys.get(*one).cmp(keys.get(*other)));
        let mut sorted = KeyRows::default();
        order.iter().for_each(|row| sorted.push(keys.get(*row)));
        let found = primary.locate(&sorted).map_err(failed)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// What the index has at these positions.
    fn of_index(&self, positions: Range<u64>, wanted: &[usize]) -> StorageResult<Vec<ArrayRef>> {
        let changes = self.index.changes();
        if changes.inserted() == 0 {
            return self.index.read(positions, wanted);
        }
        let file_rows = self.index.positions().end - 1;
        let stored = positions.start..positions.end.min(file_rows);
        let stored = stored.filter(|row| !changes.is_deleted(*row));
        let new = self.plan.ranges.new_rows(changes, positions, &[]);
        let new = new.map(|(position, row)| RowPlace::New(position, row.clone()));
        let places: Vec<RowPlace> = stored.map(RowPlace::File).chain(new).collect();
        self.index.rows_at(&places, wanted)
    }

    /// Those that pass.
    fn rows(&self, places: &[RowPlace]) -> Result<RecordBatch> {
        let plan = &self.plan;
        let wanted = plan.wanted();
        let mut columns = plan.projection.rows_at(places, &wanted).map_err(failed)?;
        let mut rows = places.len();
        for condition in plan.conditions_in_order() {
            let mask =
                condition.of_columns(columns_of(condition.places(), &wanted, &columns), rows)?;
            rows = mask.count_set_bits();
            if rows < mask.len() {
                let mask = BooleanArray::new(mask, None);
                let kept = columns.iter().map(|column| filter(column, &mask));
                columns = kept.collect::<Result<_, _>>()?;
            }
        }
        plan.batch(&columns_of(&plan.read, &wanted, &columns), rows)
    }
}

impl Stream for LookUpStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.counts.baseline.elapsed_compute().clone();
        let timer = time.timer();
        let next = self.next().transpose();
        timer.done();
        self.counts.baseline.record_poll(Poll::Ready(next))
    }
}

impl RecordBatchStream for LookUpStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

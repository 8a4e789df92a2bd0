//! The split of a batch into chunks of bounded bytes, each with its sort keys.
//!
//! ```text
//! batch -> rows_at_once of it, as many as the last keys say fit -> keys of these -> too long? half of them -> a batch of its own
//! ```
//!
//! What is held is counted: the batch as long as it has rows left, and the keys of the part that is
//! made. It is there already, so that it is never refused: a sort that finds too little left for
//! the next part spills, or ends with an error. A part is a copy where the batch holds more than
//! the part shows: a slice would hold, and count for, all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::{take, take_record_batch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::spill::get_record_batch_memory_size;

use crate::values::sizes::{bytes_of_array, bytes_of_values};

/// Bytes of values in one batch that goes to a sort, if it is of more than one row.
const CHUNK_BYTES: u64 = 1 << 20;
/// Rows whose keys are computed before it is known how long they are.
pub(super) const FIRST_ROWS: usize = 64;
/// Keys are computed for at most so many times the rows of which it was seen how long they are.
const GROWTH_MAX: usize = 8;
/// So much that is not shown is no reason to copy.
const HIDDEN_BYTES: usize = 16 << 10;

/// The parts of one batch.
pub(super) struct Chunks {
    batch: RecordBatch,
    /// The first row that is left.
    start: usize,
    schema: SchemaRef,
    keys: Arc<[Arc<dyn PhysicalExpr>]>,
    /// As many rows as had short enough keys last, of all batches.
    rows_at_once: Arc<AtomicUsize>,
    memory: MemoryReservation,
    /// What is counted of the batch.
    batch_bytes: usize,
    /// Of the values of the whole batch.
    value_bytes: u64,
}

impl Chunks {
    pub(super) fn new(
        batch: RecordBatch,
        schema: SchemaRef,
        keys: Arc<[Arc<dyn PhysicalExpr>]>,
        rows_at_once: Arc<AtomicUsize>,
        memory: MemoryReservation,
    ) -> Self {
        let value_bytes = bytes_of_values(&batch);
        // A small one is on its way as others are.
        let batch_bytes = match get_record_batch_memory_size(&batch) {
            bytes if bytes as u64 > CHUNK_BYTES => bytes,
            _ => 0,
        };
        memory.grow(batch_bytes);
        Self {
            batch,
            start: 0,
            schema,
            keys,
            rows_at_once,
            memory,
            batch_bytes,
            value_bytes,
        }
    }

    fn next_part(&mut self) -> Result<RecordBatch> {
        let rows = self.batch.num_rows();
        let left = rows - self.start;
        let mut count = match self.keys.is_empty() {
            true => left,
            false => left.min(self.rows_at_once.load(Ordering::Relaxed)).max(1),
        };
        // As if all rows were alike; then it is looked at these.
        if self.value_bytes > CHUNK_BYTES {
            count = count.min(part_of(rows, self.value_bytes));
        }
        let mut part = self.batch.slice(self.start, count);
        while self.value_bytes > CHUNK_BYTES
            && count > 1
            && bytes_of_values(&part) > 2 * CHUNK_BYTES
        {
            count = count.div_ceil(2);
            part = self.batch.slice(self.start, count);
        }
        let (mut keys, mut key_bytes) = self.keys_of(&part)?;
        if key_bytes > 2 * CHUNK_BYTES && count > 1 {
            // They were longer than those before them.
            count = part_of(count, key_bytes);
            part = self.batch.slice(self.start, count);
            keys.iter_mut().for_each(|key| *key = key.slice(0, count));
            key_bytes = keys.iter().map(bytes_of_array).sum();
            keys = keys.iter().map(compact).collect::<Result<_>>()?;
        }
        if !self.keys.is_empty() {
            let fits = part_of(count, key_bytes.max(1));
            let fits = fits.min(count.saturating_mul(GROWTH_MAX)).max(1);
            self.rows_at_once.store(fits, Ordering::Relaxed);
        }
        if count < rows {
            part = own(part)?;
            keys = keys.iter().map(compact).collect::<Result<_>>()?;
        }
        self.start += count;
        // Who takes the part counts it.
        self.memory.shrink(self.memory.size() - self.batch_bytes);
        let columns = part.columns().iter().cloned().chain(keys).collect();
        let count = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns, &count)?)
    }

    /// The keys of rows, and how many bytes they have.
    fn keys_of(&self, rows: &RecordBatch) -> Result<(Vec<ArrayRef>, u64)> {
        let mut keys = Vec::with_capacity(self.keys.len());
        let mut bytes = 0;
        for key in self.keys.iter() {
            let key = key.evaluate(rows)?.into_array(rows.num_rows())?;
            bytes += bytes_of_array(&key);
            self.memory.grow(key.get_buffer_memory_size());
            keys.push(key);
        }
        Ok((keys, bytes))
    }
}

impl Iterator for Chunks {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.start >= self.batch.num_rows() {
            self.batch = RecordBatch::new_empty(self.batch.schema());
            self.memory.free();
            return None;
        }
        let part = self.next_part();
        if part.is_err() {
            self.start = self.batch.num_rows();
        }
        Some(part)
    }
}

/// How many of some rows are in one part, if all are alike.
fn part_of(rows: usize, bytes: u64) -> usize {
    let fits = (rows as u128 * u128::from(CHUNK_BYTES)) / u128::from(bytes.max(1));
    usize::try_from(fits).unwrap_or(usize::MAX).max(1)
}

/// A slice of a batch that holds no more than it shows.
fn own(part: RecordBatch) -> Result<RecordBatch> {
    let places = UInt64Array::from_iter_values(0..part.num_rows() as u64);
    let copy = take_record_batch(&part, &places)?;
    let columns = copy.columns().iter().map(compact);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let count = RecordBatchOptions::new().with_row_count(Some(part.num_rows()));
    let schema = copy.schema();
    Ok(RecordBatch::try_new_with_options(schema, columns, &count)?)
}

/// A column without what it does not show, where that is most of it. Texts that many rows share
/// stay shared.
fn compact(column: &ArrayRef) -> Result<ArrayRef> {
    let shown = bytes_of_array(column) as usize;
    let is_mostly_hidden = |held: usize| held > 2 * shown + HIDDEN_BYTES;
    let held = |buffers: &[Buffer]| buffers.iter().map(Buffer::capacity).sum::<usize>();
    Ok(match column.data_type() {
        DataType::Utf8View => {
            let views = column.as_string_view();
            match is_mostly_hidden(held(views.data_buffers())) {
                true => Arc::new(views.gc()),
                false => Arc::clone(column),
            }
        }
        DataType::BinaryView => {
            let views = column.as_binary_view();
            match is_mostly_hidden(held(views.data_buffers())) {
                true => Arc::new(views.gc()),
                false => Arc::clone(column),
            }
        }
        _ if is_mostly_hidden(column.get_buffer_memory_size()) => {
            let places = UInt64Array::from_iter_values(0..column.len() as u64);
            take(column, &places, None)?
        }
        _ => Arc::clone(column),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use datafusion::physical_expr::expressions::Column;
    use proptest::prelude::*;

    use super::*;

    const LENGTHS: [usize; 4] = [0, 11, 40_000, 3 << 20];

    fn batch(lengths: &[usize]) -> RecordBatch {
        let texts = lengths.iter().map(|length| "x".repeat(*length));
        let texts = StringViewArray::from_iter_values(texts);
        let numbers = Int64Array::from_iter_values(0..lengths.len() as i64);
        let numbers: ArrayRef = Arc::new(numbers);
        let texts: ArrayRef = Arc::new(texts);
        RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap()
    }

    fn chunks(batch: &RecordBatch, has_keys: bool, pool: &Arc<dyn MemoryPool>) -> Chunks {
        let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
        let mut keys: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        if has_keys {
            fields.push(Arc::new(Field::new("key 0", DataType::Utf8View, true)));
            keys.push(Arc::new(Column::new("text", 1)));
        }
        let memory = MemoryConsumer::new("test").register(pool);
        let rows_at_once = Arc::new(AtomicUsize::new(FIRST_ROWS));
        let schema = Arc::new(Schema::new(fields));
        Chunks::new(batch.clone(), schema, keys.into(), rows_at_once, memory)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn parts_have_all_rows_in_order_and_are_small(
            lengths in proptest::collection::vec(proptest::sample::select(&LENGTHS[..3]), 1..400),
            long in proptest::option::of(0..400_usize),
            has_keys in any::<bool>(),
        ) {
            let mut lengths = lengths;
            if let Some(place) = long {
                let place = place % lengths.len();
                lengths[place] = LENGTHS[3];
            }
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
            let batch = batch(&lengths);
            let mut row = 0;
            for part in chunks(&batch, has_keys, &pool) {
                let part = part.unwrap();
                let bytes = bytes_of_values(&part);
                prop_assert!(part.num_rows() == 1 || bytes <= 6 * CHUNK_BYTES, "{bytes}");
                let held = get_record_batch_memory_size(&part) as u64;
                prop_assert!(held <= 3 * bytes + (64 << 10), "{held} for {bytes}");
                let texts = part.column(1).as_string_view();
                for text in texts.iter() {
                    prop_assert_eq!(text.unwrap().len(), lengths[row]);
                    row += 1;
                }
                if has_keys {
                    prop_assert_eq!(part.column(2), part.column(1));
                }
            }
            prop_assert_eq!(row, lengths.len());
            prop_assert_eq!(pool.reserved(), 0);
        }
    }

    #[test]
    fn what_is_held_is_counted_until_the_last_part_is_made() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        let batch = batch(&[40_000; 320]);
        let bytes = get_record_batch_memory_size(&batch);
        let mut chunks = chunks(&batch, true, &pool);
        assert_eq!(pool.reserved(), bytes);
        chunks.next().unwrap().unwrap();
        assert_eq!(pool.reserved(), bytes);
        assert!(chunks.by_ref().all(|part| part.is_ok()));
        assert_eq!(pool.reserved(), 0);
    }
}

//! The look-up of table rows by keys that a query found.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
use orrery_storage::table::{KeyRows, RelationId, RowPlace, TableState, Tables};

use crate::{Error, Result, SqlState};

/// Rows of a table that a statement changes, each once.
pub(crate) struct Found {
    /// Where they are, in the order of their keys.
    pub(crate) places: Vec<RowPlace>,
    /// The rows of the query that they came from.
    pub(crate) order: UInt32Array,
}

/// The state of a table.
pub(crate) fn state_of(tables: &Tables, table: RelationId) -> Result<TableState> {
    tables.table(table).cloned().ok_or_else(|| {
        Error::new(
            SqlState::InternalError,
            "a table is gone while its rows are changed",
        )
    })
}

/// The rows with these keys, given as arrays in the order of the key. A key that comes twice is
/// taken once.
pub(crate) fn found(table: &TableState, keys: &[ArrayRef]) -> Result<Found> {
    let primary = table.primary();
    let mut unsorted = KeyRows::default();
    primary.keys().encode_rows(keys, &mut unsorted)?;
    let mut order: Vec<u32> = (0..unsorted.len() as u32).collect();
    order.sort_by(|one, other| {
        let (one, other) = (*one as usize, *other as usize);
        unsorted.get(one).cmp(unsorted.get(other))
    });
    order.dedup_by(|one, other| unsorted.get(*one as usize) == unsorted.get(*other as usize));
    let mut keys = KeyRows::default();
    for row in &order {
        keys.push(unsorted.get(*row as usize));
    }
    let places: Option<Vec<RowPlace>> = primary.locate(&keys)?.into_iter().collect();
    let places = places.ok_or_else(|| {
        Error::new(
            SqlState::InternalError,
            "a row that was just read is not there",
        )
    })?;
    Ok(Found {
        places,
        order: UInt32Array::from(order),
    })
}

/// The rows at some places, as arrays in the order of the table's columns.
pub(crate) fn columns_at(table: &TableState, places: &[RowPlace]) -> Result<Vec<ArrayRef>> {
    let primary = table.primary();
    let all: Vec<usize> = (0..primary.layout().columns.len()).collect();
    let read = primary.rows_at(places, &all)?;
    let columns = table.definition().columns.iter();
    let columns = columns.filter_map(|column| primary.layout().position(column.id));
    Ok(columns.map(|place| Arc::clone(&read[place])).collect())
}

/// Some rows of arrays.
pub(crate) fn taken(columns: &[ArrayRef], rows: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let taken = columns.iter().map(|column| take(column, rows, None));
    let taken: Result<_, _> = taken.collect();
    taken.map_err(|error| Error::of_run(&error.into()))
}

/// All rows of a query in one batch; fails where they need more memory than there is.
pub(crate) async fn all_rows(
    mut stream: SendableRecordBatchStream,
    memory: &MemoryReservation,
) -> Result<RecordBatch> {
    let of_run = |error| Error::of_run(&error);
    let schema = stream.schema();
    let mut batches = Vec::new();
    while let Some(batch) = stream.try_next().await.map_err(of_run)? {
        // Once as they came, once put together.
        let grown = memory.try_grow(2 * batch.get_array_memory_size());
        grown.map_err(of_run)?;
        batches.push(batch);
    }
    concat_batches(&schema, &batches).map_err(|error| of_run(error.into()))
}

/// All rows of a query now, in memory that is counted until they are taken; and how many.
pub(crate) async fn held_rows(
    mut rows: SendableRecordBatchStream,
    memory: MemoryReservation,
) -> Result<(SendableRecordBatchStream, u64)> {
    let of_run = |error: DataFusionError| Error::of_run(&error);
    let schema = rows.schema();
    let (mut batches, mut count) = (Vec::new(), 0);
    while let Some(batch) = rows.try_next().await.map_err(of_run)? {
        let bytes = batch.get_array_memory_size();
        memory.try_grow(bytes).map_err(of_run)?;
        count += batch.num_rows() as u64;
        batches.push((batch, bytes));
    }
    let batches = futures::stream::iter(batches).map(move |(batch, bytes)| {
        memory.shrink(bytes);
        Ok(batch)
    });
    let rows = RecordBatchStreamAdapter::new(schema, batches);
    Ok((Box::pin(rows), count))
}

/// Rows put behind each other, as arrays in the same order of columns.
pub(crate) fn joined(pieces: &[Vec<ArrayRef>]) -> Result<Vec<ArrayRef>> {
    let Some(first) = pieces.first() else {
        return Ok(Vec::new());
    };
    let columns = (0..first.len()).map(|column| {
        let arrays: Vec<&dyn Array> = pieces.iter().map(|piece| &*piece[column]).collect();
        datafusion::arrow::compute::concat(&arrays)
    });
    let columns: Result<_, _> = columns.collect();
    columns.map_err(|error| Error::of_run(&error.into()))
}

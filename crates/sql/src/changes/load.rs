//! Bulk loads: rows written to new files of their table, not through memory and log.
//!
//! ```text
//! rows of a plan, sorted by the key --\
//! rows of the table, in its order -----+-> merged -> file of the primary projection -> per index: sorted -> its file
//! ```
//!
//! Rows often come in the order of the key already: that is tried first, and given up at the first
//! row that does not. Sorting is DataFusion's, which spills beyond the memory given. Threads encode
//! and write while the plan is run. Nothing is seen of it before the transaction commits.

mod paid;
mod sorted;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;
use futures::StreamExt;
use orrery_storage::Transaction;
use orrery_storage::table::{
    ColumnId, ColumnType, Projection, ProjectionLayout, ROW_NUMBER, RelationId, RewrittenRows,
    TableRewrite, TableState,
};
use tokio::sync::mpsc;

use self::paid::Paid;
use self::sorted::sorted;
use crate::execute::rows_at_once::RowsAtOnce;
use crate::execute::stopping::ToName;
use crate::plan::counted::counted_stream;
use crate::{Error, Result, SqlState};

/// Batches that may wait for the thread that writes.
const BATCHES_WAITING: usize = 4;

/// Loads the rows of a plan into a table, together with those that it has. Returns how many came.
///
/// `plan` makes the same rows each time, with a column for each of the table's, of its type and in
/// its order: in one partition if `true` is asked for, in any number otherwise. It is called twice
/// where the rows are not in the order of the key.
///
/// # Errors
/// When the plan fails, or a row breaks a constraint of the table: then nothing was loaded, and the
/// transaction is as before.
pub(crate) async fn load<P>(
    transaction: &mut Transaction,
    table: RelationId,
    plan: impl Fn(bool) -> P,
    task: &Arc<TaskContext>,
) -> Result<u64>
where
    P: Future<Output = Result<Arc<dyn ExecutionPlan>>>,
{
    let before = table_before(transaction, table)?;
    let mut rewrite = begin(transaction, table, task)?;
    let next_row_number = match before.definition().primary_key {
        None => append(&mut rewrite, &before, plan(true).await?, task).await?,
        Some(_) => {
            let as_it_comes = in_layout(plan(true).await?, &before)?;
            let merged = merge(&before, as_it_comes)?;
            let paid = Paid::for_new(&before, task);
            if !write_in_order(&mut rewrite, 0, merged, task, paid).await? {
                let sorted = sort(
                    in_layout(plan(false).await?, &before)?,
                    before.primary(),
                    task,
                )?;
                let merged = merge(&before, sorted)?;
                let paid = Paid::for_new(&before, task);
                write_sorted(&mut rewrite, 0, merged, task, paid).await?;
            }
            before.next_row_number()
        }
    };
    finish(transaction, rewrite, &before, next_row_number, task).await
}

/// The same with rows that a plan makes once, in one partition: they are sorted without looking
/// whether they are already.
///
/// # Errors
/// As [`load`].
pub(crate) async fn load_once(
    transaction: &mut Transaction,
    table: RelationId,
    plan: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
) -> Result<u64> {
    let before = table_before(transaction, table)?;
    let mut rewrite = begin(transaction, table, task)?;
    let next_row_number = match before.definition().primary_key {
        None => append(&mut rewrite, &before, plan, task).await?,
        Some(_) => {
            let sorted = sort(in_layout(plan, &before)?, before.primary(), task)?;
            let merged = merge(&before, sorted)?;
            let paid = Paid::for_new(&before, task);
            write_sorted(&mut rewrite, 0, merged, task, paid).await?;
            before.next_row_number()
        }
    };
    finish(transaction, rewrite, &before, next_row_number, task).await
}

fn begin(transaction: &Transaction, table: RelationId, task: &TaskContext) -> Result<TableRewrite> {
    let rewrite = transaction.rewrite_table(table)?;
    Ok(rewrite.on_threads(threads(task)))
}

fn table_before(transaction: &Transaction, table: RelationId) -> Result<TableState> {
    let before = transaction.tables().table(table).cloned();
    before.ok_or_else(|| {
        let what = format!("there is no table {}", table.0);
        Error::new(SqlState::UndefinedTable, what)
    })
}

/// Writes the indexes of a table whose primary projection is written, and puts all of it to the
/// transaction.
async fn finish(
    transaction: &mut Transaction,
    mut rewrite: TableRewrite,
    before: &TableState,
    next_row_number: u64,
    task: &Arc<TaskContext>,
) -> Result<u64> {
    let primary = rewrite.written(0)?;
    for number in 1..rewrite.layouts().len() {
        write_index(&mut rewrite, number, &primary, task, Paid::nothing()).await?;
    }
    let rows = transaction.put_rewritten(rewrite, next_row_number)?;
    Ok(rows - before.rows())
}

/// Puts the rows that a table had into it again, which was emptied and got other indexes in this
/// transaction. What has the order that it had is copied, the others are sorted within the memory
/// given.
///
/// # Errors
/// When two rows are equal in a unique index, or a file cannot be written: then the statement is to
/// be undone.
pub(crate) async fn refill(
    transaction: &mut Transaction,
    before: &TableState,
    task: &Arc<TaskContext>,
) -> Result<()> {
    let mut rewrite = begin(transaction, before.definition().id, task)?;
    for number in 0..rewrite.layouts().len() {
        let layout = rewrite.layouts()[number].clone();
        let mut old = before.projections();
        let paid = Paid::for_all(task);
        match old.find(|projection| have_same_rows(projection.layout(), &layout)) {
            Some(same) => {
                let rows = stored_rows(same, &layout, 1, None)?;
                write_sorted(&mut rewrite, number, rows, task, paid).await?;
            }
            None => {
                let primary = before.primary();
                write_index(&mut rewrite, number, primary, task, paid).await?;
            }
        }
    }
    transaction.put_rewritten(rewrite, before.next_row_number())?;
    Ok(())
}

/// Whether two layouts of a projection differ at most in what may be NULL: its rows stand in the
/// same order.
fn have_same_rows(one: &ProjectionLayout, other: &ProjectionLayout) -> bool {
    let columns = |layout: &ProjectionLayout| -> Vec<(ColumnId, ColumnType)> {
        let columns = layout.columns.iter();
        columns.map(|it| (it.id, it.column_type)).collect()
    };
    one.relation == other.relation
        && one.key_columns == other.key_columns
        && columns(one) == columns(other)
}

/// Writes the projection of an index with the rows of the primary one.
async fn write_index(
    rewrite: &mut TableRewrite,
    number: usize,
    primary: &Projection,
    task: &Arc<TaskContext>,
    paid: Paid,
) -> Result<()> {
    let index = Projection::new(rewrite.layouts()[number].clone(), None);
    let rows = stored_rows(primary, index.layout(), threads(task), None)?;
    write_sorted(rewrite, number, sort(rows, &index, task)?, task, paid).await
}

fn threads(task: &TaskContext) -> usize {
    task.session_config().target_partitions()
}

/// The columns of a plan, which are in the order of the table, in that of its primary projection.
fn in_layout(plan: Arc<dyn ExecutionPlan>, table: &TableState) -> Result<Arc<dyn ExecutionPlan>> {
    let definition = table.definition();
    let schema = schema_of(table.primary().layout());
    let expressions = table.primary().layout().columns.iter().zip(schema.fields());
    let expressions = expressions.filter_map(|(column, field)| {
        let mut columns = definition.columns.iter();
        let place = columns.position(|of_table| of_table.id == column.id)?;
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
        Some((column, field.name().clone()))
    });
    let expressions: Vec<_> = expressions.collect();
    let projected = ProjectionExec::try_new(expressions, plan).map_err(of_engine)?;
    Ok(Arc::new(projected))
}

/// The columns of a layout, named by their numbers.
fn schema_of(layout: &ProjectionLayout) -> SchemaRef {
    let fields = layout.columns.iter().map(|column| {
        let name = column.id.0.to_string();
        // What a plan makes may have NULL wherever it stands; the writer refuses it.
        Field::new(name, column.column_type.arrow(), true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The order of a layout's key; NULL is behind all values.
fn ordering_of(layout: &ProjectionLayout) -> Result<LexOrdering> {
    let options = SortOptions {
        descending: false,
        nulls_first: false,
    };
    let parts = layout.key().iter().enumerate().map(|(place, column)| {
        let column = Column::new(&column.id.0.to_string(), place);
        PhysicalSortExpr::new(Arc::new(column), options)
    });
    LexOrdering::new(parts)
        .ok_or_else(|| Error::new(SqlState::InternalError, "a key has no columns"))
}

/// Rows sorted by the key of a projection, in one partition.
fn sort(
    plan: Arc<dyn ExecutionPlan>,
    by: &Projection,
    task: &Arc<TaskContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    sorted(plan, ordering_of(by.layout())?, task).map_err(of_engine)
}

/// The rows of a table and new ones that are taken for sorted, in the order of the primary key.
fn merge(before: &TableState, new: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if before.rows() == 0 {
        return Ok(new);
    }
    let layout = before.primary().layout();
    let ordering = ordering_of(layout)?;
    let old = stored_rows(before.primary(), layout, 1, Some(ordering.clone()))?;
    let both = UnionExec::try_new(vec![old, new]).map_err(of_engine)?;
    Ok(Arc::new(SortPreservingMergeExec::new(ordering, both)))
}

/// The rows of a projection with the columns of a layout, in so many partitions.
fn stored_rows(
    projection: &Projection,
    layout: &ProjectionLayout,
    partitions: usize,
    ordering: Option<LexOrdering>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = schema_of(layout);
    let ids = layout.columns.iter().map(|column| column.id);
    let places = ids.filter_map(|id| projection.layout().position(id));
    let places: Arc<[usize]> = places.collect();
    let positions = projection.positions();
    let share = positions.end.div_ceil(partitions.max(1) as u64).max(1);
    let parts = (0..positions.end).step_by(share as usize).map(|start| {
        Arc::new(StoredRows {
            projection: projection.clone(),
            places: Arc::clone(&places),
            positions: start..positions.end.min(start + share),
            schema: Arc::clone(&schema),
        }) as Arc<dyn PartitionStream>
    });
    let parts = parts.collect();
    let rows = StreamingTableExec::try_new(schema, parts, None, ordering, false, None);
    Ok(Arc::new(rows.map_err(of_engine)?))
}

/// Some of the rows of a projection, in its order.
struct StoredRows {
    projection: Projection,
    /// Of the columns wanted, in the order in which they are.
    places: Arc<[usize]>,
    positions: Range<u64>,
    schema: SchemaRef,
}

impl fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRows")
            .field("positions", &self.positions)
            .finish_non_exhaustive()
    }
}

impl StoredRows {
    fn read(&self, positions: Range<u64>) -> Result<RecordBatch, DataFusionError> {
        let mut ascending = self.places.to_vec();
        ascending.sort_unstable();
        let read = self.projection.read(positions, &ascending);
        let read = read.map_err(|error| DataFusionError::from(Error::from(error)))?;
        let column = |place: &usize| {
            let at = ascending.partition_point(|other| other < place);
            Arc::clone(&read[at])
        };
        let columns: Vec<ArrayRef> = self.places.iter().map(column).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl PartitionStream for StoredRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let stop = ToName::of(&task);
        let rows = Self {
            projection: self.projection.clone(),
            places: Arc::clone(&self.places),
            positions: self.positions.clone(),
            schema: Arc::clone(&self.schema),
        };
        let mut next = self.positions.start;
        let mut at_once = RowsAtOnce::default();
        let batches = futures::stream::iter(std::iter::from_fn(move || {
            let start = next;
            if start >= rows.positions.end {
                return None;
            }
            if let Some(Err(error)) = stop.as_ref().map(|stop| stop.require_somebody()) {
                next = rows.positions.end;
                return Some(Err(error));
            }
            next = rows.positions.end.min(start + at_once.rows() as u64);
            let read = rows.read(start..next);
            if let Ok(read) = &read {
                at_once.have_come(read.columns());
            }
            Some(read)
        }));
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

/// Writes a projection with rows that should be in its order. Returns whether they are; if not, it
/// was not written.
async fn write_in_order(
    rewrite: &mut TableRewrite,
    number: usize,
    plan: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
    paid: Paid,
) -> Result<bool> {
    let rows = rewrite.projection(number)?;
    let mut stream = counted_stream(plan, Arc::clone(task)).map_err(of_engine)?;
    match write(&mut stream, rows, paid, |_| Ok(Vec::new())).await {
        Ok(rows) => {
            rewrite.finish(rows)?;
            Ok(true)
        }
        Err(WriteError::Order) => Ok(false),
        Err(WriteError::Other(error)) => Err(error),
    }
}

/// The same with rows that are sorted.
async fn write_sorted(
    rewrite: &mut TableRewrite,
    number: usize,
    plan: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
    paid: Paid,
) -> Result<()> {
    match write_in_order(rewrite, number, plan, task, paid).await? {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::InternalError,
            "rows that were sorted are not in the order of their key",
        )),
    }
}

/// Writes a table without a key: its rows, and new ones behind them. Returns the next row number.
async fn append(
    rewrite: &mut TableRewrite,
    before: &TableState,
    plan: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
) -> Result<u64> {
    let primary = before.primary();
    let rows = rewrite.projection(0)?;
    debug_assert_eq!(primary.layout().columns[0].id, ROW_NUMBER);
    let old = stored_rows(primary, primary.layout(), 1, None)?;
    let mut old = counted_stream(old, Arc::clone(task)).map_err(of_engine)?;
    let rows = write(&mut old, rows, Paid::nothing(), |_| Ok(Vec::new())).await?;
    let plan = in_layout(plan, before)?;
    let mut new = counted_stream(plan, Arc::clone(task)).map_err(of_engine)?;
    let mut next = before.next_row_number();
    let rows = write(&mut new, rows, Paid::for_rows(0, task), |count| {
        let first = next;
        next += count as u64;
        let numbers = (first..next).map(u64::cast_signed);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        Ok(vec![numbers])
    })
    .await?;
    rewrite.finish(rows)?;
    Ok(next)
}

/// Why a projection was not written.
enum WriteError {
    /// A row is not behind the one before it.
    Order,
    Other(Error),
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Order => Self::new(
                SqlState::InternalError,
                "row numbers are not in their order",
            ),
            WriteError::Other(error) => error,
        }
    }
}

/// Writes the batches of a stream, each behind the columns that `before` makes for its number of
/// rows, in a thread of its own.
async fn write(
    stream: &mut SendableRecordBatchStream,
    mut rows: RewrittenRows,
    mut paid: Paid,
    mut before: impl FnMut(usize) -> Result<Vec<ArrayRef>>,
) -> Result<RewrittenRows, WriteError> {
    let (sender, mut receiver) = mpsc::channel::<Vec<ArrayRef>>(BATCHES_WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        while let Some(columns) = receiver.blocking_recv() {
            rows.push(&columns)?;
        }
        Ok(rows)
    });
    let mut failed = None;
    while let Some(batch) = stream.next().await {
        let columns = batch.map_err(of_engine).and_then(|batch| {
            paid.take(batch.num_rows() as u64)?;
            let mut columns = before(batch.num_rows())?;
            columns.extend_from_slice(batch.columns());
            Ok(columns)
        });
        let is_taken = match columns {
            // Whoever does not take it any more says why.
            Ok(columns) => sender.send(columns).await.is_ok(),
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        if !is_taken {
            break;
        }
    }
    drop(sender);
    let written = writing.await.map_err(|error| {
        let what = format!("the thread that writes a table ended: {error}");
        WriteError::Other(Error::new(SqlState::InternalError, what))
    })?;
    match (failed, written) {
        (Some(error), _) => Err(WriteError::Other(error)),
        (None, Ok(rows)) => Ok(rows),
        (None, Err(orrery_storage::Error::RowOrder { .. })) => Err(WriteError::Order),
        (None, Err(error)) => Err(WriteError::Other(error.into())),
    }
}

fn of_engine(error: DataFusionError) -> Error {
    Error::of_run(&error)
}

#[cfg(test)]
mod tests;

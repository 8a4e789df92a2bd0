//! A bulk INSERT: many rows go to new files of the table ([`crate::changes::load`]), not through
//! memory and log.
//!
//! Whether there are so many is what the plan's statistics say: of a table or a Parquet file they
//! are known, a filter's are a guess.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use orrery_runtime::Watched;
use orrery_storage::table::{TableDefinition, Tables};

use super::maker::Maker;
use crate::changes::change::Change;
use crate::changes::key_sets::KeySets;
use crate::changes::load::load;
use crate::changes::references;
use crate::execute::own_bytes::without_others;
use crate::execute::stopping::{ToName, follow};
use crate::plan::counted::watched;
use crate::plan::planner::Planner;
use crate::{Error, Result};

/// From so many rows on.
const ROWS_MIN: usize = 100_000;
/// And so many where there is no row yet, so that nothing is written again.
const FIRST_ROWS_MIN: usize = 10_000;

/// Inserts the rows of a query in bulk and returns how many; `None`, and nothing done, where they
/// are few, or have to be looked at together.
pub(super) async fn insert(
    change: &mut Change,
    maker: &Maker,
    query: &LogicalPlan,
    text: &str,
) -> Result<Option<u64>> {
    if maker.refers_to_itself() {
        return Ok(None);
    }
    let Some(rows) = rows_if_large(change, maker, query, text).await? else {
        return Ok(None);
    };
    let tables = change.tables()?;
    let several = change.planner()?;
    let one = several.in_one_partition();
    let task = several.task();
    let memory = change.memory("keys that a load refers to");
    let keys = KeySets::new(&tables, &maker.definition, rows, memory)?;
    let making = Making {
        maker: maker.clone(),
        tables,
        keys,
    };
    let plan = |is_one: bool| {
        let planner = if is_one { &one } else { &several };
        made_rows(planner, query, text, &making)
    };
    let transaction = change.transaction_mut()?;
    load(transaction, maker.table, plan, &task).await.map(Some)
}

/// About how many rows a query has, if they are so many.
async fn rows_if_large(
    change: &Change,
    maker: &Maker,
    query: &LogicalPlan,
    text: &str,
) -> Result<Option<u64>> {
    let plan = change.planner()?.physical(query, text).await?;
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    let statistics = statistics.map_err(|error| Error::of_run(&error))?;
    let rows = statistics.num_rows.get_value().copied();
    let tables = change.tables()?;
    let is_empty = tables.table(maker.table).is_some_and(|it| it.rows() == 0);
    let least = if is_empty { FIRST_ROWS_MIN } else { ROWS_MIN };
    Ok(rows.filter(|rows| *rows >= least).map(|rows| rows as u64))
}

/// The rows of a table that a query's become.
async fn made_rows(
    planner: &Planner,
    query: &LogicalPlan,
    text: &str,
    making: &Making,
) -> Result<Arc<dyn ExecutionPlan>> {
    let query = planner.physical(query, text).await?;
    let counted = watched(&query, &planner.task()).map(Arc::new);
    let schema = schema_of(&making.maker.definition);
    let parts = 0..query.output_partitioning().partition_count();
    let parts = parts.map(|partition| {
        Arc::new(MadeRows {
            query: Arc::clone(&query),
            _counted: counted.clone(),
            partition,
            making: making.clone(),
            schema: Arc::clone(&schema),
        }) as Arc<dyn PartitionStream>
    });
    let rows = StreamingTableExec::try_new(
        Arc::clone(&schema),
        parts.collect(),
        None,
        None,
        false,
        None,
    );
    Ok(Arc::new(rows.map_err(|error| Error::of_run(&error))?))
}

/// The columns of a table, named by their numbers.
pub(crate) fn schema_of(definition: &TableDefinition) -> SchemaRef {
    let columns = definition.columns.iter();
    let fields = columns.map(|column| {
        let name = column.id.0.to_string();
        Field::new(name, column.column_type.arrow(), true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A partition of the rows.
struct MadeRows {
    query: Arc<dyn ExecutionPlan>,
    /// What counts the query as long as any partition is there.
    _counted: Option<Arc<Watched>>,
    partition: usize,
    making: Making,
    schema: SchemaRef,
}

impl fmt::Debug for MadeRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeRows")
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

/// What makes rows, and looks whether they may be.
#[derive(Clone)]
struct Making {
    maker: Maker,
    tables: Arc<Tables>,
    keys: Arc<KeySets>,
}

/// Rows of a query as the table has them, if all conditions hold.
fn made(batch: &RecordBatch, making: &Making, schema: &SchemaRef) -> Result<RecordBatch> {
    let maker = &making.maker;
    let rows = maker.rows(batch)?;
    maker.check(&rows)?;
    references::require_within(&making.tables, &maker.definition, &rows, Some(&making.keys))?;
    let rows = rows.iter().map(without_others).collect();
    RecordBatch::try_new(Arc::clone(schema), rows).map_err(|error| Error::of_run(&error.into()))
}

impl PartitionStream for MadeRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        follow(&self.query, &task);
        let batches = match self.query.execute(self.partition, Arc::clone(&task)) {
            Ok(batches) => {
                let making = self.making.clone();
                let to_name = ToName::of(&task);
                let made = move |batch: Result<RecordBatch, DataFusionError>| {
                    // Conditions and defaults are no part of the query's plan.
                    let _named = to_name.as_ref().map(ToName::named);
                    let rows = made(&batch?, &making, &schema)?;
                    Ok::<_, DataFusionError>(rows)
                };
                batches.map(made).boxed()
            }
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

//! Solutions as Arrow batches, and the schema helpers of all plan nodes.
//!
//! One nullable `UInt64` column per variable, named as the variable without `?`; a value is the
//! bits of a term id, null is unbound.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_plan::PlanProperties;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};

use crate::error::Error;

/// The schema of solutions with these variables.
pub fn solution_schema<'a>(variables: impl IntoIterator<Item = &'a Arc<str>>) -> SchemaRef {
    let fields: Vec<Field> = variables
        .into_iter()
        .map(|name| Field::new(name.to_string(), DataType::UInt64, true))
        .collect();
    Arc::new(Schema::new(fields))
}

/// The variables of a schema of solutions.
pub(crate) fn schema_variables(schema: &Schema) -> Vec<Arc<str>> {
    schema
        .fields()
        .iter()
        .map(|field| Arc::from(field.name().as_str()))
        .collect()
}

/// A batch of solutions; the row count matters when there are no variables.
pub(crate) fn solution_batch(
    schema: &SchemaRef,
    columns: Vec<UInt64Array>,
    rows: usize,
) -> Result<RecordBatch> {
    let columns = columns
        .into_iter()
        .map(|column| Arc::new(column) as Arc<dyn Array>)
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// The columns of a batch of solutions.
pub(crate) fn id_columns(batch: &RecordBatch) -> Result<Vec<UInt64Array>> {
    batch
        .columns()
        .iter()
        .map(|column| {
            column
                .as_primitive_opt::<UInt64Type>()
                .cloned()
                .ok_or_else(|| {
                    DataFusionError::Internal(format!(
                        "a column of solutions is {}, not UInt64",
                        column.data_type()
                    ))
                })
        })
        .collect()
}

/// The bits of an id; none has all bits set, which stands for unbound.
pub(crate) fn bits(column: &UInt64Array, row: usize) -> u64 {
    if column.is_valid(row) {
        column.value(row)
    } else {
        u64::MAX
    }
}

/// The values of a column at these rows.
pub(crate) fn gather(column: &UInt64Array, rows: &[u32]) -> Result<UInt64Array> {
    if column.null_count() == 0 {
        let values = column.values();
        let gathered: Vec<u64> = rows.iter().map(|&row| values[row as usize]).collect();
        return Ok(UInt64Array::new(ScalarBuffer::from(gathered), None));
    }
    let rows = UInt32Array::from(rows.to_vec());
    Ok(take(column, &rows, None)?
        .as_primitive::<UInt64Type>()
        .clone())
}

/// The properties of a node that gives one partition of solutions, in no particular order, and
/// returns to the scheduler by itself.
pub(crate) fn plan_properties(schema: &SchemaRef) -> Arc<PlanProperties> {
    partitioned_plan_properties(schema, 1)
}

/// The same of a node with several partitions.
pub(crate) fn partitioned_plan_properties(
    schema: &SchemaRef,
    partitions: usize,
) -> Arc<PlanProperties> {
    Arc::new(
        PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative),
    )
}

/// A storage error inside a stream.
pub(crate) fn storage_error(error: orrery_storage::Error) -> DataFusionError {
    Error::Storage(error).into()
}

//! Sorts by computed texts, with counted memory.
//!
//! DataFusion's sort counts the columns of its rows. Keys that are expressions are computed beside
//! these, for a whole run and again where runs are merged, and nobody asks for their memory: a run
//! of a megabyte of numbers may have a gigabyte of keys. So here keys that are texts become columns
//! first, and rows come in batches that are small by their bytes.
//!
//! ```text
//! SortPreservingMergeExec(k)   ->   SortedRowsExec            the columns that were there; fewer rows at once where they are long
//!   SortExec(k)                       SortPreservingMergeExec(key 0)
//!     input                             SortExec(key 0)       counts columns, and so keys; spills
//!                                         SortInputExec       each row's keys as columns; batches of `CHUNK_BYTES`; counts what it holds
//!                                           input
//! ```
//!
//! Keys of numbers and the like stay expressions: they are no longer than the columns that they are
//! made of. Sorts by columns stay as they are. There, the keys of rows that are merged are still
//! computed for a batch at once: of a long text that many rows share they are long, and not counted
//! before they are there.

mod chunks;
mod input;
mod rows;
mod task;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use self::input::{Keys, SortInputExec};
use self::rows::SortKeys;
pub(crate) use self::rows::SortedRowsExec;

/// Whether a node that a plan is divided at may stand in the part that each process has for itself.
pub(crate) fn is_input_of_sort(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<SortInputExec>()
}

/// A sort whose keys are counted in the place of one by texts that are computed, and a merge of
/// such; any other node as it is.
pub(crate) fn counted_sorts(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return match counted(&node, sort)? {
            Some(counted) => Ok(Transformed::yes(counted)),
            None => Ok(Transformed::no(node)),
        };
    }
    if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>()
        && let Some(sorted) = merge.input().downcast_ref::<SortedRowsExec>()
        && let Some(ordering) = sorted.ordering_within(merge.expr())
    {
        let merged = SortPreservingMergeExec::new(ordering, Arc::clone(sorted.input()));
        let merged = Arc::new(merged.with_fetch(merge.fetch()));
        let rows = SortedRowsExec::new(&node, merged, sorted.keys().clone());
        return Ok(Transformed::yes(Arc::new(rows)));
    }
    Ok(Transformed::no(node))
}

/// None where no key is a text that has to be computed.
fn counted(
    node: &Arc<dyn ExecutionPlan>,
    sort: &SortExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (ordering, keys) = as_columns(sort.expr(), &sort.input().schema())?;
    if keys.is_empty() {
        return Ok(None);
    }
    let input = Arc::new(SortInputExec::new(Arc::clone(sort.input()), keys)?);
    let sorted = SortExec::new(ordering.clone(), input)
        .with_preserve_partitioning(sort.preserve_partitioning())
        .with_fetch(sort.fetch());
    let keys = SortKeys {
        told: sort.expr().clone(),
        within: ordering,
    };
    let rows = SortedRowsExec::new(node, Arc::new(sorted), keys);
    Ok(Some(Arc::new(rows)))
}

/// The same order by columns where keys are texts that have to be computed, and these keys, with
/// their names.
fn as_columns(ordering: &LexOrdering, schema: &SchemaRef) -> Result<(LexOrdering, Keys)> {
    let mut keys = Keys::new();
    let mut within = Vec::with_capacity(ordering.len());
    for key in ordering {
        let is_column = key.expr.downcast_ref::<Column>().is_some();
        if is_column || !is_long(&key.expr.data_type(schema)?) {
            within.push(key.clone());
            continue;
        }
        let name = format!("key {}", keys.len());
        let column = Column::new(&name, schema.fields().len() + keys.len());
        within.push(PhysicalSortExpr::new(Arc::new(column), key.options));
        keys.push((Arc::clone(&key.expr), name));
    }
    let within = LexOrdering::new(within).unwrap_or_else(|| ordering.clone());
    Ok((within, keys))
}

/// Whether values of a type may be of any length.
fn is_long(data_type: &DataType) -> bool {
    !(data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Null))
}

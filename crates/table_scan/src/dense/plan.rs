//! The plan of a dense aggregation, shared by all partitions.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::common::Result;
use orrery_storage::table::ProjectionFile;

use super::groups::Groups;
use super::lanes::Lanes;
use super::tables::{Aggregate, GroupTables};

/// How a chunk of rows becomes states; the same for all partitions.
#[derive(Debug)]
pub(super) struct DensePlan {
    pub(super) file: Arc<ProjectionFile>,
    pub(super) groups: Groups,
    pub(super) lanes: Lanes,
    pub(super) aggregates: Vec<Aggregate>,
    /// The states of each.
    pub(super) states: Vec<Vec<Arc<Field>>>,
    pub(super) group_fields: Vec<Arc<Field>>,
    pub(super) schema: SchemaRef,
}

impl DensePlan {
    /// Empty tables, for chunks of so many rows.
    pub(super) fn tables(&self, chunk_rows: usize) -> GroupTables {
        let magnitude = |step| self.lanes.bounds(step).magnitude();
        GroupTables::new(self.groups.count(), &self.aggregates, magnitude, chunk_rows)
    }

    /// A batch of some groups.
    pub(super) fn batch(&self, tables: &GroupTables, groups: &[u32]) -> Result<RecordBatch> {
        let mut columns = self.groups.values(groups, &self.group_fields)?;
        for (aggregate, fields) in self.aggregates.iter().zip(&self.states) {
            columns.extend(tables.states(*aggregate, groups, fields)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

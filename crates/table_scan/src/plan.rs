//! The scan plan that all partitions share, and the counters of each.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count};
use orrery_storage::table::{ColumnId, Projection};

use super::condition::Condition;
use super::hint::{Dynamic, OwnRange};
use super::key_bits::{KeyBits, SharedKeys};
use super::key_range::KeyRanges;
use super::number_test::NumberTest;

/// Keys of a join, and the test that asks for them.
pub(super) type AskedKeys = (Arc<KeyBits>, NumberTest);

/// Which rows a scan looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScannedRows {
    All,
    /// Those of the file.
    File,
    /// Those that are not in it.
    New,
}

/// What a scan reads; the same for all of its partitions.
pub(super) struct Plan {
    pub(super) projection: Projection,
    pub(super) schema: SchemaRef,
    /// The numbers of the columns that conditions name, by their index.
    pub(super) ids: Arc<[ColumnId]>,
    /// The projection's columns that are given, ascending.
    pub(super) read: Vec<usize>,
    /// Where each given column is among them.
    given: Vec<usize>,
    pub(super) conditions: Arc<[Condition]>,
    pub(super) dynamic: Vec<Dynamic>,
    /// The keys of joins that say some of these, too.
    pub(super) keys: Vec<SharedKeys>,
    /// What is asked of numbers in place of some conditions.
    pub(super) tests: Vec<NumberTest>,
    /// Where each partition has a range of the key: this one's.
    pub(super) own_range: Option<OwnRange>,
    /// Which rows are looked at, of the projection or of the index by which its rows are looked up.
    pub(super) ranges: Arc<KeyRanges>,
}

impl Plan {
    pub(super) fn new(
        projection: Projection,
        columns: &[ColumnId],
        schema: SchemaRef,
        ids: Arc<[ColumnId]>,
        conditions: Arc<[Condition]>,
        dynamic: Vec<Dynamic>,
        ranges: Arc<KeyRanges>,
    ) -> Self {
        let layout = projection.layout();
        let place = |id: &ColumnId| layout.position(*id);
        let places: Vec<usize> = columns.iter().filter_map(place).collect();
        let mut read = places.clone();
        read.sort_unstable();
        read.dedup();
        let given = places
            .iter()
            .filter_map(|place| read.binary_search(place).ok());
        let mut tests: Vec<NumberTest> = Vec::new();
        for test in conditions
            .iter()
            .filter_map(|condition| condition.numbers.as_ref())
        {
            let known = tests.iter_mut().find_map(|other| {
                let both = other.and(test)?;
                Some((other, both))
            });
            match known {
                Some((other, both)) => *other = both,
                None => tests.push(test.clone()),
            }
        }
        Self {
            tests,
            given: given.collect(),
            read,
            projection,
            schema,
            ids,
            conditions,
            dynamic,
            keys: Vec::new(),
            own_range: None,
            ranges,
        }
    }

    /// The test that asks for keys, if the column is there.
    pub(super) fn asked(&self, keys: &SharedKeys) -> Option<AskedKeys> {
        let place = self.projection.layout().position(keys.column)?;
        let bits = Arc::clone(&keys.bits);
        let keys = Arc::clone(&bits);
        Some((bits, NumberTest::Key { place, keys }))
    }

    /// A batch of the columns that were read.
    pub(super) fn batch(&self, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let given = self.given.iter().map(|&place| Arc::clone(&columns[place]));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, given.collect(), &options);
        Ok(batch?)
    }

    /// Those that cannot fail first.
    pub(super) fn conditions_in_order(&self) -> impl Iterator<Item = &Condition> {
        let all = self.conditions.iter();
        let simple = all.clone().filter(|condition| condition.is_simple);
        simple.chain(all.filter(|condition| !condition.is_simple))
    }

    /// The columns that are given or that conditions read, ascending.
    pub(super) fn wanted(&self) -> Vec<usize> {
        let of_conditions = self.conditions.iter().flat_map(Condition::places);
        let mut wanted: Vec<usize> = of_conditions.chain(&self.read).copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}

/// Some columns out of those that were read.
pub(super) fn columns_of(
    places: &[usize],
    wanted: &[usize],
    columns: &[ArrayRef],
) -> Vec<ArrayRef> {
    let found = places
        .iter()
        .filter_map(|place| wanted.binary_search(place).ok());
    found.map(|place| Arc::clone(&columns[place])).collect()
}

/// What the scan counts.
pub(super) struct Counts {
    pub(super) baseline: BaselineMetrics,
    pub(super) vectors_skipped: Count,
    pub(super) rows_looked_at: Count,
    /// Of vectors that only a hint has ruled out: how many depends on who was faster.
    pub(super) rows_spared: Count,
}

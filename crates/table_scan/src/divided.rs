//! A scan whose partitions are ranges of the key.
//!
//! Partitions that take morsels from one queue have any keys. Where each has a range of them
//! instead, groups by the first column of the key are whole within a partition, and two tables that
//! are divided at the same values are joined on it without moving a row. So tables that refer to
//! one another by the first column of their keys are divided at the values of the one at the end of
//! the chain: lines of orders as orders are.
//!
//! ```text
//! orders    key  o_orderkey               divided at the values of its rows n/2           ->  Range([o_orderkey], [v])
//! lineitem  key  l_orderkey, l_linenumber, l_orderkey -> orders: divided at the same value ->  Range([l_orderkey], [v])
//! ```

use std::ops::Range;

use datafusion::arrow::array::Array;
use datafusion::common::ScalarValue;
use orrery_storage::Result;
use orrery_storage::table::{
    ColumnType, KeyEncoder, KeyRows, Projection, ProjectionColumn, TableState, Tables,
};

use super::compared::is_padded;

/// Tables whose keys begin with a reference to another one are followed so far.
const REFERENCES_MAX: usize = 4;

/// Where a projection is divided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Divided {
    /// The first values of all partitions but the first, which ascend.
    pub(super) values: Vec<ScalarValue>,
    /// Their positions.
    pub(super) starts: Vec<u64>,
}

impl Divided {
    /// The primary projection of a table in so many parts; `None` where that cannot be done.
    pub(super) fn new(
        tables: Option<&Tables>,
        table: &TableState,
        parts: usize,
    ) -> Result<Option<Self>> {
        let projection = table.primary();
        let (Some(column), Some(file)) = (first_column(projection), projection.file()) else {
            return Ok(None);
        };
        let root = root_of(tables, table);
        let Some(values) = values_of(root.primary(), column.column_type, parts)? else {
            return Ok(None);
        };
        let encoder = KeyEncoder::new(&[column]);
        let mut starts = Vec::with_capacity(values.len());
        for value in &values {
            let Ok(array) = value.to_array() else {
                return Ok(None);
            };
            let mut keys = KeyRows::default();
            encoder.encode_rows(&[array], &mut keys)?;
            let start = file.lower_bound(keys.get(0))?;
            // New rows that stand there belong to either side; all have to belong to the second.
            let mut here = projection.changes().within(start..start + 1);
            let is_before = |key: &[u8]| key < keys.get(0);
            if here.any(|entry| entry.row.as_ref().is_some_and(|row| is_before(row.key()))) {
                return Ok(None);
            }
            starts.push(start);
        }
        Ok(Some(Self { values, starts }))
    }

    /// Whether some positions, which ascend, are about as many in each part. Where they are not,
    /// one partition would have most of the work.
    pub(super) fn is_even(&self, positions: &[Range<u64>]) -> bool {
        let parts = self.parts(positions);
        let count = |part: &Vec<Range<u64>>| part.iter().map(|it| it.end - it.start).sum::<u64>();
        let all: u64 = parts.iter().map(count).sum();
        let most = parts.iter().map(count).max().unwrap_or(0);
        most.saturating_mul(2 * parts.len() as u64) <= all.saturating_mul(3)
    }

    /// The positions of each part, out of some that ascend.
    pub(super) fn parts(&self, positions: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        let starts = std::iter::once(0).chain(self.starts.iter().copied());
        let ends = self.starts.iter().copied().chain([u64::MAX]);
        let of_part = |(start, end): (u64, u64)| {
            let clipped = positions
                .iter()
                .map(|range| range.start.max(start)..range.end.min(end));
            clipped.filter(|range| range.start < range.end).collect()
        };
        starts.zip(ends).map(of_part).collect()
    }
}

/// The first column of a key, if the engine has its values in the same order.
fn first_column(projection: &Projection) -> Option<ProjectionColumn> {
    let column = *projection.layout().key().first()?;
    let of = column.column_type;
    let is_other = is_padded(of) || matches!(of, ColumnType::Real | ColumnType::Double);
    (!is_other && !column.is_nullable).then_some(column)
}

/// The table to which the first column of the key refers, if it is the first of that one's, and so
/// on.
fn root_of<'t>(tables: Option<&'t Tables>, table: &'t TableState) -> &'t TableState {
    let mut root = table;
    let Some(tables) = tables else { return root };
    for _ in 0..REFERENCES_MAX {
        let Some(first) = first_column(root.primary()) else {
            break;
        };
        let mut keys = root.definition().foreign_keys.iter();
        let next = keys.find_map(|key| {
            let other = tables.table(key.table)?;
            let other_first = first_column(other.primary())?;
            let is_first = key.columns == [first.id] && key.referenced == [other_first.id];
            let is_same = other_first.column_type == first.column_type;
            (is_first && is_same && key.table != root.definition().id).then_some(other)
        });
        match next {
            Some(next) => root = next,
            None => break,
        }
    }
    root
}

/// The values of the first column of the key that divide the rows of a file into parts of one size.
fn values_of(
    projection: &Projection,
    column_type: ColumnType,
    parts: usize,
) -> Result<Option<Vec<ScalarValue>>> {
    let (Some(first), Some(file)) = (first_column(projection), projection.file()) else {
        return Ok(None);
    };
    let Some(place) = projection.layout().position(first.id) else {
        return Ok(None);
    };
    let parts = parts as u64;
    if parts < 2 || file.rows() < parts || first.column_type != column_type {
        return Ok(None);
    }
    let rows = (1..parts).map(|part| file.rows() / parts * part);
    let read = file.take(&rows.collect::<Vec<_>>(), &[place])?;
    let Some(array) = read.first() else {
        return Ok(None);
    };
    let values = (0..array.len()).map(|row| ScalarValue::try_from_array(array, row));
    let Ok(values) = values.collect::<std::result::Result<Vec<_>, _>>() else {
        return Ok(None);
    };
    let ascend = values.windows(2).all(|pair| pair[0] < pair[1]);
    Ok(ascend.then_some(values))
}

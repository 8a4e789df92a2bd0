//! The range of positions to which conditions on leading key columns narrow a scan.
//!
//! ```text
//! key (a, b, c)     a IN (1, 2) AND b >= 5 AND c = 0  ->  keys 1|5 .. behind 1, 2|5 .. behind 2
//! ```
//!
//! Rows within the ranges are still looked at by all conditions, so a range may be too wide: at
//! each end it has one position more, for new rows that stand there.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::InListExpr;
use orrery_storage::Result;
use orrery_storage::table::{
    ColumnId, ColumnType, KeyEncoder, KeyRows, NewRow, Projection, ProjectionChanges,
    ProjectionColumn, behind_prefix,
};

use super::compared::{array_of, comparison, is_padded, values_of_list};

/// So many beginnings of keys are looked up at most; further columns narrow nothing then.
const PREFIXES_MAX: usize = 1_024;

/// Where rows of interest are in a projection.
#[derive(Debug, Clone)]
pub(super) struct KeyRanges {
    /// Positions, ascending, that do not overlap.
    pub(super) positions: Vec<Range<u64>>,
    /// Rows of the file within, at most.
    pub(super) rows: u64,
    /// How many columns of the key narrow it.
    pub(super) columns: usize,
    /// The same as keys, by which new rows are found: ascending, without overlap.
    keys: Vec<Keys>,
}

/// Keys from one on, up to another.
#[derive(Debug, Clone)]
struct Keys {
    least: Vec<u8>,
    end: Option<Vec<u8>>,
    /// The rows of the file that have them.
    rows: Range<u64>,
}

/// What conditions say of one column of a key, as it stands in keys.
#[derive(Default)]
struct ColumnBounds {
    /// All values it may have.
    values: Option<Vec<Vec<u8>>>,
    /// The least, and whether it may be that itself.
    least: Option<(Vec<u8>, bool)>,
    greatest: Option<(Vec<u8>, bool)>,
}

impl KeyRanges {
    /// Of conditions that all hold, over columns with these numbers.
    pub(super) fn new(
        projection: &Projection,
        conditions: &[Arc<dyn PhysicalExpr>],
        ids: &[ColumnId],
    ) -> Result<Self> {
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let mut last = ColumnBounds::default();
        let mut columns = 0;
        for column in projection.layout().key() {
            let bounds = bounds_of(column, conditions, ids)?;
            match bounds.values {
                Some(values) if prefixes.len().saturating_mul(values.len()) <= PREFIXES_MAX => {
                    let with = |prefix: &Vec<u8>| {
                        let prefix = prefix.clone();
                        let joined = values
                            .iter()
                            .map(move |value| [&prefix, &value[..]].concat());
                        joined.collect::<Vec<_>>()
                    };
                    prefixes = prefixes.iter().flat_map(with).collect();
                    columns += 1;
                }
                _ => {
                    columns += usize::from(bounds.least.is_some() || bounds.greatest.is_some());
                    last = bounds;
                    break;
                }
            }
        }
        prefixes.sort();
        prefixes.dedup();
        let mut ranges = Self {
            positions: Vec::new(),
            rows: 0,
            columns,
            keys: Vec::new(),
        };
        if columns == 0 {
            let rows = projection.positions().end - 1;
            ranges.positions.push(projection.positions());
            ranges.rows = rows;
            ranges.keys.push(Keys {
                least: Vec::new(),
                end: None,
                rows: 0..rows,
            });
            return Ok(ranges);
        }
        for prefix in prefixes {
            if let Some(keys) = find(projection, &prefix, &last)? {
                ranges.push(keys);
            }
        }
        Ok(ranges)
    }

    /// The new rows with such keys, from one on, at some positions, ascending, each with its
    /// position.
    pub(super) fn new_rows<'a>(
        &'a self,
        changes: &'a ProjectionChanges,
        positions: Range<u64>,
        least: &'a [u8],
    ) -> impl Iterator<Item = (u64, &'a NewRow)> {
        let is_before = |keys: &Keys| {
            let has_less = keys.end.as_deref().is_some_and(|end| end <= least);
            keys.rows.end < positions.start || has_less
        };
        let first = self.keys.partition_point(is_before);
        let keys = self.keys[first..].iter();
        let keys = keys.take_while(move |keys| keys.rows.start < positions.end);
        keys.flat_map(move |keys| {
            let from = keys.rows.start.max(positions.start);
            let least = least.max(keys.least.as_slice());
            let new = changes.new_between(from, least, keys.end.as_deref());
            new.take_while(move |(position, _)| *position < positions.end)
        })
    }

    fn push(&mut self, keys: Keys) {
        let rows = keys.rows.clone();
        self.keys.push(keys);
        self.rows += rows.end - rows.start;
        // New rows behind the last row of the range are at its end.
        let positions = rows.start..rows.end + 1;
        match self.positions.last_mut() {
            Some(last) if last.end >= positions.start => last.end = last.end.max(positions.end),
            _ => self.positions.push(positions),
        }
    }
}

/// The keys that begin with the prefix and go on within the bounds; `None` if there can be none.
fn find(projection: &Projection, prefix: &[u8], bounds: &ColumnBounds) -> Result<Option<Keys>> {
    let least = match &bounds.least {
        Some((value, true)) => Some([prefix, value].concat()),
        Some((value, false)) => behind_prefix(&[prefix, value].concat()),
        None => Some(prefix.to_vec()),
    };
    let Some(least) = least else {
        return Ok(None);
    };
    let end = match &bounds.greatest {
        Some((value, true)) => behind_prefix(&[prefix, value].concat()),
        Some((value, false)) => Some([prefix, value].concat()),
        None => behind_prefix(prefix),
    };
    let rows = match projection.file() {
        None => 0..0,
        Some(file) => {
            let start = file.lower_bound(&least)?;
            let end = end
                .as_ref()
                .map_or(Ok(file.rows()), |end| file.lower_bound(end))?;
            start..end.max(start)
        }
    };
    Ok(Some(Keys { least, end, rows }))
}

fn bounds_of(
    column: &ProjectionColumn,
    conditions: &[Arc<dyn PhysicalExpr>],
    ids: &[ColumnId],
) -> Result<ColumnBounds> {
    let mut bounds = ColumnBounds::default();
    let is_column = |index: usize| ids.get(index) == Some(&column.id);
    for condition in conditions {
        if let Some(list) = condition.downcast_ref::<InListExpr>() {
            if let Some((of, values)) = values_of_list(list)
                && is_column(of.index())
                && values.len() <= PREFIXES_MAX
            {
                let values = values.into_iter().filter(|value| !value.is_null());
                let keys: Option<Vec<_>> = values
                    .map(|value| key_of(column, value).transpose())
                    .collect();
                if let Some(keys) = keys {
                    bounds.narrow(keys.into_iter().collect::<Result<_>>()?);
                }
            }
            continue;
        }
        let Some((of, operator, value)) = comparison(condition) else {
            continue;
        };
        if !is_column(of.index()) || value.is_null() {
            continue;
        }
        let Some(key) = key_of(column, value)? else {
            continue;
        };
        // Zeros and NaNs of both signs are one key, but not one value to the engine.
        let is_float = matches!(column.column_type, ColumnType::Real | ColumnType::Double);
        match operator {
            Operator::Eq => bounds.narrow(vec![key]),
            _ if is_padded(column.column_type) => {}
            Operator::Gt => bounds.at_least(key, is_float),
            Operator::GtEq => bounds.at_least(key, true),
            Operator::Lt => bounds.at_most(key, is_float),
            Operator::LtEq => bounds.at_most(key, true),
            _ => {}
        }
    }
    Ok(bounds)
}

impl ColumnBounds {
    fn narrow(&mut self, values: Vec<Vec<u8>>) {
        match &mut self.values {
            Some(before) => before.retain(|value| values.contains(value)),
            None => self.values = Some(values),
        }
    }

    fn at_least(&mut self, value: Vec<u8>, is_inclusive: bool) {
        let is_more =
            |(least, _): &(Vec<u8>, bool)| value > *least || value == *least && !is_inclusive;
        if self.least.as_ref().is_none_or(is_more) {
            self.least = Some((value, is_inclusive));
        }
    }

    fn at_most(&mut self, value: Vec<u8>, is_inclusive: bool) {
        let is_less = |(greatest, _): &(Vec<u8>, bool)| {
            value < *greatest || value == *greatest && !is_inclusive
        };
        if self.greatest.as_ref().is_none_or(is_less) {
            self.greatest = Some((value, is_inclusive));
        }
    }
}

/// A value as it stands in keys; `None` if it is of another type than the column.
fn key_of(column: &ProjectionColumn, value: &ScalarValue) -> Result<Option<Vec<u8>>> {
    let Some(array) = array_of(value, column.column_type) else {
        return Ok(None);
    };
    let mut keys = KeyRows::default();
    KeyEncoder::new(&[*column]).encode_rows(&[array], &mut keys)?;
    Ok(Some(keys.get(0).to_vec()))
}

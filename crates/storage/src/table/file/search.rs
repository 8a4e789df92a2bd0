//! The search of keys within a vector.
//!
//! A key that is searched is taken apart into a bound per column (see `key` for the bytes). Rows
//! equal in the columns before ascend in the next, NULL last; so the rows are narrowed column by
//! column. Lanes are searched as they are encoded, and decoded at the second search of a vector; of
//! texts a few are decompressed, or the code of the text is searched.

use std::ops::Range;

use orrery_column::{VECTOR_ROWS, VectorBuffer};

use super::super::definition::ProjectionColumn;
use super::super::key::{END, ESCAPE, NULL, VALUE, behind_prefix, lane_width, read_lanes};
use super::super::types::Physical;
use super::bytes_block::Places;
use super::read_bytes::BytesReader;
use super::reader::ProjectionFile;
use super::vector::{BlockKind, Nulls, Vector, fault};
use super::{Decoded, GROUP_VECTORS};
use crate::Result;

/// Searches of a column of lanes before it is decoded.
const SEARCHES_OF_ENCODED: usize = 2;

/// What a column is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    value: BoundValue,
    /// Whether rows with this value may go on with further columns; else all of them are behind the
    /// bound.
    is_exact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BoundValue {
    Lanes(u64, u64),
    Bytes(Vec<u8>),
    Null,
    /// Behind NULL.
    End,
}

/// Takes the bytes of a key, of its beginning, or of what
/// [`behind_prefix`](super::super::key::behind_prefix) makes of one, apart.
pub(super) fn bounds_of(columns: &[ProjectionColumn], key: &[u8]) -> Vec<Bound> {
    let mut rest = key;
    let mut bounds = Vec::with_capacity(columns.len());
    for column in columns {
        if rest.is_empty() {
            break;
        }
        let bound = read_bound(column, &mut rest);
        let is_exact = bound.is_exact;
        bounds.push(bound);
        if !is_exact {
            break;
        }
    }
    bounds
}

fn read_bound(column: &ProjectionColumn, rest: &mut &[u8]) -> Bound {
    if column.is_nullable {
        let mark = rest[0];
        *rest = &rest[1..];
        let value = match mark {
            VALUE => None,
            NULL => Some(BoundValue::Null),
            _ => Some(BoundValue::End),
        };
        if let Some(value) = value {
            let is_exact = value == BoundValue::Null;
            return Bound { value, is_exact };
        }
    }
    let (column_type, width) = (column.column_type, lane_width(column.column_type));
    let width = match column_type.physical() {
        Physical::Bytes => return read_bytes_bound(rest),
        Physical::Lane => width,
        Physical::TwoLanes => 2 * width,
    };
    // What is cut off is as zeros: no value with this beginning is less.
    let mut padded = [0; 16];
    let length = rest.len().min(width);
    padded[..length].copy_from_slice(&rest[..length]);
    *rest = &rest[length..];
    match read_lanes(column_type, &mut &padded[..width]) {
        Some((first, second)) => Bound {
            value: BoundValue::Lanes(first, second),
            is_exact: length == width,
        },
        // Not a value of the type: behind all of them.
        None => Bound {
            value: BoundValue::Lanes(u64::MAX, u64::MAX),
            is_exact: false,
        },
    }
}

fn read_bytes_bound(rest: &mut &[u8]) -> Bound {
    let mut value = Vec::new();
    let mut is_exact = false;
    while let Some((&byte, behind)) = rest.split_first() {
        *rest = behind;
        match byte {
            END => {
                is_exact = true;
                break;
            }
            ESCAPE => {
                let escaped = rest.split_first();
                let Some((&escaped, behind)) = escaped else {
                    // Behind the value that ends here, at or before all that are longer.
                    value.push(0);
                    break;
                };
                match escaped {
                    0 => {
                        value.push(0);
                        *rest = &[];
                        break;
                    }
                    1 | 2 => value.push(escaped - 1),
                    _ => {
                        value.push(2);
                        *rest = &[];
                        break;
                    }
                }
                *rest = behind;
            }
            byte => value.push(byte),
        }
    }
    Bound {
        value: BoundValue::Bytes(value),
        is_exact,
    }
}

/// The key columns of one vector, for searching.
#[derive(Debug, Default)]
pub(super) struct VectorKeys {
    vector: Option<usize>,
    columns: Vec<ColumnKeys>,
}

/// What was decoded of a key column.
#[derive(Debug, Default)]
struct ColumnKeys {
    searches: usize,
    /// One for each lane; allocated once, and valid if the flag is set.
    lanes: [Option<Box<VectorBuffer>>; 2],
    is_decoded: bool,
}

impl VectorKeys {
    /// The vector that was searched last.
    pub(super) fn vector(&self) -> Option<usize> {
        self.vector
    }

    /// The first row of the vector that is at or behind the bounds; the number of its rows if none
    /// is.
    pub(super) fn lower_bound(
        &mut self,
        file: &ProjectionFile,
        vector: usize,
        bounds: &[Bound],
    ) -> Result<usize> {
        if self.vector != Some(vector) {
            self.vector = Some(vector);
            for column in &mut self.columns {
                column.searches = 0;
                column.is_decoded = false;
            }
            self.columns
                .resize_with(file.metadata.key_columns, ColumnKeys::default);
        }
        let mut rows = 0..file.rows_of(vector);
        for (column, bound) in bounds.iter().enumerate() {
            let equal = self.columns[column].narrow(file, vector, column, rows, bound)?;
            if !bound.is_exact || equal.is_empty() {
                return Ok(equal.start);
            }
            rows = equal;
        }
        Ok(rows.start)
    }
}

impl ColumnKeys {
    /// Those of `rows`, which are equal in the columns before, that have the bound's value; an
    /// empty range where they would be.
    fn narrow(
        &mut self,
        file: &ProjectionFile,
        vector: usize,
        column: usize,
        rows: Range<usize>,
        bound: &Bound,
    ) -> Result<Range<usize>> {
        let (block, column_block, read) = file.vector(vector, column)?;
        let values_end = file.sound(block, end_of_values(&read, &rows))?;
        let values = rows.start..values_end;
        match &bound.value {
            BoundValue::End => Ok(rows.end..rows.end),
            BoundValue::Null => Ok(values_end..rows.end),
            BoundValue::Lanes(..) | BoundValue::Bytes(_) if values.is_empty() => Ok(values),
            BoundValue::Lanes(first, second) => {
                let found = self.search_lanes(&read, values, *first, *second, file, column);
                file.sound(block, found)
            }
            BoundValue::Bytes(value) => match column_block.kind {
                BlockKind::Codes => {
                    let dictionary = file.any_dictionary(column)?;
                    let dictionary =
                        file.sound(block, dictionary.ok_or("codes without a dictionary"))?;
                    let of_group = dictionary.groups.group(vector / GROUP_VECTORS);
                    let (code, is_there) = match dictionary.find(value) {
                        Ok(code) => (code, true),
                        Err(code) => (code, false),
                    };
                    let place = of_group.partition_point(|&of| of < code);
                    let is_there = is_there && of_group.get(place) == Some(&code);
                    let found = self.search_lanes(&read, values, place as u64, 0, file, column);
                    let found = file.sound(block, found)?;
                    Ok(match is_there {
                        true => found,
                        false => found.start..found.start,
                    })
                }
                BlockKind::Bytes | BlockKind::Lanes => {
                    let places = file.sound(block, Places::read(&read))?;
                    let mut reader = BytesReader::new(file, column)?;
                    let mut row = |row| reader.value(block, column_block.table, &places, row);
                    let start = partition(values.clone(), |at| Ok(row(at)? < *value))?;
                    let end = partition(start..values.end, |at| Ok(row(at)? <= *value))?;
                    Ok(start..end)
                }
            },
        }
    }

    /// The rows whose lanes are equal to these. Codes have one lane.
    fn search_lanes(
        &mut self,
        vector: &Vector<'_>,
        rows: Range<usize>,
        first: u64,
        second: u64,
        file: &ProjectionFile,
        column: usize,
    ) -> Decoded<Range<usize>> {
        let column_type = file.metadata.columns[column].column_type;
        let is_wide = column_type.physical() == Physical::TwoLanes;
        self.searches += 1;
        if !self.is_decoded && self.searches <= SEARCHES_OF_ENCODED {
            let found = match is_wide {
                false => vector.lanes()?.search(rows.clone(), first),
                true => {
                    let [firsts, seconds] = vector.two_lanes()?;
                    match firsts.search(rows.clone(), first) {
                        Some(equal) if equal.is_empty() => Some(equal),
                        Some(equal) => seconds.search(equal, second),
                        None => None,
                    }
                }
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        if !self.is_decoded {
            self.decode(vector, is_wide)?;
        }
        let equal = equal_range(self.lanes[0].as_deref(), rows, first);
        Ok(match is_wide && !equal.is_empty() {
            true => equal_range(self.lanes[1].as_deref(), equal, second),
            false => equal,
        })
    }

    fn decode(&mut self, vector: &Vector<'_>, is_wide: bool) -> Decoded<()> {
        let [first, second] = &mut self.lanes;
        let buffer = || Box::new([0; VECTOR_ROWS]);
        if is_wide {
            let [firsts, seconds] = vector.two_lanes()?;
            firsts
                .decode(first.get_or_insert_with(buffer))
                .map_err(fault)?;
            seconds
                .decode(second.get_or_insert_with(buffer))
                .map_err(fault)?;
        } else {
            let lanes = vector.lanes()?;
            lanes
                .decode(first.get_or_insert_with(buffer))
                .map_err(fault)?;
        }
        self.is_decoded = true;
        Ok(())
    }
}

fn equal_range(lanes: Option<&VectorBuffer>, rows: Range<usize>, lane: u64) -> Range<usize> {
    let Some(lanes) = lanes else {
        return rows.start..rows.start;
    };
    let within = &lanes[rows.clone()];
    let start = within.partition_point(|&of| of < lane);
    let count = within[start..].partition_point(|&of| of == lane);
    rows.start + start..rows.start + start + count
}

/// Where the values of rows, behind which NULLs stand, end.
fn end_of_values(vector: &Vector<'_>, rows: &Range<usize>) -> Decoded<usize> {
    Ok(match &vector.nulls {
        Nulls::None => rows.end,
        Nulls::All => rows.start,
        Nulls::Some(_) => {
            let valid = vector.nulls.decode(vector.rows)?.unwrap_or_default();
            rows.start + valid[rows.clone()].partition_point(|&valid| valid)
        }
    })
}

/// The first of `rows` that is not before what is searched.
fn partition(
    rows: Range<usize>,
    mut is_before: impl FnMut(usize) -> Result<bool>,
) -> Result<usize> {
    let (mut from, mut to) = (rows.start, rows.end);
    while from < to {
        let middle = from.midpoint(to);
        match is_before(middle)? {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    Ok(from)
}

impl ProjectionFile {
    /// The first row whose key is not less than the bytes: a key, a beginning of one, or what is
    /// [behind](super::super::key::behind_prefix) that. The number of rows if there is none.
    pub fn lower_bound(&self, key: &[u8]) -> Result<u64> {
        let mut keys = VectorKeys::default();
        self.lower_bound_with(&mut keys, key, 0)
    }

    /// The rows whose keys begin with the bytes: columns of the key, or more bytes.
    pub fn find(&self, prefix: &[u8]) -> Result<Range<u64>> {
        let mut keys = VectorKeys::default();
        self.find_with(&mut keys, prefix, 0)
    }

    pub(super) fn find_with(
        &self,
        keys: &mut VectorKeys,
        prefix: &[u8],
        hint: usize,
    ) -> Result<Range<u64>> {
        let start = self.lower_bound_with(keys, prefix, hint)?;
        let end = match behind_prefix(prefix) {
            Some(behind) => {
                let hint = keys.vector().unwrap_or(hint);
                self.lower_bound_with(keys, &behind, hint)?
            }
            None => self.rows(),
        };
        Ok(start..end.max(start))
    }

    /// [`lower_bound`](Self::lower_bound), beginning at a vector.
    pub(super) fn lower_bound_with(
        &self,
        keys: &mut VectorKeys,
        key: &[u8],
        hint: usize,
    ) -> Result<u64> {
        if self.rows() == 0 || key.is_empty() {
            return Ok(0);
        }
        let vector = self.vector_of(key, hint)?;
        let bounds = bounds_of(self.encoder.columns(), key);
        let row = keys.lower_bound(self, vector, &bounds)?;
        Ok((vector * VECTOR_ROWS + row) as u64)
    }

    /// The last vector whose fence is not behind the key: where it is, if anywhere. There is at
    /// least one vector, and the first fence is empty.
    fn vector_of(&self, key: &[u8], hint: usize) -> Result<usize> {
        let count = self.vectors();
        let (mut from, mut to) = (0, count);
        if hint < count && self.fence(hint)? <= key {
            // Ahead of the hint in steps that double.
            from = hint;
            let mut step = 1;
            loop {
                let next = from + step;
                if next >= count {
                    break;
                }
                if self.fence(next)? > key {
                    to = next;
                    break;
                }
                from = next;
                step *= 2;
            }
        }
        // `from` is not behind the key, `to` is.
        while to - from > 1 {
            let middle = from.midpoint(to);
            match self.fence(middle)? <= key {
                true => from = middle,
                false => to = middle,
            }
        }
        Ok(from)
    }
}

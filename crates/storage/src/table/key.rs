//! The key encoding: bytes that compare in the order of the keys.
//!
//! The values of a key's columns stand one behind the other, each self-delimiting, so the first
//! columns of a key are a prefix of its bytes, and comparing two keys is comparing bytes. All
//! ascend, NULL stands behind all values.
//!
//! ```text
//! value     [0 u8 | 1 u8: NULL, nothing follows]         only where the column is nullable
//! boolean   1 byte, 0 or 1
//! smallint  2 bytes, integer and date 4, bigint, timestamps and decimals up to 18 digits 8, longer decimals 16: the
//!           number with its sign bit turned over, big endian
//! real      4 bytes, double 8: the lane (see `types`), big endian
//! text, blob   the bytes, with 00 written as 01 01 and 01 as 01 02, then 00; of a CHAR(n) without trailing spaces
//! ```
//!
//! Arrays must be of the types that [`ColumnType::arrow`] names: who has others casts them at the
//! edge.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewBuilder};
use arrow::buffer::NullBuffer;

use super::definition::ProjectionColumn;
use super::lanes::{LaneBuilder, append_lanes, check_array, lane_of};
use super::types::{ColumnType, Physical};
use crate::Result;

/// Stands before a value in a nullable column.
pub(super) const VALUE: u8 = 0;
/// Stands in the place of NULL.
pub(super) const NULL: u8 = 1;
/// Ends bytes.
pub(super) const END: u8 = 0;
/// Says that the next byte minus one is a byte of the value.
pub(super) const ESCAPE: u8 = 1;

/// Keys one behind the other in one buffer.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct KeyRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyRows {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a key.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    /// All keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Appends a key that was encoded before.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Removes all keys and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Gives back what growing took too much.
    pub(super) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// The memory that it has.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// Writes and reads keys of given columns.
#[derive(Debug, Clone)]
pub struct KeyEncoder {
    columns: Vec<ProjectionColumn>,
}

impl KeyEncoder {
    /// A codec for keys of these columns.
    pub fn new(columns: &[ProjectionColumn]) -> Self {
        Self {
            columns: columns.to_vec(),
        }
    }

    /// The columns of the key.
    pub fn columns(&self) -> &[ProjectionColumn] {
        &self.columns
    }

    /// Appends the key of each row. With arrays for the first columns only, the beginnings of keys.
    ///
    /// # Errors
    ///
    /// [`Error::WrongArray`](crate::Error::WrongArray) where an array is not of the column's type.
    /// NULL in a column that is not nullable, and arrays of different lengths, are faults of the
    /// caller that the debug build asserts.
    pub fn encode_rows(&self, columns: &[ArrayRef], out: &mut KeyRows) -> Result<()> {
        debug_assert!(columns.len() <= self.columns.len());
        let columns = self.columns.iter().zip(columns);
        let columns: Vec<Values<'_>> = columns
            .map(|(column, array)| Values::new(column, array))
            .collect::<Result<_>>()?;
        let rows = columns.first().map_or(0, |values| values.rows);
        debug_assert!(columns.iter().all(|values| values.rows == rows));
        let width: usize = columns.iter().map(Values::width).sum();
        out.bytes.reserve(rows * width);
        out.ends.reserve(rows);
        for row in 0..rows {
            for values in &columns {
                values.write(row, &mut out.bytes);
            }
            out.ends.push(out.bytes.len());
        }
        Ok(())
    }

    /// The memory that the keys of rows take at most: each byte of a text or blob may become two.
    pub(crate) fn bytes_max(&self, columns: &[ArrayRef]) -> u64 {
        let rows = columns.first().map_or(0, |column| column.len());
        let columns = self.columns.iter().zip(columns);
        let of_columns = columns.map(|(column, array)| match column.column_type.physical() {
            Physical::Lane => rows * 9,
            Physical::TwoLanes => rows * 17,
            Physical::Bytes => {
                let values = Bytes::new(column.column_type, array);
                2 * values.map_or(0, |values| values.total()) + 2 * rows
            }
        });
        let of_columns: usize = of_columns.sum();
        (of_columns + rows * size_of::<usize>()) as u64
    }

    /// The values of keys, an array for each of the key's first `columns` columns. `None` if the
    /// bytes are not such keys.
    pub fn decode<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a [u8]>,
        columns: usize,
    ) -> Option<Vec<ArrayRef>> {
        let columns = self.columns.get(..columns)?;
        let mut readers: Vec<Reader> = columns.iter().map(Reader::new).collect();
        for key in keys {
            let mut rest = key;
            for reader in &mut readers {
                reader.read(&mut rest)?;
            }
        }
        Some(readers.into_iter().map(Reader::finish).collect())
    }
}

/// The least byte string that is behind all that begin with `prefix`; `None` where nothing is.
pub fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}

/// Bytes of a lane in a key.
pub(super) fn lane_width(column_type: ColumnType) -> usize {
    match column_type {
        ColumnType::Boolean => 1,
        ColumnType::SmallInt => 2,
        ColumnType::Integer | ColumnType::Date | ColumnType::Real => 4,
        ColumnType::BigInt
        | ColumnType::Double
        | ColumnType::Timestamp
        | ColumnType::TimestampWithTimeZone
        | ColumnType::Decimal { .. }
        | ColumnType::Text { .. }
        | ColumnType::Blob => 8,
    }
}

/// How far the lanes of a type are above their bits in a key: the sign bit is turned over in the
/// width of the type.
fn lane_base(column_type: ColumnType) -> u64 {
    match column_type {
        ColumnType::SmallInt => lane_of(i64::from(i16::MIN)),
        ColumnType::Integer | ColumnType::Date => lane_of(i64::from(i32::MIN)),
        ColumnType::Boolean
        | ColumnType::Real
        | ColumnType::BigInt
        | ColumnType::Double
        | ColumnType::Timestamp
        | ColumnType::TimestampWithTimeZone
        | ColumnType::Decimal { .. }
        | ColumnType::Text { .. }
        | ColumnType::Blob => 0,
    }
}

/// The lane of the bits that stand in a key.
pub(super) fn lane_of_bits(column_type: ColumnType, bits: u64) -> u64 {
    lane_base(column_type) + bits
}

/// Appends the bytes of a lane.
#[inline]
fn write_lane(base: u64, width: usize, lane: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(lane - base).to_be_bytes()[8 - width..]);
}

/// Appends a value that is not NULL as the key of a column that is not nullable.
pub(super) fn write_lanes(column_type: ColumnType, first: u64, second: u64, out: &mut Vec<u8>) {
    match column_type.physical() {
        Physical::TwoLanes => {
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&second.to_be_bytes());
        }
        Physical::Lane | Physical::Bytes => {
            let (base, width) = (lane_base(column_type), lane_width(column_type));
            write_lane(base, width, first, out);
        }
    }
}

/// A text as it counts in comparisons.
pub(super) fn significant(column_type: ColumnType, value: &[u8]) -> &[u8] {
    let is_padded = matches!(
        column_type,
        ColumnType::Text {
            is_padded: true,
            ..
        }
    );
    match is_padded {
        true => {
            let end = value.iter().rposition(|&byte| byte != b' ');
            &value[..end.map_or(0, |last| last + 1)]
        }
        false => value,
    }
}

/// Appends bytes so that they end themselves.
pub(super) fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(place) = rest.iter().position(|&byte| byte <= ESCAPE) {
        out.extend_from_slice(&rest[..place]);
        out.extend_from_slice(&[ESCAPE, rest[place] + 1]);
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(END);
}

/// The values of one column, at hand for writing row by row.
struct Values<'a> {
    rows: usize,
    is_nullable: bool,
    nulls: Option<&'a NullBuffer>,
    content: Content<'a>,
}

enum Content<'a> {
    Lane {
        base: u64,
        width: usize,
        lanes: Vec<u64>,
    },
    TwoLanes {
        first: Vec<u64>,
        second: Vec<u64>,
    },
    Bytes {
        column_type: ColumnType,
        values: Bytes<'a>,
    },
}

/// The texts or blobs of an array.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bytes<'a> {
    Text(&'a arrow::array::StringViewArray),
    Blob(&'a arrow::array::BinaryViewArray),
}

impl<'a> Bytes<'a> {
    /// Of an array of a type that is of bytes.
    pub(super) fn new(column_type: ColumnType, array: &'a dyn Array) -> Result<Self> {
        check_array(column_type, array)?;
        Ok(match column_type {
            ColumnType::Blob => Self::Blob(array.as_binary_view()),
            _ => Self::Text(array.as_string_view()),
        })
    }

    /// The bytes of all together.
    fn total(&self) -> usize {
        let views = match self {
            Self::Text(values) => values.views(),
            Self::Blob(values) => values.views(),
        };
        // The length stands in the first four bytes of a view.
        views.iter().map(|view| *view as u32 as usize).sum()
    }

    #[inline]
    pub(super) fn value(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Text(values) => values.value(row).as_bytes(),
            Self::Blob(values) => values.value(row),
        }
    }
}

impl<'a> Values<'a> {
    fn new(column: &ProjectionColumn, array: &'a ArrayRef) -> Result<Self> {
        let column_type = column.column_type;
        let rows = array.len();
        debug_assert!(column.is_nullable || array.null_count() == 0);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        if column_type.physical() != Physical::Bytes {
            append_lanes(column_type, array, 0..rows, &mut first, &mut second)?;
        }
        Ok(Self {
            rows,
            is_nullable: column.is_nullable,
            nulls: array.nulls(),
            content: match column_type.physical() {
                Physical::Lane => Content::Lane {
                    base: lane_base(column_type),
                    width: lane_width(column_type),
                    lanes: first,
                },
                Physical::TwoLanes => Content::TwoLanes { first, second },
                Physical::Bytes => Content::Bytes {
                    column_type,
                    values: Bytes::new(column_type, array)?,
                },
            },
        })
    }

    /// Bytes of a value, as far as they are the same for all.
    fn width(&self) -> usize {
        usize::from(self.is_nullable)
            + match &self.content {
                Content::Lane { width, .. } => *width,
                Content::TwoLanes { .. } => 16,
                Content::Bytes { .. } => 1,
            }
    }

    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_nullable {
            let is_null = self.nulls.is_some_and(|nulls| nulls.is_null(row));
            out.push(if is_null { NULL } else { VALUE });
            if is_null {
                return;
            }
        }
        match &self.content {
            Content::Lane { base, width, lanes } => write_lane(*base, *width, lanes[row], out),
            Content::TwoLanes { first, second } => {
                out.extend_from_slice(&first[row].to_be_bytes());
                out.extend_from_slice(&second[row].to_be_bytes());
            }
            Content::Bytes {
                column_type,
                values,
            } => write_bytes(significant(*column_type, values.value(row)), out),
        }
    }
}

/// One column of keys being read.
struct Reader {
    column: ProjectionColumn,
    nulls: Vec<bool>,
    content: Read,
}

enum Read {
    Lanes(LaneBuilder),
    Text(StringViewBuilder, Vec<u8>),
    Blob(BinaryViewBuilder, Vec<u8>),
}

impl Reader {
    fn new(column: &ProjectionColumn) -> Self {
        let column_type = column.column_type;
        Self {
            column: *column,
            nulls: Vec::new(),
            content: match column_type {
                ColumnType::Text { .. } => Read::Text(StringViewBuilder::new(), Vec::new()),
                ColumnType::Blob => Read::Blob(BinaryViewBuilder::new(), Vec::new()),
                _ => Read::Lanes(LaneBuilder::new(column_type, 0)),
            },
        }
    }

    fn read(&mut self, bytes: &mut &[u8]) -> Option<()> {
        let is_null = self.column.is_nullable
            && match take(bytes, 1)? {
                [VALUE] => false,
                [NULL] => true,
                _ => return None,
            };
        self.nulls.push(!is_null);
        match &mut self.content {
            Read::Lanes(lanes) if is_null => lanes.push(&[0], &[0]),
            Read::Lanes(lanes) => {
                let (first, second) = read_lanes(self.column.column_type, bytes)?;
                lanes.push(&[first], &[second]);
            }
            Read::Text(texts, _) if is_null => texts.append_null(),
            Read::Text(texts, value) => {
                read_bytes(bytes, value)?;
                texts.append_value(std::str::from_utf8(value).ok()?);
            }
            Read::Blob(blobs, _) if is_null => blobs.append_null(),
            Read::Blob(blobs, value) => {
                read_bytes(bytes, value)?;
                blobs.append_value(&value[..]);
            }
        }
        Some(())
    }

    fn finish(self) -> ArrayRef {
        match self.content {
            Read::Lanes(lanes) => {
                let has_nulls = self.nulls.contains(&false);
                lanes.finish(has_nulls.then(|| NullBuffer::from(self.nulls)))
            }
            Read::Text(mut texts, _) => Arc::new(texts.finish()),
            Read::Blob(mut blobs, _) => Arc::new(blobs.finish()),
        }
    }
}

/// The lanes of a value, from the front of `bytes`.
pub(super) fn read_lanes(column_type: ColumnType, bytes: &mut &[u8]) -> Option<(u64, u64)> {
    if column_type.physical() == Physical::TwoLanes {
        return Some((read_bits(bytes, 8)?, read_bits(bytes, 8)?));
    }
    let bits = read_bits(bytes, lane_width(column_type))?;
    if column_type == ColumnType::Boolean && bits > 1 {
        return None;
    }
    Some((lane_of_bits(column_type, bits), 0))
}

fn read_bits(bytes: &mut &[u8], width: usize) -> Option<u64> {
    let bits = take(bytes, width)?;
    Some(
        bits.iter()
            .fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
    )
}

/// The bytes of a value, from the front of `bytes`.
fn read_bytes(bytes: &mut &[u8], value: &mut Vec<u8>) -> Option<()> {
    value.clear();
    loop {
        let place = bytes.iter().position(|&byte| byte <= ESCAPE)?;
        value.extend_from_slice(take(bytes, place)?);
        match take(bytes, 1)? {
            [END] => return Some(()),
            _ => match take(bytes, 1)? {
                [escaped @ 1..=2] => value.push(escaped - 1),
                _ => return None,
            },
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests;

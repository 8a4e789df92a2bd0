//! Zone maps: the range of values in each vector, by which scans skip vectors.

use arrow::array::Array;

use super::super::key::{Bytes, significant};
use super::super::lanes::{SIGN, append_lanes, lane_of, wide_of};
use super::super::types::{ColumnType, Physical};
use super::Decoded;
use super::vector::{read_list, write_list};
use crate::Result;

/// The meaning of a zone's lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneKind {
    /// Those of [`zone_lane`], of values.
    Values,
    /// Codes of the column's dictionary.
    Codes,
}

/// Per vector of a column its least and greatest lane, and how many rows are NULL.
///
/// A vector of NULLs alone has a least lane above its greatest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnZones {
    /// What the lanes are.
    pub kind: ZoneKind,
    /// The least lane of each vector.
    pub least: Vec<u64>,
    /// The greatest lane of each vector.
    pub greatest: Vec<u64>,
    /// Rows of each vector that are NULL.
    pub nulls: Vec<u64>,
}

/// The lane by which zones compare a value: the order of lanes is that of values, but different
/// values may have the same lane: decimals of more than 18 digits beyond 64 bits, and texts and
/// blobs, of which the first eight bytes count. `None` for NULL.
pub fn zone_lane(column_type: ColumnType, array: &dyn Array, row: usize) -> Result<Option<u64>> {
    if array.is_null(row) {
        return Ok(None);
    }
    if column_type.physical() == Physical::Bytes {
        let value = Bytes::new(column_type, array)?.value(row);
        return Ok(Some(prefix_lane(significant(column_type, value))));
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    append_lanes(column_type, array, row..row + 1, &mut first, &mut second)?;
    Ok(match (first.first(), second.first()) {
        (Some(&first), Some(&second)) => Some(narrow(first, second)),
        (first, _) => first.copied(),
    })
}

/// The first eight bytes as a number.
#[inline]
pub(super) fn prefix_lane(value: &[u8]) -> u64 {
    match value.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(head)
        }
    }
}

/// Two lanes as one: what does not fit 64 bits is as its least or greatest number.
pub(super) fn narrow(first: u64, second: u64) -> u64 {
    let value = wide_of(first, second);
    match i64::try_from(value) {
        Ok(value) => lane_of(value),
        Err(_) if first < SIGN => u64::MIN,
        Err(_) => u64::MAX,
    }
}

impl ColumnZones {
    pub(super) fn new(kind: ZoneKind) -> Self {
        Self {
            kind,
            least: Vec::new(),
            greatest: Vec::new(),
            nulls: Vec::new(),
        }
    }

    /// Appends a vector by the lanes of its values.
    pub(super) fn push(&mut self, lanes: impl Iterator<Item = u64>, nulls: usize) {
        let (least, greatest) = lanes.fold((u64::MAX, 0), |(least, greatest), lane| {
            (lane.min(least), lane.max(greatest))
        });
        self.push_bounds(least, greatest, nulls);
    }

    pub(super) fn push_bounds(&mut self, least: u64, greatest: u64, nulls: usize) {
        self.least.push(least);
        self.greatest.push(greatest);
        self.nulls.push(nulls as u64);
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut block = Vec::new();
        for lanes in [&self.least, &self.greatest, &self.nulls] {
            write_list(lanes, &mut block);
        }
        block
    }

    pub(super) fn read(kind: ZoneKind, mut bytes: &[u8], vectors: usize) -> Decoded<Self> {
        Ok(Self {
            kind,
            least: read_list(&mut bytes, vectors)?,
            greatest: read_list(&mut bytes, vectors)?,
            nulls: read_list(&mut bytes, vectors)?,
        })
    }
}

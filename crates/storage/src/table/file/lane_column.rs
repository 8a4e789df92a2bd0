//! Writing a column of lanes: vectors are encoded as they become full.

use std::ops::Range;

use arrow::array::Array;
use orrery_column::{VECTOR_ROWS, encode};

use super::super::key::write_lanes;
use super::super::lanes::append_lanes;
use super::super::types::{ColumnType, Physical};
use super::distinct::{Distinct, hash_lane};
use super::metadata::ColumnStatistics;
use super::vector::{BlockBuilder, BlockKind, Validity, write_sized};
use super::zones::{ColumnZones, ZoneKind, narrow};
use crate::Result;

/// A column of lanes being written.
#[derive(Debug)]
pub(super) struct LaneColumn {
    column_type: ColumnType,
    /// The vector being filled.
    first: Vec<u64>,
    second: Vec<u64>,
    valid: Vec<bool>,
    /// The group being filled.
    block: BlockBuilder,
    zones: ColumnZones,
    distinct: Distinct,
    /// Least and greatest value.
    bounds: Option<[(u64, u64); 2]>,
    nulls: u64,
}

impl LaneColumn {
    pub(super) fn new(column_type: ColumnType) -> Self {
        Self {
            column_type,
            first: Vec::with_capacity(VECTOR_ROWS),
            second: Vec::new(),
            valid: Vec::with_capacity(VECTOR_ROWS),
            block: BlockBuilder::default(),
            zones: ColumnZones::new(ZoneKind::Values),
            distinct: Distinct::default(),
            bounds: None,
            nulls: 0,
        }
    }

    /// Appends rows, no more than the vector has room for.
    pub(super) fn push(&mut self, array: &dyn Array, rows: Range<usize>) -> Result<()> {
        append_lanes(
            self.column_type,
            array,
            rows.clone(),
            &mut self.first,
            &mut self.second,
        )?;
        match array.nulls() {
            Some(nulls) => self.valid.extend(rows.map(|row| nulls.is_valid(row))),
            None => self.valid.resize(self.valid.len() + rows.len(), true),
        }
        Ok(())
    }

    pub(super) fn finish_vector(&mut self) {
        let validity = Validity::of(&self.valid);
        let is_wide = self.column_type.physical() == Physical::TwoLanes;
        if validity == Validity::AllNull {
            self.zones.push([].into_iter(), self.valid.len());
            self.nulls += self.valid.len() as u64;
            self.block.begin(&validity);
        } else {
            if let Validity::Rows(valid) = validity {
                fill_nulls(valid, &mut self.first);
                fill_nulls(valid, &mut self.second);
            }
            let out = self.block.begin(&validity);
            match is_wide {
                true => {
                    write_sized(&self.first, out);
                    encode(&self.second, out);
                }
                false => {
                    encode(&self.first, out);
                }
            }
            self.look_at_vector(is_wide);
        }
        self.first.clear();
        self.second.clear();
        self.valid.clear();
    }

    /// Statistics and zones. In the place of NULLs are other values of the vector.
    fn look_at_vector(&mut self, is_wide: bool) {
        let nulls = self.valid.iter().filter(|&&valid| !valid).count();
        self.nulls += nulls as u64;
        let second = |row: usize| if is_wide { self.second[row] } else { 0 };
        let (mut least, mut greatest) = (self.first[0], self.first[0]);
        let is_repeated = self.first.windows(2).all(|pair| pair[0] == pair[1]) && !is_wide;
        let rows = if is_repeated { 1 } else { self.first.len() };
        for (row, &first) in self.first[..rows].iter().enumerate() {
            (least, greatest) = (least.min(first), greatest.max(first));
            let hash = match is_wide {
                true => hash_lane(hash_lane(first) ^ second(row)),
                false => hash_lane(first),
            };
            self.distinct.insert(hash);
        }
        let bounds = match is_wide {
            true => {
                let pairs = || self.first.iter().copied().zip(self.second.iter().copied());
                let bounds = [pairs().min(), pairs().max()];
                bounds.map(|bound| bound.unwrap_or_default())
            }
            false => [(least, 0), (greatest, 0)],
        };
        let [least, greatest] = bounds.map(|(first, second)| match is_wide {
            true => narrow(first, second),
            false => first,
        });
        self.zones.push_bounds(least, greatest, nulls);
        let [least, greatest] = self.bounds.unwrap_or(bounds);
        self.bounds = Some([least.min(bounds[0]), greatest.max(bounds[1])]);
    }

    /// The block of the group.
    pub(super) fn finish_group(&mut self) -> Vec<u8> {
        self.block.finish(BlockKind::Lanes, &[])
    }

    /// Zones and statistics of all rows, but for the bytes.
    pub(super) fn finish(self) -> (ColumnZones, ColumnStatistics) {
        let [least, greatest] = [0, 1].map(|side| {
            let (first, second) = self.bounds?[side];
            let mut key = Vec::new();
            write_lanes(self.column_type, first, second, &mut key);
            Some(key)
        });
        let statistics = ColumnStatistics {
            nulls: self.nulls,
            distinct: self.distinct.estimate(),
            is_distinct_exact: false,
            least,
            greatest,
            bytes: 0,
            value_bytes: 0,
        };
        (self.zones, statistics)
    }
}

/// Puts the value before, or the first one, into the place of each NULL: no bounds change, and runs stay runs.
fn fill_nulls(valid: &[bool], lanes: &mut [u64]) {
    let first = valid.iter().zip(&*lanes).find(|(valid, _)| **valid);
    let mut value = first.map_or(0, |(_, lane)| *lane);
    for (lane, &valid) in lanes.iter_mut().zip(valid) {
        match valid {
            true => value = *lane,
            false => *lane = value,
        }
    }
}

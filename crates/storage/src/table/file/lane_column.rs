//! The writer of a fixed-width column, which encodes vectors as they fill up, or with their group.

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
    /// Whether rows are kept as they are until the group is full, for a thread to encode them at
    /// once.
    keeps_rows: bool,
    /// Rows of the group being filled that are not encoded.
    rows: Lanes,
    /// The others.
    block: BlockBuilder,
    zones: ColumnZones,
    distinct: Distinct,
    /// Least and greatest value.
    bounds: Option<[(u64, u64); 2]>,
    nulls: u64,
}

/// Rows as they are encoded.
#[derive(Debug, Default)]
struct Lanes {
    first: Vec<u64>,
    /// Only of a type that has two lanes.
    second: Vec<u64>,
    valid: Vec<bool>,
}

impl LaneColumn {
    pub(super) fn new(column_type: ColumnType) -> Self {
        Self {
            column_type,
            keeps_rows: false,
            rows: Lanes::default(),
            block: BlockBuilder::default(),
            zones: ColumnZones::new(ZoneKind::Values),
            distinct: Distinct::default(),
            bounds: None,
            nulls: 0,
        }
    }

    /// Has rows kept until the group is full.
    pub(super) fn keep_rows(&mut self) {
        self.keeps_rows = true;
    }

    /// Appends rows, no more than the group has room for.
    pub(super) fn push(&mut self, array: &dyn Array, rows: Range<usize>) -> Result<()> {
        let lanes = &mut self.rows;
        append_lanes(
            self.column_type,
            array,
            rows.clone(),
            &mut lanes.first,
            &mut lanes.second,
        )?;
        let valid = &mut lanes.valid;
        match array.nulls() {
            Some(nulls) => valid.extend(rows.map(|row| nulls.is_valid(row))),
            None => valid.resize(valid.len() + rows.len(), true),
        }
        if !self.keeps_rows {
            let rows = self.rows.valid.len();
            self.encode(rows - rows % VECTOR_ROWS);
        }
        Ok(())
    }

    /// The block of the group.
    pub(super) fn finish_group(&mut self) -> Vec<u8> {
        self.encode(self.rows.valid.len());
        self.block.finish(BlockKind::Lanes, &[])
    }

    /// Encodes so many of the rows that are not.
    fn encode(&mut self, rows: usize) {
        let mut lanes = std::mem::take(&mut self.rows);
        let seconds = rows.min(lanes.second.len());
        let mut second = lanes.second[..seconds].chunks_mut(VECTOR_ROWS);
        let first = lanes.first[..rows].chunks_mut(VECTOR_ROWS);
        for (first, valid) in first.zip(lanes.valid.chunks(VECTOR_ROWS)) {
            let second = second.next().unwrap_or_default();
            self.finish_vector(first, second, &valid[..first.len()]);
        }
        lanes.first.drain(..rows);
        lanes.second.drain(..seconds);
        lanes.valid.drain(..rows);
        // The room is used again.
        self.rows = lanes;
    }

    fn finish_vector(&mut self, first: &mut [u64], second: &mut [u64], valid: &[bool]) {
        let validity = Validity::of(valid);
        let nulls = valid.iter().filter(|&&valid| !valid).count();
        self.nulls += nulls as u64;
        if validity == Validity::AllNull {
            self.zones.push([].into_iter(), nulls);
            self.block.begin(&validity);
            return;
        }
        if let Validity::Rows(valid) = validity {
            fill_nulls(valid, first);
            fill_nulls(valid, second);
        }
        let out = self.block.begin(&validity);
        match self.column_type.physical() {
            Physical::TwoLanes => {
                write_sized(first, out);
                encode(second, out);
                self.look_at_wide(first, second, nulls);
            }
            Physical::Lane | Physical::Bytes => {
                encode(first, out);
                self.look_at(first, nulls);
            }
        }
    }

    /// Statistics and zones of a vector. In the place of NULLs are other values of it.
    fn look_at(&mut self, lanes: &[u64], nulls: usize) {
        let (mut least, mut greatest) = (lanes[0], lanes[0]);
        let is_repeated = lanes.windows(2).all(|pair| pair[0] == pair[1]);
        let rows = if is_repeated { 1 } else { lanes.len() };
        for &lane in &lanes[..rows] {
            (least, greatest) = (least.min(lane), greatest.max(lane));
            self.distinct.insert(hash_lane(lane));
        }
        self.zones.push_bounds(least, greatest, nulls);
        self.widen([(least, 0), (greatest, 0)]);
    }

    /// The same of a type with two lanes.
    fn look_at_wide(&mut self, first: &[u64], second: &[u64], nulls: usize) {
        let values = || first.iter().copied().zip(second.iter().copied());
        for (first, second) in values() {
            self.distinct.insert(hash_lane(hash_lane(first) ^ second));
        }
        let bounds = [values().min(), values().max()];
        let bounds = bounds.map(|bound| bound.unwrap_or_default());
        let [least, greatest] = bounds.map(|(first, second)| narrow(first, second));
        self.zones.push_bounds(least, greatest, nulls);
        self.widen(bounds);
    }

    fn widen(&mut self, [least, greatest]: [(u64, u64); 2]) {
        let bounds = self.bounds.get_or_insert([least, greatest]);
        *bounds = [bounds[0].min(least), bounds[1].max(greatest)];
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

/// Puts the value before, or the first one, into the place of each NULL: no bounds change, and runs
/// stay runs.
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

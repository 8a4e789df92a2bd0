//! The verification of a projection file beyond its checksums: its metadata agree with its rows.

use std::ops::Range;

use orrery_column::VECTOR_ROWS;

use super::super::definition::ProjectionColumn;
use super::super::key::{KeyEncoder, KeyRows};
use super::reader::{ProjectionFile, Source};
use super::zones::{ColumnZones, ZoneKind, zone_lane};
use super::{GROUP_ROWS, SomeRows};
use crate::{Error, Result};

impl ProjectionFile {
    /// Checks every byte, the order of the rows, fences, zones, dictionaries and statistics, and
    /// returns all damage found. Where checksums are wrong, only these.
    pub fn verify(&self) -> Vec<Error> {
        let damage = self.file.verify_all();
        if !damage.is_empty() {
            return damage;
        }
        let keys = self.verify_keys().err();
        let columns = 0..self.columns.len();
        let columns = columns.filter_map(|column| self.verify_column(column).err());
        keys.into_iter().chain(columns).collect()
    }

    fn groups(&self) -> impl Iterator<Item = Range<u64>> {
        let rows = self.rows();
        let starts = (0..rows).step_by(GROUP_ROWS);
        starts.map(move |start| start..rows.min(start + GROUP_ROWS as u64))
    }

    /// Keys ascend, and fences part them.
    fn verify_keys(&self) -> Result<()> {
        let key: Vec<usize> = (0..self.metadata.key_columns).collect();
        let mut last: Option<Vec<u8>> = None;
        let mut keys = KeyRows::default();
        for rows in self.groups() {
            keys.clear();
            self.encoder
                .encode_rows(&self.read(rows.clone(), &key)?, &mut keys)?;
            for (row, key) in (rows.start..).zip(keys.iter()) {
                let before = match (row - rows.start).checked_sub(1) {
                    Some(before) => Some(keys.get(before as usize)),
                    None => last.as_deref(),
                };
                if before.is_some_and(|before| before >= key) {
                    return Err(self.wrong(format!("row {row} does not follow the one before")));
                }
                if row.is_multiple_of(VECTOR_ROWS as u64) {
                    let fence = self.fence((row / VECTOR_ROWS as u64) as usize)?;
                    if fence > key || before.is_some_and(|before| before >= fence) {
                        return Err(self.wrong(format!("the fence of row {row} is not before it")));
                    }
                }
            }
            last = keys
                .len()
                .checked_sub(1)
                .map(|last| keys.get(last).to_vec());
        }
        Ok(())
    }

    /// Zones and statistics are those of the values.
    fn verify_column(&self, column: usize) -> Result<()> {
        let Source::File(place) = self.columns[column].source else {
            return Ok(());
        };
        let of = self.columns[column].of;
        let stored = &self.metadata.columns[place].statistics;
        let Some(zones) = self.zones(column)? else {
            return Ok(());
        };
        let mut found = ColumnZones::new(zones.kind);
        let encoder = KeyEncoder::new(&[ProjectionColumn {
            is_nullable: false,
            ..of
        }]);
        let (mut nulls, mut least, mut greatest) = (0, None, None);
        for vector in 0..self.vectors() {
            let start = (vector * VECTOR_ROWS) as u64;
            let rows = start..start + self.rows_of(vector) as u64;
            let array = &self.read(rows.clone(), &[column])?[0];
            nulls += array.null_count() as u64;
            let mut lanes = Vec::with_capacity(array.len());
            match zones.kind {
                ZoneKind::Values => {
                    for row in 0..array.len() {
                        lanes.extend(zone_lane(of.column_type, array, row)?);
                    }
                }
                ZoneKind::Codes => {
                    let codes = self.codes(SomeRows::Range(rows), column)?;
                    lanes.extend(codes.iter().flatten().flatten().map(u64::from));
                }
            }
            found.push(lanes.into_iter(), array.null_count());
            let mut keys = KeyRows::default();
            let values = arrow::compute::filter(
                array,
                &arrow::compute::is_not_null(array)
                    .map_err(|error| self.wrong(error.to_string()))?,
            )
            .map_err(|error| self.wrong(error.to_string()))?;
            encoder.encode_rows(&[values], &mut keys)?;
            for key in keys.iter() {
                if least.as_deref().is_none_or(|least: &[u8]| key < least) {
                    least = Some(key.to_vec());
                }
                if greatest
                    .as_deref()
                    .is_none_or(|greatest: &[u8]| key > greatest)
                {
                    greatest = Some(key.to_vec());
                }
            }
        }
        if found != *zones {
            return Err(self.wrong(format!("the zones of column {} are wrong", of.id.0)));
        }
        let is_right =
            |stored: &Option<Vec<u8>>, found: Option<Vec<u8>>| stored.is_none() || *stored == found;
        if stored.nulls != nulls
            || !is_right(&stored.least, least)
            || !is_right(&stored.greatest, greatest)
        {
            return Err(self.wrong(format!("the statistics of column {} are wrong", of.id.0)));
        }
        Ok(())
    }

    fn wrong(&self, what: String) -> Error {
        Error::corrupt(self.path(), self.file.metadata_offset(), what)
    }
}

//! Reading rows into arrays.

use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::take;
use orrery_column::VECTOR_ROWS;

use super::super::lanes::LaneBuilder;
use super::super::types::{ColumnType, Physical};
use super::GROUP_VECTORS;
use super::read_bytes::BytesReader;
use super::reader::{ProjectionFile, Source};
use super::vector::NullBuilder;
use super::wanted::{LaneReader, Wanted, append_nulls};
use crate::Result;

impl ProjectionFile {
    /// The values of rows, an array for each of the columns.
    ///
    /// # Panics
    ///
    /// If there are not so many rows or columns.
    pub fn read(&self, rows: Range<u64>, columns: &[usize]) -> Result<Vec<ArrayRef>> {
        assert!(rows.start <= rows.end && rows.end <= self.rows());
        if self.is_cold() {
            self.will_read(std::iter::once(rows.clone()), columns);
        }
        let wanted = Wanted::Range(rows);
        let columns = columns.iter();
        columns
            .map(|&column| self.read_column(column, wanted.clone()))
            .collect()
    }

    /// The values of some rows, whose numbers ascend (the same may come again), an array for each of the columns.
    ///
    /// # Panics
    ///
    /// If there are not so many rows or columns.
    pub fn take(&self, rows: &[u64], columns: &[usize]) -> Result<Vec<ArrayRef>> {
        assert!(rows.last().is_none_or(|&last| last < self.rows()));
        debug_assert!(rows.is_sorted());
        if self.is_cold() {
            self.will_read(rows.iter().map(|&row| row..row + 1), columns);
        }
        let wanted = Wanted::Rows(rows);
        let columns = columns.iter();
        columns
            .map(|&column| self.read_column(column, wanted.clone()))
            .collect()
    }

    /// The codes of rows of a column that has a [dictionary](Self::dictionary); `None` if it has not.
    pub fn codes(&self, rows: Range<u64>, column: usize) -> Result<Option<UInt32Array>> {
        assert!(rows.start <= rows.end && rows.end <= self.rows());
        let Some(dictionary) = self.dictionary(column)? else {
            return Ok(None);
        };
        let Source::File(column) = self.columns[column].source else {
            return Ok(None);
        };
        let mut wanted = Wanted::Range(rows);
        let mut codes: Vec<u32> = Vec::with_capacity(wanted.len());
        let mut nulls = NullBuilder::default();
        let mut lanes = LaneReader::default();
        while let Some((vector, selection)) = wanted.next() {
            let (block, _, read) = self.vector(vector, column)?;
            if read.is_all_null() {
                codes.resize(codes.len() + selection.len(), 0);
                nulls.append(selection.len(), false);
                continue;
            }
            let of_group = dictionary.groups.group(vector / GROUP_VECTORS);
            let read = append_nulls(&read, selection, &mut nulls)
                .and_then(|()| lanes.read(&read.lanes()?, selection, 0));
            let rows = self.sound(block, read)?;
            let mut is_known = true;
            codes.extend(rows.iter().map(|&row| {
                let code = of_group.get(row as usize).copied();
                is_known &= code.is_some();
                code.unwrap_or(0)
            }));
            if !is_known {
                return Err(self.damage(block, "a code is beyond those of its group"));
            }
        }
        Ok(Some(UInt32Array::new(codes.into(), nulls.finish())))
    }

    fn read_column(&self, column: usize, wanted: Wanted<'_>) -> Result<ArrayRef> {
        let of = &self.columns[column];
        let column_type = of.of.column_type;
        match &of.source {
            Source::Initial(None) => Ok(new_null_array(&column_type.arrow(), wanted.len())),
            Source::Initial(Some(value)) => {
                let rows = UInt32Array::from(vec![0; wanted.len()]);
                // One row of an array is taken again and again: nothing that could fail.
                take(value, &rows, None)
                    .map_err(|error| crate::Error::corrupt(self.path(), 0, error.to_string()))
            }
            Source::File(column) => match column_type.physical() {
                Physical::Bytes => BytesReader::new(self, *column)?.read(wanted),
                Physical::Lane | Physical::TwoLanes => {
                    self.read_lanes(*column, column_type, wanted)
                }
            },
        }
    }

    fn read_lanes(
        &self,
        column: usize,
        column_type: ColumnType,
        mut wanted: Wanted<'_>,
    ) -> Result<ArrayRef> {
        let is_wide = column_type.physical() == Physical::TwoLanes;
        let mut builder = LaneBuilder::new(column_type, wanted.len());
        let mut nulls = NullBuilder::default();
        let mut lanes = LaneReader::default();
        while let Some((vector, selection)) = wanted.next() {
            let (block, _, read) = self.vector(vector, column)?;
            let appended = append_nulls(&read, selection, &mut nulls).and_then(|()| {
                if read.is_all_null() {
                    const ZEROS: [u64; VECTOR_ROWS] = [0; VECTOR_ROWS];
                    // The same row may be wanted more often than a vector has rows.
                    let mut left = selection.len();
                    while left > 0 {
                        let count = left.min(VECTOR_ROWS);
                        builder.push(&ZEROS[..count], &ZEROS[..count]);
                        left -= count;
                    }
                } else if is_wide {
                    let [first, second] = read.two_lanes()?;
                    lanes.read(&first, selection, 0)?;
                    lanes.read(&second, selection, 1)?;
                    let count = selection.len();
                    builder.push(lanes.rows(0, count), lanes.rows(1, count));
                } else {
                    builder.push(lanes.read(&read.lanes()?, selection, 0)?, &[]);
                }
                Ok(())
            });
            self.sound(block, appended)?;
        }
        Ok(builder.finish(nulls.finish()))
    }
}

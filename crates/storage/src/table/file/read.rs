//! Reading of rows into Arrow arrays.

use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::take;
use orrery_column::VECTOR_ROWS;

use super::super::lanes::{LaneBuilder, number_of};
use super::super::types::{ColumnType, Physical};
use super::GROUP_VECTORS;
use super::read_bytes::BytesReader;
use super::reader::{ProjectionFile, Source};
use super::vector::NullBuilder;
use super::wanted::{LaneReader, Wanted, append_nulls};
use crate::Result;

/// Rows of a file.
#[derive(Debug, Clone)]
pub enum SomeRows<'r> {
    /// All from one up to another.
    Range(Range<u64>),
    /// Some, whose numbers ascend; the same may come again.
    Ascending(&'r [u64]),
}

/// Whether the values of a type are numbers of one lane.
fn has_numbers(column_type: ColumnType) -> bool {
    match column_type {
        ColumnType::SmallInt
        | ColumnType::Integer
        | ColumnType::BigInt
        | ColumnType::Date
        | ColumnType::Timestamp
        | ColumnType::TimestampWithTimeZone => true,
        ColumnType::Decimal { .. } => column_type.physical() == Physical::Lane,
        ColumnType::Boolean
        | ColumnType::Real
        | ColumnType::Double
        | ColumnType::Text { .. }
        | ColumnType::Blob => false,
    }
}

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

    /// The values of some rows, whose numbers ascend (the same may come again), an array for each
    /// of the columns.
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

    /// Whether a column has [numbers](Self::numbers).
    ///
    /// # Panics
    ///
    /// If there are not so many columns.
    pub fn has_numbers(&self, column: usize) -> bool {
        let of = &self.columns[column];
        matches!(of.source, Source::File(_)) && has_numbers(of.of.column_type)
    }

    /// Appends the numbers of rows of a column of integers, dates, times or decimals of one lane,
    /// unscaled, without a look at which rows are NULL: there stands any number. `None`, and
    /// nothing appended, if the column is of another type, or the file does not have it.
    ///
    /// # Panics
    ///
    /// If there are not so many rows or columns.
    pub fn numbers(
        &self,
        rows: SomeRows<'_>,
        column: usize,
        out: &mut Vec<i64>,
    ) -> Result<Option<()>> {
        if !self.has_numbers(column) {
            return Ok(None);
        }
        let Source::File(column) = &self.columns[column].source else {
            return Ok(None);
        };
        let mut wanted = self.wanted(rows);
        let mut lanes = LaneReader::default();
        out.reserve(wanted.len());
        while let Some((vector, selection)) = wanted.next() {
            let (block, _, read) = self.vector(vector, *column)?;
            if read.is_all_null() {
                out.resize(out.len() + selection.len(), 0);
                continue;
            }
            let read = read
                .lanes()
                .and_then(|read| lanes.read(&read, selection, 0));
            let read = self.sound(block, read)?;
            out.extend(read.iter().map(|&lane| number_of(lane)));
        }
        Ok(Some(()))
    }

    /// The codes of rows of a column that has a [dictionary](Self::dictionary); `None` if it has
    /// not.
    ///
    /// # Panics
    ///
    /// If there are not so many rows or columns.
    pub fn codes(&self, rows: SomeRows<'_>, column: usize) -> Result<Option<UInt32Array>> {
        let Some(dictionary) = self.dictionary(column)? else {
            return Ok(None);
        };
        let Source::File(column) = self.columns[column].source else {
            return Ok(None);
        };
        let mut wanted = self.wanted(rows);
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

    fn wanted<'r>(&self, rows: SomeRows<'r>) -> Wanted<'r> {
        match rows {
            SomeRows::Range(rows) => {
                assert!(rows.start <= rows.end && rows.end <= self.rows());
                Wanted::Range(rows)
            }
            SomeRows::Ascending(rows) => {
                assert!(rows.last().is_none_or(|&last| last < self.rows()));
                debug_assert!(rows.is_sorted());
                Wanted::Rows(rows)
            }
        }
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

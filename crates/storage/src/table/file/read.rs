//! Reading rows into arrays.

use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::take;
use orrery_column::{EncodedVector, VECTOR_ROWS, VectorBuffer};

use super::super::lanes::LaneBuilder;
use super::super::{ColumnType, Physical};
use super::read_bytes::BytesReader;
use super::reader::{ProjectionFile, Source};
use super::vector::{NullBuilder, Nulls, Vector, fault};
use super::{Decoded, GROUP_VECTORS};
use crate::Result;

/// So few rows of a vector are read one by one, rather than by decoding it.
const FEW_ROWS: usize = 16;

/// Rows of one vector, ascending.
#[derive(Debug, Clone, Copy)]
pub(super) enum Selection<'a> {
    /// From one row up to another.
    Range(usize, usize),
    /// Some rows, by their number in the file; the first row of the vector is given.
    Rows(&'a [u64], u64),
}

impl Selection<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Range(start, end) => end - start,
            Self::Rows(rows, _) => rows.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let (range, rows, first) = match self {
            Self::Range(start, end) => (*start..*end, &[][..], 0),
            Self::Rows(rows, first) => (0..0, *rows, *first),
        };
        range.chain(rows.iter().map(move |row| (row - first) as usize))
    }
}

/// What is read: ascending rows, cut at the ends of vectors.
#[derive(Debug, Clone)]
pub(super) enum Wanted<'a> {
    Range(Range<u64>),
    Rows(&'a [u64]),
}

impl<'a> Wanted<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Range(range) => (range.end - range.start) as usize,
            Self::Rows(rows) => rows.len(),
        }
    }

    /// The first vector and what is wanted of it; then what is behind.
    pub(super) fn next(&mut self) -> Option<(usize, Selection<'a>)> {
        const ROWS: u64 = VECTOR_ROWS as u64;
        match self {
            Self::Range(range) => {
                if range.is_empty() {
                    return None;
                }
                let vector = range.start / ROWS;
                let (start, first) = (range.start, vector * ROWS);
                let end = range.end.min(first + ROWS);
                range.start = end;
                let selection = Selection::Range((start - first) as usize, (end - first) as usize);
                Some((vector as usize, selection))
            }
            Self::Rows(rows) => {
                let vector = rows.first()? / ROWS;
                let count = rows.partition_point(|row| row / ROWS <= vector);
                let (these, rest) = rows.split_at(count);
                *rows = rest;
                Some((vector as usize, Selection::Rows(these, vector * ROWS)))
            }
        }
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

/// Appends which of the selected rows are NULL.
pub(super) fn append_nulls(
    vector: &Vector<'_>,
    selection: Selection<'_>,
    nulls: &mut NullBuilder,
) -> Decoded<()> {
    match &vector.nulls {
        Nulls::None => nulls.append(selection.len(), true),
        Nulls::All => nulls.append(selection.len(), false),
        Nulls::Some(_) => {
            let valid = vector.nulls.decode(vector.rows)?.unwrap_or_default();
            match selection {
                Selection::Range(start, end) => nulls.append_rows(&valid[start..end]),
                Selection::Rows(..) => {
                    let valid: Vec<bool> = selection.iter().map(|row| valid[row]).collect();
                    nulls.append_rows(&valid);
                }
            }
        }
    }
    Ok(())
}

/// Decodes the lanes of selected rows, with buffers that are used again.
#[derive(Debug, Default)]
pub(super) struct LaneReader {
    /// Allocated when a vector is decoded.
    decoded: [Option<Box<VectorBuffer>>; 2],
    few: [Vec<u64>; 2],
    /// What the last vector's selected rows are.
    state: [Option<(usize, usize)>; 2],
}

impl LaneReader {
    /// The lanes of the selected rows. `side` is which of two buffers to use.
    pub(super) fn read(
        &mut self,
        vector: &EncodedVector<'_>,
        selection: Selection<'_>,
        side: usize,
    ) -> Decoded<&[u64]> {
        let count = selection.len();
        if count <= FEW_ROWS && self.read_few(vector, selection, side) {
            self.state[side] = None;
            return Ok(self.rows(side, count));
        }
        let buffer = self.decoded[side].get_or_insert_with(|| Box::new([0; VECTOR_ROWS]));
        vector.decode(buffer).map_err(fault)?;
        match selection {
            Selection::Range(start, end) => self.state[side] = Some((start, end)),
            Selection::Rows(..) => {
                let few = &mut self.few[side];
                few.clear();
                few.extend(selection.iter().map(|row| buffer[row]));
                self.state[side] = None;
            }
        }
        Ok(self.rows(side, count))
    }

    /// The rows that were read last.
    pub(super) fn rows(&self, side: usize, count: usize) -> &[u64] {
        match (&self.decoded[side], self.state[side]) {
            (Some(buffer), Some((start, end))) => &buffer[start..end],
            _ => &self.few[side][..count],
        }
    }

    /// Whether the rows could be read one by one.
    fn read_few(
        &mut self,
        vector: &EncodedVector<'_>,
        selection: Selection<'_>,
        side: usize,
    ) -> bool {
        let few = &mut self.few[side];
        few.clear();
        match selection {
            Selection::Range(start, end) => vector.read_few(start..end, few),
            Selection::Rows(..) => selection
                .iter()
                .all(|row| vector.read_few(row..row + 1, few)),
        }
    }
}

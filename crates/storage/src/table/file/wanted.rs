//! The selection of wanted rows, vector by vector.

use std::ops::Range;

use orrery_column::{EncodedVector, VECTOR_ROWS, VectorBuffer};

use super::Decoded;
use super::vector::{NullBuilder, Nulls, Vector, fault};

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
            Selection::Rows(rows, first) => {
                let few = &mut self.few[side];
                few.clear();
                // All rows are of this vector; the remainder spares a look at that for each.
                let of = |row: &u64| buffer[(row - first) as usize % VECTOR_ROWS];
                few.extend(rows.iter().map(of));
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

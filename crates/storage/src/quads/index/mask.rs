//! The mask of a permutation file: rows of graphs that were cleared as a whole.
//!
//! ```text
//! per vector of 1,024 rows: visible rows before it u64 | all visible, all hidden, or a part
//! part                      a bit for each row: whether it is visible
//! ```
//!
//! The rows that are left are numbered anew, without gaps; everything above (deltas, cursors) knows
//! these numbers only. It takes some twelve bytes a vector and an eighth of a byte a row where
//! vectors are mixed, and nothing where all rows are hidden. Making one reads the column of the
//! graph, which is constant in most vectors, once.

use std::ops::Range;

use orrery_column::VECTOR_ROWS;

use super::file::FileIndex;
use super::slot::{ColumnValues, VectorSlot};
use super::{QuadPosition, RowRange};
use crate::Result;
use crate::quads::graph_set::GraphSet;

const WORDS: usize = VECTOR_ROWS / 64;
/// So many are asked of the disk at once.
const VECTORS_AHEAD: usize = 256;

/// Which rows of a file are visible.
#[derive(Debug)]
pub(super) struct Mask {
    /// Visible rows.
    rows: u64,
    /// Rows of the file.
    file_rows: u64,
    /// Visible rows before each vector, and all at the end; empty where none is visible.
    before: Vec<u64>,
    vectors: Vec<Vector>,
    parts: Vec<[u64; WORDS]>,
}

#[derive(Debug, Clone, Copy)]
enum Vector {
    Visible,
    Hidden,
    Part(u32),
}

impl Mask {
    /// Hides the rows of some graphs; `None` if the file has none of these.
    pub(super) fn new(file: &FileIndex, graphs: &GraphSet) -> Result<Option<Self>> {
        let mut mask = Self {
            rows: 0,
            file_rows: file.rows(),
            before: Vec::new(),
            vectors: Vec::new(),
            parts: Vec::new(),
        };
        if !graphs.is_all() {
            let column = file.permutation().column_of(QuadPosition::Graph);
            let mut slot = VectorSlot::default();
            for vector in 0..file.vectors() {
                if vector % VECTORS_AHEAD == 0 && file.is_cold() {
                    file.will_read(std::iter::once((vector, vector + VECTORS_AHEAD)));
                }
                slot.load(file, vector)?;
                let rows = slot.rows();
                mask.push(rows, slot.values(file, column)?, graphs);
            }
            mask.before.push(mask.rows);
        }
        Ok((mask.rows < mask.file_rows).then_some(mask))
    }

    fn push(&mut self, rows: usize, column: ColumnValues<'_>, graphs: &GraphSet) {
        self.before.push(self.rows);
        let mut part = [0u64; WORDS];
        let visible = match column {
            ColumnValues::Constant(graph) if graphs.contains_bits(graph) => 0,
            ColumnValues::Constant(_) => rows,
            ColumnValues::Decoded(values) => {
                let mut last = (u64::MAX, false);
                let mut visible = 0;
                for (row, &graph) in values.iter().enumerate() {
                    if last.0 != graph || row == 0 {
                        last = (graph, !graphs.contains_bits(graph));
                    }
                    part[row / 64] |= u64::from(last.1) << (row % 64);
                    visible += usize::from(last.1);
                }
                visible
            }
        };
        self.rows += visible as u64;
        self.vectors.push(match visible {
            0 => Vector::Hidden,
            _ if visible == rows => Vector::Visible,
            _ => {
                self.parts.push(part);
                Vector::Part(self.parts.len() as u32 - 1)
            }
        });
    }

    /// Number of visible rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of hidden rows.
    pub(super) fn hidden(&self) -> u64 {
        self.file_rows - self.rows
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let bytes = size_of_val(&self.before[..])
            + size_of_val(&self.vectors[..])
            + size_of_val(&self.parts[..]);
        bytes as u64
    }

    /// How many visible rows stand before a row of the file.
    pub(super) fn visible_before(&self, row: u64) -> u64 {
        let vector = (row / VECTOR_ROWS as u64) as usize;
        let within = (row % VECTOR_ROWS as u64) as usize;
        let Some(kind) = self.vectors.get(vector) else {
            return self.rows;
        };
        let before = self.before[vector];
        match kind {
            Vector::Visible => before + within as u64,
            Vector::Hidden => before,
            Vector::Part(part) => {
                let words = &self.parts[*part as usize];
                let whole = words[..within / 64].iter();
                let last = words[within / 64] & ((1 << (within % 64)) - 1);
                let ones: u32 = whole.map(|word| word.count_ones()).sum();
                before + u64::from(ones + last.count_ones())
            }
        }
    }

    /// Calls `found` with the rows of the file that a range of visible rows is made of: runs of
    /// neighbours, ascending. Runs that end with a vector may go on in the next.
    pub(super) fn runs(&self, range: RowRange, mut found: impl FnMut(RowRange)) {
        let mut left = RowRange::new(range.start, range.end.min(self.rows)).len();
        if left == 0 {
            return;
        }
        // The last vector with no more visible rows before it: the first row stands in it.
        let mut vector = self.before.partition_point(|&before| before <= range.start) - 1;
        let mut skip = range.start - self.before[vector];
        while left > 0 {
            let first = (vector * VECTOR_ROWS) as u64;
            let visible = self.before[vector + 1] - self.before[vector];
            let take = left.min(visible - skip);
            match self.vectors[vector] {
                Vector::Hidden => {}
                Vector::Visible => found(RowRange::new(first + skip, first + skip + take)),
                Vector::Part(part) => {
                    let wanted = skip..skip + take;
                    runs_of_part(&self.parts[part as usize], wanted, |run| {
                        found(RowRange::new(first + run.start, first + run.end));
                    });
                }
            }
            left -= take;
            skip = 0;
            vector += 1;
        }
    }
}

/// Calls `found` with the runs of ones that hold the ones numbered `wanted`, cut to these.
fn runs_of_part(words: &[u64; WORDS], wanted: Range<u64>, mut found: impl FnMut(Range<u64>)) {
    let mut ones = 0; // before `place`
    let mut place = 0;
    while ones < wanted.end {
        let Some(start) = next(words, place, true) else {
            return;
        };
        let end = next(words, start, false).unwrap_or(VECTOR_ROWS as u64);
        let run_ones = end - start;
        let from = start + wanted.start.saturating_sub(ones).min(run_ones);
        let to = start + (wanted.end - ones).min(run_ones);
        if from < to {
            found(from..to);
        }
        ones += run_ones;
        place = end;
    }
}

/// The first bit from a place on that is a one, or a zero.
fn next(words: &[u64; WORDS], from: u64, is_one: bool) -> Option<u64> {
    let mut number = (from / 64) as usize;
    let mut ignored = (1u64 << (from % 64)) - 1;
    while let Some(&word) = words.get(number) {
        let word = if is_one { word } else { !word } & !ignored;
        if word != 0 {
            return Some(number as u64 * 64 + u64::from(word.trailing_zeros()));
        }
        ignored = 0;
        number += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use orrery_term::TermId;
    use proptest::prelude::*;

    use super::*;

    const HIDDEN: u64 = 7;

    fn mask_of(graphs: &[u64]) -> Mask {
        let set = GraphSet::one(TermId::from_bits(HIDDEN));
        let mut mask = Mask {
            rows: 0,
            file_rows: graphs.len() as u64,
            before: Vec::new(),
            vectors: Vec::new(),
            parts: Vec::new(),
        };
        for vector in graphs.chunks(VECTOR_ROWS) {
            let values = match vector.iter().all(|graph| *graph == vector[0]) {
                true => ColumnValues::Constant(vector[0]),
                false => ColumnValues::Decoded(vector),
            };
            mask.push(vector.len(), values, &set);
        }
        mask.before.push(mask.rows);
        mask
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_and_numbers_agree(
            runs in proptest::collection::vec((any::<bool>(), 1usize..900), 1..12),
            cut in 0u64..6000,
            length in 0u64..3000,
        ) {
            let graphs: Vec<u64> = runs
                .iter()
                .flat_map(|&(is_hidden, rows)| vec![if is_hidden { HIDDEN } else { 1 }; rows])
                .collect();
            let mask = mask_of(&graphs);
            let visible: Vec<u64> = (0..graphs.len() as u64)
                .filter(|&row| graphs[row as usize] != HIDDEN)
                .collect();
            prop_assert_eq!(mask.rows(), visible.len() as u64);
            prop_assert_eq!(mask.hidden(), (graphs.len() - visible.len()) as u64);
            for row in 0..=graphs.len() as u64 {
                let before = visible.partition_point(|&other| other < row) as u64;
                prop_assert_eq!(mask.visible_before(row), before);
            }
            let range = RowRange::new(cut.min(mask.rows()), (cut + length).min(mask.rows()));
            let mut found = Vec::new();
            mask.runs(range, |run| found.extend(run.start..run.end));
            prop_assert_eq!(&found[..], &visible[range.start as usize..range.end as usize]);
        }
    }
}

//! The matches of a chunk in an intersection, and the columns of its sides.

use arrow::array::UInt64Array;
use arrow::buffer::ScalarBuffer;
use datafusion_common::Result;
use orrery_term::TermId;

use super::super::chunk::{Chunk, repeat};
use super::super::program::{Key, SideProgram, StepProgram};
use super::super::specification::ObjectRanges;
use crate::solutions::gather;

/// The column of a side's permutation that holds the values of the variable.
pub(super) const VALUE_COLUMN: usize = 2;

/// The column that holds the graphs.
pub(super) const GRAPH_COLUMN: usize = 3;

/// What was found: a row of the chunk and a value of the variable each.
#[derive(Default)]
pub(super) struct IntersectionMatches {
    pub(super) rows: Vec<u32>,
    pub(super) values: Vec<u64>,
}

/// Matches of rows of a chunk in the outgoing layout.
pub(super) fn chunk_of(
    input: &Chunk,
    program: &StepProgram,
    matches: IntersectionMatches,
) -> Result<Chunk> {
    let rows = matches.rows.len();
    let mut columns = Vec::with_capacity(program.carried.len() + 1);
    for &column in &program.carried {
        let column = &input.columns[column];
        columns.push(if input.rows == 1 {
            repeat(column, rows)
        } else {
            gather(column, &matches.rows)?
        });
    }
    if !program.produced.is_empty() {
        let values = ScalarBuffer::from(matches.values);
        columns.push(UInt64Array::new(values, None));
    }
    Ok(Chunk { columns, rows })
}

/// Keeps the values from `first` on that are within bounds.
pub(super) fn retain_within(values: &mut Vec<u64>, first: usize, ranges: &ObjectRanges) {
    let mut kept = first;
    for at in first..values.len() {
        values[kept] = values[at];
        kept += usize::from(ranges.contains(TermId::from_bits(values[at])));
    }
    values.truncate(kept);
}

impl SideProgram {
    /// The columns of a chunk that the side looks up by.
    pub(super) fn key_columns(&self) -> Vec<usize> {
        let keys = self.prefix.iter().chain(&self.graph);
        keys.filter_map(|key| match key {
            Key::Constant(_) => None,
            Key::Column(column) => Some(*column),
        })
        .collect()
    }

    /// Whether rows of the side's range must be checked by their graph.
    pub(super) fn checks_graph(&self) -> bool {
        self.graph.is_some() || self.one_of.is_some()
    }
}

//! The cursors of a step, and the ranges of rows for its prefix.

use std::ops::Bound;

use datafusion_common::Result;
use orrery_storage::{Cursor, IndexView, RowRange};
use orrery_term::TermId;

use crate::pattern::program::StepProgram;
use crate::solutions::storage_error;

/// Keys that the storage is told of at a time, if the file is cold.
pub(crate) const ANNOUNCED_KEYS: usize = 1024;

/// The seeker decodes key columns and the reader the others: with one cursor for both, going
/// back from a key to the rows before it would decode vectors twice.
pub(crate) struct Cursors {
    pub(crate) seeker: Cursor,
    pub(crate) reader: Cursor,
}

impl Cursors {
    /// A pair for each permutation that a step reads.
    pub(crate) fn of(program: &StepProgram) -> Vec<Self> {
        let pair = |index: &IndexView| Self {
            seeker: index.cursor(),
            reader: index.cursor(),
        };
        match &program.intersection {
            None => vec![pair(&program.index)],
            Some(intersection) => {
                let sides = intersection.sides.iter();
                sides.map(|side| pair(&side.index)).collect()
            }
        }
    }
}

/// Adds the ranges of rows that a step walks for a prefix; some may be empty.
pub(crate) fn seek_ranges(
    program: &StepProgram,
    prefix: &[TermId],
    seeker: &mut Cursor,
    ranges: &mut Vec<RowRange>,
) -> Result<()> {
    match &program.between {
        None => ranges.push(seeker.seek(prefix).map_err(storage_error)?),
        Some(intervals) => {
            for (low, high) in intervals {
                let range = seeker
                    .seek_between(prefix, Bound::Included(*low), Bound::Included(*high))
                    .map_err(storage_error)?;
                ranges.push(range);
            }
        }
    }
    Ok(())
}

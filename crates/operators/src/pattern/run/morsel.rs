//! Morsels: pieces of a pattern's first scan, from the [queue](crate::dealing) of all partitions
//! (after Leis et al., "Morsel-driven parallelism", SIGMOD 2014).
//!
//! ```text
//! rows of step 1:  [ 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 ]     partition 0 takes 0, 2, 3, 5 ...
//!                                                        partition 1 takes 1, 4, 6 ...
//! ```
//!
//! Each row is in exactly one morsel, or share. Where equal triples of several graphs are to match
//! once, no boundary falls between two of them.

use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion_common::{Result, internal_err};
use orrery_runtime::Workers;
use orrery_storage::{Cursor, RowRange};
use orrery_term::TermId;

use crate::dealing::{Dealing, PieceReader, Pieces, Spread};
use crate::pattern::program::{Key, StepProgram};
use crate::pattern::run::pipeline::VECTOR_ROWS_MAX;
use crate::pattern::steps::cursors::seek_ranges;
use crate::solutions::storage_error;

/// Rows of a vector of a permutation; boundaries fall between two of them where morsels are large.
const ALIGNMENT_ROWS: u64 = 1_024;
/// Smaller morsels are not aligned.
const ALIGNED_ROWS_MIN: u64 = 8 * ALIGNMENT_ROWS;
/// Morsels for each partition, where there are rows enough.
const MORSELS_PER_PARTITION: u64 = 6;
/// The smallest morsels of a pattern that only scans.
const SCANNED_ROWS_MIN: u64 = 50_000;

/// The same, and the smallest morsels, where all that follows is looked up in memory: that costs no
/// more in short vectors, and of a few rows some may have most of the matches.
const MORSELS_PER_PARTITION_IN_MEMORY: u64 = 64;
const IN_MEMORY_ROWS_MIN: u64 = 64;

/// What follows the first step, whose rows are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FurtherSteps {
    /// Nothing.
    None,
    /// Some steps look up in permutations.
    InPermutations,
    /// All steps look up in memory.
    InMemory,
}

/// The rows that a step without columns of an earlier chunk walks, ascending.
pub(crate) fn first_ranges(step: &StepProgram, seeker: &mut Cursor) -> Result<Vec<RowRange>> {
    let constants = step.prefix.iter().map(|key| match key {
        Key::Constant(term) => Some(*term),
        Key::Column(_) => None,
    });
    let Some(prefix) = constants.collect::<Option<Vec<TermId>>>() else {
        return internal_err!("the first step of a pattern that is spread depends on an input");
    };
    let mut ranges = Vec::new();
    seek_ranges(step, &prefix, seeker, &mut ranges)?;
    ranges.retain(|range| !range.is_empty());
    Ok(ranges)
}

/// The morsels of one execution.
#[derive(Debug)]
pub(crate) struct Morsels {
    ranges: Vec<RowRange>,
    pieces: Arc<Pieces>,
}

impl Morsels {
    /// Cuts the rows of a first step.
    pub(crate) fn cut(
        step: &StepProgram,
        further: FurtherSteps,
        spread: Spread,
        workers: Arc<Workers>,
    ) -> Result<Self> {
        let mut cursor = step.index.cursor();
        let ranges = first_ranges(step, &mut cursor)?;
        let rows = ranges.iter().map(|range| range.len()).sum();
        let piece = match spread.dealing {
            Dealing::Turns(rows) => rows.max(1),
            Dealing::Queue | Dealing::Shares => piece_rows(rows, spread.partitions as u64, further),
        };
        let mut pieces = Vec::new();
        for range in ranges {
            let mut start = range.start;
            while start < range.end {
                let end = boundary(step, &mut cursor, start + piece, range)?;
                pieces.push(RowRange::new(start, end));
                start = end;
            }
        }
        let dealt_to = match spread.dealing {
            Dealing::Turns(_) => Some(spread.partitions),
            Dealing::Queue | Dealing::Shares => None,
        };
        Ok(Self {
            pieces: Pieces::new(pieces.len(), workers, dealt_to),
            ranges: pieces,
        })
    }

    /// The rows of a first step that are the share of one partition.
    pub(crate) fn share(
        step: &StepProgram,
        (partition, partitions): (usize, usize),
        workers: Arc<Workers>,
    ) -> Result<MorselReader> {
        let mut cursor = step.index.cursor();
        let ranges = first_ranges(step, &mut cursor)?;
        let rows: u64 = ranges.iter().map(|range| range.len()).sum();
        // In wide numbers, so that the shares of however many rows are alike.
        let rows_before = |share: usize| -> u64 {
            (u128::from(rows) * share as u128 / partitions.max(1) as u128) as u64
        };
        let (first, last) = (rows_before(partition), rows_before(partition + 1));
        let mut own = Vec::new();
        let mut before = 0;
        for range in ranges {
            let mut cut = |rows: u64| match rows.saturating_sub(before) {
                0 => Ok(range.start),
                rows => boundary(step, &mut cursor, range.start + rows, range),
            };
            let (start, end) = (cut(first)?, cut(last)?);
            before += range.len();
            if start < end {
                own.push(RowRange::new(start, end));
            }
        }
        let morsels = Self {
            pieces: Pieces::new(own.len(), workers, Some(1)),
            ranges: own,
        };
        Ok(MorselReader::new(Arc::new(morsels), 0))
    }
}

/// How long morsels are. Look-ups of a long vector of keys cost less than those of two short ones
/// (see [`VECTOR_ROWS_MAX`]), so morsels of a join are no shorter than that as long as
/// every partition gets one.
fn piece_rows(rows: u64, partitions: u64, further: FurtherSteps) -> u64 {
    let (least, morsels) = match further {
        FurtherSteps::None => (SCANNED_ROWS_MIN, MORSELS_PER_PARTITION),
        FurtherSteps::InPermutations => (VECTOR_ROWS_MAX as u64, MORSELS_PER_PARTITION),
        FurtherSteps::InMemory => (IN_MEMORY_ROWS_MIN, MORSELS_PER_PARTITION_IN_MEMORY),
    };
    let share = rows.div_ceil(partitions);
    let piece = rows.div_ceil(partitions * morsels).max(least.min(share));
    piece.max(1)
}

/// Where a morsel that should end at a row ends.
fn boundary(step: &StepProgram, cursor: &mut Cursor, end: u64, range: RowRange) -> Result<u64> {
    if end >= range.end {
        return Ok(range.end);
    }
    if step.merge.is_some() {
        // The graph is the last column, so equal triples stand together.
        let mut triple = Vec::with_capacity(3);
        for column in 0..3 {
            let last = RowRange::new(end - 1, end);
            cursor
                .read(last, column, &mut triple)
                .map_err(storage_error)?;
        }
        let triple: Vec<TermId> = triple.into_iter().map(TermId::from_bits).collect();
        let equal = cursor.seek(&triple).map_err(storage_error)?;
        return Ok(equal.end.clamp(end, range.end));
    }
    if !end.is_multiple_of(ALIGNMENT_ROWS) && end - range.start >= ALIGNED_ROWS_MIN {
        return Ok(end.next_multiple_of(ALIGNMENT_ROWS).min(range.end));
    }
    Ok(end)
}

/// The morsels that one partition takes.
#[derive(Debug)]
pub(crate) struct MorselReader {
    morsels: Arc<Morsels>,
    pieces: PieceReader,
}

impl MorselReader {
    /// For a partition; of the same one there may not be two.
    pub(crate) fn new(morsels: Arc<Morsels>, partition: usize) -> Self {
        Self {
            pieces: PieceReader::new(Arc::clone(&morsels.pieces), partition),
            morsels,
        }
    }

    /// The next morsel of this partition.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<RowRange>> {
        let ranges = &self.morsels.ranges;
        let piece = self.pieces.poll_next(cx);
        piece.map(|piece| piece.and_then(|piece| ranges.get(piece).copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn morsels_are_long_for_look_ups_and_many_for_scans() {
        let look_ups = FurtherSteps::InPermutations;
        assert_eq!(piece_rows(10_000_000, 2, look_ups), 833_334);
        assert_eq!(piece_rows(570_000, 2, look_ups), VECTOR_ROWS_MAX as u64);
        assert_eq!(piece_rows(100_000, 2, look_ups), 50_000);
        assert_eq!(piece_rows(300_000, 2, FurtherSteps::None), SCANNED_ROWS_MIN);
        assert_eq!(piece_rows(3, 2, look_ups), 2);
        assert_eq!(piece_rows(0, 2, look_ups), 1);
    }

    #[test]
    fn morsels_are_short_where_look_ups_are_made_in_memory() {
        assert_eq!(piece_rows(12_800, 2, FurtherSteps::InMemory), 100);
        assert_eq!(
            piece_rows(1_000, 2, FurtherSteps::InMemory),
            IN_MEMORY_ROWS_MIN
        );
        assert_eq!(piece_rows(3, 2, FurtherSteps::InMemory), 2);
    }
}

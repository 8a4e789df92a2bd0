//! The rows of a morsel that are not in the file, read and filtered in pieces.
//!
//! ```text
//! unread -> a piece of at most PIECE_BYTES -> conditions -> positions and columns of those that pass -> given
//! ```
//!
//! There may be any number of them at one position. A piece is a step of the scan, behind which it
//! can give way to others and hold no more than the piece.

use std::ops::Range;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::filter;
use datafusion::common::Result;
use orrery_column::VECTOR_ROWS;
use orrery_storage::table::NewRow;

use super::failed;
use super::plan::{Plan, columns_of};

/// A piece ends with the row that reaches so many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The new rows of a morsel, in their order.
#[derive(Default)]
pub(super) struct NewRows {
    /// Of each row of the piece that passed how many rows of the file stand before it.
    pub(super) positions: Vec<u64>,
    /// Its columns that are read.
    pub(super) columns: Vec<ArrayRef>,
    /// How many rows of the piece were given.
    pub(super) next: usize,
    /// The first row that no piece has yet, and its position.
    unread: Option<(u64, NewRow)>,
    /// Behind the last position.
    end: u64,
}

impl NewRows {
    /// Those of a morsel; none is read yet.
    pub(super) fn new(plan: &Plan, morsel: Range<u64>) -> Self {
        let (changes, end) = (plan.projection.changes(), morsel.end);
        if changes.inserted() == 0 {
            return Self::default();
        }
        let first = plan.ranges.new_rows(changes, morsel, &[]).next();
        Self {
            unread: first.map(|(position, row)| (position, row.clone())),
            end,
            ..Self::default()
        }
    }

    /// Whether all of the piece was given.
    pub(super) fn is_done(&self) -> bool {
        self.next == self.positions.len()
    }

    /// Whether there are further pieces.
    pub(super) fn is_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// All rows of lower positions were read.
    pub(super) fn read_until(&self) -> u64 {
        self.unread
            .as_ref()
            .map_or(u64::MAX, |(position, _)| *position)
    }

    /// Reads the next piece, of at most so many rows, in place of the one that was given. Gives how
    /// many rows it looked at.
    pub(super) fn read(&mut self, plan: &Plan, rows_max: usize) -> Result<usize> {
        let Some((position, first)) = self.unread.take() else {
            return Ok(0);
        };
        let changes = plan.projection.changes();
        let rows = plan
            .ranges
            .new_rows(changes, position..self.end, first.key());
        let mut rows = rows.peekable();
        let (mut positions, mut new, mut bytes) = (Vec::new(), Vec::new(), 0);
        let is_cheap = plan.conditions.iter().all(|condition| condition.is_simple);
        let rows_max = match is_cheap {
            true => rows_max,
            false => rows_max.min(VECTOR_ROWS),
        };
        while let Some((position, row)) =
            rows.next_if(|_| new.len() < rows_max && bytes < PIECE_BYTES)
        {
            bytes += row.bytes().len();
            positions.push(position);
            new.push(row);
        }
        let looked_at = new.len();
        let wanted = plan.wanted();
        let mut columns = plan.projection.read_new(&new, &wanted).map_err(failed)?;
        for condition in plan.conditions_in_order() {
            let of_condition = columns_of(condition.places(), &wanted, &columns);
            let mask = condition.of_columns(of_condition, positions.len())?;
            if mask.count_set_bits() == mask.len() {
                continue;
            }
            positions = mask.set_indices().map(|row| positions[row]).collect();
            let mask = BooleanArray::new(mask, None);
            let kept = columns.iter().map(|column| filter(column, &mask));
            columns = kept.collect::<Result<_, _>>()?;
        }
        self.unread = rows.next().map(|(position, row)| (position, row.clone()));
        self.columns = columns_of(&plan.read, &wanted, &columns);
        self.positions = positions;
        self.next = 0;
        Ok(looked_at)
    }
}

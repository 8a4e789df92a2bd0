//! The output batches of a group table, computed on demand.
//!
//! What a state becomes may be as large as the state: a joined text stands in the query's own table
//! of terms then. If all groups became results at once, both would have to fit into the memory
//! together, and a query would fail for the very memory in which its states just fit, where with
//! less they had been spilled. So large states are taken a part of the groups at a time, and what
//! they held is given back first:
//!
//! ```text
//! groups  | taken, gone | this piece: given back -> results or states |  still held  |
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_expr::{EmitTo, GroupsAccumulator};

/// Pieces in which large states are taken.
const PIECES: usize = 16;
/// Of so few groups one may hold more than all others; all they hold is given back before one is
/// taken.
const FEW_GROUPS: usize = 1_024;

/// How groups are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// What they become is small.
    AtOnce,
    /// It may be as large as their states.
    InPieces,
}

/// See the module's documentation.
pub(super) struct Pieces {
    schema: SchemaRef,
    keys: Vec<UInt64Array>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    reservation: MemoryReservation,
    /// Whether states are given, and no results.
    is_states: bool,
    groups: usize,
    taken: usize,
    piece_groups: usize,
}

impl Pieces {
    /// Of all groups with these keys; the reservation is what they hold.
    pub(super) fn new(
        schema: SchemaRef,
        keys: Vec<UInt64Array>,
        accumulators: Vec<Box<dyn GroupsAccumulator>>,
        reservation: MemoryReservation,
        taken: Taken,
        is_states: bool,
    ) -> Self {
        let groups = keys.first().map_or(0, |column| column.len());
        let piece_groups = match taken {
            Taken::AtOnce => groups,
            Taken::InPieces => groups.div_ceil(PIECES),
        };
        Self {
            schema,
            keys,
            accumulators,
            reservation,
            is_states,
            groups,
            taken: 0,
            piece_groups: piece_groups.max(1),
        }
    }

    /// The same for an operator that counts what it is given.
    pub(super) fn uncounted(self) -> Self {
        self.reservation.free();
        self
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// All of them, in batches of at most so many rows.
    pub(super) fn batches(
        mut self,
        batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch>> + Send {
        let mut batches: Box<dyn Iterator<Item = RecordBatch> + Send> =
            Box::new(std::iter::empty());
        std::iter::from_fn(move || {
            loop {
                if let Some(batch) = batches.next() {
                    return Some(Ok(batch));
                }
                match self.next_piece()? {
                    Ok(piece) => batches = Box::new(slices(piece, batch_rows)),
                    Err(error) => {
                        self.taken = self.groups;
                        return Some(Err(error));
                    }
                }
            }
        })
    }

    fn next_piece(&mut self) -> Option<Result<RecordBatch>> {
        let left = self.groups - self.taken;
        if left == 0 {
            return None;
        }
        let count = self.piece_groups.min(left);
        let piece = self.take(count, left);
        self.taken += count;
        Some(piece)
    }

    fn take(&mut self, count: usize, left: usize) -> Result<RecordBatch> {
        let is_last = count == left;
        if self.piece_groups < self.groups {
            let held = self.reservation.size();
            let after = match self.groups <= FEW_GROUPS {
                true => 0,
                // Twice its share, for states are not of one size.
                false => held / left * left.saturating_sub(2 * count),
            };
            self.reservation.shrink(held - after);
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for keys in &self.keys {
            columns.push(Arc::new(keys.slice(self.taken, count)));
        }
        let emit_to = match is_last {
            true => EmitTo::All,
            false => EmitTo::First(count),
        };
        for accumulator in &mut self.accumulators {
            match self.is_states {
                true => columns.extend(accumulator.state(emit_to)?),
                false => columns.push(accumulator.evaluate(emit_to)?),
            }
        }
        if self.piece_groups < self.groups {
            // It was counted before, so it is not asked for.
            let bytes = self.accumulators.iter().map(|it| it.size()).sum();
            self.reservation.resize(bytes);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// A batch in pieces of so many rows.
fn slices(batch: RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> + Send {
    let rows = rows.max(1);
    (0..batch.num_rows())
        .step_by(rows)
        .map(move |start| batch.slice(start, rows.min(batch.num_rows() - start)))
}

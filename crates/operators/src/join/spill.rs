//! Spilled joins: a build side beyond memory, block by block from disk.
//!
//! ```text
//!   right input -> right file -> a block that fits -> tables     as many passes as there are blocks
//!   left input  -> left file  -> every pass reads all of it      the first pass reads the input, and writes the file
//! ```
//!
//! Compatible solutions need not have any value in common, so solutions cannot be divided by their
//! keys as for a join by equality: any left one may meet any block. Which left rows have found a
//! match is kept in memory, a bit for each; the last pass tells what becomes of those without one.

use std::sync::Arc;

use arrow::array::{BooleanBufferBuilder, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_physical_plan::metrics::SpillMetrics;
use datafusion_physical_plan::spill::SpillManager;

use crate::spill_file::{OpenFile, Written, read};

/// Where the files of a join are.
pub(super) struct Spill {
    left: SpillManager,
    right: SpillManager,
}

impl Spill {
    pub(super) fn new(
        env: Arc<RuntimeEnv>,
        metrics: SpillMetrics,
        [left, right]: [SchemaRef; 2],
    ) -> Self {
        Self {
            left: SpillManager::new(Arc::clone(&env), metrics.clone(), left),
            right: SpillManager::new(env, metrics, right),
        }
    }

    /// A file for the right solutions.
    pub(super) fn right_file(&self) -> Result<OpenFile> {
        OpenFile::create(&self.right, "right side of a join")
    }

    /// The passes over a right side that is on the disk whole.
    pub(super) fn passes(
        &self,
        mut right: OpenFile,
        block_bytes_max: usize,
        matched: MemoryReservation,
    ) -> Result<Passes> {
        Ok(Passes {
            right: read(&self.right, right.finish()?)?,
            held: None,
            block_bytes_max,
            is_last: false,
            left: LeftFile::Unwritten,
            next_row: 0,
            matched: Matched {
                bits: BooleanBufferBuilder::new(0),
                reservation: matched,
            },
        })
    }
}

/// How far a join by blocks has come.
pub(super) struct Passes {
    /// The right solutions that no block has had.
    pub(super) right: SendableRecordBatchStream,
    /// The first of them, if it was too much for the last block.
    pub(super) held: Option<RecordBatch>,
    pub(super) block_bytes_max: usize,
    /// Whether the present block is the last one.
    pub(super) is_last: bool,
    left: LeftFile,
    /// The number of the next left row.
    next_row: usize,
    matched: Matched,
}

enum LeftFile {
    Unwritten,
    Writing(OpenFile),
    Written(Written),
}

impl Passes {
    /// Takes note of a left batch: in the first of several passes, it is written for the others.
    pub(super) fn begin_batch(&mut self, spill: &Spill, batch: &RecordBatch) -> Result<()> {
        if self.is_last {
            return Ok(());
        }
        if matches!(self.left, LeftFile::Unwritten) {
            let file = OpenFile::create(&spill.left, "left side of a join")?;
            self.left = LeftFile::Writing(file);
        }
        if let LeftFile::Writing(file) = &mut self.left {
            file.append(batch)?;
        }
        Ok(())
    }

    /// Whether rows of the batch that begins have found a match in a pass before, if that was kept.
    pub(super) fn recall(&self, matched: &mut [bool]) {
        for (row, matched) in (self.next_row..).zip(matched) {
            *matched = row < self.matched.bits.len() && self.matched.bits.get_bit(row);
        }
    }

    /// Ends a batch; keeps which of its rows have found a match so far, for the next pass.
    pub(super) fn end_batch(&mut self, matched: &[bool], is_kept: bool) -> Result<()> {
        if is_kept && !self.is_last {
            self.matched.keep(self.next_row, matched)?;
        }
        self.next_row += matched.len();
        Ok(())
    }

    /// The left side once more, for the next pass.
    pub(super) fn next_pass(&mut self, spill: &Spill) -> Result<SendableRecordBatchStream> {
        self.next_row = 0;
        if let LeftFile::Writing(file) = &mut self.left {
            self.left = LeftFile::Written(file.finish()?);
        }
        let file = match &self.left {
            LeftFile::Written(file) => file.clone(),
            // No left solution has come.
            LeftFile::Unwritten | LeftFile::Writing(_) => None,
        };
        read(&spill.left, file)
    }
}

/// A bit for each left row.
struct Matched {
    bits: BooleanBufferBuilder,
    reservation: MemoryReservation,
}

impl Matched {
    fn keep(&mut self, first_row: usize, matched: &[bool]) -> Result<()> {
        if first_row == self.bits.len() {
            self.bits.append_slice(matched);
            return self.reservation.try_resize(self.bits.capacity() / 8);
        }
        for (row, &matched) in (first_row..).zip(matched) {
            self.bits.set_bit(row, matched);
        }
        Ok(())
    }
}

//! The verification of a permutation file: checksums, row order and fence keys.

use std::sync::Arc;

use orrery_column::VECTOR_ROWS;

use super::file::FileIndex;
use super::file_scan::FileScan;
use super::{COLUMNS, QuadRow, RowRange};
use crate::{Error, Result};

impl FileIndex {
    /// Checks the whole file: checksums, that everything decodes, the order of the rows, and the
    /// fences.
    pub(super) fn verify(self: &Arc<Self>) -> Vec<Error> {
        let damage = self.block_file().verify_all();
        if !damage.is_empty() {
            return damage; // What does not match its checksum need not be understood.
        }
        self.verify_rows().err().into_iter().collect()
    }

    fn verify_rows(self: &Arc<Self>) -> Result<()> {
        let all = RowRange::new(0, self.rows());
        let mut scan = FileScan::new(Arc::clone(self), all, [true; COLUMNS]);
        let mut last: Option<QuadRow> = None;
        while let Some(vector) = scan.next_vector()? {
            let number = (vector.rows().start / VECTOR_ROWS as u64) as usize;
            let row_at = |row: usize| std::array::from_fn(|column| vector.column(column)[row]);
            if row_at(0) != self.fence(number)? {
                return Err(self.damage_in(number, "a fence is not its vector's first row"));
            }
            for row in 0..vector.rows().len() as usize {
                let next = row_at(row);
                if last.is_some_and(|last| last >= next) {
                    return Err(self.damage_in(number, "the rows do not ascend"));
                }
                last = Some(next);
            }
        }
        Ok(())
    }
}

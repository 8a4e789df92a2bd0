//! The writer of a permutation file from sorted rows.

use std::path::Path;

use orrery_column::{VECTOR_ROWS, encode};

use super::{
    COLUMN_END_BYTES, COLUMNS, FENCE_BYTES, FENCES_PER_BLOCK, IndexSummary, KIND, Permutation,
    QuadRow, VECTORS_PER_BLOCK,
};
use crate::files::block_file::BlockFileWriter;
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// The writer of a permutation file, from strictly ascending rows. Uses memory for one block and 32
/// bytes per 1,024 rows.
#[derive(Debug)]
pub struct QuadIndexWriter {
    file: BlockFileWriter,
    permutation: Permutation,
    rows: u64,
    last: Option<QuadRow>,
    /// The vector being filled, column by column.
    columns: [Vec<u64>; COLUMNS],
    /// Encoded columns of the block being filled, and where each ends in it.
    encoded: Vec<u8>,
    ends: Vec<usize>,
    fences: Vec<u8>,
}

impl QuadIndexWriter {
    /// Creates the file.
    pub fn create(
        file_system: &dyn FileSystem,
        path: &Path,
        permutation: Permutation,
    ) -> Result<Self> {
        Ok(Self {
            file: BlockFileWriter::create(file_system, path, KIND)?,
            permutation,
            rows: 0,
            last: None,
            columns: std::array::from_fn(|_| Vec::with_capacity(VECTOR_ROWS)),
            encoded: Vec::new(),
            ends: Vec::with_capacity(VECTORS_PER_BLOCK * COLUMNS),
            fences: Vec::new(),
        })
    }

    /// Appends one row, which must be greater than the last.
    pub fn push(&mut self, row: &QuadRow) -> Result<()> {
        self.push_rows(std::slice::from_ref(row))
    }

    /// Appends rows, which must ascend strictly. On an error the file is of no use any more.
    pub fn push_rows(&mut self, rows: &[QuadRow]) -> Result<()> {
        let mut rest = rows;
        while !rest.is_empty() {
            let room = VECTOR_ROWS - self.columns[0].len();
            let (chunk, after) = rest.split_at(room.min(rest.len()));
            self.check_order(chunk)?;
            for (number, column) in self.columns.iter_mut().enumerate() {
                column.extend(chunk.iter().map(|row| row[number]));
            }
            self.rows += chunk.len() as u64;
            if self.columns[0].len() == VECTOR_ROWS {
                self.finish_vector()?;
            }
            rest = after;
        }
        Ok(())
    }

    /// Number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what is left, the fences and the footer, and syncs the file.
    pub fn finish(mut self) -> Result<IndexSummary> {
        if !self.columns[0].is_empty() {
            self.finish_vector()?;
        }
        if !self.ends.is_empty() {
            self.finish_block()?;
        }
        for fences in self.fences.chunks(FENCES_PER_BLOCK * FENCE_BYTES) {
            self.file.append(fences)?;
        }
        let mut metadata = self.rows.to_le_bytes().to_vec();
        metadata.push(self.permutation as u8);
        Ok(IndexSummary {
            permutation: self.permutation,
            rows: self.rows,
            file: self.file.finish(&metadata)?,
        })
    }

    /// Checks that the rows ascend, from the last one before them on.
    fn check_order(&mut self, rows: &[QuadRow]) -> Result<()> {
        let follows = match (&self.last, rows.first()) {
            (Some(last), Some(first)) => last < first,
            _ => true,
        };
        if !follows || !rows.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid_input(
                self.file.path(),
                format!("rows do not ascend strictly after row {}", self.rows),
            ));
        }
        self.last = rows.last().copied();
        Ok(())
    }

    fn finish_vector(&mut self) -> Result<()> {
        for column in &mut self.columns {
            self.fences.extend_from_slice(&column[0].to_le_bytes());
            encode(column, &mut self.encoded);
            self.ends.push(self.encoded.len());
            column.clear();
        }
        if self.ends.len() == VECTORS_PER_BLOCK * COLUMNS {
            self.finish_block()?;
        }
        Ok(())
    }

    fn finish_block(&mut self) -> Result<()> {
        let directory_bytes = self.ends.len() * COLUMN_END_BYTES;
        let mut block = Vec::with_capacity(directory_bytes + self.encoded.len());
        for end in self.ends.drain(..) {
            block.extend_from_slice(&((directory_bytes + end) as u32).to_le_bytes());
        }
        block.append(&mut self.encoded);
        self.file.append(&block)?;
        Ok(())
    }
}

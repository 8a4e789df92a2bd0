//! The layout of a permutation file.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use orrery_column::{DecodeError, EncodedVector, VECTOR_ROWS};

use super::{
    COLUMN_END_BYTES, COLUMNS, FENCE_BYTES, FENCES_PER_BLOCK, KIND, Permutation, Prefix, QuadRow,
    Side, VECTORS_PER_BLOCK, vectors_of,
};
use crate::files::block_file::{BlockFile, BlockNumber, FileSummary};
use crate::files::io::FileSystem;
use crate::quads::adjacency::AdjacencySlots;
use crate::{Error, Result};

/// The file of a finished permutation, open for reading.
#[derive(Debug)]
pub(super) struct FileIndex {
    file: BlockFile,
    permutation: Permutation,
    rows: u64,
    vectors: usize,
    data_blocks: usize,
    adjacencies: AdjacencySlots,
}

impl FileIndex {
    /// Opens the file; costs the same for any number of rows.
    pub(super) fn open(file_system: &dyn FileSystem, path: &Path) -> Result<Arc<Self>> {
        let file = BlockFile::open(file_system, path, KIND)?;
        let corrupt = |what: &str| {
            Err(Error::corrupt(
                path,
                file.metadata_offset(),
                what.to_owned(),
            ))
        };
        let Some((rows, [tag])) = file.metadata().split_first_chunk::<8>() else {
            return corrupt("the metadata of the permutation are of the wrong length");
        };
        let rows = u64::from_le_bytes(*rows);
        let Some(permutation) = Permutation::from_tag(*tag) else {
            return corrupt("the permutation is unknown");
        };
        let vectors = vectors_of(rows) as usize;
        let data_blocks = vectors.div_ceil(VECTORS_PER_BLOCK);
        if data_blocks + vectors.div_ceil(FENCES_PER_BLOCK) != file.block_count() as usize {
            return corrupt("the number of rows and the number of blocks disagree");
        }
        Ok(Arc::new(Self {
            file,
            permutation,
            rows,
            vectors,
            data_blocks,
            adjacencies: AdjacencySlots::default(),
        }))
    }

    /// The order of the columns.
    pub(super) fn permutation(&self) -> Permutation {
        self.permutation
    }

    /// Number of quads.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The adjacencies that were made of the file.
    pub(super) fn adjacencies(&self) -> &AdjacencySlots {
        &self.adjacencies
    }

    /// Length and checksum of the file, to be compared with what the writer returned.
    pub(super) fn summary(&self) -> FileSummary {
        self.file.summary()
    }

    /// The file's path, for messages.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Number of vectors.
    pub(super) fn vectors(&self) -> usize {
        self.vectors
    }

    /// Number of rows of a vector.
    pub(super) fn rows_of(&self, vector: usize) -> usize {
        let before = (vector * VECTOR_ROWS) as u64;
        self.rows.saturating_sub(before).min(VECTOR_ROWS as u64) as usize
    }

    /// The first row of a vector.
    #[inline]
    pub(super) fn fence(&self, vector: usize) -> Result<QuadRow> {
        let fences = self.fences(vector / FENCES_PER_BLOCK)?;
        let fence = fences.get(vector % FENCES_PER_BLOCK);
        Ok(row_of(fence.ok_or_else(|| self.lacks_fence(vector))?))
    }

    /// The first row of a vector, and that of the vector behind it, if there is one.
    pub(super) fn fences_of(&self, vector: usize) -> Result<(QuadRow, Option<QuadRow>)> {
        let next = vector + 1;
        if next == self.vectors {
            return Ok((self.fence(vector)?, None));
        }
        let within = vector % FENCES_PER_BLOCK;
        let fences = self.fences(vector / FENCES_PER_BLOCK)?;
        match fences.get(within..within + 2) {
            Some([first, next]) => Ok((row_of(first), Some(row_of(next)))),
            _ => Ok((self.fence(vector)?, Some(self.fence(next)?))),
        }
    }

    /// The fences of one of the blocks that hold them.
    #[inline]
    fn fences(&self, block: usize) -> Result<&[[u8; FENCE_BYTES]]> {
        let number = BlockNumber((self.data_blocks + block) as u32);
        Ok(self.file.block(number)?.as_chunks().0)
    }

    /// Number of vectors in `from..to` whose first row is behind the boundary, plus `from`. All
    /// vectors before `from` must be, and none from `to` on.
    pub(super) fn partition_fences(
        &self,
        mut from: usize,
        mut to: usize,
        prefix: &Prefix,
        side: Side,
    ) -> Result<usize> {
        while from < to {
            let block = from / FENCES_PER_BLOCK;
            if (to - 1) / FENCES_PER_BLOCK == block {
                // Half of the time of a search is finding the blocks, so the rest is searched in
                // the bytes of one.
                let before = block * FENCES_PER_BLOCK;
                let fences = self.fences(block)?.get(from - before..to - before);
                let fences = fences.ok_or_else(|| self.lacks_fence(to - 1))?;
                let behind = fences.partition_point(|row| prefix.is_behind(&row_of(row), side));
                return Ok(from + behind);
            }
            let middle = from.midpoint(to);
            if prefix.is_behind(&self.fence(middle)?, side) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        Ok(from)
    }

    #[cold]
    fn lacks_fence(&self, vector: usize) -> Error {
        let number = BlockNumber((self.data_blocks + vector / FENCES_PER_BLOCK) as u32);
        self.damage_at(number, "a fence is missing")
    }

    /// Whether it is worth while to ask for vectors before they are read.
    #[inline]
    pub(super) fn is_cold(&self) -> bool {
        self.file.is_cold()
    }

    /// Whether what was not touched yet is far away, and some was touched lately.
    #[inline]
    pub(super) fn is_far(&self) -> bool {
        self.file.is_far()
    }

    /// Asks the disk for the blocks of vectors, from the first up to the second number of each
    /// pair, and does not wait.
    pub(super) fn will_read(&self, vectors: impl Iterator<Item = (usize, usize)>) {
        let mut blocks = Vec::new();
        for (from, to) in vectors {
            let to = to.min(self.vectors).div_ceil(VECTORS_PER_BLOCK);
            let numbers = from / VECTORS_PER_BLOCK..to;
            blocks.extend(numbers.map(|number| BlockNumber(number as u32)));
        }
        self.file.will_touch(&mut blocks);
    }

    /// The file, for reading all of it in an order of one's own.
    pub(super) fn block_file(&self) -> &BlockFile {
        &self.file
    }

    /// Number of blocks with vectors; those with fences follow.
    pub(super) fn data_blocks(&self) -> u32 {
        self.data_blocks as u32
    }

    /// One column of one vector, not yet decoded.
    pub(super) fn column(&self, vector: usize, column: usize) -> Result<EncodedVector<'_>> {
        let number = BlockNumber((vector / VECTORS_PER_BLOCK) as u32);
        let block = self.file.block(number)?;
        let position = vector % VECTORS_PER_BLOCK * COLUMNS + column;
        let start = match position {
            0 => {
                let vectors = VECTORS_PER_BLOCK
                    .min(self.vectors - vector / VECTORS_PER_BLOCK * VECTORS_PER_BLOCK);
                Some(vectors * COLUMNS * COLUMN_END_BYTES)
            }
            _ => read_end(block, position - 1),
        };
        let bytes = match (start, read_end(block, position)) {
            (Some(start), Some(end)) => block.get(start..end),
            _ => None,
        };
        let bytes =
            bytes.ok_or_else(|| self.damage_in(vector, "a column's extent is impossible"))?;
        let encoded =
            EncodedVector::read(bytes).map_err(|error| self.undecodable(vector, error))?;
        match encoded.rows().cmp(&self.rows_of(vector)) {
            Ordering::Equal => Ok(encoded),
            _ => Err(self.damage_in(vector, "a column has the wrong number of rows")),
        }
    }

    /// The error for a vector whose column cannot be decoded.
    pub(super) fn undecodable(&self, vector: usize, error: DecodeError) -> Error {
        self.damage_in(vector, &error.to_string())
    }

    pub(super) fn damage_in(&self, vector: usize, what: &str) -> Error {
        self.damage_at(BlockNumber((vector / VECTORS_PER_BLOCK) as u32), what)
    }

    fn damage_at(&self, block: BlockNumber, what: &str) -> Error {
        Error::corrupt(self.path(), self.file.block_offset(block), what)
    }
}

#[inline]
fn row_of(fence: &[u8; FENCE_BYTES]) -> QuadRow {
    let (values, _) = fence.as_chunks::<8>();
    std::array::from_fn(|column| u64::from_le_bytes(values[column]))
}

/// Where a column ends in its block.
fn read_end(block: &[u8], position: usize) -> Option<usize> {
    let end = block.get(position * COLUMN_END_BYTES..)?.first_chunk()?;
    Some(u32::from_le_bytes(*end) as usize)
}

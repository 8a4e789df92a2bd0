//! The sort of numbered quads into the rows of one permutation.
//!
//! ```text
//! quads (ordinals) -> packed in column order -> sort, once each -> term ids -\
//!                                                                             merge -> rows
//! rows of the base without tombstones -> old ranks become new ones ---------/
//! ```
//!
//! The rows of the database's base need no sorting: the new numbers of its terms have the same
//! order as the old ones. What was inserted since the base was written is among the quads.

use crate::error::LoadError;
use crate::ingest::batch::SpilledBatch;
use crate::ingest::interner::LocalQuad;
use crate::ingest::stage_dir::StageDir;
use crate::merge::ordinals::{Ordinal, OrdinalSpace};
use crate::merge::row_packing::{PackedRow, Packer, RowPacking};
use crate::merge::row_sort::RowSorter;
use crate::workers::members::LoadWorkers;
use crate::workers::sort::{RangeSort, Rows};
use orrery_storage::delta::Changes;
use orrery_storage::{IndexView, Permutation, QuadRow, Scan};
use orrery_term::TermId;

/// Rows handed on at once, and quads read at once.
const BLOCK_ROWS: usize = 1 << 12;

/// All quads of the load.
#[derive(Debug)]
pub(crate) enum LoadedQuads {
    /// In memory, as ordinals.
    Memory(Vec<Vec<[Ordinal; 4]>>),
    /// In batches of the stage directory, with their maps to ordinals.
    Spilled(Vec<SpilledBatch>),
}

impl LoadedQuads {
    /// How many there are, duplicates counted.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(chunks) => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            Self::Spilled(batches) => batches.iter().map(|batch| batch.quad_count).sum(),
        }
    }

    /// The most terms of a batch whose map must be read.
    pub(crate) fn largest_map(&self) -> usize {
        match self {
            Self::Memory(_) => 0,
            Self::Spilled(batches) => batches
                .iter()
                .map(|batch| batch.term_count)
                .max()
                .unwrap_or(0),
        }
    }

    /// Hands all quads to `take`, in no particular order.
    fn for_each<F>(&self, stage: &StageDir, mut take: F) -> Result<(), LoadError>
    where
        F: FnMut(&[Ordinal; 4]) -> orrery_storage::Result<()>,
    {
        match self {
            Self::Memory(chunks) => {
                for quad in chunks.iter().flatten() {
                    take(quad)?;
                }
            }
            Self::Spilled(batches) => {
                let mut map = Vec::new();
                for batch in batches {
                    read_map(batch, stage, &mut map)?;
                    read_quads(batch, stage, |quad| {
                        take(&quad.map(|number| map[number as usize]))
                    })?;
                }
            }
        }
        Ok(())
    }
}

fn read_map(
    batch: &SpilledBatch,
    stage: &StageDir,
    map: &mut Vec<Ordinal>,
) -> orrery_storage::Result<()> {
    let mut reader = stage.reader(&batch.map_file(), BLOCK_ROWS)?;
    let mut bytes = vec![0; BLOCK_ROWS * 4];
    map.clear();
    map.reserve_exact(batch.term_count);
    let mut remaining = batch.term_count;
    while remaining > 0 {
        let count = remaining.min(BLOCK_ROWS);
        let block = &mut bytes[..count * 4];
        reader.read_exact(block)?;
        map.extend(block.chunks_exact(4).map(number));
        remaining -= count;
    }
    Ok(())
}

fn read_quads(
    batch: &SpilledBatch,
    stage: &StageDir,
    mut take: impl FnMut(LocalQuad) -> orrery_storage::Result<()>,
) -> orrery_storage::Result<()> {
    let mut reader = stage.reader(&batch.quads_file(), BLOCK_ROWS)?;
    let mut bytes = vec![0; BLOCK_ROWS * 16];
    let mut remaining = batch.quad_count;
    while remaining > 0 {
        let count = remaining.min(BLOCK_ROWS as u64);
        let block = &mut bytes[..count as usize * 16];
        reader.read_exact(block)?;
        for quad in block.chunks_exact(16) {
            take([
                number(quad),
                number(&quad[4..]),
                number(&quad[8..]),
                number(&quad[12..]),
            ])?;
        }
        remaining -= count;
    }
    Ok(())
}

/// The little-endian number that these bytes begin with.
fn number(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}

/// What is there already: the rows of the base under old ids, with what was changed since, and the
/// ordinal of each old rank.
///
/// The index is of the permutation that is written, or, for a first GSPO, SPOG: then all old quads
/// are in the default graph, and both have the same order.
#[derive(Clone, Copy)]
pub(crate) struct ExistingRows<'a> {
    pub(crate) index: &'a IndexView,
    pub(crate) ordinals: &'a [Ordinal],
}

/// One permutation to be written.
pub(crate) struct PermutationSort<'a> {
    pub(crate) quads: &'a LoadedQuads,
    pub(crate) space: &'a OrdinalSpace,
    pub(crate) packing: &'a RowPacking,
    pub(crate) stage: &'a StageDir,
    pub(crate) permutation: Permutation,
    /// Rows to be held in memory at most.
    pub(crate) capacity_rows: usize,
    pub(crate) existing: Option<ExistingRows<'a>>,
    /// Those who sort, if others do.
    pub(crate) workers: Option<&'a LoadWorkers>,
}

/// The quads of a load as rows of a permutation.
struct PackedQuads<'a> {
    quads: &'a LoadedQuads,
    stage: &'a StageDir,
    packer: &'a Packer<'a>,
}

impl<R: PackedRow> Rows<R> for PackedQuads<'_> {
    fn len(&self) -> u64 {
        self.quads.len()
    }

    fn for_each(
        &self,
        mut take: impl FnMut(R) -> orrery_storage::Result<()>,
    ) -> Result<(), LoadError> {
        self.quads
            .for_each(self.stage, |quad| take(self.packer.pack(quad)))
    }
}

impl PermutationSort<'_> {
    /// Hands all rows to `take`, ascending and each once, in blocks. Returns their number. `memory`
    /// is used for the sort and left for the next.
    pub(crate) fn run<R: PackedRow>(
        self,
        memory: &mut Vec<R>,
        take: &mut dyn FnMut(&[QuadRow]) -> Result<(), LoadError>,
    ) -> Result<u64, LoadError> {
        let name = self.permutation.name();
        let packer = self.packing.of(self.permutation);
        let existing = self
            .existing
            .map(|existing| ExistingCursor::new(existing, self.permutation, self.space));
        let mut merge = RowMerge {
            existing: existing.transpose()?,
            out: Vec::with_capacity(BLOCK_ROWS),
            rows: 0,
            take,
        };
        let space = self.space;
        let mut take_sorted = |rows: &[R]| {
            for &row in rows {
                merge.new_row(packer.unpack(row, space))?;
            }
            Ok::<(), LoadError>(())
        };
        if let Some(workers) = self.workers {
            let sort = RangeSort {
                workers,
                stage: self.stage,
                name,
                capacity_rows: self.capacity_rows,
            };
            let rows = PackedQuads {
                quads: self.quads,
                stage: self.stage,
                packer: &packer,
            };
            sort.run(&rows, take_sorted)?;
            return merge.finish();
        }
        let mut sorter = RowSorter::new(
            self.stage,
            name,
            self.capacity_rows,
            self.quads.len(),
            std::mem::take(memory),
        );
        self.quads
            .for_each(self.stage, |quad| sorter.push(packer.pack(quad)))?;
        *memory = sorter.finish(&mut take_sorted)?;
        merge.finish()
    }
}

/// Merges the new rows, as they come, with those of the database.
struct RowMerge<'a> {
    existing: Option<ExistingCursor<'a>>,
    out: Vec<QuadRow>,
    rows: u64,
    take: &'a mut dyn FnMut(&[QuadRow]) -> Result<(), LoadError>,
}

impl RowMerge<'_> {
    #[inline]
    fn new_row(&mut self, row: QuadRow) -> Result<(), LoadError> {
        if self.existing.is_some() {
            self.existing_rows_below(Some(&row))?;
        }
        self.push(row)
    }

    /// Passes on the rows of the database below `limit`, and skips one that equals it.
    fn existing_rows_below(&mut self, limit: Option<&QuadRow>) -> Result<(), LoadError> {
        while let Some(existing) = &mut self.existing {
            let Some(row) = existing.peek()? else {
                self.existing = None;
                return Ok(());
            };
            if let Some(limit) = limit {
                if row > *limit {
                    return Ok(());
                }
                existing.next += 1;
                if row == *limit {
                    return Ok(());
                }
            } else {
                existing.next += 1;
            }
            self.push(row)?;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, row: QuadRow) -> Result<(), LoadError> {
        self.out.push(row);
        if self.out.len() == BLOCK_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        self.rows += self.out.len() as u64;
        (self.take)(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<u64, LoadError> {
        self.existing_rows_below(None)?;
        self.flush()?;
        Ok(self.rows)
    }
}

/// Reads the rows of the base that have no tombstone, and gives their terms the new ids.
struct ExistingCursor<'a> {
    from: Permutation,
    /// What is written.
    permutation: Permutation,
    scan: Scan,
    changes: Changes,
    /// The next row that was deleted.
    tombstone: Option<QuadRow>,
    ordinals: &'a [Ordinal],
    space: &'a OrdinalSpace,
    block: Vec<QuadRow>,
    next: usize,
}

impl<'a> ExistingCursor<'a> {
    fn new(
        existing: ExistingRows<'a>,
        permutation: Permutation,
        space: &'a OrdinalSpace,
    ) -> orrery_storage::Result<Self> {
        let base = existing.index.base();
        let mut cursor = Self {
            from: base.permutation(),
            permutation,
            scan: base.scan(base.all(), [true; 4]),
            changes: existing.index.changes()?,
            tombstone: None,
            ordinals: existing.ordinals,
            space,
            block: Vec::new(),
            next: 0,
        };
        cursor.tombstone = next_tombstone(&mut cursor.changes)?;
        Ok(cursor)
    }

    fn peek(&mut self) -> orrery_storage::Result<Option<QuadRow>> {
        // All rows of a vector may have been deleted.
        while self.next == self.block.len() {
            self.next = 0;
            self.block.clear();
            if !self.fill_block()? {
                return Ok(None);
            }
        }
        Ok(self.block.get(self.next).copied())
    }

    /// Takes up the next vector; false at the end.
    fn fill_block(&mut self) -> orrery_storage::Result<bool> {
        let Some(vector) = self.scan.next_vector()? else {
            return Ok(false);
        };
        let (space, ordinals) = (self.space, self.ordinals);
        let new = |bits: u64| renumbered(TermId::from_bits(bits), space, ordinals).bits();
        let [a, b, c, d] = [0, 1, 2, 3].map(|column| vector.column(column));
        for row in 0..a.len() {
            let old = [a[row], b[row], c[row], d[row]];
            if self.tombstone == Some(old) {
                self.tombstone = next_tombstone(&mut self.changes)?;
                continue;
            }
            let row = old.map(new);
            self.block.push(if self.from == self.permutation {
                row
            } else {
                self.permutation.arrange(self.from.quad(row))
            });
        }
        Ok(true)
    }
}

/// The next row that was deleted.
pub(crate) fn next_tombstone(changes: &mut Changes) -> orrery_storage::Result<Option<QuadRow>> {
    for change in changes {
        let change = change?;
        if !change.is_insertion {
            return Ok(Some(change.row));
        }
    }
    Ok(None)
}

fn renumbered(id: TermId, space: &OrdinalSpace, ordinals: &[Ordinal]) -> TermId {
    if id.is_dictionary() {
        space.term_id(ordinals[id.payload() as usize])
    } else {
        id
    }
}

//! The sort of packed rows, in memory or, beyond the limit, by sorted runs on disk.
//!
//! A row is a number whose order is that of a permutation's rows (`row_packing`). Measured on BSBM,
//! `sort_unstable` passes 50 million rows of 128 bits a second on one core, faster than a radix
//! sort, because the rows come nearly sorted.
//!
//! A run on disk is its rows as little-endian numbers, duplicates removed.

use crate::ingest::stage_dir::{StageDir, StageReader};
use crate::merge::row_packing::PackedRow;
use orrery_storage::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;

/// Bytes of a row at most.
pub(crate) const ROW_BYTES_MAX: usize = size_of::<u128>();

/// Rows handed on at once.
const BLOCK_ROWS: usize = 1 << 13;

/// Collects rows and gives them back sorted, each once.
pub(crate) struct RowSorter<'a, R> {
    stage: &'a StageDir,
    /// What the names of its runs begin with.
    name: &'static str,
    capacity_rows: usize,
    rows: Vec<R>,
    runs: Vec<String>,
}

impl<'a, R: PackedRow> RowSorter<'a, R> {
    /// Holds at most `capacity_rows` in memory; `expected_rows` are surely coming. `rows` is the
    /// memory of an earlier sort, or empty: pages that the system has cleared already.
    pub(crate) fn new(
        stage: &'a StageDir,
        name: &'static str,
        capacity_rows: usize,
        expected_rows: u64,
        mut rows: Vec<R>,
    ) -> Self {
        let expected = usize::try_from(expected_rows).unwrap_or(usize::MAX);
        rows.clear();
        rows.reserve_exact(expected.min(capacity_rows));
        Self {
            stage,
            name,
            capacity_rows,
            rows,
            runs: Vec::new(),
        }
    }

    /// Takes a row.
    #[inline]
    pub(crate) fn push(&mut self, row: R) -> Result<()> {
        if self.rows.len() == self.capacity_rows {
            self.spill()?;
        }
        self.rows.push(row);
        Ok(())
    }

    fn sort(&mut self) {
        self.rows.sort_unstable();
        self.rows.dedup();
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let name = format!("{}-{:06}.run", self.name, self.runs.len());
        let mut file = self.stage.writer(&name)?;
        for row in &self.rows {
            file.append(row.to_bytes().as_ref())?;
        }
        file.flush()?;
        self.rows.clear();
        self.runs.push(name);
        Ok(())
    }

    /// Hands all rows to `take`, in ascending blocks. Returns memory for the next sort.
    pub(crate) fn finish<E: From<orrery_storage::Error>>(
        mut self,
        mut take: impl FnMut(&[R]) -> Result<(), E>,
    ) -> Result<Vec<R>, E> {
        if self.runs.is_empty() {
            self.sort();
            for block in self.rows.chunks(BLOCK_ROWS) {
                take(block)?;
            }
            return Ok(self.rows);
        }
        if !self.rows.is_empty() {
            self.spill()?;
        }
        // The memory of the rows becomes the buffers of the runs.
        self.rows = Vec::new();
        let buffer_bytes = self.capacity_rows * size_of::<R>() / self.runs.len();
        let buffer_bytes = buffer_bytes.clamp(4 << 10, 1 << 20);
        let mut readers = Vec::with_capacity(self.runs.len());
        let mut heap = BinaryHeap::with_capacity(self.runs.len());
        for (index, name) in self.runs.iter().enumerate() {
            let mut reader = RunReader::<R>::new(self.stage.reader(name, buffer_bytes)?);
            if let Some(row) = reader.next()? {
                heap.push(Reverse((row, index)));
            }
            readers.push(reader);
        }
        let mut block = Vec::with_capacity(BLOCK_ROWS);
        let mut last = None;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((row, index)) = *top;
            if last != Some(row) {
                block.push(row);
                last = Some(row);
            }
            match readers[index].next()? {
                Some(next) => *top = Reverse((next, index)),
                None => drop(std::collections::binary_heap::PeekMut::pop(top)),
            }
            if block.len() == BLOCK_ROWS {
                take(&block)?;
                block.clear();
            }
        }
        take(&block)?;
        drop(readers);
        for name in &self.runs {
            self.stage.remove(name)?;
        }
        Ok(Vec::new())
    }
}

struct RunReader<R> {
    file: StageReader,
    row: PhantomData<R>,
}

impl<R: PackedRow> RunReader<R> {
    fn new(file: StageReader) -> Self {
        Self {
            file,
            row: PhantomData,
        }
    }

    fn next(&mut self) -> Result<Option<R>> {
        let mut bytes = R::Bytes::default();
        match self.file.read_up_to(bytes.as_mut())? {
            0 => Ok(None),
            _ => Ok(Some(R::from_bytes(bytes))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::io::LocalFileSystem;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn rows_come_back_sorted_and_once_with_any_capacity(
            rows in proptest::collection::vec(0_u128..500, 0..1000),
            capacity in 1..1200_usize,
        ) {
            let wide: Vec<u128> = rows.iter().map(|&row| row << 96 | row).collect();
            prop_assert_eq!(sorted(&wide, capacity), in_order(&wide));
            let narrow: Vec<u64> = rows.iter().map(|&row| (row as u64) << 40 | row as u64).collect();
            prop_assert_eq!(sorted(&narrow, capacity), in_order(&narrow));
        }
    }

    fn sorted<R: PackedRow>(rows: &[R], capacity: usize) -> Vec<R> {
        let directory = tempfile::tempdir().unwrap();
        let stage = StageDir::create(Arc::new(LocalFileSystem), directory.path(), 1 << 20).unwrap();
        let mut sorter = RowSorter::new(&stage, "test", capacity, 10, Vec::new());
        for &row in rows {
            sorter.push(row).unwrap();
        }
        let mut sorted = Vec::new();
        sorter
            .finish(|block| -> Result<()> {
                sorted.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
        sorted
    }

    fn in_order<R: PackedRow>(rows: &[R]) -> Vec<R> {
        let set: std::collections::BTreeSet<R> = rows.iter().copied().collect();
        set.into_iter().collect()
    }
}

//! Chunks of a delta file, read on demand.

use std::sync::Arc;

use parking_lot::Mutex;

use super::chunk::{CHUNK_ENTRIES_MAX, Chunk, DeltaEntry, PlacedEntry};
use crate::files::block_file::{BlockFile, BlockNumber};
use crate::quads::index::COLUMNS;
use crate::{Error, Result};

/// Chunks kept in memory, of 22 kB each.
pub(super) const CHUNKS_HELD_MAX: usize = 256;

/// An open file and the chunks of it that were read last.
#[derive(Debug)]
pub(super) struct DeltaFile {
    pub(super) file: BlockFile,
    /// Rows of the permutation's file that it belongs to.
    pub(super) base_rows: u64,
    /// By the chunk's number modulo their count.
    pub(super) held: Box<[Mutex<HeldChunk>]>,
}

/// A chunk with its number.
pub(super) type HeldChunk = Option<(u32, Arc<Chunk>)>;

impl DeltaFile {
    /// A chunk, decoded now if it is not held.
    pub(super) fn chunk(&self, number: u32) -> Result<Arc<Chunk>> {
        let slot = &self.held[number as usize % CHUNKS_HELD_MAX];
        if let Some((held, chunk)) = &*slot.lock()
            && *held == number
        {
            return Ok(Arc::clone(chunk));
        }
        let bytes = self.file.block(BlockNumber(number))?;
        let entries = decode(bytes)
            .ok_or_else(|| self.damage(number, "a chunk of the delta cannot be decoded"))?;
        let chunk = Arc::new(Chunk::new(&entries));
        *slot.lock() = Some((number, Arc::clone(&chunk)));
        Ok(chunk)
    }

    pub(super) fn damage(&self, number: u32, what: &str) -> Error {
        let offset = self.file.block_offset(BlockNumber(number));
        Error::corrupt(self.file.path(), offset, what)
    }
}

/// The entries of a chunk block; `None` if the bytes are not those of one.
fn decode(bytes: &[u8]) -> Option<Vec<PlacedEntry>> {
    let (count, bytes) = bytes.split_first_chunk::<2>()?;
    let count = usize::from(u16::from_le_bytes(*count));
    if !(1..=CHUNK_ENTRIES_MAX).contains(&count) {
        return None;
    }
    let (signs, mut bytes) = bytes.split_at_checked(count.div_ceil(8))?;
    let mut entries: Vec<PlacedEntry> = (0..count)
        .map(|number| PlacedEntry {
            entry: DeltaEntry {
                row: [0; COLUMNS],
                is_insertion: signs[number / 8] >> (number % 8) & 1 == 1,
            },
            position: 0,
        })
        .collect();
    for column in 0..COLUMNS {
        let mut rows = entries.iter_mut();
        bytes = decode_column(bytes, count, |value| {
            if let Some(placed) = rows.next() {
                placed.entry.row[column] = value;
            }
        })?;
    }
    let mut positions = entries.iter_mut();
    bytes = decode_column(bytes, count, |value| {
        if let Some(placed) = positions.next() {
            placed.position = value;
        }
    })?;
    bytes.is_empty().then_some(entries)
}

/// Hands out the values of a column; returns what is behind it.
fn decode_column(bytes: &[u8], count: usize, mut found: impl FnMut(u64)) -> Option<&[u8]> {
    let (&width, bytes) = bytes.split_first()?;
    let (smallest, bytes) = bytes.split_first_chunk::<8>()?;
    let smallest = u64::from_le_bytes(*smallest);
    let (values, rest) = bytes.split_at_checked(count * usize::from(width))?;
    match width {
        0 => (0..count).for_each(|_| found(smallest)),
        4 => {
            for value in values.as_chunks::<4>().0 {
                found(smallest.checked_add(u64::from(u32::from_le_bytes(*value)))?);
            }
        }
        8 => {
            for value in values.as_chunks::<8>().0 {
                found(smallest.checked_add(u64::from_le_bytes(*value))?);
            }
        }
        _ => return None,
    }
    Some(rest)
}

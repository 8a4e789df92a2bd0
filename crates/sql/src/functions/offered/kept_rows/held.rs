//! Chunked storage of group rows, which grows without copies.
//!
//! ```text
//! place of a row = number of its chunk * CHUNK_ROWS + its number in there
//! chunk          = arguments, keys of the order (both in arrow's row format), groups
//! ```

use datafusion::arrow::row::{Row, Rows};

/// Rows of a chunk at most.
const CHUNK_ROWS: usize = 4_096;
/// A chunk that has so many bytes takes no more rows.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS_MAX: usize = u32::MAX as usize / CHUNK_ROWS;

struct Chunk {
    values: Rows,
    /// Without columns if there is no order.
    keys: Rows,
    groups: Vec<u32>,
    /// Of the rows, without what the buffers have beyond.
    bytes: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.groups.len() == CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }

    fn size(&self) -> usize {
        self.values.size() + self.keys.size() + self.groups.capacity() * size_of::<u32>()
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct HeldRows {
    chunks: Vec<Chunk>,
    /// Of all chunks but the last.
    full_bytes: usize,
    /// Of the arguments and of the keys, without what the buffers have beyond.
    value_bytes: usize,
    key_bytes: usize,
}

impl HeldRows {
    /// The place of the row that comes next; none where there are too many.
    pub(super) fn next_place(&self) -> Option<u32> {
        let (chunk, row) = match self.chunks.last() {
            Some(last) if !last.is_full() => (self.chunks.len() - 1, last.groups.len()),
            _ => (self.chunks.len(), 0),
        };
        (chunk < CHUNKS_MAX).then_some((chunk * CHUNK_ROWS + row) as u32)
    }

    /// Keeps a row at that place; `empty` gives the buffers of a chunk.
    pub(super) fn push(
        &mut self,
        group: u32,
        values: Row<'_>,
        key: Option<Row<'_>>,
        empty: impl FnOnce() -> (Rows, Rows),
    ) {
        if self.chunks.last().is_none_or(Chunk::is_full) {
            self.full_bytes += self.chunks.last().map_or(0, Chunk::size);
            let (values, keys) = empty();
            self.chunks.push(Chunk {
                values,
                keys,
                groups: Vec::new(),
                bytes: 0,
            });
        }
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        let value_bytes = values.data().len();
        let key_bytes = key.as_ref().map_or(0, |key| key.data().len());
        chunk.values.push(values);
        if let Some(key) = key {
            chunk.keys.push(key);
        }
        chunk.groups.push(group);
        chunk.bytes += value_bytes + key_bytes;
        self.value_bytes += value_bytes;
        self.key_bytes += key_bytes;
    }

    /// All places, ascending.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> {
        let chunks = self.chunks.iter().enumerate();
        chunks.flat_map(|(number, chunk)| {
            let first = (number * CHUNK_ROWS) as u32;
            first..first + chunk.groups.len() as u32
        })
    }

    /// The groups of all rows, by place.
    pub(super) fn groups(&self) -> impl Iterator<Item = u32> {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.groups.iter().copied())
    }

    fn of(&self, place: u32) -> (&Chunk, usize) {
        let place = place as usize;
        (&self.chunks[place / CHUNK_ROWS], place % CHUNK_ROWS)
    }

    /// The group of the row at a place; these panic where there is none.
    pub(super) fn group(&self, place: u32) -> u32 {
        let (chunk, row) = self.of(place);
        chunk.groups[row]
    }

    /// Its arguments.
    pub(super) fn values(&self, place: u32) -> Row<'_> {
        let (chunk, row) = self.of(place);
        chunk.values.row(row)
    }

    /// The keys of its order.
    pub(super) fn key(&self, place: u32) -> Row<'_> {
        let (chunk, row) = self.of(place);
        chunk.keys.row(row)
    }

    /// The bytes of all arguments, and of all keys.
    pub(super) fn bytes(&self) -> (usize, usize) {
        (self.value_bytes, self.key_bytes)
    }

    /// The bytes that are held.
    pub(super) fn size(&self) -> usize {
        let last = self.chunks.last().map_or(0, Chunk::size);
        self.full_bytes + last + self.chunks.capacity() * size_of::<Chunk>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, StringArray};
    use datafusion::arrow::datatypes::DataType;
    use datafusion::arrow::row::{RowConverter, SortField};

    use super::*;

    #[test]
    fn rows_are_at_their_places_and_grow_by_chunks() {
        let converter = RowConverter::new(vec![SortField::new(DataType::Utf8)]).unwrap();
        let none = RowConverter::new(Vec::new()).unwrap();
        for (length, count) in [(1, 10_000), (3_000, 2_000), (700_000, 5)] {
            let text = |row: usize| format!("{row}{}", "x".repeat(length));
            let mut held = HeldRows::default();
            let mut places = Vec::new();
            for row in 0..count {
                let texts: ArrayRef = Arc::new(StringArray::from(vec![text(row)]));
                let rows = converter.convert_columns(&[texts]).unwrap();
                places.push(held.next_place().unwrap());
                let before = held.size();
                let empty = || (converter.empty_rows(0, 0), none.empty_rows(0, 0));
                held.push(row as u32 % 7, rows.row(0), None, empty);
                let bytes = rows.row(0).data().len();
                assert!(held.size() <= before + 2 * CHUNK_BYTES + 2 * bytes);
            }
            assert_eq!(held.places().collect::<Vec<_>>(), places);
            assert!(places.is_sorted());
            let groups: Vec<u32> = (0..count as u32).map(|row| row % 7).collect();
            assert_eq!(held.groups().collect::<Vec<_>>(), groups);
            assert!(held.size() <= 3 * held.bytes().0 + 64 * count + 4_096);
            for (row, &place) in places.iter().enumerate() {
                let texts: ArrayRef = Arc::new(StringArray::from(vec![text(row)]));
                let rows = converter.convert_columns(&[texts]).unwrap();
                assert_eq!(held.values(place).data(), rows.row(0).data());
                assert_eq!(held.group(place), row as u32 % 7);
            }
        }
    }
}

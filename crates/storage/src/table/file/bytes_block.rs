//! A block of texts or blobs, each value compressed by itself with a symbol table.

use super::symbols::{SymbolEncoder, SymbolTable, decoded_bytes_max};
use super::vector::{BlockBuilder, BlockKind, Validity, Vector, fault, take_u32, write_sized};
use super::{Decoded, VALUE_BYTES_MAX};
use orrery_column::{VECTOR_ROWS, VectorBuffer};

/// In the place of a length: the rest is the number of a long value.
const LONG: u64 = 1 << 32;
/// A table that compresses a group worse than the one for which it was trained, by so many
/// percents, is replaced.
const WORSE_PERCENT_MAX: u64 = 5;

/// The symbols of the groups of a column.
#[derive(Debug, Default)]
pub(super) struct Compressor {
    encoder: Option<SymbolEncoder>,
    /// What the group for which they were trained took: bytes of values, compressed and before.
    trained: [u64; 2],
}

impl Compressor {
    /// The block of a group.
    pub(super) fn write_block(&mut self, values: &[GroupValue<'_>]) -> Vec<u8> {
        if let Some(encoder) = &self.encoder {
            let (block, [compressed, plain]) = write_block(encoder, values);
            let [best_compressed, best_plain] = self.trained;
            // Products of less than a billion bytes each.
            let is_good = compressed * best_plain * 100
                <= best_compressed * plain * (100 + WORSE_PERCENT_MAX);
            if is_good {
                return block;
            }
        }
        let sample: Vec<&[u8]> = values
            .iter()
            .filter_map(|value| match value {
                GroupValue::Bytes(bytes) => Some(*bytes),
                GroupValue::Null | GroupValue::Long(_) => None,
            })
            .collect();
        let encoder = SymbolEncoder::train(&sample);
        let (block, trained) = write_block(&encoder, values);
        // NULLs alone teach nothing.
        self.encoder = (trained[1] > 0).then_some(encoder);
        self.trained = trained;
        block
    }
}

/// Where a long value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LongValue {
    pub(super) block: u32,
    pub(super) bytes: u32,
}

/// A value of a group that is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum GroupValue<'a> {
    Null,
    Bytes(&'a [u8]),
    Long(LongValue),
}

/// The block of a group, and the bytes of its values, compressed and before.
fn write_block(encoder: &SymbolEncoder, values: &[GroupValue<'_>]) -> (Vec<u8>, [u64; 2]) {
    let mut table = Vec::new();
    encoder.write_table(&mut table);
    let mut block = BlockBuilder::default();
    let (mut longs, mut bytes_before, mut bytes_after) = (0, 0, 0);
    let mut compressed = Vec::new();
    for vector in values.chunks(VECTOR_ROWS) {
        let mut lengths = [0; VECTOR_ROWS];
        let mut valid = [true; VECTOR_ROWS];
        compressed.clear();
        for (row, value) in vector.iter().enumerate() {
            let start = compressed.len();
            match value {
                GroupValue::Null => valid[row] = false,
                GroupValue::Bytes(bytes) => {
                    encoder.encode(bytes, &mut compressed);
                    lengths[row] = (compressed.len() - start) as u64;
                    bytes_before += bytes.len() as u64;
                }
                GroupValue::Long(value) => {
                    table.extend_from_slice(&value.block.to_le_bytes());
                    table.extend_from_slice(&value.bytes.to_le_bytes());
                    lengths[row] = LONG | longs;
                    longs += 1;
                }
            }
        }
        bytes_after += compressed.len() as u64;
        let validity = Validity::of(&valid[..vector.len()]);
        let out = block.begin(&validity);
        if validity != Validity::AllNull {
            write_sized(&lengths[..vector.len()], out);
            out.extend_from_slice(&compressed);
        }
    }
    let block = block.finish(BlockKind::Bytes, &table);
    (block, [bytes_after, bytes_before])
}

/// The table of a block of bytes.
pub(super) struct BytesTable<'a> {
    symbols: Box<SymbolTable>,
    longs: &'a [[u8; 8]],
}

/// Where the values of a vector are in its compressed bytes.
pub(super) struct Places<'a> {
    /// Per row where its value ends; what a long value has instead of a length is in `longs`.
    ends: Box<[u32; VECTOR_ROWS]>,
    /// Rows of long values, and their numbers; ascending.
    pub(super) longs: Vec<(usize, usize)>,
    compressed: &'a [u8],
}

impl<'a> Places<'a> {
    /// Of a vector that is not of NULLs alone.
    pub(super) fn read(vector: &Vector<'a>) -> Decoded<Self> {
        let (lengths, compressed) = vector.bytes()?;
        let mut buffer: VectorBuffer = [0; VECTOR_ROWS];
        lengths.decode(&mut buffer).map_err(fault)?;
        let mut ends = Box::new([0; VECTOR_ROWS]);
        let mut longs = Vec::new();
        let mut end = 0u64;
        for (row, &length) in buffer[..vector.rows].iter().enumerate() {
            match length < LONG {
                true => end = end.saturating_add(length),
                false => longs.push((row, (length ^ LONG) as usize)),
            }
            ends[row] = end as u32;
        }
        if end > compressed.len() as u64 || u32::try_from(end).is_err() {
            return Err("values are longer than their vector");
        }
        Ok(Self {
            ends,
            longs,
            compressed,
        })
    }

    /// The compressed bytes of a row.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &'a [u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        // The ends ascend and lie within, `read` has seen to it.
        &self.compressed[start as usize..self.ends[row] as usize]
    }

    /// The number of a row's long value.
    pub(super) fn long(&self, row: usize) -> Option<usize> {
        let found = self.longs.binary_search_by_key(&row, |&(row, _)| row);
        found.ok().map(|place| self.longs[place].1)
    }
}

impl<'a> BytesTable<'a> {
    pub(super) fn read(table: &'a [u8]) -> Decoded<Self> {
        let (symbols, longs) = SymbolTable::read(table)?;
        Ok(Self {
            symbols,
            longs: longs.as_chunks().0,
        })
    }

    pub(super) fn long(&self, number: usize) -> Decoded<LongValue> {
        let mut entry = self
            .longs
            .get(number)
            .ok_or("a long value is missing")?
            .as_slice();
        let value = LongValue {
            block: take_u32(&mut entry)?,
            bytes: take_u32(&mut entry)?,
        };
        match value.bytes as usize <= VALUE_BYTES_MAX {
            true => Ok(value),
            false => Err("a value is longer than values can be"),
        }
    }

    /// Decompresses some rows to the end of `out`, which is used up to `at` and has bytes of no
    /// meaning behind; `ends` gets where each row ends. A long value comes out empty. Returns where
    /// the last one ends.
    pub(super) fn decode(
        &self,
        places: &Places<'_>,
        rows: impl Iterator<Item = usize> + Clone,
        out: &mut Vec<u8>,
        at: usize,
        ends: &mut Vec<usize>,
    ) -> usize {
        let codes: usize = rows.clone().map(|row| places.row(row).len()).sum();
        let needed = at + decoded_bytes_max(codes);
        if out.len() < needed {
            out.resize(needed, 0);
        }
        let mut at = at;
        for row in rows {
            at = self.symbols.decode(places.row(row), out, at);
            ends.push(at);
        }
        at
    }
}

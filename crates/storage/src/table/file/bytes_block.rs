//! Texts and blobs of a group, compressed with FSST, each alone.

use super::vector::{BlockBuilder, BlockKind, Validity, Vector, fault, take_u32, write_sized};
use super::{Decoded, VALUE_BYTES_MAX};
use crate::dictionary::symbols::{ESCAPE, SymbolEncoder};
use orrery_column::{VECTOR_ROWS, VectorBuffer};

/// In the place of a length: the rest is the number of a long value.
const LONG: u64 = 1 << 32;
const SYMBOL_BYTES: usize = 8;
/// Codes that are read together.
const CODES_AT_ONCE: usize = 8;

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

/// The block of a group.
pub(super) fn write_block(values: &[GroupValue<'_>]) -> Vec<u8> {
    let sample: Vec<&[u8]> = values
        .iter()
        .filter_map(|value| match value {
            GroupValue::Bytes(bytes) => Some(*bytes),
            GroupValue::Null | GroupValue::Long(_) => None,
        })
        .collect();
    let encoder = SymbolEncoder::train(&sample);
    let mut table = Vec::new();
    encoder.write_table(&mut table);
    let mut block = BlockBuilder::default();
    let mut longs = 0;
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
                }
                GroupValue::Long(value) => {
                    table.extend_from_slice(&value.block.to_le_bytes());
                    table.extend_from_slice(&value.bytes.to_le_bytes());
                    lengths[row] = LONG | longs;
                    longs += 1;
                }
            }
        }
        let validity = Validity::of(&valid[..vector.len()]);
        let out = block.begin(&validity);
        if validity != Validity::AllNull {
            write_sized(&lengths[..vector.len()], out);
            out.extend_from_slice(&compressed);
        }
    }
    block.finish(BlockKind::Bytes, &table)
}

/// The table of a block of bytes.
pub(super) struct BytesTable<'a> {
    symbols: Box<Symbols>,
    longs: &'a [[u8; 8]],
}

struct Symbols {
    symbols: [[u8; SYMBOL_BYTES]; 256],
    /// None for codes that have no symbol.
    lengths: [u8; 256],
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
        const MISSING: &str = "a table of symbols is cut off";
        let (&count, rest) = table.split_first().ok_or(MISSING)?;
        let count = usize::from(count);
        let (lengths, rest) = rest.split_at_checked(count).ok_or(MISSING)?;
        let (symbols, longs) = rest.split_at_checked(count * SYMBOL_BYTES).ok_or(MISSING)?;
        let mut padded = Box::new(Symbols {
            symbols: [[0; SYMBOL_BYTES]; 256],
            lengths: [0; 256],
        });
        padded.symbols[..count].copy_from_slice(symbols.as_chunks().0);
        for (slot, &length) in padded.lengths.iter_mut().zip(lengths) {
            *slot = length.min(SYMBOL_BYTES as u8);
        }
        Ok(Self {
            symbols: padded,
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

    /// Decompresses some rows to the end of `out`, which is used up to `at` and has bytes of no meaning behind; `ends` gets where each row ends.
    /// A long value comes out empty. Returns where the last one ends.
    pub(super) fn decode(
        &self,
        places: &Places<'_>,
        rows: impl Iterator<Item = usize> + Clone,
        out: &mut Vec<u8>,
        at: usize,
        ends: &mut Vec<usize>,
    ) -> usize {
        let codes: usize = rows.clone().map(|row| places.row(row).len()).sum();
        // Each code is at most one symbol, and whole symbols are stored.
        let needed = at + (codes + CODES_AT_ONCE) * SYMBOL_BYTES;
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

impl Symbols {
    /// An escape without its byte stands for nothing.
    #[inline]
    fn decode(&self, compressed: &[u8], out: &mut [u8], at: usize) -> usize {
        let (mut rest, mut at) = (compressed, at);
        while let Some(codes) = rest.first_chunk::<CODES_AT_ONCE>() {
            if has_escape(*codes) {
                at = self.decode_one(&mut rest, out, at);
                continue;
            }
            for &code in codes {
                at = self.store(code, out, at);
            }
            rest = &rest[CODES_AT_ONCE..];
        }
        while !rest.is_empty() {
            at = self.decode_one(&mut rest, out, at);
        }
        at
    }

    #[inline]
    fn decode_one(&self, rest: &mut &[u8], out: &mut [u8], at: usize) -> usize {
        match **rest {
            [ESCAPE, byte, ..] => {
                *rest = &rest[2..];
                out[at] = byte;
                at + 1
            }
            [code, ..] => {
                *rest = &rest[1..];
                self.store(code, out, at)
            }
            [] => at,
        }
    }

    #[inline]
    fn store(&self, code: u8, out: &mut [u8], at: usize) -> usize {
        // Eight bytes are stored whatever the length.
        if let Some(window) = out.get_mut(at..at + SYMBOL_BYTES) {
            window.copy_from_slice(&self.symbols[usize::from(code)]);
        }
        at + usize::from(self.lengths[usize::from(code)])
    }
}

/// Whether any byte is [`ESCAPE`].
#[inline]
fn has_escape(codes: [u8; CODES_AT_ONCE]) -> bool {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let codes = u64::from_le_bytes(codes);
    // The high bit of a byte is set where all its others are, and it is itself.
    ((codes & LOW) + 0x0101_0101_0101_0101) & codes & !LOW != 0
}

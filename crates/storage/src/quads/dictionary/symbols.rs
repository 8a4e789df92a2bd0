//! FSST symbol tables: up to 255 byte strings of 1 to 8 bytes, each written as one code byte.
//!
//! Training and compression are `fsst-rs`'; decoding is our own safe loop that
//! reads the table where it lies in the mapped block (nothing is built when a
//! database is opened) and that answers damaged input with an error: the
//! crate's decoder asserts.
//!
//! ```text
//! u8  n             number of symbols
//! u8  length[n]     1..=8
//! u8  symbol[n][8]  padded with zeros
//! ```
//!
//! In the compressed bytes, code 255 says that the next byte stands for itself.

use super::fault::{Decoded, Fault};

/// Says that the next byte stands for itself.
pub(super) const ESCAPE: u8 = 255;
const SYMBOL_BYTES: usize = 8;

/// A symbol table where it lies in a block.
#[derive(Clone, Copy)]
pub(super) struct SymbolTable<'a> {
    lengths: &'a [u8],
    symbols: &'a [[u8; SYMBOL_BYTES]],
}

impl<'a> SymbolTable<'a> {
    /// Reads the table from the front of `bytes`.
    pub(super) fn parse(bytes: &'a [u8]) -> Decoded<Self> {
        let (&count, rest) = bytes
            .split_first()
            .ok_or(Fault::Malformed("symbol table"))?;
        let (lengths, rest) = rest
            .split_at_checked(usize::from(count))
            .ok_or(Fault::Malformed("symbol lengths"))?;
        let (symbols, _) = rest.as_chunks::<SYMBOL_BYTES>();
        if symbols.len() < lengths.len() {
            return Err(Fault::Malformed("symbols"));
        }
        Ok(Self { lengths, symbols })
    }

    /// What a code stands for.
    #[inline]
    pub(super) fn symbol(&self, code: u8) -> Decoded<&'a [u8]> {
        let bad = || Fault::Malformed("symbol code");
        let code = usize::from(code);
        let symbol = self.symbols.get(code).ok_or_else(bad)?;
        let length = *self.lengths.get(code).ok_or_else(bad)?;
        symbol.get(..usize::from(length)).ok_or_else(bad)
    }

    /// Appends what `compressed` stands for, and stops early once `out` is at
    /// least `length_wanted` bytes long.
    pub(super) fn decode(
        &self,
        compressed: &[u8],
        out: &mut Vec<u8>,
        length_wanted: usize,
    ) -> Decoded<()> {
        let mut codes = compressed.iter();
        while out.len() < length_wanted {
            let Some(&code) = codes.next() else { break };
            if code == ESCAPE {
                out.push(*codes.next().ok_or(Fault::Malformed("escape at the end"))?);
                continue;
            }
            let (Some(symbol), Some(&length)) = (
                self.symbols.get(usize::from(code)),
                self.lengths.get(usize::from(code)),
            ) else {
                return Err(Fault::Malformed("symbol code"));
            };
            // Eight bytes are copied whatever the length: one store instead of
            // a call to memcpy.
            let end = out.len() + usize::from(length);
            out.extend_from_slice(symbol);
            out.truncate(end);
        }
        Ok(())
    }
}

/// Compresses with a trained table.
pub(super) struct SymbolEncoder {
    compressor: fsst::Compressor,
}

impl SymbolEncoder {
    /// Trains a table on a sample (about 16 KiB of it are looked at; 1 ms).
    pub(super) fn train(sample: &Vec<&[u8]>) -> Self {
        Self {
            compressor: fsst::Compressor::train(sample),
        }
    }

    /// Appends the table as [`SymbolTable::parse`] reads it.
    pub(super) fn write_table(&self, out: &mut Vec<u8>) {
        let lengths = self.compressor.symbol_lengths();
        // At most 255 symbols, `fsst-rs` promises.
        out.push(u8::try_from(lengths.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(lengths);
        for symbol in self.compressor.symbol_table() {
            out.extend_from_slice(&symbol.to_u64().to_le_bytes());
        }
    }

    /// Appends the compressed form of `plain`.
    pub(super) fn encode(&self, plain: &[u8], out: &mut Vec<u8>) {
        // At worst every byte is escaped.
        out.reserve(2 * plain.len() + 2);
        // SAFETY: the buffer handed over holds the worst case, two bytes for
        // each byte of input; `compress_into` returns how many it initialised.
        unsafe {
            let written = self
                .compressor
                .compress_into(plain, out.spare_capacity_mut());
            out.set_len(out.len() + written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(sample: &[Vec<u8>], text: &[u8]) {
        let encoder = SymbolEncoder::train(&sample.iter().map(Vec::as_slice).collect());
        let mut table = Vec::new();
        encoder.write_table(&mut table);
        let table = SymbolTable::parse(&table).unwrap();
        let mut compressed = Vec::new();
        encoder.encode(text, &mut compressed);
        let mut decoded = Vec::new();
        table.decode(&compressed, &mut decoded, usize::MAX).unwrap();
        assert_eq!(decoded, text);
    }

    /// With a table of few symbols, not a trained one: Miri takes an hour to train one, and seconds
    /// for this.
    #[test]
    fn the_worst_case_fits_and_symbols_of_all_lengths_come_back() {
        // Codes ascend by length, those of one byte last.
        let symbols = ["th", "and", "symbol", "together", "e"];
        let lengths: Vec<u8> = symbols.iter().map(|symbol| symbol.len() as u8).collect();
        let symbols = symbols.map(|symbol| {
            let mut bytes = [0; 8];
            bytes[..symbol.len()].copy_from_slice(symbol.as_bytes());
            fsst::Symbol::from_slice(&bytes)
        });
        let encoder = SymbolEncoder {
            compressor: fsst::Compressor::rebuild_from(symbols, lengths),
        };
        let mut table = Vec::new();
        encoder.write_table(&mut table);
        let table = SymbolTable::parse(&table).unwrap();
        let escaped: Vec<u8> = (128..=255).collect();
        for text in [
            &escaped[..],
            b"",
            b"\xff",
            b"the symbol and the other, together",
        ] {
            // Behind bytes that are there already, and with no room to begin with.
            let mut compressed = vec![7];
            compressed.shrink_to_fit();
            encoder.encode(text, &mut compressed);
            let mut decoded = Vec::new();
            let codes = &compressed[1..];
            table.decode(codes, &mut decoded, usize::MAX).unwrap();
            assert_eq!((compressed[0], &decoded[..]), (7, text));
        }
        let mut compressed = Vec::new();
        encoder.encode(&escaped, &mut compressed);
        assert_eq!(compressed.len(), 2 * escaped.len());
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(sample: Vec<Vec<u8>>, text: Vec<u8>) {
            round_trip(&sample, &text);
            round_trip(std::slice::from_ref(&text), &text);
        }

        #[test]
        fn few_different_bytes_round_trip(text in proptest::collection::vec(0u8..3, 0..2000)) {
            round_trip(std::slice::from_ref(&text), &text);
        }

        #[test]
        fn damaged_input_gives_an_error_or_other_bytes(table: Vec<u8>, codes: Vec<u8>) {
            if let Ok(table) = SymbolTable::parse(&table) {
                let mut out = Vec::new();
                let _ = table.decode(&codes, &mut out, usize::MAX);
            }
        }
    }
}

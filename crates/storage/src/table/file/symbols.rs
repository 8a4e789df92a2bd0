//! Symbol tables: up to 255 byte strings of 1 to 16 bytes, each written as one byte. In the
//! compressed bytes, code 255 says that the next byte stands for itself.
//!
//! This is FSST (Boncz, Neumann, Leis, 2020) with symbols of up to 16 bytes instead of 8: words
//! with the blank behind them are symbols then, which shortens texts of few different words by
//! another third or more (docs/decisions/0033), and storing 16 bytes a code is one instruction as
//! well.
//!
//! ```text
//! table     symbols u8 | length of each u8 | the symbols back to back
//! ```
//!
//! Training begins with no symbols. In each round a sample is compressed with the symbols so far;
//! those, and each two that stand side by side often, compete for the places by how many bytes of
//! the sample they stand for.

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::Decoded;

/// The greatest length of a symbol.
pub(super) const SYMBOL_BYTES: usize = 16;
/// Says that the next byte stands for itself.
pub(super) const ESCAPE: u8 = 255;

const SYMBOLS_MAX: usize = 255;
/// Bytes that are looked at for training, spread over the values.
const SAMPLE_BYTES: usize = 64 << 10;
/// Symbols can become 16 bytes long in five rounds; the others make them better.
const ROUNDS: usize = 7;
/// A byte that is no symbol takes two, so symbols of one byte are worth more than they stand for.
const SINGLE_WEIGHT: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Symbol {
    /// Little endian, with zeros behind.
    bytes: u128,
    length: u8,
}

impl Symbol {
    fn compared(self) -> Compared {
        Compared {
            bytes: self.bytes,
            mask: u128::MAX >> (128 - 8 * u32::from(self.length)),
            length: self.length.into(),
        }
    }

    fn of_byte(byte: u8) -> Self {
        Self {
            bytes: u128::from(byte),
            length: 1,
        }
    }

    fn followed_by(self, next: Self) -> Option<Self> {
        let length = self.length + next.length;
        (usize::from(length) <= SYMBOL_BYTES).then(|| Self {
            bytes: self.bytes | next.bytes << (8 * u32::from(self.length)),
            length,
        })
    }
}

/// Compresses with a trained table.
#[derive(Debug)]
pub(super) struct SymbolEncoder {
    /// By code. Those of three bytes and more come first, by their first three, the longest first;
    /// then those of two bytes, then of one.
    symbols: Vec<Symbol>,
    /// The same, as bytes are compared with them.
    compared: Vec<Compared>,
    /// Where those of three bytes and more are, by their first three: a table with open addressing,
    /// a quarter of which is in use at the most.
    beginnings: Box<[Beginning; BEGINNINGS]>,
    /// By the first two bytes: the symbol of both, else that of the first.
    shorts: Box<[Short]>,
}

#[derive(Debug, Clone, Copy)]
struct Compared {
    bytes: u128,
    mask: u128,
    length: usize,
}

/// Symbols that begin with the same three bytes.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    bytes: u32,
    first: u8,
    count: u8,
}

/// A symbol of one or two bytes; of none where there is no such symbol.
#[derive(Debug, Clone, Copy)]
struct Short {
    code: u8,
    length: u8,
}

const BEGINNING_MASK: u32 = 0xFF_FFFF;
const BEGINNING_BITS: u32 = 10;
const BEGINNINGS: usize = 1 << BEGINNING_BITS;
/// In the place of three bytes.
const FREE: u32 = u32::MAX;

/// Where three bytes are looked for first.
#[inline]
fn place_of(beginning: u32) -> usize {
    (beginning.wrapping_mul(0x9E37_79B1) >> (32 - BEGINNING_BITS)) as usize
}

impl SymbolEncoder {
    /// Trains a table for such values.
    pub(super) fn train(values: &[&[u8]]) -> Self {
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        let step = (bytes / SAMPLE_BYTES).max(1);
        let mut left = SAMPLE_BYTES;
        let sample = values.iter().step_by(step).take_while(|value| {
            let has_room = left > 0;
            left = left.saturating_sub(value.len());
            has_room
        });
        let sample: Vec<&[u8]> = sample.copied().collect();
        let mut encoder = Self::new(Vec::new());
        for _ in 0..ROUNDS {
            encoder = Self::new(encoder.better_symbols(&sample));
        }
        encoder
    }

    fn new(mut symbols: Vec<Symbol>) -> Self {
        symbols.sort_unstable_by_key(|symbol| {
            (
                Reverse(symbol.length.min(3)),
                symbol.bytes as u32 & BEGINNING_MASK,
                Reverse(symbol.length),
                symbol.bytes,
            )
        });
        let mut encoder = Self {
            compared: symbols.iter().map(|symbol| symbol.compared()).collect(),
            symbols: Vec::new(),
            beginnings: Box::new(
                [Beginning {
                    bytes: FREE,
                    first: 0,
                    count: 0,
                }; BEGINNINGS],
            ),
            shorts: vec![Short { code: 0, length: 0 }; 1 << 16].into_boxed_slice(),
        };
        // What is found first shall be what was put last: the first of a beginning, and two bytes
        // before one.
        for (code, symbol) in symbols.iter().enumerate().rev() {
            let (code, length) = (code as u8, symbol.length);
            match length {
                1 => {
                    let with_any = encoder.shorts[symbol.bytes as usize..].iter_mut();
                    with_any
                        .step_by(256)
                        .for_each(|short| *short = Short { code, length });
                }
                2 => encoder.shorts[symbol.bytes as usize] = Short { code, length },
                _ => {
                    let bytes = symbol.bytes as u32 & BEGINNING_MASK;
                    let place = encoder.find(bytes);
                    let beginning = &mut encoder.beginnings[place];
                    *beginning = Beginning {
                        bytes,
                        first: code,
                        count: beginning.count + 1,
                    };
                }
            }
        }
        Self { symbols, ..encoder }
    }

    /// Where three bytes are among the beginnings, or a free place if they are not.
    #[inline]
    fn find(&self, bytes: u32) -> usize {
        let mut place = place_of(bytes);
        loop {
            let there = self.beginnings[place].bytes;
            if there == bytes || there == FREE {
                return place;
            }
            place = (place + 1) % BEGINNINGS;
        }
    }

    /// The code of the longest symbol that the next `left` bytes begin with, and its length. `head`
    /// are the bytes, little endian; of those behind the last one nothing is taken.
    #[inline]
    fn longest(&self, head: u128, left: usize) -> Option<(u8, usize)> {
        let beginning = self.beginnings[self.find(head as u32 & BEGINNING_MASK)];
        let first = usize::from(beginning.first);
        let symbols = &self.compared[first..first + usize::from(beginning.count)];
        for (place, symbol) in symbols.iter().enumerate() {
            if head & symbol.mask == symbol.bytes && symbol.length <= left {
                return Some(((first + place) as u8, symbol.length));
            }
        }
        let Short { code, length } = self.shorts[usize::from(head as u16)];
        let length = usize::from(length);
        (1..=left).contains(&length).then_some((code, length))
    }

    /// Appends the compressed form of a value.
    pub(super) fn encode(&self, value: &[u8], out: &mut Vec<u8>) {
        let mut end = out.len();
        out.resize(end + 2 * value.len(), 0);
        self.parse(value, |found, byte| {
            out[end] = found.unwrap_or(ESCAPE);
            end += 1;
            if found.is_none() {
                out[end] = byte;
                end += 1;
            }
        });
        out.truncate(end);
    }

    /// Tells for each symbol of a value its code, or that its first byte is none, and its first
    /// byte.
    #[inline]
    fn parse(&self, value: &[u8], mut tell: impl FnMut(Option<u8>, u8)) {
        let mut next = |head: &[u8; SYMBOL_BYTES], left: usize| match self
            .longest(u128::from_le_bytes(*head), left)
        {
            Some((code, length)) => {
                tell(Some(code), head[0]);
                length
            }
            None => {
                tell(None, head[0]);
                1
            }
        };
        let mut rest = value;
        while let Some(head) = rest.first_chunk() {
            rest = &rest[next(head, SYMBOL_BYTES)..];
        }
        // The last bytes, with room behind.
        let mut end = [0; 2 * SYMBOL_BYTES];
        end[..rest.len()].copy_from_slice(rest);
        let mut at = 0;
        while let Some(head) = end[at..].first_chunk()
            && at < rest.len()
        {
            at += next(head, rest.len() - at);
        }
    }

    /// Appends the table, drawn above.
    pub(super) fn write_table(&self, out: &mut Vec<u8>) {
        // At most 255, by the choice of symbols.
        out.push(self.symbols.len() as u8);
        out.extend(self.symbols.iter().map(|symbol| symbol.length));
        for symbol in &self.symbols {
            out.extend_from_slice(&symbol.bytes.to_le_bytes()[..usize::from(symbol.length)]);
        }
    }

    /// One round of training.
    fn better_symbols(&self, sample: &[&[u8]]) -> Vec<Symbol> {
        // What is no symbol counts as one of a byte.
        let symbol = |code: usize| match self.symbols.get(code) {
            Some(symbol) => *symbol,
            None => Symbol::of_byte((code - self.symbols.len()) as u8),
        };
        let codes = self.symbols.len() + 256;
        let mut counts = vec![0u32; codes];
        let mut pairs = vec![0u32; codes * codes];
        for value in sample {
            let mut before = None;
            self.parse(value, |code, byte| {
                let code = match code {
                    Some(code) => usize::from(code),
                    None => self.symbols.len() + usize::from(byte),
                };
                counts[code] += 1;
                if let Some(before) = before {
                    pairs[before * codes + code] += 1;
                }
                before = Some(code);
            });
        }
        let mut gains: HashMap<Symbol, u32> = HashMap::new();
        for (code, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let symbol = symbol(code);
            let weight = match symbol.length {
                1 => SINGLE_WEIGHT,
                length => u32::from(length),
            };
            *gains.entry(symbol).or_default() += count * weight;
        }
        for (place, &count) in pairs.iter().enumerate().filter(|(_, count)| **count > 1) {
            let (first, next) = (symbol(place / codes), symbol(place % codes));
            if let Some(both) = first.followed_by(next) {
                *gains.entry(both).or_default() += count * u32::from(both.length);
            }
        }
        let mut gains: Vec<(Symbol, u32)> = gains.into_iter().collect();
        // The symbol itself makes the choice the same each time.
        gains.sort_unstable_by_key(|(symbol, gain)| (Reverse(*gain), symbol.length, symbol.bytes));
        gains.truncate(SYMBOLS_MAX);
        gains.into_iter().map(|(symbol, _)| symbol).collect()
    }
}

/// A table as it is read, and what is behind it.
pub(super) struct SymbolTable {
    symbols: [[u8; SYMBOL_BYTES]; 256],
    /// None for codes that have no symbol.
    lengths: [u8; 256],
}

/// Codes that are read together.
const CODES_AT_ONCE: usize = 8;

/// Bytes that decompressing so many codes may touch.
pub(super) const fn decoded_bytes_max(codes: usize) -> usize {
    // Each code is at most one symbol, and whole symbols are stored.
    (codes + 1) * SYMBOL_BYTES
}

impl SymbolTable {
    /// Reads a table from the front of the bytes; returns what is behind it, too.
    pub(super) fn read(bytes: &[u8]) -> Decoded<(Box<Self>, &[u8])> {
        const MISSING: &str = "a table of symbols is cut off";
        let (&count, rest) = bytes.split_first().ok_or(MISSING)?;
        let (lengths, mut rest) = rest.split_at_checked(usize::from(count)).ok_or(MISSING)?;
        let mut table = Box::new(Self {
            symbols: [[0; SYMBOL_BYTES]; 256],
            lengths: [0; 256],
        });
        for (code, &length) in lengths.iter().enumerate() {
            let (symbol, behind) = rest.split_at_checked(usize::from(length)).ok_or(MISSING)?;
            let slot = table.symbols[code].get_mut(..symbol.len());
            slot.ok_or("a symbol is too long")?.copy_from_slice(symbol);
            table.lengths[code] = length;
            rest = behind;
        }
        Ok((table, rest))
    }

    /// Decompresses a value to a place in `out`, which has [room](decoded_bytes_max), and returns
    /// where it ends. An escape without its byte stands for nothing.
    #[inline]
    pub(super) fn decode(&self, compressed: &[u8], out: &mut [u8], at: usize) -> usize {
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
        // Whole symbols are stored whatever the length.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(sample: &[Vec<u8>], values: &[Vec<u8>]) -> usize {
        let encoder = SymbolEncoder::train(&sample.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut table = Vec::new();
        encoder.write_table(&mut table);
        table.extend_from_slice(b"behind");
        let (table, behind) = SymbolTable::read(&table).unwrap();
        assert_eq!(behind, b"behind");
        let mut compressed_bytes = 0;
        for value in values {
            let mut compressed = Vec::new();
            encoder.encode(value, &mut compressed);
            let mut out = vec![9; 5 + decoded_bytes_max(compressed.len())];
            let end = table.decode(&compressed, &mut out, 5);
            assert_eq!(&out[5..end], &value[..]);
            compressed_bytes += compressed.len();
        }
        compressed_bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn any_bytes_come_back(sample: Vec<Vec<u8>>, values: Vec<Vec<u8>>) {
            round_trip(&sample, &values);
            round_trip(&values, &values);
        }

        #[test]
        fn few_different_bytes_come_back(values in prop::collection::vec(prop::collection::vec(prop_oneof![0u8..3, Just(255)], 0..300), 0..10)) {
            round_trip(&values, &values);
        }

        #[test]
        fn any_table_and_codes_end_in_bytes(table: Vec<u8>, codes: Vec<u8>) {
            if let Ok((table, _)) = SymbolTable::read(&table) {
                let mut out = vec![0; decoded_bytes_max(codes.len())];
                table.decode(&codes, &mut out, 0);
            }
        }
    }

    #[test]
    fn long_words_are_one_code_each() {
        let words = [
            "instructions ",
            "accounts ",
            "carefully ",
            "deposits ",
            "requests ",
            "platelets ",
        ];
        let value = |row: usize| {
            let words = (0..6).map(|word| words[(row * 7 + word * word + row * word / 3) % 6]);
            words.collect::<String>().into_bytes()
        };
        let values: Vec<Vec<u8>> = (0..2000).map(value).collect();
        let plain: usize = values.iter().map(Vec::len).sum();
        let compressed = round_trip(&values, &values);
        assert!(compressed * 8 < plain, "{compressed} of {plain}");
    }
}

//! Vocabularies: the frequent words of literals, each encoded in one to three bytes.
//!
//! FSST finds fragments of up to 8 bytes; on text made of many different words
//! (BSBM draws from 92,000) it stays at a ratio of 2.0, because it sees no
//! word twice in its sample. A vocabulary learned from the first megabytes of
//! literals brings the same text to 3.7. What is not in it is written with FSST
//! (see `codec`), so nothing gets worse.
//!
//! Codes are given by frequency. In the compressed bytes:
//!
//! ```text
//! 00..3F            codes 0..64
//! 40..EF xx         codes 64..45,120
//! F0..FD xx xx      codes 45,120..962,624
//! FE, FF            not codes, see codec
//! ```
//!
//! On disk a vocabulary is one block, read where it lies (1 MB for the words of BSBM; its checksum
//! costs 0.1 ms once):
//!
//! ```text
//! u8  'V'
//! u32 words
//! u32 end[words]     where each word ends, counted from the first word
//! words
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::fault::{Decoded, Fault};
use super::tokens::{HEAD_BYTES, Token, Tokens, is_word_byte};

const ONE_BYTE_CODES: u32 = 0x40;
const TWO_BYTE_LEADS: u32 = 0xF0 - 0x40;
const TWO_BYTE_CODES: u32 = TWO_BYTE_LEADS << 8;
const THREE_BYTE_LEAD: u8 = 0xF0;
/// The first lead byte that is not a code.
pub(super) const FIRST_NON_CODE: u8 = 0xFE;

/// First byte of a vocabulary block.
const BLOCK_KIND: u8 = b'V';

/// Stands for the code of a word that is not in the vocabulary.
pub(super) const UNKNOWN: u32 = u32::MAX;

const WORD_BYTES_MAX: usize = 32;
const WORDS_MAX: usize = 1 << 18;

/// Appends the bytes of a code.
#[inline]
pub(super) fn write_code(code: u32, out: &mut Vec<u8>) {
    let two = code.wrapping_sub(ONE_BYTE_CODES);
    let three = two.wrapping_sub(TWO_BYTE_CODES);
    // No branches: which length comes next is as random as the text.
    let (bytes, length) = if code < ONE_BYTE_CODES {
        (code, 1)
    } else if two < TWO_BYTE_CODES {
        (0x40 + (two >> 8) + (two << 8), 2)
    } else {
        let low = (three & 0xFF) << 16 | (three & 0xFF00);
        (u32::from(THREE_BYTE_LEAD) + (three >> 16) + low, 3)
    };
    let end = out.len() + length;
    out.extend_from_slice(&bytes.to_le_bytes());
    out.truncate(end);
}

/// Reads the rest of a code whose lead byte is below [`FIRST_NON_CODE`].
#[inline]
pub(super) fn read_code(lead: u8, rest: &mut &[u8]) -> Decoded<u32> {
    let lead_value = u32::from(lead);
    if lead_value < ONE_BYTE_CODES {
        return Ok(lead_value);
    }
    let mut next = || -> Decoded<u32> {
        let (&byte, tail) = rest.split_first().ok_or(Fault::Malformed("word code"))?;
        *rest = tail;
        Ok(u32::from(byte))
    };
    if lead < THREE_BYTE_LEAD {
        return Ok(ONE_BYTE_CODES + ((lead_value - 0x40) << 8) + next()?);
    }
    let high = next()?;
    let low = next()?;
    let within = (u32::from(lead - THREE_BYTE_LEAD) << 16) + (high << 8) + low;
    Ok(ONE_BYTE_CODES + TWO_BYTE_CODES + within)
}

/// The code at a place of the compressed bytes, and its length; `None` where they end or something
/// else begins. The same as [`read_code`], without a branch on the length, which is as random as
/// the text.
#[inline]
pub(super) fn next_code(encoded: &[u8], at: usize) -> Decoded<Option<(u32, usize)>> {
    if let Some(&[a, b, c, d]) = encoded.get(at..at + 4) {
        let found = code_in(u32::from_be_bytes([a, b, c, d]));
        return Ok((a < FIRST_NON_CODE).then_some(found));
    }
    let rest = encoded.get(at..).unwrap_or_default();
    if rest.first().is_none_or(|&lead| lead >= FIRST_NON_CODE) {
        return Ok(None);
    }
    let mut bytes = [0; 4];
    bytes[..rest.len()].copy_from_slice(rest);
    let (code, length) = code_in(u32::from_be_bytes(bytes));
    match length <= rest.len() {
        true => Ok(Some((code, length))),
        false => Err(Fault::Malformed("word code")),
    }
}

/// The code that four bytes, the first one the highest, begin with, and its length; nonsense if
/// they begin with none.
#[inline]
fn code_in(bytes: u32) -> (u32, usize) {
    /// What the bytes of a code of each length say more than the code.
    const BESIDES: [u32; 4] = [
        0,
        0,
        (0x40 << 8) - ONE_BYTE_CODES,
        ((THREE_BYTE_LEAD as u32) << 16) - ONE_BYTE_CODES - TWO_BYTE_CODES,
    ];
    let lead = bytes >> 24;
    let two = usize::from(lead >= ONE_BYTE_CODES);
    let length = 1 + two + usize::from(lead >= THREE_BYTE_LEAD.into());
    ((bytes >> (32 - 8 * length)) - BESIDES[length], length)
}

/// Where a decoder finds words.
pub(super) trait Words {
    /// Appends the token of a code, before it a blank if it is a word that follows a word. Tells
    /// whether it is a word.
    fn append(&self, code: u32, is_after_word: bool, out: &mut Vec<u8>) -> Decoded<bool>;
}

/// The words of a vocabulary where they lie.
#[derive(Clone, Copy)]
pub(super) struct StoredWords<'a> {
    ends: &'a [[u8; 4]],
    words: &'a [u8],
}

impl<'a> StoredWords<'a> {
    /// Reads the header of a vocabulary's block.
    pub(super) fn parse(block: &'a [u8]) -> Decoded<Self> {
        let bad = || Fault::Malformed("the vocabulary makes no sense");
        let (&[kind, count @ ..], rest) = block.split_first_chunk::<5>().ok_or_else(bad)?;
        let count = u32::from_le_bytes(count) as usize;
        if kind != BLOCK_KIND || rest.len() / 4 < count {
            return Err(bad());
        }
        let (ends, words) = rest.split_at(4 * count);
        Ok(Self {
            ends: ends.as_chunks().0,
            words,
        })
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The word of a code; none is empty.
    #[inline]
    pub(super) fn word(&self, code: u32) -> Decoded<&'a [u8]> {
        let bad = || Fault::Malformed("word code");
        let code = code as usize;
        let end = u32::from_le_bytes(*self.ends.get(code).ok_or_else(bad)?) as usize;
        let start = match code {
            0 => 0,
            _ => u32::from_le_bytes(self.ends[code - 1]) as usize,
        };
        let word = self.words.get(start..end).ok_or_else(bad)?;
        match word.is_empty() {
            true => Err(bad()),
            false => Ok(word),
        }
    }
}

impl Words for StoredWords<'_> {
    #[inline]
    fn append(&self, code: u32, is_after_word: bool, out: &mut Vec<u8>) -> Decoded<bool> {
        let bad = || Fault::Malformed("word code");
        let code = code as usize;
        let end = u32::from_le_bytes(*self.ends.get(code).ok_or_else(bad)?) as usize;
        let start = match code {
            0 => 0,
            _ => u32::from_le_bytes(self.ends[code - 1]) as usize,
        };
        let is_word = is_word_byte(*self.words.get(start).ok_or_else(bad)?);
        if is_word && is_after_word {
            out.push(b' ');
        }
        // Most words are short: 16 bytes are copied without asking for the length.
        if let Some(bytes) = self.words.get(start..start + HEAD_BYTES)
            && (start..=start + HEAD_BYTES).contains(&end)
        {
            let new_length = out.len() + (end - start);
            out.extend_from_slice(bytes);
            out.truncate(new_length);
        } else {
            out.extend_from_slice(self.words.get(start..end).ok_or_else(bad)?);
        }
        Ok(is_word)
    }
}

/// The product of two numbers with its upper half folded in (as foldhash does).
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline]
const fn hash_head(head: u128) -> u64 {
    let (low, high) = (head as u64, (head >> 64) as u64);
    fold(low ^ 0x9E37_79B9_7F4A_7C15, high ^ 0xA076_1D64_78BD_642F)
}

/// A hash for words; quick, and no defence against made-up collisions: those only slow down the
/// load of whoever makes them up.
#[inline]
fn hash_token(token: &Token<'_>) -> u64 {
    let hash = hash_head(token.head);
    let Some(rest) = token.bytes.get(HEAD_BYTES..) else {
        return hash;
    };
    rest.chunks(HEAD_BYTES).fold(hash, |hash, chunk| {
        fold(
            hash ^ hash_head(Token::new(chunk).head),
            0xD6E8_FEB8_6659_FD93,
        )
    })
}

/// Hashes the head and the length of a short word in a `HashMap`.
#[derive(Default)]
struct HeadHasher(u64);

impl Hasher for HeadHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u128(&mut self, head: u128) {
        self.0 ^= hash_head(head);
    }

    fn write_u8(&mut self, length: u8) {
        self.0 = self.0.wrapping_add(u64::from(length));
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = fold(self.0 ^ u64::from(byte), 0xD6E8_FEB8_6659_FD93);
        }
    }
}

/// A place of the hash table. Words of up to 16 bytes are compared where they
/// stand here, so that a look-up costs one cache miss.
#[derive(Clone, Copy, Default)]
struct WordSlot {
    head: [u64; 2],
    /// 0: the place is free.
    length: u32,
    code: u32,
}

/// The words that texts are encoded with, by code.
#[derive(Default)]
pub(super) struct Vocabulary {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Open addressing, a power of two of slots.
    slots: Vec<WordSlot>,
}

impl Vocabulary {
    fn from_words(words: &[&[u8]]) -> Self {
        let mut vocabulary = Self {
            slots: vec![WordSlot::default(); (words.len() * 3 / 2 + 2).next_power_of_two()],
            ..Self::default()
        };
        let last_slot = vocabulary.slots.len() - 1;
        for (code, word) in words.iter().enumerate() {
            vocabulary.bytes.extend_from_slice(word);
            vocabulary.ends.push(vocabulary.bytes.len() as u32);
            let token = Token::new(word);
            let head = token.head;
            let mut slot = hash_token(&token) as usize & last_slot;
            while vocabulary.slots[slot].length != 0 {
                slot = (slot + 1) & last_slot;
            }
            vocabulary.slots[slot] = WordSlot {
                head: [head as u64, (head >> 64) as u64],
                length: word.len() as u32,
                code: code as u32,
            };
        }
        vocabulary
    }

    /// Appends the code of each token, [`UNKNOWN`] where it has none.
    ///
    /// All tokens of a text at once, so that the cache misses of the first probes
    /// overlap (measured: twice as fast as token by token).
    pub(super) fn codes(&self, tokens: &[Token<'_>], codes: &mut Vec<u32>) {
        let Some(last_slot) = self.slots.len().checked_sub(1) else {
            codes.resize(codes.len() + tokens.len(), UNKNOWN);
            return;
        };
        let slot_of = |token: &Token<'_>| hash_token(token) as usize & last_slot;
        // Touch all slots first, in a loop without branches: the processor then waits for many at
        // once.
        let touched = tokens.iter().fold(0, |touched, token| {
            touched | self.slots[slot_of(token)].length
        });
        std::hint::black_box(touched);
        codes.extend(tokens.iter().map(|token| self.probe(token, slot_of(token))));
    }

    #[inline]
    fn probe(&self, token: &Token<'_>, mut slot: usize) -> u32 {
        let head = [token.head as u64, (token.head >> 64) as u64];
        loop {
            let candidate = &self.slots[slot];
            if candidate.head == head
                && candidate.length as usize == token.bytes.len()
                && (token.bytes.len() <= HEAD_BYTES || self.word_of(candidate.code) == token.bytes)
            {
                return candidate.code;
            }
            if candidate.length == 0 {
                return UNKNOWN;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn word_of(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let start = match code {
            0 => 0,
            _ => self.ends[code - 1] as usize,
        };
        &self.bytes[start..self.ends[code] as usize]
    }

    /// The block to write.
    pub(super) fn to_block(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(5 + 4 * self.ends.len() + self.bytes.len());
        block.push(BLOCK_KIND);
        block.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        block.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        block.extend_from_slice(&self.bytes);
        block
    }
}

/// Counts the words of sample texts and chooses those worth a code.
#[derive(Default)]
pub(super) struct VocabularyTrainer<'a> {
    /// Words of up to 16 bytes by these and their length, so that counting one costs one cache
    /// miss.
    short: HashMap<(u128, u8), u32, BuildHasherDefault<HeadHasher>>,
    long: HashMap<&'a [u8], u32>,
}

/// A word that may get a code.
struct Candidate {
    word: Vec<u8>,
    count: u32,
    gain: i64,
}

impl Candidate {
    fn new(word: &[u8], count: u32) -> Self {
        // Written with FSST a word costs about half its length and a byte or
        // two for the switch; as a code about 2.5 bytes, and the word itself once.
        let saved_per_use = (5 * word.len() as i64 + 5) / 10;
        let gain = i64::from(count) * (10 * saved_per_use - 20) - 10 * (word.len() as i64 + 2);
        Self {
            word: word.to_vec(),
            count,
            gain,
        }
    }

    /// Short words gain little each, but much when they are everywhere.
    fn is_worth_a_code(&self) -> bool {
        self.gain > 0 || (self.count > 64 && self.word.len() > 1)
    }
}

impl<'a> VocabularyTrainer<'a> {
    /// Counts the tokens of a text.
    pub(super) fn observe(&mut self, text: &'a [u8]) {
        for token in Tokens::new(text) {
            match token.bytes.len() {
                length @ 0..=HEAD_BYTES => {
                    *self.short.entry((token.head, length as u8)).or_insert(0) += 1;
                }
                length if length <= WORD_BYTES_MAX => {
                    *self.long.entry(token.bytes).or_insert(0) += 1;
                }
                _ => {}
            }
        }
    }

    /// The vocabulary of the most useful words.
    pub(super) fn finish(self) -> Vocabulary {
        let short = self.short.into_iter().map(|((head, length), count)| {
            Candidate::new(&head.to_le_bytes()[..usize::from(length)], count)
        });
        let long = self.long.into_iter();
        let mut chosen: Vec<Candidate> = short
            .chain(long.map(|(word, count)| Candidate::new(word, count)))
            .filter(Candidate::is_worth_a_code)
            .collect();
        if chosen.len() > WORDS_MAX {
            chosen.select_nth_unstable_by(WORDS_MAX, |a, b| {
                b.gain.cmp(&a.gain).then_with(|| a.word.cmp(&b.word))
            });
            chosen.truncate(WORDS_MAX);
        }
        chosen.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.word.cmp(&b.word)));
        let words: Vec<&[u8]> = chosen.iter().map(|chosen| chosen.word.as_slice()).collect();
        Vocabulary::from_words(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_length_round_trip() {
        for code in (0..2_000)
            .chain(45_000..45_300)
            .chain([100_000, 262_143, 962_623])
        {
            let mut bytes = Vec::new();
            write_code(code, &mut bytes);
            let (&lead, mut rest) = bytes.split_first().unwrap();
            assert!(lead < FIRST_NON_CODE);
            assert_eq!(read_code(lead, &mut rest).unwrap(), code);
            assert!(rest.is_empty());
            assert_eq!(next_code(&bytes, 0).unwrap(), Some((code, bytes.len())));
            assert_eq!(next_code(&bytes, bytes.len()).unwrap(), None);
            if bytes.len() > 1 {
                assert!(next_code(&bytes[..bytes.len() - 1], 0).is_err());
            }
            let among = [&[7], bytes.as_slice(), &[1, 2, 3, 4]].concat();
            assert_eq!(next_code(&among, 1).unwrap(), Some((code, bytes.len())));
            for other in [FIRST_NON_CODE, u8::MAX] {
                assert_eq!(next_code(&[other], 0).unwrap(), None);
                assert_eq!(next_code(&[other, 1, 2, 3, 4], 0).unwrap(), None);
            }
        }
    }

    #[test]
    fn long_words_with_the_same_beginning_are_told_apart() {
        let words: Vec<String> = (0..500).map(|n| format!("{n:0>24}")).collect();
        let text = (words.join(" ") + " ").repeat(20);
        let mut trainer = VocabularyTrainer::default();
        trainer.observe(text.as_bytes());
        let vocabulary = trainer.finish();
        let tokens: Vec<Token<'_>> = words
            .iter()
            .map(|word| Token::new(word.as_bytes()))
            .collect();
        let hashes: std::collections::BTreeSet<u64> = tokens.iter().map(hash_token).collect();
        assert_eq!(hashes.len(), words.len());
        let mut codes = Vec::new();
        vocabulary.codes(&tokens, &mut codes);
        let known = codes
            .iter()
            .zip(&tokens)
            .filter(|&(&code, token)| code != UNKNOWN && vocabulary.word_of(code) == token.bytes);
        assert_eq!(known.count(), words.len());
    }

    #[test]
    fn frequent_words_get_codes_and_come_back_from_blocks() {
        let text = "alpha beta gamma delta epsilon ".repeat(300);
        let mut trainer = VocabularyTrainer::default();
        trainer.observe(text.as_bytes());
        let vocabulary = trainer.finish();
        let block = vocabulary.to_block();
        let stored = StoredWords::parse(&block).unwrap();
        let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
        let tokens: Vec<Token<'_>> = words.map(|word| Token::new(word.as_bytes())).to_vec();
        let mut codes = Vec::new();
        vocabulary.codes(&tokens, &mut codes);
        assert_eq!(codes.pop(), Some(UNKNOWN));
        for (token, code) in tokens.iter().zip(codes) {
            assert_eq!(vocabulary.word_of(code), token.bytes);
            let mut out = b"before".to_vec();
            assert!(stored.append(code, true, &mut out).unwrap());
            assert_eq!(out, [b"before ", token.bytes].concat());
        }
        assert!(stored.append(1000, false, &mut Vec::new()).is_err());
        let mut codes = Vec::new();
        Vocabulary::default().codes(&tokens, &mut codes);
        assert_eq!(codes, [UNKNOWN; 6]);
    }
}

//! The encoding of a key's suffix in a page.
//!
//! Two forms, chosen for a whole chapter (see `chapter`):
//!
//! - **symbols**: FSST codes. For IRIs, numbers, everything that is not prose.
//! - **words**: codes of a [vocabulary](super::vocabulary). Between two words
//!   that follow each other a blank is implied. `FE length bytes` is a run of FSST
//!   codes for what the vocabulary does not know, `FF byte` a single such byte.

use super::fault::{Decoded, Fault};
use super::symbols::{SymbolEncoder, SymbolTable};
use super::tokens::{Token, Tokens, align_to_token};
use super::vocabulary::{FIRST_NON_CODE, UNKNOWN, Vocabulary, Words, read_code, write_code};
use crate::files::varint;

/// Begins a run of symbols within words.
pub(super) const RUN: u8 = 0xFE;
/// Says within words that the next byte stands for itself.
pub(super) const SINGLE: u8 = 0xFF;

/// Encodes the keys of one chapter.
pub(super) struct Encoder<'a> {
    symbols: SymbolEncoder,
    vocabulary: Option<&'a Vocabulary>,
    run: Vec<u8>,
    codes: Vec<u32>,
}

impl<'a> Encoder<'a> {
    /// An encoder trained on samples of keys, from where each is to be encoded.
    pub(super) fn train(samples: &[&[u8]], vocabulary: Option<&'a Vocabulary>) -> Self {
        let symbols = match vocabulary {
            None => SymbolEncoder::train(&samples.to_vec()),
            Some(vocabulary) => {
                let mut runs = Vec::new();
                let mut codes = Vec::new();
                for text in samples {
                    walk(text, vocabulary, &mut codes, |part| {
                        if let Part::Run(bytes) = part {
                            runs.push(bytes);
                        }
                    });
                }
                SymbolEncoder::train(&runs)
            }
        };
        Self {
            symbols,
            vocabulary,
            run: Vec::new(),
            codes: Vec::new(),
        }
    }

    /// Appends the symbol table.
    pub(super) fn write_table(&self, out: &mut Vec<u8>) {
        self.symbols.write_table(out);
    }

    /// Where encoding may begin when `shared` bytes are known from elsewhere.
    pub(super) fn align(&self, key: &[u8], shared: usize) -> usize {
        match self.vocabulary {
            Some(_) => align_to_token(key, shared),
            None => shared,
        }
    }

    /// Appends the encoded form of `key[from..]`; `from` must be aligned.
    pub(super) fn encode(&mut self, key: &[u8], from: usize, out: &mut Vec<u8>) {
        let Some(vocabulary) = self.vocabulary else {
            self.symbols.encode(&key[from..], out);
            return;
        };
        let (symbols, run, codes) = (&self.symbols, &mut self.run, &mut self.codes);
        let mut write = |part: Part<'_>| match part {
            Part::Code(code) => write_code(code, out),
            Part::Run(&[byte]) => out.extend_from_slice(&[SINGLE, byte]),
            Part::Run(bytes) => {
                run.clear();
                symbols.encode(bytes, run);
                out.push(RUN);
                varint::write(run.len() as u64, out);
                out.extend_from_slice(run);
            }
        };
        let mut text = &key[from..];
        if from == 0
            && let Some((kind, rest)) = text.split_first()
        {
            // The byte that tells the kind of a key is not part of its first word.
            write(Part::Run(std::slice::from_ref(kind)));
            text = rest;
        }
        walk(text, vocabulary, codes, write);
    }
}

/// A piece of a text in the form of words.
enum Part<'a> {
    Code(u32),
    Run(&'a [u8]),
}

/// Cuts `text` into codes and runs of unknown tokens.
#[inline]
fn walk<'a>(
    text: &'a [u8],
    vocabulary: &Vocabulary,
    codes: &mut Vec<u32>,
    mut emit: impl FnMut(Part<'a>),
) {
    /// Tokens looked up at a time.
    const CHUNK_TOKENS: usize = 64;
    let mut tokens = [Token::default(); CHUNK_TOKENS];
    let mut rest = Tokens::new(text);
    let mut place = 0;
    // Where bytes begin that are not written yet. Without such, the token before was written as a
    // code: a blank after it is implied.
    let mut run_start: Option<usize> = None;
    loop {
        let mut count = 0;
        for (space, token) in tokens.iter_mut().zip(&mut rest) {
            *space = token;
            count += 1;
        }
        let tokens = &tokens[..count];
        if tokens.is_empty() {
            break;
        }
        codes.clear();
        vocabulary.codes(tokens, codes);
        for (token, &code) in tokens.iter().zip(codes.iter()) {
            // Where the token begins, and where what is not written before it does.
            let start = place + usize::from(token.is_after_blank);
            if code == UNKNOWN {
                run_start = run_start.or(Some(place));
            } else {
                if let Some(run_start) = run_start.take() {
                    emit(Part::Run(&text[run_start..start]));
                }
                emit(Part::Code(code));
            }
            place = start + token.bytes.len();
        }
    }
    if let Some(start) = run_start {
        emit(Part::Run(&text[start..]));
    }
}

/// Decodes keys of one chapter.
#[derive(Clone, Copy)]
pub(super) struct Decoder<'a, W> {
    /// The chapter's symbol table.
    pub(super) symbols: SymbolTable<'a>,
    /// The vocabulary, if the chapter has the form of words.
    pub(super) words: Option<W>,
}

impl<W: Words> Decoder<'_, W> {
    /// Appends what `encoded` stands for; may stop once `length_wanted` bytes
    /// were appended (and may append somewhat more).
    #[inline]
    pub(super) fn decode(
        &self,
        encoded: &[u8],
        out: &mut Vec<u8>,
        length_wanted: usize,
    ) -> Decoded<()> {
        let length_wanted = out.len().saturating_add(length_wanted);
        match &self.words {
            None => self.symbols.decode(encoded, out, length_wanted),
            Some(words) => self.decode_words(words, encoded, out, length_wanted),
        }
    }

    fn decode_words(
        &self,
        words: &W,
        mut encoded: &[u8],
        out: &mut Vec<u8>,
        length_wanted: usize,
    ) -> Decoded<()> {
        let mut is_after_word = false;
        while out.len() < length_wanted {
            let Some((&lead, rest)) = encoded.split_first() else {
                break;
            };
            encoded = rest;
            if lead < FIRST_NON_CODE {
                let code = read_code(lead, &mut encoded)?;
                is_after_word = words.append(code, is_after_word, out)?;
                continue;
            }
            is_after_word = false;
            if lead == SINGLE {
                let (&byte, rest) = encoded.split_first().ok_or(Fault::Malformed("byte"))?;
                out.push(byte);
                encoded = rest;
                continue;
            }
            let length = varint::read_length(&mut encoded).ok_or(Fault::Malformed("run length"))?;
            let (run, rest) = encoded
                .split_at_checked(length)
                .ok_or(Fault::Malformed("run"))?;
            self.symbols.decode(run, out, usize::MAX)?;
            encoded = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quads::dictionary::vocabulary::{StoredWords, VocabularyTrainer};
    use proptest::prelude::*;

    fn round_trip(sample: &str, key: &[u8]) {
        let mut trainer = VocabularyTrainer::default();
        trainer.observe(sample.as_bytes());
        let vocabulary = trainer.finish();
        for words in [None, Some(&vocabulary)] {
            let mut encoder = Encoder::train(&[sample.as_bytes()], words);
            let mut table = Vec::new();
            encoder.write_table(&mut table);
            let block = vocabulary.to_block();
            let decoder = Decoder {
                symbols: SymbolTable::parse(&table).unwrap(),
                words: words.map(|_| StoredWords::parse(&block).unwrap()),
            };
            for shared in 0..=key.len() {
                let from = encoder.align(key, shared);
                assert!(from <= shared);
                let mut encoded = Vec::new();
                encoder.encode(key, from, &mut encoded);
                let mut decoded = key[..from].to_vec();
                decoder.decode(&encoded, &mut decoded, usize::MAX).unwrap();
                assert_eq!(decoded, key);
            }
        }
    }

    proptest! {
        #[test]
        fn texts_of_known_and_unknown_words_round_trip(
            key in "S?(alpha|beta|gamma|x|é|[ ,.]|  |\u{0}|unknown){0,30}"
        ) {
            let sample = "alpha beta, gamma. é alpha, beta x  gamma ".repeat(100);
            round_trip(&sample, key.as_bytes());
        }

        #[test]
        fn any_bytes_round_trip(key: Vec<u8>) {
            round_trip("alpha beta", &key);
        }

        #[test]
        fn damaged_input_gives_an_error_or_other_bytes(table: Vec<u8>, codes: Vec<u8>) {
            let block = Vocabulary::default().to_block();
            let stored = StoredWords::parse(&block).unwrap();
            if let Ok(symbols) = SymbolTable::parse(&table) {
                for words in [None, Some(stored)] {
                    let decoder = Decoder { symbols, words };
                    let _ = decoder.decode(&codes, &mut Vec::new(), usize::MAX);
                }
            }
        }
    }
}

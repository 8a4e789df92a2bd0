//! A search for keys that contain given bytes, on their encoded form.
//!
//! A key of prose is a row of codes for words ([`vocabulary`](super::vocabulary)). What a word does
//! to a search does not depend on where it stands, as long as nothing of the needle was matched
//! before it; so that is found out once for each word of the vocabulary and kept, and most words of
//! a text then cost reading their code and one look into a table that stays in the cache, instead
//! of being written out and looked through. A key that has the needle is left where that is found.
//!
//! ```text
//! needle -> automaton: state, byte -> state           Knuth, Morris, Pratt
//!        -> per vocabulary: code -> state after it    from the empty state, without and with a blank before the word
//! key    = shared with the head (decoded) | codes     from state to state until the needle is there
//! ```
//!
//! Symbols have such a table for their chapter. Large keys are searched as they are.
//!
//! Cost on 284,820 reviews of BSBM, beside decoding and searching them: half where hardly any has
//! the needle, an eighth where nearly all have it (`orrery bench relational`, text_rare and
//! text_contains). A search keeps at most [`TABLES_MAX`] tables of two bytes for each word.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use memchr::memmem::Finder;
use parking_lot::Mutex;

use super::batch::KeyInPage;
use super::codec::{RUN, SINGLE};
use super::fault::{Decoded, Fault};
use super::page::GROUP_KEYS;
use super::symbols::{ESCAPE, SymbolTable};
use super::tokens::is_word_byte;
use super::vocabulary::{StoredWords, next_code};
use super::{Dictionary, KeyCursor};
use crate::Result;
use crate::files::block_file::{BlockFile, BlockNumber};
use crate::files::varint;

/// Longer needles are not searched for here: states have to fit into seven bits.
const NEEDLE_BYTES_MAX: usize = 100;
/// Vocabularies whose tables one search keeps; keys of further ones are decoded.
const TABLES_MAX: usize = 8;

/// A state of the automaton: so many bytes of the needle are matched; all of them: found. Then come
/// [`Automaton::after_byte`] and [`Automaton::after_zero`].
type State = u8;

/// Nothing of the needle is matched.
const EMPTY: State = 0;

/// Not found out yet; else the state plus one, below [`IS_WORD`].
const UNKNOWN: u8 = 0;
/// Of what is known of a word: it is one, and no gap between words.
const IS_WORD: u8 = 0x80;

/// The place in a key where its searchable text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyText {
    /// After its first byte.
    AfterFirstByte,
    /// After its first zero byte.
    AfterFirstZero,
}

/// Some bytes to be searched for in the keys of one dictionary; shared between threads.
#[derive(Debug)]
pub struct KeySearch {
    needle: Box<[u8]>,
    ignores_case: bool,
    automaton: Automaton,
    /// Tells the dictionary from others.
    large: Arc<BlockFile>,
    tables: Mutex<Vec<(BlockNumber, Arc<WordOutcomes>)>>,
}

/// What the bytes of a text do to the part of the needle that is matched.
#[derive(Debug)]
struct Automaton {
    next: Box<[[State; 256]]>,
    found: State,
}

impl Automaton {
    /// For a needle of 1 to [`NEEDLE_BYTES_MAX`] bytes; in lower case if that of letters is
    /// ignored.
    fn new(needle: &[u8], ignores_case: bool) -> Self {
        let mut next: Vec<[State; 256]> = vec![[EMPTY; 256]];
        next[0][usize::from(needle[0])] = 1;
        // Where the automaton is after all bytes of the needle so far but the first.
        let mut fallback = usize::from(EMPTY);
        for (matched, &byte) in needle.iter().enumerate().skip(1) {
            let mut row = next[fallback];
            row[usize::from(byte)] = (matched + 1) as State;
            fallback = usize::from(next[fallback][usize::from(byte)]);
            next.push(row);
        }
        if ignores_case {
            for row in &mut next {
                for capital in b'A'..=b'Z' {
                    row[usize::from(capital)] = row[usize::from(capital.to_ascii_lowercase())];
                }
            }
        }
        let found = needle.len() as State;
        let after_zero = found + 2;
        next.push([found; 256]);
        next.push([EMPTY; 256]);
        next.push([after_zero; 256]);
        next[usize::from(after_zero)][0] = EMPTY;
        Self {
            next: next.into(),
            found,
        }
    }

    /// The state from which the text begins after one byte.
    fn after_byte(&self) -> State {
        self.found + 1
    }

    /// The state from which the text begins after the first zero byte.
    fn after_zero(&self) -> State {
        self.found + 2
    }

    fn start(&self, text: KeyText) -> State {
        match text {
            KeyText::AfterFirstByte => self.after_byte(),
            KeyText::AfterFirstZero => self.after_zero(),
        }
    }

    #[inline]
    fn step(&self, state: State, byte: u8) -> State {
        self.next[usize::from(state)][usize::from(byte)]
    }

    #[inline]
    fn run(&self, state: State, bytes: &[u8]) -> State {
        bytes
            .iter()
            .fold(state, |state, &byte| self.step(state, byte))
    }
}

/// What the words of a vocabulary do to a search, by code, as far as known.
#[derive(Debug)]
struct WordOutcomes {
    /// From [`EMPTY`].
    alone: Box<[AtomicU8]>,
    /// The same after another word, so that a word has a blank before it; missing if that makes no
    /// difference.
    after_word: Option<Box<[AtomicU8]>>,
}

impl WordOutcomes {
    fn new(words: usize, automaton: &Automaton) -> Self {
        let unknown = || (0..words).map(|_| AtomicU8::new(UNKNOWN)).collect();
        let blank_matters = automaton.step(EMPTY, b' ') != EMPTY;
        Self {
            alone: unknown(),
            after_word: blank_matters.then(unknown),
        }
    }
}

impl Dictionary {
    /// A search for some bytes in this dictionary's keys; with `ignores_case` the case of ASCII's
    /// letters does not matter. `None` if there are no bytes, or too many.
    pub fn key_search(&self, needle: &[u8], ignores_case: bool) -> Option<KeySearch> {
        if !(1..=NEEDLE_BYTES_MAX).contains(&needle.len()) {
            return None;
        }
        let needle: Box<[u8]> = match ignores_case {
            true => needle.to_ascii_lowercase().into(),
            false => needle.into(),
        };
        Some(KeySearch {
            automaton: Automaton::new(&needle, ignores_case),
            needle,
            ignores_case,
            large: Arc::clone(&self.large),
            tables: Mutex::default(),
        })
    }

    /// Calls `found` with the place in `ranks`, and whether the text of that key contains what is
    /// searched for. The ranks should ascend.
    pub fn keys_containing(
        &self,
        ranks: &[u64],
        search: &KeySearch,
        text: KeyText,
        mut found: impl FnMut(usize, bool),
    ) -> Result<()> {
        let mut searcher = Searcher::new(search, self, text);
        self.visit_keys(ranks, |cursor, place, number| {
            found(number, searcher.has_needle(self, cursor, place)?);
            Ok(())
        })
    }
}

/// Searches one key after the other.
struct Searcher<'s> {
    search: &'s KeySearch,
    finder: Finder<'s>,
    text: KeyText,
    /// Whether the tables of the search are those of this dictionary.
    is_own: bool,
    /// The chapter of the key before, by its symbol table; what follows is of this chapter.
    chapter: Option<BlockNumber>,
    /// What is known of the vocabulary's words, if there is one.
    words: Option<Arc<WordOutcomes>>,
    /// Whether keys have to be decoded.
    decodes: bool,
    symbols: SymbolOutcomes,
}

/// What the symbols of a chapter do to a search from [`EMPTY`], by code, as far as known.
struct SymbolOutcomes([u8; 256]);

impl SymbolOutcomes {
    const NONE: Self = Self([UNKNOWN; 256]);

    /// The state after symbols; it may be told as soon as the needle is found.
    fn through(
        &mut self,
        automaton: &Automaton,
        table: &SymbolTable<'_>,
        compressed: &[u8],
        mut state: State,
    ) -> Decoded<State> {
        let mut codes = compressed.iter();
        while state != automaton.found
            && let Some(&code) = codes.next()
        {
            let known = &mut self.0[usize::from(code)];
            if state == EMPTY && *known != UNKNOWN {
                state = *known - 1;
            } else if code == ESCAPE {
                let byte = *codes.next().ok_or(Fault::Malformed("escape at the end"))?;
                state = automaton.step(state, byte);
            } else {
                let after = automaton.run(state, table.symbol(code)?);
                if state == EMPTY {
                    *known = after + 1;
                }
                state = after;
            }
        }
        Ok(state)
    }
}

impl<'s> Searcher<'s> {
    fn new(search: &'s KeySearch, dictionary: &Dictionary, text: KeyText) -> Self {
        Self {
            search,
            finder: Finder::new(&search.needle),
            text,
            is_own: Arc::ptr_eq(&search.large, &dictionary.large),
            chapter: None,
            words: None,
            decodes: false,
            symbols: SymbolOutcomes::NONE,
        }
    }

    fn has_needle<'a>(
        &mut self,
        dictionary: &'a Dictionary,
        cursor: &mut KeyCursor<'a>,
        place: &KeyInPage<'a, '_>,
    ) -> Result<bool> {
        let of_page = |fault| dictionary.error(place.page.block, fault);
        if self.chapter != Some(place.page.page.symbol_table) {
            self.enter_chapter(dictionary, place).map_err(of_page)?;
        }
        if self.decodes || place.page.page.large(place.within).is_some() {
            let key = cursor.at_group(place.page, place.within, place.group)?;
            return Ok(self.is_in_decoded(key));
        }
        self.is_in_encoded(cursor, place).map_err(of_page)
    }

    fn enter_chapter(&mut self, dictionary: &Dictionary, place: &KeyInPage<'_, '_>) -> Decoded<()> {
        let chapter = place.page.page.symbol_table;
        let words = place.page.decoder.words.as_ref();
        self.symbols = SymbolOutcomes::NONE;
        self.words = match words.zip(dictionary.vocabulary_of(chapter)?) {
            Some((words, block)) if self.is_own => self.search.table(block, words),
            _ => None,
        };
        self.decodes = words.is_some() && self.words.is_none();
        self.chapter = Some(chapter);
        Ok(())
    }

    fn is_in_decoded(&self, key: &[u8]) -> bool {
        let text = match self.text {
            KeyText::AfterFirstByte => key.get(1..),
            KeyText::AfterFirstZero => memchr::memchr(0, key).and_then(|zero| key.get(zero + 1..)),
        };
        let automaton = &self.search.automaton;
        text.is_some_and(|text| match self.search.ignores_case {
            true => automaton.run(EMPTY, text) == automaton.found,
            false => self.finder.find(text).is_some(),
        })
    }

    fn is_in_encoded<'a>(
        &mut self,
        cursor: &mut KeyCursor<'a>,
        place: &KeyInPage<'a, '_>,
    ) -> Decoded<bool> {
        let automaton = &self.search.automaton;
        let number = place.within % GROUP_KEYS;
        let shared = cursor.shared_at_group(place.page, place.within, place.group)?;
        let state = automaton.run(automaton.start(self.text), shared);
        if state == automaton.found {
            return Ok(true);
        }
        let (encoded, decoder) = (place.group.encoded(number), &place.page.decoder);
        let state = match &decoder.words {
            Some(words) => self.through_words(words, &decoder.symbols, encoded, state)?,
            None => {
                let (symbols, table) = (&mut self.symbols, &decoder.symbols);
                symbols.through(automaton, table, encoded, state)?
            }
        };
        Ok(state == automaton.found)
    }

    /// The state after encoded words.
    fn through_words(
        &mut self,
        words: &StoredWords<'_>,
        symbols: &SymbolTable<'_>,
        mut encoded: &[u8],
        mut state: State,
    ) -> Decoded<State> {
        let Some(outcomes) = &self.words else {
            return Err(Fault::Malformed("words without a vocabulary"));
        };
        let automaton = &self.search.automaton;
        while state != automaton.found {
            (state, encoded) = self.search.through_codes(words, outcomes, encoded, state)?;
            let Some((&lead, rest)) = encoded.split_first() else {
                break;
            };
            match lead {
                SINGLE => {
                    let (&byte, rest) = rest.split_first().ok_or(Fault::Malformed("byte"))?;
                    state = automaton.step(state, byte);
                    encoded = rest;
                }
                RUN => {
                    encoded = rest;
                    let length =
                        varint::read_length(&mut encoded).ok_or(Fault::Malformed("run length"))?;
                    let (run, rest) = encoded
                        .split_at_checked(length)
                        .ok_or(Fault::Malformed("run"))?;
                    state = self.symbols.through(automaton, symbols, run, state)?;
                    encoded = rest;
                }
                // A code: the needle is found before it.
                _ => break,
            }
        }
        Ok(state)
    }
}

impl KeySearch {
    /// Whether it is a search for these bytes.
    pub fn is_for(&self, needle: &[u8], ignores_case: bool) -> bool {
        let is_same = match ignores_case {
            true => needle.eq_ignore_ascii_case(&self.needle),
            false => needle == &*self.needle,
        };
        is_same && ignores_case == self.ignores_case
    }

    /// The table of a vocabulary; `None` if there are too many.
    fn table(&self, block: BlockNumber, words: &StoredWords<'_>) -> Option<Arc<WordOutcomes>> {
        let mut tables = self.tables.lock();
        let known = tables.iter().find(|(known, _)| *known == block);
        if let Some((_, table)) = known {
            return Some(Arc::clone(table));
        }
        if tables.len() == TABLES_MAX {
            return None;
        }
        let table = Arc::new(WordOutcomes::new(words.len(), &self.automaton));
        tables.push((block, Arc::clone(&table)));
        Some(table)
    }

    /// Goes through the codes that `encoded` begins with, up to its end, something that is no code,
    /// or the end of the needle: the state and the rest. Nothing of the key before is a code, so
    /// that its first word has no blank before it.
    fn through_codes<'e>(
        &self,
        words: &StoredWords<'_>,
        outcomes: &WordOutcomes,
        encoded: &'e [u8],
        mut state: State,
    ) -> Decoded<(State, &'e [u8])> {
        let automaton = &self.automaton;
        let mut is_after_word = false;
        let alone = outcomes.alone.as_ref();
        let after_word = outcomes.after_word.as_deref().unwrap_or(alone);
        let mut at = 0;
        while state != automaton.found
            && let Some((code, length)) = next_code(encoded, at)?
        {
            at += length;
            if state != EMPTY {
                let word = words.word(code)?;
                let is_word = is_word_byte(word[0]);
                if is_word && is_after_word {
                    state = automaton.step(state, b' ');
                }
                state = automaton.run(state, word);
                is_after_word = is_word;
                continue;
            }
            let table = if is_after_word { after_word } else { alone };
            let known = table
                .get(code as usize)
                .ok_or(Fault::Malformed("word code"))?;
            let outcome = match known.load(Ordering::Relaxed) {
                UNKNOWN => {
                    let outcome = self.outcome(words.word(code)?, is_after_word);
                    known.store(outcome, Ordering::Relaxed);
                    outcome
                }
                outcome => outcome,
            };
            is_after_word = outcome & IS_WORD != 0;
            state = (outcome & !IS_WORD) - 1;
        }
        Ok((state, encoded.get(at..).unwrap_or_default()))
    }

    /// What a word does to a search from [`EMPTY`].
    #[cold]
    fn outcome(&self, word: &[u8], is_after_word: bool) -> u8 {
        let is_word = is_word_byte(word[0]);
        let state = match is_word && is_after_word {
            true => self.automaton.step(EMPTY, b' '),
            false => EMPTY,
        };
        let state = self.automaton.run(state, word) + 1;
        if is_word { state | IS_WORD } else { state }
    }
}

//! The words of texts and the names of people, generated from stems.
//!
//! What matters is that texts weigh and compress as those of the official tool
//! do, for they are most of the data: as many distinct words (89,500), of the
//! same lengths (8.83 letters on average), drawn evenly, and made of as many
//! different stems. zstd -3 makes 2.36 of review texts made of them, 2.45 of the
//! official tool's.

use std::collections::HashSet;

use super::distribution::{Random, Stream};
use super::stems::{
    CODAS, NAME_BEGINNINGS, NAME_ENDINGS, NAME_MIDDLES, NUCLEI, ONSETS, PREFIXES, STEMS, SUFFIXES,
};
use super::vocabulary::{RDFS_COMMENT, RDFS_LABEL};
use super::writer::TripleWriter;

/// How many words of each length there are, from three letters on.
const WORDS_BY_LENGTH: [u32; 16] = [
    300, 1_300, 4_300, 8_400, 13_600, 16_600, 14_300, 10_300, 7_500, 5_300, 3_500, 2_000, 1_150,
    600, 250, 100,
];
const SHORTEST_WORD: usize = 3;

/// The words of texts.
pub struct WordList {
    letters: Vec<u8>,
    /// Where each word starts, and the end of the last.
    starts: Vec<u32>,
}

impl Default for WordList {
    fn default() -> Self {
        Self::new()
    }
}

impl WordList {
    /// The list is the same for every data set.
    pub fn new() -> Self {
        let mut open = WORDS_BY_LENGTH;
        let mut missing: u32 = open.iter().sum();
        let mut seen = HashSet::with_capacity(missing as usize);
        let mut list = Self {
            letters: Vec::with_capacity(missing as usize * 9),
            starts: vec![0],
        };
        let factory = WordFactory::new();
        let mut random = Random::for_entity(0, Stream::Words, 0);
        let mut word = String::new();
        // Every length can be made in far more ways than are wanted.
        while missing > 0 {
            word.clear();
            factory.make(&mut random, &mut word);
            let Some(place) = word
                .len()
                .checked_sub(SHORTEST_WORD)
                .and_then(|index| open.get_mut(index))
                .filter(|left| **left > 0)
            else {
                continue;
            };
            if seen.insert(word.clone()) {
                *place -= 1;
                missing -= 1;
                list.letters.extend_from_slice(word.as_bytes());
                list.starts.push(list.letters.len() as u32);
            }
        }
        list
    }

    fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Appends `low` to `high` words, with blanks between.
    pub fn write(&self, random: &mut Random, low: u32, high: u32, out: &mut Vec<u8>) {
        let count = random.between(low, high);
        for _ in 0..count {
            let index = random.below(self.len()) as usize;
            let word = self.starts[index] as usize..self.starts[index + 1] as usize;
            out.extend_from_slice(&self.letters[word]);
            out.push(b' ');
        }
        out.pop();
    }

    /// Label (one to three words) and comment (20 to 50) of the current subject.
    pub(crate) fn write_label_and_comment(
        &self,
        random: &mut Random,
        writer: &mut TripleWriter<'_>,
    ) {
        writer.literal(RDFS_LABEL, "\"", |out| self.write(random, 1, 3, out));
        writer.literal(RDFS_COMMENT, "\"", |out| self.write(random, 20, 50, out));
    }
}

/// Makes words, good and repeated ones.
struct WordFactory {
    stems: Vec<&'static str>,
}

impl WordFactory {
    fn new() -> Self {
        Self {
            stems: STEMS.split_whitespace().collect(),
        }
    }

    fn make(&self, random: &mut Random, word: &mut String) {
        if random.chance(20) {
            add(random, word, PREFIXES);
        }
        match random.below(100) {
            // A known stem, a compound of two, or a made-up one: with the known
            // stems alone texts would compress too well.
            0..32 => add(random, word, &self.stems),
            32..44 => {
                add(random, word, &self.stems);
                add(random, word, &self.stems);
            }
            44..66 => syllable(random, word),
            _ => {
                syllable(random, word);
                add(random, word, NUCLEI);
                add(random, word, CODAS);
            }
        }
        let suffix = random.pick(SUFFIXES).copied().unwrap_or_default();
        if suffix.starts_with(is_vowel) && word.ends_with(['e', 'y']) {
            word.pop();
        }
        if suffix.starts_with('s') && word.ends_with('s') {
            word.push('e');
        }
        word.push_str(suffix);
    }
}

fn syllable(random: &mut Random, word: &mut String) {
    add(random, word, ONSETS);
    add(random, word, NUCLEI);
    add(random, word, CODAS);
}

fn add(random: &mut Random, word: &mut String, parts: &[&str]) {
    word.push_str(random.pick(parts).copied().unwrap_or_default());
}

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

/// Appends the name of a person: a given name, or in five of six cases two.
pub(crate) fn write_name(random: &mut Random, out: &mut Vec<u8>) {
    given_name(random, out);
    if random.below(6) > 0 {
        out.push(b'-');
        given_name(random, out);
    }
}

/// Appends a given name.
pub fn given_name(random: &mut Random, out: &mut Vec<u8>) {
    for parts in [NAME_BEGINNINGS, NAME_MIDDLES, NAME_ENDINGS] {
        out.extend_from_slice(random.pick(parts).copied().unwrap_or_default().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_many_and_as_long_as_wanted() {
        let list = WordList::new();
        let mean = list.letters.len() as f64 / f64::from(list.len());
        assert_eq!(list.len(), WORDS_BY_LENGTH.iter().sum::<u32>());
        assert!((8.7..9.0).contains(&mean), "{mean}");
        assert!(list.letters.iter().all(u8::is_ascii_lowercase));
    }

    #[test]
    fn names_have_one_or_two_parts() {
        let mut random = Random::new(5);
        let names: Vec<String> = (0..2_000)
            .map(|_| {
                let mut out = Vec::new();
                write_name(&mut random, &mut out);
                String::from_utf8(out).unwrap()
            })
            .collect();
        let mean = names.iter().map(String::len).sum::<usize>() as f64 / names.len() as f64;
        assert!((12.0..13.2).contains(&mean), "{mean}");
        assert!(names.iter().any(|name| !name.contains('-')));
    }
}

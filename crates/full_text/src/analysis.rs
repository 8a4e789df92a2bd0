//! The tokenizer: from texts to words.
//!
//! ```text
//! text -> runs of letters and digits -> none over 255 bytes -> small letters -> stem, by the language -> letters without accents
//! ```
//!
//! The language is that of the literal's tag: `en`, `en-GB`. A text without one, or in a language
//! without a stemmer, is *plain*: its words are not stemmed. The accents go last, for stemmers know
//! them. A query is cut in the same way, once for each analyzer that has documents. Languages that
//! are written without spaces are not cut into words.

use std::sync::LazyLock;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer,
    TextAnalyzer, TokenizerManager,
};

use crate::grams::{GRAMS, GramTokenizer};

/// Words with more bytes are passed over.
const WORD_BYTES_MAX: usize = 255;

/// The languages with a stemmer, by the first part of their tags. Their order is that of the fields
/// of an index, which are stored: new ones go to the end.
const LANGUAGES: [(&str, Language); 18] = [
    ("ar", Language::Arabic),
    ("da", Language::Danish),
    ("nl", Language::Dutch),
    ("en", Language::English),
    ("fi", Language::Finnish),
    ("fr", Language::French),
    ("de", Language::German),
    ("el", Language::Greek),
    ("hu", Language::Hungarian),
    ("it", Language::Italian),
    ("no", Language::Norwegian),
    ("pt", Language::Portuguese),
    ("ro", Language::Romanian),
    ("ru", Language::Russian),
    ("es", Language::Spanish),
    ("sv", Language::Swedish),
    ("ta", Language::Tamil),
    ("tr", Language::Turkish),
];

/// Number of analyzers.
pub const ANALYZERS: usize = LANGUAGES.len() + 1;

/// The tokenizer of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Analyzer(u8);

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// As it stands in the index.
    pub(crate) text: String,
    /// The how-manieth it is.
    pub(crate) position: usize,
    /// Its bytes in the text.
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Analyzer {
    /// Words as they are.
    pub const PLAIN: Self = Self(0);

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ANALYZERS as u8).map(Self)
    }

    /// The one for literals with a language tag, in lower case, or without.
    pub fn of_language(tag: Option<&str>) -> Self {
        let Some(tag) = tag else { return Self::PLAIN };
        let primary = tag.split('-').next().unwrap_or_default();
        // Both standards of Norwegian.
        let primary = match primary {
            "nb" | "nn" => "no",
            other => other,
        };
        let at = LANGUAGES.iter().position(|(code, _)| *code == primary);
        at.map_or(Self::PLAIN, |at| Self(at as u8 + 1))
    }

    /// Its name: `plain`, or the language.
    pub fn name(self) -> &'static str {
        match self.language() {
            None => "plain",
            Some((code, _)) => code,
        }
    }

    /// Its number, below [`ANALYZERS`].
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// Whether words are stemmed, so that beginnings of words are looked for elsewhere.
    pub(crate) fn has_stems(self) -> bool {
        self != Self::PLAIN
    }

    fn language(self) -> Option<(&'static str, Language)> {
        self.number().checked_sub(1).map(|at| LANGUAGES[at])
    }

    pub(crate) fn to_tantivy(self) -> TextAnalyzer {
        let words = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(WORD_BYTES_MAX + 1))
            .filter(LowerCaser);
        match self.language() {
            None => words.filter(AsciiFoldingFilter).build(),
            Some((_, language)) => {
                let stems = words.filter(Stemmer::new(language));
                stems.filter(AsciiFoldingFilter).build()
            }
        }
    }

    /// The words of a text.
    pub(crate) fn words(self, text: &str) -> Vec<Word> {
        words_of(&mut self.to_tantivy(), text)
    }
}

/// The words of a text by an analyzer that is at hand.
pub(crate) fn words_of(analyzer: &mut TextAnalyzer, text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut stream = analyzer.token_stream(text);
    while let Some(token) = stream.next() {
        words.push(Word {
            text: token.text.clone(),
            position: token.position,
            from: token.offset_from,
            to: token.offset_to,
        });
    }
    words
}

/// All analyzers by their names, as an index of tantivy looks for them. Copies share them.
static TOKENIZERS: LazyLock<TokenizerManager> = LazyLock::new(new_tokenizers);

pub(crate) fn tokenizers() -> &'static TokenizerManager {
    &TOKENIZERS
}

fn new_tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::new();
    // It asks for one for fields without words too.
    manager.register("default", Analyzer::PLAIN.to_tantivy());
    let grams = TextAnalyzer::builder(GramTokenizer::default()).build();
    manager.register(GRAMS, grams);
    for analyzer in Analyzer::all() {
        manager.register(analyzer.name(), analyzer.to_tantivy());
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(analyzer: Analyzer, text: &str) -> Vec<String> {
        let words = analyzer.words(text).into_iter();
        words.map(|word| word.text).collect()
    }

    #[test]
    fn words_are_stemmed_by_the_language_of_the_tag() {
        let of = |tag| Analyzer::of_language(Some(tag));
        assert_eq!(texts(of("en-gb"), "Running horses"), ["run", "hors"]);
        assert_eq!(texts(of("de"), "Häuser"), ["haus"]);
        assert_eq!(texts(of("ja"), "Running"), ["running"]);
        assert_eq!(
            texts(Analyzer::PLAIN, "Café-Crème, 3!"),
            ["cafe", "creme", "3"]
        );
        assert_eq!(of("nb"), of("no"));
        assert_ne!(of("nb"), Analyzer::PLAIN);
        assert_eq!(Analyzer::of_language(None), Analyzer::PLAIN);
    }

    #[test]
    fn words_that_are_too_long_leave_a_gap() {
        let text = format!("a {} b", "x".repeat(WORD_BYTES_MAX + 1));
        let words = Analyzer::PLAIN.words(&text);
        let places: Vec<_> = words.iter().map(|word| word.position).collect();
        assert_eq!(places, [0, 2]);
    }
}

//! The fields of an index.
//!
//! ```text
//! number          fast u64   what its owner knows a document by; ascending
//! plain           words with positions, of documents without a stemmer
//! en, de, ...     stems with positions, of documents in the language
//! en_words, ...   words as they are, of the same documents: for beginnings of words, and words that are nearly written so
//! grams           every three characters of the folded text, without positions, where the index is to have them
//! ```
//!
//! A document has words in one of `plain`, `en`, `de` ..., so a search by one of them finds each
//! document once.

use std::sync::LazyLock;

use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};

use crate::analysis::{ANALYZERS, Analyzer};
use crate::grams::GRAMS;

/// A schema and its fields.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) schema: Schema,
    number: Field,
    stems: [Field; ANALYZERS],
    words: [Field; ANALYZERS],
    grams: Option<Field>,
}

/// Name of the field with the numbers.
pub(crate) const NUMBER: &str = "number";

/// They are the same for every index, ...
static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::new(false));
/// ... and for every one with grams: the same ones, and one more.
static FIELDS_WITH_GRAMS: LazyLock<Fields> = LazyLock::new(|| Fields::new(true));

impl Fields {
    /// Those that every index has.
    pub(crate) fn of_all() -> &'static Self {
        &FIELDS
    }

    /// Those of an index with grams.
    pub(crate) fn with_grams() -> &'static Self {
        &FIELDS_WITH_GRAMS
    }

    fn new(has_grams: bool) -> Self {
        let mut schema = Schema::builder();
        let number = schema.add_u64_field(NUMBER, NumericOptions::default().set_fast());
        let with_positions = |name: &str| {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(name)
                .set_index_option(IndexRecordOption::WithFreqsAndPositions);
            TextOptions::default().set_indexing_options(indexing)
        };
        let of_words = TextFieldIndexing::default()
            .set_tokenizer(Analyzer::PLAIN.name())
            .set_index_option(IndexRecordOption::Basic)
            .set_fieldnorms(false);
        let of_words = TextOptions::default().set_indexing_options(of_words);
        let of_grams = TextFieldIndexing::default()
            .set_tokenizer(GRAMS)
            .set_index_option(IndexRecordOption::Basic)
            .set_fieldnorms(false);
        let of_grams = TextOptions::default().set_indexing_options(of_grams);
        let mut stems = [number; ANALYZERS];
        let mut words = [number; ANALYZERS];
        for analyzer in Analyzer::all() {
            let name = analyzer.name();
            let stem = schema.add_text_field(name, with_positions(name));
            stems[analyzer.number()] = stem;
            words[analyzer.number()] = match analyzer.has_stems() {
                true => schema.add_text_field(&format!("{name}_words"), of_words.clone()),
                false => stem,
            };
        }
        let grams = has_grams.then(|| schema.add_text_field(GRAMS, of_grams));
        Self {
            schema: schema.build(),
            number,
            stems,
            words,
            grams,
        }
    }

    /// Of the numbers.
    pub(crate) fn number(&self) -> Field {
        self.number
    }

    /// Of the words or stems of an analyzer.
    pub(crate) fn stems(&self, analyzer: Analyzer) -> Field {
        self.stems[analyzer.number()]
    }

    /// Of the grams, if it has them.
    pub(crate) fn grams(&self) -> Option<Field> {
        self.grams
    }

    /// Of its words without stemming; the same one where nothing is stemmed.
    pub(crate) fn words(&self, analyzer: Analyzer) -> Field {
        self.words[analyzer.number()]
    }
}

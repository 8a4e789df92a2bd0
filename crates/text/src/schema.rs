//! The fields of an index.
//!
//! ```text
//! number          fast u64   what its owner knows a document by; ascending
//! plain           words with positions, of documents without a stemmer
//! en, de, ...     stems with positions, of documents in the language
//! en_words, ...   words as they are, of the same documents: for beginnings of words, and words that are nearly written so
//! ```
//!
//! A document has words in one of `plain`, `en`, `de` ..., so a search by one of them finds each document once.

use std::sync::LazyLock;

use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};

use crate::analysis::{ANALYZERS, Analyzer};

/// A schema and its fields.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) schema: Schema,
    number: Field,
    stems: [Field; ANALYZERS],
    words: [Field; ANALYZERS],
}

/// Name of the field with the numbers.
pub(crate) const NUMBER: &str = "number";

/// They are the same for every index.
static FIELDS: LazyLock<Fields> = LazyLock::new(Fields::new);

impl Fields {
    /// Those of every index.
    pub(crate) fn of_all() -> &'static Self {
        &FIELDS
    }

    fn new() -> Self {
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
        Self {
            schema: schema.build(),
            number,
            stems,
            words,
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

    /// Of its words without stemming; the same one where nothing is stemmed.
    pub(crate) fn words(&self, analyzer: Analyzer) -> Field {
        self.words[analyzer.number()]
    }
}

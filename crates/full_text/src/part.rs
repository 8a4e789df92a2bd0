//! An open index part.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tantivy::schema::Field;
use tantivy::{Index, InvertedIndexReader, ReloadPolicy, Searcher, SegmentReader, Term};

use crate::analysis::{ANALYZERS, Analyzer, tokenizers};
use crate::error::TextError;
use crate::files::{PartDirectory, PartFile};
use crate::schema::Fields;

/// The number of documents of a part, by analyzer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentCounts(pub(crate) BTreeMap<String, u64>);

impl DocumentCounts {
    /// All documents.
    pub fn all(&self) -> u64 {
        self.0.values().sum()
    }

    /// The counts by analyzer.
    pub fn by_analyzer(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// Adds the counts of another part.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }
}

/// An open part. Cheap to search: what is read of its files stays where it is.
pub struct OpenPart {
    fields: &'static Fields,
    searcher: Searcher,
    /// What documents there are, by analyzers.
    documents: [u64; ANALYZERS],
}

impl std::fmt::Debug for OpenPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenPart")
            .field("documents", &self.documents())
            .finish_non_exhaustive()
    }
}

impl OpenPart {
    /// Opens the files of a finished part.
    ///
    /// # Errors
    /// When they cannot be read, or are not the files of a part with so many documents.
    pub fn open(files: Vec<PartFile>, counts: &DocumentCounts) -> Result<Self, TextError> {
        let mut index = Index::open(PartDirectory::new(files))?;
        index.set_tokenizers(tokenizers().clone());
        let known = [Fields::of_all(), Fields::with_grams()];
        let fields = known
            .into_iter()
            .find(|fields| index.schema() == fields.schema);
        let fields = fields.ok_or_else(|| {
            let what = "its fields are not those that this program writes";
            TextError::Damaged(what.to_owned())
        })?;
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(0)
            .try_into()?;
        let searcher = reader.searcher();
        let mut documents = [0; ANALYZERS];
        for analyzer in Analyzer::all() {
            let count = counts.0.get(analyzer.name());
            documents[analyzer.number()] = count.copied().unwrap_or_default();
        }
        let part = Self {
            fields,
            searcher,
            documents,
        };
        let (found, expected) = (part.searcher.num_docs(), part.documents());
        if found != expected || part.searcher.segment_readers().len() != 1 {
            let what = format!("it has {found} documents, expected {expected}");
            return Err(TextError::Damaged(what));
        }
        Ok(part)
    }

    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.documents.iter().sum()
    }

    /// Number of documents of an analyzer.
    pub(crate) fn documents_of(&self, analyzer: Analyzer) -> u64 {
        self.documents[analyzer.number()]
    }

    pub(crate) fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    pub(crate) fn segment(&self) -> &SegmentReader {
        self.searcher.segment_reader(0)
    }

    /// Whether it has the grams of its documents.
    pub fn has_grams(&self) -> bool {
        self.fields.grams().is_some()
    }

    pub(crate) fn gram_field(&self) -> Result<Field, TextError> {
        let grams = self.fields.grams();
        grams.ok_or_else(|| TextError::Damaged("it has no grams".to_owned()))
    }

    pub(crate) fn grams(&self) -> Result<Arc<InvertedIndexReader>, TextError> {
        Ok(self.segment().inverted_index(self.gram_field()?)?)
    }

    /// How many words the documents of an analyzer have.
    pub(crate) fn words_of(&self, analyzer: Analyzer) -> Result<u64, TextError> {
        let index = self.segment().inverted_index(self.fields.stems(analyzer))?;
        Ok(index.total_num_tokens())
    }

    /// How many documents have a word.
    pub(crate) fn documents_with(&self, word: &Term) -> tantivy::Result<u64> {
        let index = self.segment().inverted_index(word.field())?;
        Ok(u64::from(index.doc_freq(word)?))
    }

    /// The numbers of all documents, ascending.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn numbers(&self) -> Result<impl Iterator<Item = u64>, TextError> {
        let column = self.segment().fast_fields().u64(crate::schema::NUMBER)?;
        let values = column.values;
        Ok((0..self.segment().max_doc()).map(move |document| values.get_val(document)))
    }

    /// Whether it has a document of this number: a binary search.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn contains(&self, number: u64) -> Result<bool, TextError> {
        let column = self.segment().fast_fields().u64(crate::schema::NUMBER)?;
        let (mut low, mut high) = (0, self.segment().max_doc());
        while low < high {
            let middle = low + (high - low) / 2;
            match column.values.get_val(middle).cmp(&number) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }
}

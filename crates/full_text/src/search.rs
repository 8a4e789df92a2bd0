//! Searches: matching documents and their scores.
//!
//! The query is compiled once for each analyzer that has documents, and run over each part. Scores
//! are BM25's (k1 1.2, b 0.75; the length of a text is kept in one byte, as in Lucene) with the
//! figures that the caller gives: those of some parts, or none. All matches are looked at, for the
//! owner may have to leave some out; what is kept of each are twelve bytes.

use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, EnableScoring, FuzzyTermQuery, Occur, PhraseQuery,
    Query as Compiled, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, TERMINATED, Term};

use crate::analysis::Analyzer;
use crate::error::TextError;
use crate::part::OpenPart;
use crate::query::{Node, Query};
use crate::schema::{Fields, NUMBER};

/// Documents between two looks at whether to go on.
const BETWEEN_LOOKS: usize = 8 * 1024;
/// Words of a text where nothing is known of texts.
const USUAL_WORDS: u64 = 16;

/// A document that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number.
    pub number: u64,
    /// How well it matches: the more the better.
    pub score: f32,
}

/// The statistics from which scores are computed.
#[derive(Debug, Clone, Copy)]
pub enum Figures<'p> {
    /// How often words are, and how long texts are, in all documents of these parts.
    Of(&'p [OpenPart]),
    /// None: each word counts the same, and texts are as long as texts usually are. So scores tell
    /// nothing of other documents.
    Constant,
}

/// Passes every matching document of the parts to `found`, in no order, each once if no number is
/// in two parts. From time to time `go_on` is asked.
///
/// # Errors
/// When a part is damaged, or `go_on` says no.
pub fn search<'p>(
    parts: impl IntoIterator<Item = &'p OpenPart> + Clone,
    query: &Query,
    figures: Figures<'_>,
    go_on: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(Hit),
) -> Result<(), TextError> {
    let fields = Fields::of_all();
    for analyzer in Analyzer::all() {
        if query.only.is_some_and(|only| only != analyzer) {
            continue;
        }
        let has_documents = |part: &OpenPart| part.documents_of(analyzer) > 0;
        if !parts.clone().into_iter().any(has_documents) {
            continue;
        }
        let compiler = Compiler { fields, analyzer };
        let Some(compiled) = compiler.compile(&query.root) else {
            continue;
        };
        let figures = AnalyzerFigures::new(figures, analyzer)?;
        // Once for all parts: it asks each of them how often the words are.
        let mut weight = None;
        for part in parts.clone().into_iter().filter(|part| has_documents(part)) {
            let weight = match &mut weight {
                Some(weight) => weight,
                None => {
                    let searcher = part.searcher();
                    let scoring =
                        EnableScoring::enabled_from_statistics_provider(&figures, searcher);
                    weight.insert(compiled.weight(scoring)?)
                }
            };
            run(part, &**weight, go_on, found)?;
        }
    }
    Ok(())
}

fn run(
    part: &OpenPart,
    weight: &dyn Weight,
    go_on: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(Hit),
) -> Result<(), TextError> {
    if !go_on() {
        return Err(TextError::Stopped);
    }
    let segment = part.segment();
    let mut scorer = weight.scorer(segment, 1.0)?;
    let mut document = scorer.doc();
    if document == TERMINATED {
        return Ok(());
    }
    let numbers = segment.fast_fields().u64(NUMBER)?.values;
    let mut seen = 0;
    while document != TERMINATED {
        found(Hit {
            number: numbers.get_val(document),
            score: scorer.score(),
        });
        seen += 1;
        if seen % BETWEEN_LOOKS == 0 && !go_on() {
            return Err(TextError::Stopped);
        }
        document = scorer.advance();
    }
    Ok(())
}

/// The figures of an analyzer's documents.
struct AnalyzerFigures<'p> {
    documents: u64,
    words: u64,
    parts: &'p [OpenPart],
}

impl<'p> AnalyzerFigures<'p> {
    fn new(figures: Figures<'p>, analyzer: Analyzer) -> Result<Self, TextError> {
        let mut documents = 0;
        let mut words = 0;
        if let Figures::Of(parts) = figures {
            for part in parts {
                documents += part.documents_of(analyzer);
                words += part.words_of(analyzer)?;
            }
            if documents > 0 && words > 0 {
                return Ok(Self {
                    documents,
                    words,
                    parts,
                });
            }
        }
        Ok(Self {
            documents: 1,
            words: USUAL_WORDS,
            parts: &[],
        })
    }
}

impl Bm25StatisticsProvider for AnalyzerFigures<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.words)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let counts = self.parts.iter().map(|part| part.documents_with(term));
        let sum: u64 = counts.sum::<tantivy::Result<u64>>()?;
        Ok(sum.min(self.documents))
    }
}

/// From our queries to tantivy's, for one analyzer.
struct Compiler<'f> {
    fields: &'f Fields,
    analyzer: Analyzer,
}

impl Compiler<'_> {
    /// `None` where the analyzer leaves no word of it.
    fn compile(&self, node: &Node) -> Option<Box<dyn Compiled>> {
        match node {
            Node::Words(text) => self.words(text),
            Node::Prefix(beginning) => {
                let term = Term::from_field_text(self.fields.words(self.analyzer), beginning);
                Some(Box::new(FuzzyTermQuery::new_prefix(term, 0, true)))
            }
            Node::Fuzzy(word, distance) => {
                let term = Term::from_field_text(self.fields.words(self.analyzer), word);
                Some(Box::new(FuzzyTermQuery::new(term, *distance, true)))
            }
            Node::All { all, none } => {
                let must = all.iter().filter_map(|node| self.compile(node));
                let must: Vec<_> = must.map(|query| (Occur::Must, query)).collect();
                if must.is_empty() {
                    return None;
                }
                let not = none.iter().filter_map(|node| self.compile(node));
                let not = not.map(|query| (Occur::MustNot, query));
                Some(Box::new(BooleanQuery::new(
                    must.into_iter().chain(not).collect(),
                )))
            }
            Node::Any(any) => {
                let should = any.iter().filter_map(|node| self.compile(node));
                let should: Vec<_> = should.map(|query| (Occur::Should, query)).collect();
                (!should.is_empty())
                    .then(|| Box::new(BooleanQuery::new(should)) as Box<dyn Compiled>)
            }
        }
    }

    fn words(&self, text: &str) -> Option<Box<dyn Compiled>> {
        let field = self.fields.stems(self.analyzer);
        let words = self.analyzer.words(text);
        let terms = words
            .iter()
            .map(|word| (word.position, Term::from_field_text(field, &word.text)));
        let mut terms: Vec<_> = terms.collect();
        match terms.len() {
            0 => None,
            1 => {
                let (_, term) = terms.pop()?;
                let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
                Some(Box::new(query))
            }
            _ => Some(Box::new(PhraseQuery::new_with_offset(terms))),
        }
    }
}

//! Tests of searches against a naive model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::analysis::Analyzer;
use crate::highlight::is_near;
use crate::query::Node;
use crate::{
    Figures, GramBounds, GramQuery, Hit, OpenPart, PartBuilder, Query, gram_search, search,
};

type Document = (String, Option<&'static str>);

/// The parts of an index, cut at random.
fn index(documents: &[Document], cuts: &[usize]) -> Vec<OpenPart> {
    index_of(documents, cuts, false)
}

fn index_of(documents: &[Document], cuts: &[usize], has_grams: bool) -> Vec<OpenPart> {
    let mut parts = Vec::new();
    let mut part = PartBuilder::new(1 << 20, has_grams).unwrap();
    for (number, (text, tag)) in documents.iter().enumerate() {
        if cuts.contains(&number) && part.documents() > 0 {
            let full = std::mem::replace(&mut part, PartBuilder::new(1 << 20, has_grams).unwrap());
            parts.push(full.finish().unwrap().open().unwrap());
        }
        part.add(7 * number as u64, text, *tag).unwrap();
    }
    parts.push(part.finish().unwrap().open().unwrap());
    parts
}

fn found(parts: &[OpenPart], query: &Query, figures: Figures<'_>) -> BTreeMap<u64, f32> {
    let mut hits = BTreeMap::new();
    let mut found = |hit: Hit| {
        assert_eq!(hits.insert(hit.number, hit.score), None, "found twice");
    };
    search(parts, query, figures, &mut || true, &mut found).unwrap();
    hits
}

/// A text as the model sees it.
struct Seen {
    analyzer: Analyzer,
    stems: Vec<(usize, String)>,
    words: Vec<String>,
}

struct Model {
    documents: Vec<Seen>,
}

impl Model {
    fn new(documents: &[Document]) -> Self {
        let seen = |(text, tag): &Document| {
            let analyzer = Analyzer::of_language(*tag);
            let stems = analyzer.words(text).into_iter();
            let words = Analyzer::PLAIN.words(text).into_iter();
            Seen {
                analyzer,
                stems: stems.map(|word| (word.position, word.text)).collect(),
                words: words.map(|word| word.text).collect(),
            }
        };
        Self {
            documents: documents.iter().map(seen).collect(),
        }
    }

    fn of(&self, analyzer: Analyzer) -> impl Iterator<Item = &Seen> {
        let documents = self.documents.iter();
        documents.filter(move |document| document.analyzer == analyzer)
    }

    /// The score of a document, none where it does not match; `None` outside where the query says
    /// nothing for the analyzer.
    fn score(&self, node: &Node, document: &Seen, has_figures: bool) -> Option<Option<f64>> {
        match node {
            Node::Words(text) => {
                let words = document.analyzer.words(text);
                let first = words.first()?.position;
                let wanted: Vec<(usize, &str)> = words
                    .iter()
                    .map(|word| (word.position - first, word.text.as_str()))
                    .collect();
                let times = document.stems.iter().filter(|(start, _)| {
                    wanted.iter().all(|(offset, text)| {
                        let mut stems = document.stems.iter();
                        stems.any(|(at, stem)| *at == start + offset && stem == text)
                    })
                });
                let times = times.count();
                if times == 0 {
                    return Some(None);
                }
                let weights = wanted
                    .iter()
                    .map(|(_, text)| self.weight(document.analyzer, text, has_figures));
                let (count, length) = (times as f64, document.stems.len() as f64);
                let factor = 1.2
                    * (1.0 - 0.75 + 0.75 * length / self.length(document.analyzer, has_figures));
                Some(Some(weights.sum::<f64>() * 2.2 * count / (count + factor)))
            }
            Node::Prefix(beginning) => {
                let mut words = document.words.iter();
                Some(words.any(|word| word.starts_with(beginning)).then_some(1.0))
            }
            Node::Fuzzy(near, distance) => {
                let near: Vec<char> = near.chars().collect();
                let mut words = document.words.iter();
                Some(
                    words
                        .any(|word| is_near(&near, word, usize::from(*distance)))
                        .then_some(1.0),
                )
            }
            Node::All { all, none } => {
                let scores = all
                    .iter()
                    .filter_map(|node| self.score(node, document, has_figures));
                let scores: Vec<_> = scores.collect();
                if scores.is_empty() {
                    return None;
                }
                let is_excluded = none
                    .iter()
                    .any(|node| matches!(self.score(node, document, has_figures), Some(Some(_))));
                let sum: Option<f64> = scores.into_iter().sum();
                Some(sum.filter(|_| !is_excluded))
            }
            Node::Any(any) => {
                let scores = any
                    .iter()
                    .filter_map(|node| self.score(node, document, has_figures));
                let scores: Vec<_> = scores.flatten().collect();
                Some((!scores.is_empty()).then(|| scores.iter().sum()))
            }
        }
    }

    fn weight(&self, analyzer: Analyzer, word: &str, has_figures: bool) -> f64 {
        let (all, with) = match has_figures {
            false => (1.0, 0.0),
            true => {
                let has = |document: &&Seen| document.stems.iter().any(|(_, stem)| stem == word);
                (
                    self.of(analyzer).count() as f64,
                    self.of(analyzer).filter(has).count() as f64,
                )
            }
        };
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    fn length(&self, analyzer: Analyzer, has_figures: bool) -> f64 {
        if !has_figures {
            return 16.0;
        }
        let words: usize = self.of(analyzer).map(|document| document.stems.len()).sum();
        words as f64 / self.of(analyzer).count() as f64
    }

    fn found(&self, query: &Query, has_figures: bool) -> BTreeMap<u64, f64> {
        let documents = self.documents.iter().enumerate();
        let scores = documents.filter_map(|(number, document)| {
            let score = self.score(&query.root, document, has_figures)??;
            Some((7 * number as u64, score))
        });
        scores.collect()
    }
}

fn word() -> impl Strategy<Value = String> {
    const WORDS: [&str; 18] = [
        "wine", "wines", "red", "Reds", "running", "run", "ran", "café", "cafes", "house",
        "Häuser", "e-mail", "a", "b", "wein", "weine", "vin", "vino",
    ];
    prop::sample::select(&WORDS[..]).prop_map(str::to_owned)
}

fn document() -> impl Strategy<Value = Document> {
    let text = prop::collection::vec(word(), 0..9).prop_map(|words| words.join(" "));
    let tag = prop::sample::select(vec![None, Some("en"), Some("de"), Some("ja")]);
    (text, tag)
}

fn query() -> impl Strategy<Value = String> {
    let simple = prop_oneof![
        4 => word(),
        2 => prop::collection::vec(word(), 1..4).prop_map(|words| format!("\"{}\"", words.join(" "))),
        1 => word().prop_map(|word| format!("{}*", word.split('-').next().unwrap())),
        1 => (word(), 1..3).prop_map(|(word, n)| format!("{}~{n}", word.split('-').next().unwrap())),
    ];
    simple.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("({})", all.join(" "))),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|any| format!("({})", any.join(" OR "))),
            (inner.clone(), inner).prop_map(|(one, not)| format!("({one} NOT {not})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Lengths below 40 words are kept exactly, so scores are those of the model.
    #[test]
    fn searches_find_what_the_model_finds(
        documents in prop::collection::vec(document(), 1..30),
        cuts in prop::collection::vec(0..30_usize, 0..3),
        queries in prop::collection::vec(query(), 1..6),
    ) {
        let parts = index(&documents, &cuts);
        let model = Model::new(&documents);
        for text in queries {
            let query = Query::parse(&text).unwrap();
            for has_figures in [true, false] {
                let figures = if has_figures { Figures::Of(&parts) } else { Figures::Constant };
                let found = found(&parts, &query, figures);
                let expected = model.found(&query, has_figures);
                prop_assert_eq!(
                    found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", &text
                );
                for (number, score) in &found {
                    let wanted = expected[number];
                    prop_assert!(
                        (f64::from(*score) - wanted).abs() < 1e-4 * wanted.abs().max(1.0),
                        "{}: {} has {}, expected {}", &text, number, score, wanted
                    );
                }
            }
        }
    }
}

#[test]
fn parts_know_their_numbers() {
    let documents: Vec<Document> = (0..100).map(|n| (format!("text {n}"), None)).collect();
    let parts = index(&documents, &[40]);
    assert_eq!(parts.len(), 2);
    let numbers: Vec<u64> = parts
        .iter()
        .flat_map(|part| part.numbers().unwrap())
        .collect();
    assert_eq!(numbers, (0..100).map(|n| 7 * n).collect::<Vec<u64>>());
    assert!(parts[1].contains(7 * 40).unwrap() && !parts[0].contains(7 * 40).unwrap());
    assert!(!parts[1].contains(7 * 40 + 1).unwrap());
}

#[test]
fn numbers_that_do_not_ascend_are_refused() {
    let mut part = PartBuilder::new(1 << 20, false).unwrap();
    part.add(3, "a", None).unwrap();
    assert!(part.add(3, "b", None).is_err());
}

#[test]
fn a_part_without_the_documents_that_it_should_have_is_damaged() {
    let mut part = PartBuilder::new(1 << 20, false).unwrap();
    part.add(3, "a", None).unwrap();
    let part = part.finish().unwrap();
    assert!(OpenPart::open(part.files, &Default::default()).is_err());
}

#[test]
fn a_search_stops_when_it_is_told_to() {
    let documents = vec![("a".to_owned(), None)];
    let parts = index(&documents, &[]);
    let query = Query::parse("a").unwrap();
    let stopped = search(
        &parts,
        &query,
        Figures::Constant,
        &mut || false,
        &mut |_| {},
    );
    assert!(matches!(stopped, Err(crate::TextError::Stopped)));
}

fn gram_query() -> impl Strategy<Value = GramQuery> {
    let leaf = "[abß]{2,5}".prop_map(|text| GramQuery::of_text(&text));
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| one.and(other)),
            prop::collection::vec(inner, 1..4).prop_map(GramQuery::any),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// No document that has the grams is missed, none comes twice; where few are left, others may
    /// come.
    #[test]
    fn grams_find_what_the_model_finds(
        texts in prop::collection::vec("[abAßS]{0,7}", 1..200),
        cut in 0..200_usize,
        query in gram_query(),
    ) {
        let documents: Vec<Document> = texts.into_iter().map(|text| (text, None)).collect();
        let parts = index_of(&documents, &[cut], true);
        let mut found = Vec::new();
        let search = |bounds, found: &mut Vec<u64>| {
            gram_search(&parts, &query, bounds, &mut || true, &mut |number| found.push(number)).unwrap()
        };
        prop_assert!(search(GramBounds::Postings(u64::MAX), &mut found));
        found.sort_unstable();
        let expected: Vec<u64> = (0..).zip(&documents).filter(|(_, (text, _))| query.finds(text)).map(|(number, _)| 7 * number).collect();
        for number in &expected {
            prop_assert!(found.contains(number), "{:?} misses {:?}", query, documents[*number as usize / 7]);
        }
        prop_assert!(found.is_sorted_by(|one, other| one < other));
        prop_assert!(found.len() <= expected.len() + 2 * 32, "{} for {}", found.len(), expected.len());
        let mut none = Vec::new();
        prop_assert!(expected.is_empty() || !search(GramBounds::Postings(0), &mut none));
        prop_assert!(none.is_empty() || expected.is_empty());
        // Exactly, nothing but what a document has itself says whether it comes: beside few others
        // as beside many.
        let mut exact = Vec::new();
        prop_assert!(search(GramBounds::Exact, &mut exact));
        for (number, document) in documents.iter().enumerate() {
            let alone = index_of(std::slice::from_ref(document), &[], true);
            let mut comes = false;
            gram_search(&alone, &query, GramBounds::Exact, &mut || true, &mut |_| comes = true).unwrap();
            prop_assert_eq!(comes, exact.contains(&(7 * number as u64)));
        }
    }
}

#[test]
fn a_part_without_grams_says_so() {
    let parts = index(&[("abc".to_owned(), None)], &[]);
    let query = GramQuery::of_text("abc");
    assert!(!parts[0].has_grams());
    assert!(gram_search(&parts, &query, GramBounds::Exact, &mut || true, &mut |_| {}).is_err());
}

#[test]
fn what_a_part_grows_by_is_beside_what_it_takes_when_it_is_begun() {
    for has_grams in [false, true] {
        let mut part = PartBuilder::new(1 << 20, has_grams).unwrap();
        part.add(1, "one text", Some("en")).unwrap();
        assert_eq!(part.grown_bytes(), 0);
        let begun = part.memory_bytes();
        for number in 2..20_000 {
            part.add(number, &format!("some words, number {number}"), Some("en"))
                .unwrap();
        }
        assert_eq!(part.memory_bytes(), begun + part.grown_bytes());
        assert!(part.grown_bytes() > 1 << 20);
        let bytes = part.finish().unwrap().bytes();
        println!("begun with {begun} bytes, finished with {bytes}");
    }
}

//! Evaluates our explore queries over generated data with an independent
//! evaluator: they parse, most of them find something, and where the official
//! templates are at hand (`ORRERY_SHARED`) both give the same answers.

#![allow(clippy::expect_used)] // A test that cannot read its data has failed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use orrery_bsbm::parameters::{ParameterPool, ParameterSet};
use orrery_bsbm::templates::{explore_template, instantiate};
use orrery_bsbm::{Catalog, GenerateOptions, generate};
use oxrdf::{Dataset, GraphName};
use oxttl::NTriplesParser;
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;

const OPTIONS: GenerateOptions = GenerateOptions {
    products: 200,
    seed: 16,
};
const SETS_PER_QUERY: u32 = 10;

fn dataset() -> Dataset {
    let mut data = Vec::new();
    generate(&OPTIONS, &mut data).expect("memory");
    NTriplesParser::new()
        .for_slice(&data)
        .map(|triple| triple.expect("N-Triples").in_graph(GraphName::DefaultGraph))
        .collect()
}

fn parameter_sets() -> Vec<ParameterSet> {
    ParameterPool::from_catalog(&Catalog::new(&OPTIONS))
        .expect("a pool")
        .parameter_sets(1, SETS_PER_QUERY)
        .expect("parameters")
}

/// The answer as lines, sorted.
fn answer(dataset: &Dataset, text: &str) -> Vec<String> {
    let query = SparqlParser::new()
        .parse_query(text)
        .expect("a valid query");
    let mut lines: Vec<String> = match QueryEvaluator::new()
        .prepare(&query)
        .execute(dataset)
        .expect("an answer")
    {
        QueryResults::Solutions(solutions) => solutions
            .map(|solution| {
                let solution = solution.expect("a solution");
                let cells: BTreeMap<_, _> = solution
                    .iter()
                    .map(|(name, term)| (name.as_str(), term.to_string()))
                    .collect();
                format!("{cells:?}")
            })
            .collect(),
        QueryResults::Graph(triples) => triples
            .map(|triple| triple.expect("a triple").to_string())
            .collect(),
        QueryResults::Boolean(value) => vec![value.to_string()],
    };
    lines.sort_unstable();
    lines
}

fn our_text(set: &ParameterSet) -> String {
    let template = explore_template(set.query).expect("an explore query");
    instantiate(template.text, &set.values).expect("all parameters")
}

#[test]
fn every_query_finds_something_with_some_parameters() {
    let dataset = dataset();
    let mut found: BTreeMap<u8, u32> = BTreeMap::new();
    for set in parameter_sets() {
        let is_found = !answer(&dataset, &our_text(&set)).is_empty();
        *found.entry(set.query).or_default() += u32::from(is_found);
    }
    for query in [2, 5, 7, 8, 9, 10, 11, 12] {
        assert!(
            found[&query] >= SETS_PER_QUERY / 2,
            "query {query}: {found:?}"
        );
    }
    // Searches by features find nothing for most features of so few products, and
    // query 4 skips the first five.
    assert!(found[&1] > 0 && found[&3] > 0, "{found:?}");
}

#[test]
fn our_queries_answer_as_the_official_ones() {
    let shared =
        std::env::var_os("ORRERY_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folder = shared.join("bsbm/queries/explore");
    if !folder.is_dir() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    let dataset = dataset();
    for set in parameter_sets() {
        let path = folder.join(format!("query{}.txt", set.query));
        let official = std::fs::read_to_string(path).expect("a template");
        let official = instantiate(&official, &set.values).expect("all parameters");
        assert_eq!(
            answer(&dataset, &our_text(&set)),
            answer(&dataset, &official),
            "query {} with {:?}",
            set.query,
            set.values
        );
    }
}

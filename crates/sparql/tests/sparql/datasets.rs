//! Tests of datasets with quads in several graphs: strict, union, `FROM`, and the protocol's
//! parameters. The oracle evaluates over a dataset that was put together by hand, as the
//! specification describes it, so it has no opinion of its own about datasets.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::random;
use std::fmt::Write;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::QueryOptions;
use oxrdf::{Dataset, GraphName, NamedNode, Quad};
use random::Random;

const GRAPHS: [&str; 4] = ["g1", "g2", "g3", "nowhere"];

/// Levels of groups in groups.
const DEPTH: usize = 2;

fn graphs(random: &mut Random) -> Vec<&'static str> {
    let count = random.below(4);
    (0..count).map(|_| random.pick(&GRAPHS)).collect()
}

/// Few terms and many graphs, so that most triples stand in several of them.
fn data(random: &mut Random) -> String {
    let mut trig = "@prefix : <http://example.org/> .\n".to_owned();
    for graph in ["", ":g1", ":g2", ":g3"] {
        let _ = write!(trig, "{graph} {{ ");
        for _ in 0..random.below(9) {
            let subject = random.pick(&[":a", ":b", ":c"]);
            let predicate = random.pick(&[":p", ":q"]);
            let object = random.pick(&[":a", ":b", ":c", ":g1", "1"]);
            let _ = write!(trig, "{subject} {predicate} {object} . ");
        }
        trig.push_str("}\n");
    }
    trig
}

fn triple(random: &mut Random, depth: usize, text: &mut String) {
    // The variable of a GRAPH stands only outside of it: spareval would let an OPTIONAL inside see
    // it.
    let graph = if depth == DEPTH { "?g" } else { "?x" };
    let subject = random.pick(&["?x", "?y", graph, ":a"]);
    // No paths of length zero: to spareval, a constant that is not in the data does not reach
    // itself. No alternatives: it gives one solution for `?x :p|:q ?x` where both lead from a node
    // to itself.
    let predicate = random.pick(&[":p", ":q", "?p", ":p+", ":p/:q", "^:p"]);
    let object = random.pick(&["?x", "?y", "?z", graph, ":b", "1"]);
    let _ = write!(text, "{subject} {predicate} {object} . ");
}

fn group(random: &mut Random, depth: usize, is_in_graph: bool, text: &mut String) {
    for _ in 0..=random.below(3) {
        // No MINUS: to spareval, the variable of a GRAPH around it is shared by both sides.
        let before = match random.below(match (depth, is_in_graph) {
            (0, _) => 3,
            (_, true) => 6,
            (_, false) => 10,
        }) {
            0..=2 => {
                triple(random, depth, text);
                continue;
            }
            3 | 4 => "OPTIONAL ",
            5 => "FILTER EXISTS ",
            6 => "GRAPH :g1 ",
            7 => "GRAPH :nowhere ",
            _ if depth == DEPTH => "GRAPH ?g ",
            _ => "GRAPH ?h ",
        };
        let _ = write!(text, "{before}{{ ");
        // Only triples inside of a constant GRAPH, and no GRAPH in a GRAPH: spareval evaluates
        // other patterns there also if there is no such graph, and does not bind the outer
        // variable.
        let is_constant = before.starts_with("GRAPH :");
        let is_in_graph = is_in_graph || before.starts_with("GRAPH");
        group(
            random,
            if is_constant { 0 } else { depth - 1 },
            is_in_graph,
            text,
        );
        text.push_str("} ");
    }
}

fn iri(graph: &str) -> String {
    format!("http://example.org/{graph}")
}

/// The dataset with these graphs merged as default graph, and these named ones.
fn assembled(all: &Dataset, default: &[&str], named: &[&str]) -> Dataset {
    let is_of = |graph: &GraphName, names: &[&str]| match graph {
        GraphName::NamedNode(node) => names.iter().any(|name| iri(name) == node.as_str()),
        _ => false,
    };
    let mut dataset = Dataset::new();
    for quad in all {
        let quad = quad.into_owned();
        if is_of(&quad.graph_name, named) {
            dataset.insert(&quad);
        }
        if is_of(&quad.graph_name, default) {
            let (s, p, o) = (quad.subject, quad.predicate, quad.object);
            dataset.insert(&Quad::new(s, p, o, GraphName::DefaultGraph));
        }
    }
    dataset
}

/// The dataset whose default graph is the merge of all graphs.
fn united(all: &Dataset) -> Dataset {
    let mut dataset = all.clone();
    for quad in all {
        let quad = quad.into_owned();
        let (s, p, o) = (quad.subject, quad.predicate, quad.object);
        dataset.insert(&Quad::new(s, p, o, GraphName::DefaultGraph));
    }
    dataset
}

fn oracle(dataset: &Dataset, query: &str) -> Answer {
    let parsed = spargebra::SparqlParser::new()
        .parse_query(query)
        .unwrap_or_else(|error| panic!("{error} in {query}"));
    let evaluator = spareval::QueryEvaluator::new();
    let results = evaluator.prepare(&parsed).execute(dataset).unwrap();
    let spareval::QueryResults::Solutions(solutions) = results else {
        panic!("no solutions");
    };
    let rows = solutions.map(|solution| {
        let solution = solution.unwrap();
        let mut bindings: Vec<String> = solution
            .iter()
            .map(|(variable, term)| format!("{}={term}", variable.as_str()))
            .collect();
        bindings.sort();
        bindings.join(" ")
    });
    Answer::Solutions(rows.collect()).sorted()
}

#[test]
fn every_way_to_say_a_dataset_means_the_dataset_put_together_by_hand() {
    let mut failures = Vec::new();
    let mut rows = 0;
    for run in 0..40_u64 {
        let mut random = Random(run << 24);
        let trig = data(&mut random);
        let fixture = Fixture::new(&trig);
        let all = fixture.dataset.clone();
        for _ in 0..25 {
            let mut body = "{ ".to_owned();
            group(&mut random, DEPTH, false, &mut body);
            body.push('}');
            let plain = format!("{PREFIXES}SELECT * {body}");
            let (default, named) = (graphs(&mut random), graphs(&mut random));
            let mut from = String::new();
            for graph in &default {
                let _ = write!(from, "FROM :{graph} ");
            }
            for graph in &named {
                let _ = write!(from, "FROM NAMED :{graph} ");
            }
            let with_from = format!("{PREFIXES}SELECT * {from}{body}");
            let is_said = !default.is_empty() || !named.is_empty();
            let said = || {
                if is_said {
                    assembled(&all, &default, &named)
                } else {
                    all.clone()
                }
            };
            let protocol = QueryOptions {
                default_graphs: default.iter().map(|graph| iri(graph)).collect(),
                named_graphs: named.iter().map(|graph| iri(graph)).collect(),
                ..QueryOptions::of_process()
            };
            let union = QueryOptions {
                union_default_graph: true,
                ..QueryOptions::of_process()
            };
            let other_from = format!("{PREFIXES}SELECT * FROM :g3 FROM NAMED :g2 {body}");
            let union_said = if is_said { said() } else { united(&all) };
            let cases = [
                ("strict", &plain, QueryOptions::of_process(), all.clone()),
                ("FROM", &with_from, QueryOptions::of_process(), said()),
                ("protocol", &plain, protocol.clone(), said()),
                ("union", &plain, union.clone(), united(&all)),
                ("FROM over union", &with_from, union, union_said),
                (
                    "protocol over FROM",
                    &other_from,
                    protocol,
                    if is_said {
                        said()
                    } else {
                        assembled(&all, &["g3"], &["g2"])
                    },
                ),
            ];
            for (name, query, options, dataset) in cases {
                let expected = oracle(&dataset, &plain);
                let ours = fixture.ask_with(query, &options);
                let ours = ours
                    .unwrap_or_else(|error| panic!("{error} in {query}"))
                    .sorted();
                if let Answer::Solutions(solutions) = &ours {
                    rows += solutions.len();
                }
                if ours != expected {
                    let query = &query[PREFIXES.len()..];
                    failures.push(format!(
                        "{name}: {query}\n{options:?}\n{trig}ours {ours:#?}\nexpected {expected:#?}"
                    ));
                }
            }
        }
    }
    failures.sort_by_key(String::len);
    let count = failures.len();
    failures.truncate(3);
    assert!(count == 0, "{count} differ:\n{}", failures.join("\n\n"));
    assert!(rows > 3_000, "only {rows} rows were compared");
}

#[test]
fn a_quad_in_several_graphs_counts_once_in_a_union() {
    let fixture = Fixture::new(
        "@prefix : <http://example.org/> . :a :p :b . :g1 { :a :p :b . } :g2 { :a :p :b . :a :p :c . }",
    );
    let count = |query: &str, options: &QueryOptions| {
        let query = format!("{PREFIXES}{query}");
        let Answer::Solutions(rows) = fixture.ask_with(&query, options).unwrap() else {
            panic!("no solutions");
        };
        rows
    };
    let number = |n: usize| {
        vec![format!(
            "n=\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"
        )]
    };
    let strict = QueryOptions::of_process();
    let union = QueryOptions {
        union_default_graph: true,
        ..QueryOptions::of_process()
    };
    let all = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    assert_eq!(count(all, &strict), number(1));
    assert_eq!(count(all, &union), number(2));
    let from = "SELECT (COUNT(*) AS ?n) FROM :g1 FROM :g2 { ?s ?p ?o }";
    assert_eq!(count(from, &strict), number(2));
    let named = "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }";
    assert_eq!(count(named, &union), number(3));
    let node = NamedNode::new_unchecked(iri("g1"));
    let one = QueryOptions {
        default_graphs: vec![node.as_str().to_owned(), node.into_string()],
        ..QueryOptions::of_process()
    };
    assert_eq!(count(all, &one), number(1));
    assert_eq!(count(named, &one), number(0));
}

#[test]
fn an_optional_that_begins_a_graph_is_optional_in_each_graph() {
    let fixture = Fixture::new(
        "@prefix : <http://example.org/> . :g1 { :a :p 1 . :b :q :c . } :g2 { :b :q :a . }",
    );
    let query = format!("{PREFIXES}SELECT * {{ GRAPH ?g {{ OPTIONAL {{ ?x :p 1 }} :b :q ?x }} }}");
    let Answer::Solutions(rows) = fixture.ask(&query).unwrap() else {
        panic!("no solutions");
    };
    assert_eq!(rows, ["g=<http://example.org/g2> x=<http://example.org/a>"]);
}

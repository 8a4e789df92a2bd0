//! Property tests: any quads load and dump to the same set, and patterns return what a naive scan
//! returns.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use orrery_sparql::Engine;
use orrery_storage::Database;
use orrery_term::{Term, vocabulary::xsd};
use orrery_testsuite::answer::Answer;
use orrery_testsuite::engine;
use proptest::prelude::*;

type Quad = [String; 4];

/// All kinds of literals, odd ones too.
fn literal() -> impl Strategy<Value = Term<'static>> {
    let odd_numbers = prop::sample::select(vec![
        ("01", xsd::INTEGER),
        ("+1", xsd::INTEGER),
        ("-0", xsd::INTEGER),
        ("99999999999999999999999999", xsd::INTEGER),
        ("300", xsd::BYTE),
        ("not a number", xsd::INTEGER),
        ("-0.0", xsd::DOUBLE),
        ("NaN", xsd::DOUBLE),
        ("INF", xsd::DOUBLE),
        ("1.0E0", xsd::DOUBLE),
        ("1e0", xsd::DOUBLE),
        ("1.0", xsd::DOUBLE),
        ("0.1", xsd::DECIMAL),
        ("0.10", xsd::DECIMAL),
        ("-.5", xsd::DECIMAL),
        ("1", xsd::BOOLEAN),
        ("true", xsd::BOOLEAN),
        ("2020-02-30", xsd::DATE),
        ("12020-02-29", xsd::DATE),
        ("-0044-03-15", xsd::DATE),
        ("2020-02-29T24:00:00", xsd::DATE_TIME),
        ("2020-02-29T12:00:00.123456789Z", xsd::DATE_TIME),
        ("99999-12-31T23:59:59", xsd::DATE_TIME),
    ])
    .prop_map(|(lexical, datatype)| Term::typed(lexical, datatype));
    prop_oneof![
        odd_numbers,
        Just(Term::string("")),
        ".{0,12}".prop_map(Term::string),
        "[a-c]{1,3}".prop_map(Term::string),
        // Beyond a kilobyte, where literals stand apart.
        (900usize..5000, "[a-z]{1,4}")
            .prop_map(|(length, word)| { Term::string(word.repeat(length / word.len() + 1)) }),
        (
            ".{0,8}",
            prop::sample::select(vec!["en", "EN-gb", "de-Latn-1996", "x-y"])
        )
            .prop_map(|(lexical, tag)| Term::language(lexical, tag)),
        any::<i64>().prop_map(|value| Term::typed(value.to_string(), xsd::INTEGER)),
        any::<f64>().prop_map(|value| Term::typed(value.to_string(), xsd::DOUBLE)),
        (0u32..60, 1u32..29).prop_map(|(year, day)| {
            Term::typed(format!("{:04}-02-{day:02}", 1990 + year), xsd::DATE)
        }),
        (".{0,5}", "[a-z]{1,3}")
            .prop_map(|(lexical, name)| { Term::typed(lexical, format!("http://e/type/{name}")) }),
    ]
}

fn iri() -> impl Strategy<Value = Term<'static>> {
    prop_oneof![
        4 => "[a-d]{1,2}".prop_map(|name| Term::iri(format!("http://e/{name}"))),
        1 => "[a-z]{1,3}:[a-zé€]{0,40}".prop_map(Term::iri),
    ]
}

fn quad() -> impl Strategy<Value = Quad> {
    let object = prop_oneof![iri(), literal()];
    let graph = prop_oneof![
        3 => Just(String::new()),
        1 => "[g-i]".prop_map(|name| format!("<http://e/{name}>")),
    ];
    (iri(), "[p-r]", object, graph).prop_map(|(subject, predicate, object, graph)| {
        [
            subject.to_string(),
            format!("<http://e/{predicate}>"),
            object.to_string(),
            graph,
        ]
    })
}

fn quads(most: usize) -> impl Strategy<Value = BTreeSet<Quad>> {
    prop::collection::btree_set(quad(), 0..most)
}

fn load(quads: &BTreeSet<Quad>) -> (tempfile::TempDir, Engine) {
    let home = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for [subject, predicate, object, graph] in quads {
        writeln!(text, "{subject} {predicate} {object} {graph} .").unwrap();
    }
    let file = home.path().join("data.nq");
    std::fs::write(&file, text).unwrap();
    let database = home.path().join("db");
    engine::load(&database, &[file], 64 << 20).unwrap();
    let engine = engine::open(&database).unwrap();
    (home, engine)
}

fn dump(home: &tempfile::TempDir) -> BTreeSet<Quad> {
    let database = Database::open(home.path().join("db")).unwrap();
    let mut dumped = BTreeSet::new();
    let mut quads = database.view_of_process().quads().unwrap();
    while let Some(batch) = quads.next_batch().unwrap() {
        for quad in batch.iter() {
            let row = [
                quad.subject.to_string(),
                quad.predicate.to_string(),
                quad.object.to_string(),
                quad.graph.map_or(String::new(), ToString::to_string),
            ];
            assert!(dumped.insert(row.clone()), "twice: {row:?}");
        }
    }
    dumped
}

/// Loads until `prop_assert` can say what differs.
fn expect_same(loaded: &BTreeSet<Quad>, dumped: &BTreeSet<Quad>) -> Result<(), TestCaseError> {
    let lost: Vec<_> = loaded.difference(dumped).collect();
    let invented: Vec<_> = dumped.difference(loaded).collect();
    prop_assert!(
        lost.is_empty() && invented.is_empty(),
        "lost {lost:?}, invented {invented:?}"
    );
    Ok(())
}

/// What a scan over all quads finds for a pattern; `None` positions are variables.
fn naive(quads: &BTreeSet<Quad>, bound: &[Option<&str>; 3], graph: Graph) -> Vec<String> {
    let mut rows = Vec::new();
    for quad in quads {
        let in_graph = match graph {
            Graph::Default => quad[3].is_empty(),
            Graph::Named(name) => quad[3] == name,
            Graph::Variable => !quad[3].is_empty(),
        };
        let is_match = bound
            .iter()
            .zip(quad)
            .all(|(bound, term)| bound.is_none_or(|b| b == term));
        if in_graph && is_match {
            rows.push(format!("{quad:?}"));
        }
    }
    rows
}

#[derive(Clone, Copy)]
enum Graph<'a> {
    Default,
    Named(&'a str),
    Variable,
}

fn ask(engine: &Engine, bound: &[Option<&str>; 3], graph: Graph) -> Vec<String> {
    let names = ["?s", "?p", "?o"];
    let pattern: Vec<&str> = (0..3).map(|at| bound[at].unwrap_or(names[at])).collect();
    let pattern = pattern.join(" ");
    let query = match graph {
        Graph::Default => format!("SELECT * {{ {pattern} }}"),
        Graph::Named(name) => format!("SELECT * {{ GRAPH {name} {{ {pattern} }} }}"),
        Graph::Variable => format!("SELECT * {{ GRAPH ?g {{ {pattern} }} }}"),
    };
    let Answer::Solutions(rows) = engine::evaluate(engine, &query).unwrap() else {
        panic!("{query} is a SELECT");
    };
    let mut found: Vec<String> = rows
        .into_iter()
        .map(|mut row| {
            let mut quad: Quad = std::array::from_fn(|at| match bound.get(at).copied().flatten() {
                Some(term) => term.to_owned(),
                None => row.remove(["s", "p", "o", "g"][at]).unwrap_or_default(),
            });
            if let Graph::Named(name) = graph {
                quad[3] = name.to_owned();
            }
            format!("{quad:?}")
        })
        .collect();
    found.sort_unstable();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_set_of_quads_loads_and_dumps_to_the_same_set(quads in quads(120)) {
        let (home, _engine) = load(&quads);
        expect_same(&quads, &dump(&home))?;
        let damages = orrery_storage::verify(home.path().join("db"), |_| {}).unwrap();
        prop_assert!(damages.is_empty(), "{damages:?}");
    }

    #[test]
    fn any_pattern_returns_what_a_naive_scan_returns(
        quads in quads(80),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8, 0u8..3), 20),
    ) {
        prop_assume!(!quads.is_empty());
        let (_home, engine) = load(&quads);
        let all: Vec<&Quad> = quads.iter().collect();
        for (index, mask, graph) in picks {
            let quad = all[index.index(all.len())];
            let bound: [Option<&str>; 3] =
                std::array::from_fn(|at| (mask >> at & 1 == 1).then_some(quad[at].as_str()));
            let graph = match graph {
                0 => Graph::Default,
                1 => Graph::Variable,
                _ if quad[3].is_empty() => Graph::Default,
                _ => Graph::Named(&quad[3]),
            };
            let mut expected = naive(&quads, &bound, graph);
            expected.sort_unstable();
            prop_assert_eq!(ask(&engine, &bound, graph), expected);
        }
    }
}

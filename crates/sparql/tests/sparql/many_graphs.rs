//! Tests with a hundred thousand named graphs: queries read no more than they must.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;

use crate::common::{Answer, Fixture, PREFIXES};

const GRAPHS: usize = 100_000;

/// Three triples in each graph.
fn fixture() -> Fixture {
    let mut trig = String::from("@prefix : <http://example.org/> .\n");
    for graph in 0..GRAPHS {
        let _ = writeln!(trig, ":g{graph} {{ :s :p {graph} ; :q {graph} , -1 }}");
    }
    Fixture::new(&trig)
}

fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Ok(Answer::Solutions(rows)) => rows,
        other => panic!("{query}: {other:?}"),
    }
}

#[test]
fn what_is_asked_of_many_graphs_reads_no_more_than_it_must() {
    let fixture = fixture();
    for (query, answers, rows_max) in [
        // Names are skipped through; a limit ends that.
        (
            "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }",
            GRAPHS,
            GRAPHS,
        ),
        (
            "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } } LIMIT 10",
            10,
            1_024,
        ),
        ("SELECT ?g { GRAPH ?g {} }", GRAPHS, GRAPHS),
        ("SELECT ?g { GRAPH ?g {} } LIMIT 10", 10, 1_024),
        ("ASK { GRAPH ?g {} }", 1, 1_024),
        (
            "SELECT (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
            1,
            GRAPHS,
        ),
        ("SELECT (COUNT(*) AS ?n) { GRAPH ?g {} }", 1, GRAPHS),
        // Modifiers in each graph: each triple is read once, and not all where a limit stands
        // around.
        (
            "SELECT * { GRAPH ?g { SELECT ?o { ?s ?p ?o } LIMIT 1 } }",
            GRAPHS,
            3 * GRAPHS,
        ),
        (
            "SELECT * { GRAPH ?g { SELECT ?o { ?s ?p ?o } LIMIT 1 } } LIMIT 10",
            10,
            32_768,
        ),
        (
            "SELECT * { GRAPH ?g { SELECT ?o { ?s ?p ?o } ORDER BY ?o OFFSET 1 } }",
            2 * GRAPHS,
            3 * GRAPHS,
        ),
        (
            "SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }",
            GRAPHS,
            3 * GRAPHS,
        ),
        (
            "SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p 7 } } FILTER(?n > 0) }",
            1,
            GRAPHS,
        ),
        (
            "SELECT * { GRAPH ?g { SELECT DISTINCT ?s { ?s ?p ?o } } }",
            GRAPHS,
            3 * GRAPHS,
        ),
        (
            "SELECT * { GRAPH ?g { ?s :p 7 { SELECT ?s { ?s :q ?o } } } }",
            2,
            4,
        ),
    ] {
        if !query.starts_with("ASK") {
            assert_eq!(rows(&fixture, query).len(), answers, "{query}");
        }
        let most = fixture.most_rows(&format!("{PREFIXES}{query}"));
        assert!(most <= rows_max, "{most} rows in {query}");
    }
    let count = rows(
        &fixture,
        "SELECT (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
    );
    assert!(count[0].starts_with("n=\"100000\""), "{count:?}");
}

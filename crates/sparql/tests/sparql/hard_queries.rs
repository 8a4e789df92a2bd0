//! Tests of hard queries: what they read and hold is bounded by the plan, not by a clock.

use std::fmt::Write;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::EngineOptions;

fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Ok(Answer::Solutions(rows)) => rows,
        other => panic!("{query}: {other:?}"),
    }
}

/// The number that is a query's only value.
fn number(fixture: &Fixture, query: &str) -> usize {
    let rows = rows(fixture, query);
    let value = rows.first().and_then(|row| row.split('"').nth(1));
    let number = value.and_then(|value| value.parse().ok());
    number.unwrap_or_else(|| panic!("{query}: {rows:?}"))
}

/// Nodes of which each leads to `ways` others by `:p`, and to as many by `:q`.
fn dense(nodes: usize, ways: usize) -> String {
    let mut turtle = String::from("@prefix : <http://example.org/> .\n");
    for node in 0..nodes {
        for way in 0..ways {
            let (p, q) = ((node + way * 7 + 1) % nodes, (node + way * 11 + 1) % nodes);
            let _ = writeln!(turtle, ":n{node} :p :n{p} ; :q :n{q} .");
        }
    }
    turtle
}

/// Each repetition leads everywhere, and there are more than 10^9 ways from one end to the other.
#[test]
fn chains_of_paths_where_only_their_ends_count_stay_within_the_budget() {
    const NODES: usize = 500;
    let options = EngineOptions {
        memory_bytes: 16 << 20,
        threads: 1,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&dense(NODES, 20), options);
    let path = "?a :p/:q*/:p/:q*/:p ?b";
    let patterns = "?a :p ?x . ?x :q* ?y . ?y :p ?z . ?z :q* ?w . ?w :p ?b";
    let all = NODES * NODES;
    for (subquery, expected) in [
        (format!("SELECT DISTINCT ?a ?b {{ {path} }}"), all),
        (format!("SELECT DISTINCT ?a ?b {{ {patterns} }}"), all),
        (
            format!("SELECT DISTINCT ?a ?b {{ {path} FILTER(?a != ?b) }}"),
            all - NODES,
        ),
        (
            format!("SELECT DISTINCT ?a {{ {{ SELECT DISTINCT ?a ?b {{ {path} }} }} ?a :q ?c }}"),
            NODES,
        ),
        (
            format!("SELECT DISTINCT ?a ?b {{ ?a :q ?c OPTIONAL {{ {path} }} }}"),
            all,
        ),
        (format!("SELECT ?b {{ {path} }} GROUP BY ?b"), NODES),
        (
            format!("SELECT ?b (MIN(?a) AS ?k) {{ {path} }} GROUP BY ?b"),
            NODES,
        ),
    ] {
        let query = format!("SELECT (COUNT(*) AS ?n) {{ {{ {subquery} }} }}");
        assert_eq!(number(&fixture, &query), expected, "{query}");
    }
}

#[test]
fn a_chain_of_twelve_patterns_reads_little_more_than_its_answer() {
    // 5,000 triples; each pattern of the chain has a match for each of 416 nodes.
    let mut turtle = String::from("@prefix : <http://example.org/> .\n");
    for step in 0..12 {
        for node in 0..416 {
            let _ = writeln!(
                turtle,
                ":n{step}x{node} :p{step} :n{}x{} .",
                step + 1,
                node * 7 % 416
            );
        }
    }
    let fixture = Fixture::new(&turtle);
    let chain = |from: &str| {
        let pattern = |step: usize| format!("?n{step} :p{step} ?n{} . ", step + 1);
        let rest: String = (1..12).map(pattern).collect();
        format!("SELECT * {{ {from} :p0 ?n1 . {rest} }}")
    };
    for (query, answers, rows_max) in [(chain("?n0"), 416, 416), (chain(":n0x1"), 1, 1)] {
        assert_eq!(rows(&fixture, &query).len(), answers, "{query}");
        let most = fixture.most_rows(&format!("{PREFIXES}{query}"));
        assert!(most <= rows_max, "{most} rows in {query}");
    }
}

#[test]
fn the_first_rows_of_everything_come_without_the_others() {
    let fixture = Fixture::new(&dense(2_000, 20));
    let query = "SELECT * { ?s ?p ?o } LIMIT 10";
    assert_eq!(rows(&fixture, query).len(), 10);
    let most = fixture.most_rows(&format!("{PREFIXES}{query}"));
    assert!(most <= 1_024, "{most} of 80,000 rows");
}

#[test]
fn whether_there_is_a_solution_is_known_by_the_first() {
    let fixture = Fixture::new(&dense(2_000, 20));
    let ask = |query: &str| {
        let most = fixture.most_rows(&format!("{PREFIXES}{query}"));
        assert!(most <= 1_024, "{most} rows in {query}");
    };
    for pattern in [
        "?s ?p ?o",
        "?s ?p ?o . ?o ?q ?z",
        "{ ?s ?p ?o } UNION { ?o ?q ?s . ?s ?p ?z }",
        "{ ?s ?p ?o } UNION { { ?o ?q ?s } UNION { ?s ?p ?z } } BIND(1 AS ?one)",
        "SELECT DISTINCT ?s { ?s ?p ?o . ?o ?q ?z }",
        "SELECT DISTINCT ?s { { ?s ?p ?o } UNION { ?o ?p ?s } }",
    ] {
        assert!(matches!(
            fixture.ask(&format!("{PREFIXES}ASK {{ {pattern} }}")),
            Ok(Answer::Boolean(true))
        ));
        ask(&format!("ASK {{ {pattern} }}"));
    }
    ask("SELECT DISTINCT ?s { ?s ?p ?o . ?o ?q ?z } LIMIT 1");
}

//! Tests of time and memory limits, and of error messages.

use std::time::{Duration, Instant};

use orrery_sparql::{EngineOptions, QueryError, QueryOptions};

use super::{DATA, error};
use crate::common::Fixture;

#[test]
fn service_is_not_supported_unless_silent() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT * { SERVICE <http://elsewhere/> { ?s ?p ?o } }";
    assert!(matches!(
        error(&fixture, query),
        QueryError::Unsupported { .. }
    ));
}

#[test]
fn an_unknown_function_is_named() {
    let fixture = Fixture::new(DATA);
    let error = error(&fixture, "SELECT * { ?s :age ?a FILTER(:odd(?a)) }");
    assert!(error.to_string().contains("example.org/odd"), "{error}");
}

#[test]
fn a_query_over_its_time_says_the_limit() {
    let fixture = Fixture::new(DATA);
    let options = QueryOptions {
        timeout: Some(Duration::from_millis(20)),
        ..QueryOptions::of_process()
    };
    let query = "SELECT (COUNT(*) AS ?c) { ?a ?b ?c1 . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o
        FILTER(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j)) != STR(?m)) }";
    match fixture.ask_with(query, &options) {
        Err(QueryError::Timeout { limit }) => assert_eq!(limit, Duration::from_millis(20)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn functions_of_a_batch_end_with_the_time_of_their_query() {
    let fixture = Fixture::new(DATA);
    let limit = Duration::from_millis(200);
    let options = QueryOptions {
        timeout: Some(limit),
        ..QueryOptions::of_process()
    };
    // A text takes some 30 ms and all of them a minute; they are one batch.
    let long = "A".repeat(6_000);
    let pattern = ".*[^A-Z]|[A-Z]";
    let text = format!("CONCAT(STR(?a), STR(?d), STR(?f), STR(?g), STR(?i), \"{long}\")");
    let query = format!(
        "SELECT (COUNT(*) AS ?n) {{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i \
         FILTER(REPLACE({text}, \"{pattern}\", \"b\") = \"b\") }}"
    );
    let started = Instant::now();
    match fixture.ask_with(&query, &options) {
        Err(QueryError::Timeout { limit: said }) => assert_eq!(said, limit),
        other => panic!("{other:?}"),
    }
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(8), "{elapsed:?}");
}

#[test]
fn a_query_over_the_memory_budget_says_the_figure() {
    let options = EngineOptions {
        memory_bytes: 100_000,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(DATA, options);
    let query = "SELECT (COUNT(DISTINCT CONCAT(STR(?a), STR(?d), STR(?f))) AS ?c) \
                 { ?a ?b ?c1 . ?d ?e ?f }";
    match fixture.ask(query) {
        Err(QueryError::OutOfMemory { limit_bytes, .. }) => assert_eq!(limit_bytes, 100_000),
        other => panic!("{other:?}"),
    }
    assert!(
        fixture.ask("ASK { ?s ?p ?o }").is_ok(),
        "the engine goes on"
    );
}

#[test]
fn a_long_literal_is_given_only_where_there_is_room_for_it() {
    let long = "long ".repeat(1 << 19);
    let data = format!("<urn:s> <urn:p> \"{long}\" , \"short text\" .");
    let ask = |memory_bytes| {
        let options = EngineOptions {
            memory_bytes,
            ..EngineOptions::default()
        };
        let fixture = Fixture::with_options(&data, options);
        let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
        assert!(fixture.ask(count).is_ok(), "counting does not touch it");
        fixture.ask("SELECT ?o { ?s ?p ?o }")
    };
    match ask(12 << 20) {
        Err(QueryError::OutOfMemory { message, .. }) => {
            assert!(message.contains("long literals of the answer"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(ask(64 << 20).is_ok());
}

#[test]
fn after_an_error_the_solutions_are_over() {
    let long = "long ".repeat(1 << 19);
    let others = (0..6_000).map(|n| format!("<urn:t> <urn:p> {n} ."));
    let others: String = others.collect();
    let data = format!("<urn:s> <urn:p> \"{long}\" . {others}");
    let options = EngineOptions {
        memory_bytes: 12 << 20,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&data, options);
    let query = "SELECT ?o { VALUES ?s { <urn:s> <urn:t> } ?s <urn:p> ?o }";
    let (rows, after) = fixture.around_error(query).unwrap();
    assert!(rows < 2_000, "slices would follow the one of {rows} rows");
    assert_eq!(after, 0);
}

#[test]
fn hostile_nesting_neither_crashes_nor_hangs() {
    let fixture = Fixture::new(DATA);
    // Each is planned over the solutions so far, which it and the next one read.
    let correlated = (1..=25).map(|x| {
        format!(
            "FILTER EXISTS {{ {{ ?s ?a ?x{x} }} UNION {{ ?x{x} ?a ?s }} FILTER(?x{x} != ?o) }} "
        )
    });
    let correlated: String = correlated.collect();
    for query in [
        format!(
            "SELECT * {{ {} }}",
            "{ ?s ?p ?o } UNION ".repeat(2_000) + "{ ?s ?p ?o }"
        ),
        format!(
            "SELECT * {{ {}?s ?p ?o{} }}",
            "{".repeat(100),
            "}".repeat(100)
        ),
        format!(
            "SELECT * {{ FILTER({}1{}) }}",
            "(".repeat(100),
            ")".repeat(100)
        ),
        format!("SELECT * {{ FILTER({}true) }}", "!".repeat(5_000)),
        format!("SELECT * {{ FILTER(1{}) }}", " + 1".repeat(5_000)),
        format!(
            "SELECT * {{ FILTER(?x = 1{}) }}",
            " || ?x = 2".repeat(3_000)
        ),
        format!("SELECT * {{ {} }}", "OPTIONAL { ?s ?p ?o } ".repeat(3_000)),
        format!("SELECT * {{ ?s {}?p ?o }}", "^".repeat(5_000)),
        format!("SELECT * {{ ?s <p>{} ?o }}", "/<p>".repeat(5_000)),
        format!("SELECT * {{ {} }}", "{".repeat(100_000)),
        format!("SELECT * {{ ?s ?p ?o {correlated} }}"),
    ] {
        match fixture.ask(&query) {
            Ok(_) | Err(QueryError::Syntax { .. } | QueryError::Unsupported { .. }) => {}
            Err(other) => panic!("{other} for {}", &query[..80]),
        }
    }
}

#[test]
fn syntax_errors_name_their_place() {
    let fixture = Fixture::new(DATA);
    match fixture.ask("SELECT ?s\nWHERE { ?s ?p }") {
        Err(QueryError::Syntax { line, column, .. }) => assert_eq!((line, column), (2, 15)),
        other => panic!("{other:?}"),
    }
}

//! Tests of parallel plans: which queries are spread, and that answers stay the same.

use std::fmt::Write;
use std::time::Duration;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::{EngineOptions, QueryError, QueryOptions, Tuning};

/// People who know each other, with ages, names and countries; some statements in two graphs.
fn data() -> String {
    let mut text = String::from("@prefix : <http://example.org/> .\n");
    for number in 0..60 {
        let _ = writeln!(
            text,
            ":p{number} :age {} ; :name \"person {}\" ; :country :c{} .",
            number % 13,
            number % 20,
            number % 7
        );
        for other in [number * 7 % 60, number * 11 % 60, number * 3 % 60] {
            let _ = writeln!(text, ":p{number} :knows :p{other} .");
        }
        let quad = format!(":p{number} :likes :c{} .", number % 5);
        let named = format!(":g1 :likes :g2 . :g{} :likes :g1 .", number % 4);
        let _ = writeln!(text, ":g1 {{ {quad} }} :g2 {{ {quad} {named} }}");
        if number % 2 == 0 {
            let _ = writeln!(text, ":p{number} :weight {}.5 .", number);
        }
    }
    text
}

fn in_partitions(partitions: usize) -> QueryOptions {
    QueryOptions {
        tuning: Tuning {
            partitions: Some(partitions),
            ..Tuning::default()
        },
        ..QueryOptions::of_process()
    }
}

fn plan(fixture: &Fixture, query: &str) -> String {
    let query = format!("{PREFIXES}{query}");
    let prepared = match fixture.engine.prepare(&query, &in_partitions(3)) {
        Ok(prepared) => prepared,
        Err(error) => panic!("{error} in {query}"),
    };
    let plan = prepared.explain();
    assert_eq!(
        prepared.is_parallel(),
        plan.contains("3 partitions"),
        "{plan}"
    );
    plan
}

const QUERIES: [&str; 20] = [
    "SELECT * { ?a :knows ?b . ?b :age ?n }",
    "SELECT ?c (COUNT(*) AS ?n) (SUM(?age) AS ?s) (AVG(?age) AS ?m) (MIN(?name) AS ?l) (MAX(?age) AS ?g) \
     { ?a :country ?c ; :age ?age ; :name ?name } GROUP BY ?c",
    "SELECT (COUNT(DISTINCT ?c) AS ?n) (SUM(DISTINCT ?age) AS ?s) { ?a :country ?c ; :age ?age }",
    "SELECT (COUNT(DISTINCT *) AS ?n) { ?a :country ?c }",
    "SELECT (SUM(?age + ?name) AS ?s) (COUNT(?age + ?name) AS ?n) { ?a :age ?age ; :name ?name }",
    "SELECT (COUNT(*) AS ?n) (SUM(?x) AS ?s) (MIN(?x) AS ?l) { ?a :age ?x FILTER(?x * 2 > 1000) }",
    "SELECT DISTINCT ?c ?n { ?a :country ?c ; :age ?n }",
    "SELECT ?a ?n { ?a :age ?n } ORDER BY DESC(?n) ?a LIMIT 7 OFFSET 3",
    "SELECT ?a ?n { ?a :age ?n } ORDER BY ?n ?a",
    "SELECT * { ?a :country ?c OPTIONAL { ?a :weight ?w } FILTER NOT EXISTS { ?a :knows :p3 } }",
    "SELECT * { { ?a :weight ?x } UNION { ?a :age ?x FILTER(?x > 3) } ?a :country ?c }",
    "SELECT ?c ?n { ?a :country ?c { SELECT ?a (MAX(?m) AS ?n) { ?a :knows ?b . ?b :age ?m FILTER(?m + 0 < 12) } GROUP BY ?a } }",
    "SELECT * { ?a :country ?c MINUS { ?a :weight ?w } OPTIONAL { { ?a :knows ?b } UNION { ?b :knows ?a } } }",
    "SELECT ?x (REGEX(?n, \"1\") AS ?r) FROM :g1 FROM :g2 { ?x :likes ?n }",
    "SELECT ?x ?c FROM :g1 FROM :g2 { ?x :likes ?c }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?x :likes ?c } } GROUP BY ?g",
    "SELECT * { ?a :knows+ ?b }",
    "SELECT ?a (COUNT(*) AS ?n) { ?a (:knows/^:likes?)* ?b } GROUP BY ?a",
    "SELECT DISTINCT ?n { ?a (:knows|:country)+/:age? ?n }",
    "CONSTRUCT { ?b :known ?a } { ?a :knows ?b . ?a :age ?n FILTER(?n < 9) }",
];

#[test]
fn partitions_change_no_answer() {
    let fixture = Fixture::new(&data());
    for query in QUERIES {
        let in_order = query.contains("ORDER BY");
        let query = format!("{PREFIXES}{query}");
        let one = fixture.ask(&query).unwrap();
        for partitions in [2, 3, 8] {
            let many = fixture
                .ask_with(&query, &in_partitions(partitions))
                .unwrap();
            match in_order {
                true => assert_eq!(many, one, "{query}"),
                false => assert_eq!(
                    many.sorted(),
                    fixture.ask(&query).unwrap().sorted(),
                    "{partitions} partitions of {query}"
                ),
            }
        }
    }
}

#[test]
fn every_one_of_these_queries_is_spread() {
    let fixture = Fixture::new(&data());
    for query in QUERIES {
        assert!(plan(&fixture, query).contains("3 partitions"), "{query}");
    }
}

#[test]
fn an_aggregation_is_one_of_each_partition_and_a_last_one() {
    let fixture = Fixture::new(&data());
    let plan = plan(
        &fixture,
        "SELECT ?c (COUNT(*) AS ?n) { ?a :country ?c ; :age ?x } GROUP BY ?c",
    );
    let places = [
        "mode=Final",
        "CoalescePartitionsExec",
        "mode=Partial",
        "PatternExec",
    ]
    .map(|part| {
        plan.find(part)
            .unwrap_or_else(|| panic!("{part} in {plan}"))
    });
    assert!(places.is_sorted(), "{plan}");
}

#[test]
fn what_keeps_all_it_has_seen_is_aggregated_once() {
    let fixture = Fixture::new(&data());
    for aggregate in [
        "COUNT(DISTINCT ?x)",
        "COUNT(DISTINCT *)",
        "SUM(DISTINCT ?x)",
    ] {
        let query = format!(
            "SELECT ?c ({aggregate} AS ?n) {{ ?a :country ?c ; :age ?x BIND(?x + 1 AS ?y) }} GROUP BY ?c"
        );
        let plan = plan(&fixture, &query);
        let places = ["mode=Single", "CoalescePartitionsExec", "PatternExec"].map(|part| {
            plan.find(part)
                .unwrap_or_else(|| panic!("{part} in {plan}"))
        });
        assert!(places.is_sorted(), "{plan}");
    }
}

#[test]
fn a_top_k_is_one_of_each_partition_and_merged() {
    let fixture = Fixture::new(&data());
    let plan = plan(&fixture, "SELECT * { ?a :age ?x } ORDER BY ?x LIMIT 3");
    let places = ["SortPreservingMergeExec", "TopK(fetch=3)", "PatternExec"].map(|part| {
        plan.find(part)
            .unwrap_or_else(|| panic!("{part} in {plan}"))
    });
    assert!(places.is_sorted(), "{plan}");
}

#[test]
fn what_depends_on_the_order_of_rows_stays_in_one_partition() {
    let fixture = Fixture::new(&data());
    for query in [
        "SELECT * { ?a :knows ?b . ?b :age ?n } LIMIT 5",
        "SELECT ?c (COUNT(*) AS ?n) { ?a :country ?c } GROUP BY ?c LIMIT 2",
        "SELECT ?c (SAMPLE(?a) AS ?x) { ?a :country ?c } GROUP BY ?c",
        "SELECT (GROUP_CONCAT(?n) AS ?x) { ?a :name ?n }",
        "SELECT ?a (BNODE(?n) AS ?x) (BNODE(?n) AS ?y) { ?a :name ?n }",
        "SELECT ?a (RAND() AS ?x) { ?a :name ?n }",
        "SELECT * { ?a :weight ?w FILTER(?w < RAND()) }",
        "SELECT * { ?a :age ?n OPTIONAL { ?a :weight ?w FILTER(?n < RAND()) } }",
        "SELECT * { ?a :age ?n FILTER NOT EXISTS { ?a :weight ?w FILTER(?w < RAND()) } }",
        "ASK { ?a :knows ?b . ?b :age 7 }",
    ] {
        assert!(!plan(&fixture, query).contains("partitions"), "{query}");
    }
}

/// An end that is the graph's name is known before the path is walked.
#[test]
fn paths_in_graphs_of_any_name_are_the_same_in_several_partitions() {
    let fixture = Fixture::new(&data());
    for path in [
        "?g :likes* ?o",
        "?s :likes* ?g",
        "?g :likes* ?g",
        "?s :likes+ ?g",
        "?s :likes+ ?o",
    ] {
        let query = format!("{PREFIXES}SELECT * {{ GRAPH ?g {{ {path} }} }}");
        let one = fixture.ask_with(&query, &in_partitions(1)).unwrap();
        let three = fixture.ask_with(&query, &in_partitions(3)).unwrap();
        assert_ne!(one, Answer::Solutions(Vec::new()), "{query}");
        assert_eq!(three.sorted(), one.sorted(), "{query}");
        let query = format!("{PREFIXES}SELECT (COUNT(*) AS ?n) {{ GRAPH ?g {{ {path} }} }}");
        let one = fixture.ask_with(&query, &in_partitions(1)).unwrap();
        assert_eq!(
            fixture.ask_with(&query, &in_partitions(3)).unwrap(),
            one,
            "{query}"
        );
    }
}

/// People who each know some of the next ones.
fn acquainted(people: usize) -> String {
    let mut text = String::from("@prefix : <http://example.org/> . :p1 :marries :p2 .\n");
    for number in 0..people {
        for distance in [1, 7, 101] {
            let _ = writeln!(
                text,
                ":p{number} :knows :p{} .",
                (number + distance) % people
            );
        }
    }
    text
}

#[test]
fn whether_a_path_is_spread_depends_on_how_many_nodes_it_is_walked_from() {
    let options = EngineOptions {
        threads: 2,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&acquainted(2_000), options);
    let is_parallel = |query: &str| {
        let query = format!("{PREFIXES}{query}");
        let prepared = fixture.engine.prepare(&query, &QueryOptions::of_process());
        prepared.unwrap().is_parallel()
    };
    assert!(is_parallel("SELECT * { ?a :knows+ ?b }"));
    assert!(is_parallel("SELECT (COUNT(*) AS ?n) { ?a :marries* ?b }"));
    for query in [
        "SELECT (COUNT(*) AS ?n) { ?a :marries+ ?b }",
        "SELECT ?a (COUNT(*) AS ?n) { ?a (:marries/:knows*)+ ?b } GROUP BY ?a",
        "SELECT (COUNT(*) AS ?n) { ?a :unknown+ ?b }",
        "SELECT * { :p1 :knows+ ?b }",
        "SELECT * { ?a :knows+ ?b } LIMIT 10",
    ] {
        assert!(!is_parallel(query), "{query}");
    }
}

#[test]
fn limits_hold_for_paths_in_several_partitions() {
    let data = acquainted(6_000);
    let query = format!("{PREFIXES}SELECT (COUNT(*) AS ?n) {{ ?a :knows+ ?b }}");
    let limit = Duration::from_millis(20);
    let fixture = Fixture::new(&data);
    for partitions in [1, 2, 3] {
        let options = QueryOptions {
            timeout: Some(limit),
            ..in_partitions(partitions)
        };
        match fixture.ask_with(&query, &options) {
            Err(QueryError::Timeout { limit: said }) => assert_eq!(said, limit),
            other => panic!("{other:?}"),
        }
    }
    // The list of the people alone takes 48,000 bytes.
    let options = EngineOptions {
        memory_bytes: 40_000,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&data, options);
    for partitions in [1, 2, 3] {
        match fixture.ask_with(&query, &in_partitions(partitions)) {
            Err(QueryError::OutOfMemory { limit_bytes, .. }) => assert_eq!(limit_bytes, 40_000),
            other => panic!("{other:?}"),
        }
    }
    let query = format!("{PREFIXES}SELECT * {{ ?a :marries+ ?b }}");
    let after = fixture.ask_with(&query, &in_partitions(3));
    assert!(after.is_ok(), "the engine goes on: {after:?}");
}

#[test]
fn a_small_query_is_not_spread() {
    let options = EngineOptions {
        threads: 8,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&data(), options);
    for query in QUERIES {
        let query = format!("{PREFIXES}{query}");
        let prepared = fixture.engine.prepare(&query, &QueryOptions::of_process());
        assert!(!prepared.unwrap().is_parallel(), "{query}");
    }
}

#[test]
fn a_prepared_query_can_be_run_again() {
    let fixture = Fixture::new(&data());
    for query in QUERIES {
        let query = format!("{PREFIXES}{query}");
        let options = in_partitions(2);
        let prepared = fixture.engine.prepare(&query, &options).unwrap();
        let first = fixture.run(&prepared).unwrap();
        let second = fixture.run(&prepared).unwrap();
        assert_eq!(first.sorted(), second.sorted(), "{query}");
    }
}

#[test]
fn limits_hold_for_all_partitions() {
    let options = EngineOptions {
        memory_bytes: 200_000,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&data(), options);
    let query = "SELECT (COUNT(DISTINCT CONCAT(STR(?a), STR(?d), STR(?f))) AS ?c) \
                 { ?a ?b ?c1 . ?d ?e ?f }";
    match fixture.ask_with(query, &in_partitions(2)) {
        Err(QueryError::OutOfMemory { limit_bytes, .. }) => assert_eq!(limit_bytes, 200_000),
        other => panic!("{other:?}"),
    }
    let query = "SELECT (COUNT(*) AS ?c) { ?a ?b ?c1 . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o \
                 FILTER(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j)) != STR(?m)) }";
    let limit = Duration::from_millis(20);
    let options = QueryOptions {
        timeout: Some(limit),
        ..in_partitions(2)
    };
    match fixture.ask_with(query, &options) {
        Err(QueryError::Timeout { limit: said }) => assert_eq!(said, limit),
        other => panic!("{other:?}"),
    }
    let after = fixture.ask_with("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", &in_partitions(2));
    assert!(after.is_ok(), "the engine goes on: {after:?}");
}

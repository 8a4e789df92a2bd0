//! Tests of a query's cost: the same for every run, number of threads and cache state.

use crate::common::Fixture;
use orrery_sparql::{EngineOptions, QueryOptions, Spending, Touched as _, UpdateOptions};
use orrery_storage::WriterOptions;
use std::sync::Arc;

/// Things in a chain, with numbers and labels.
fn data() -> String {
    let mut trig = String::from("@prefix : <http://e/> .\n");
    for thing in 0..3_000_u32 {
        trig += &format!(
            ":t{thing} a :T{} ; :next :t{} ; :number {} ; :label \"thing {thing}\" .\n",
            thing % 3,
            thing + 1,
            thing * 7 % 300,
        );
        if thing % 4 == 0 {
            trig += &format!(":t{thing} :extra \"more\" .\n");
        }
    }
    trig
}

const QUERIES: [&str; 16] = [
    "SELECT * { :t7 ?p ?o }",
    "SELECT * { ?s :number 7 }",
    "SELECT * { ?s a :T1 ; :number ?n ; :label ?l }",
    "SELECT * { ?s a :T1 ; :number ?n FILTER(?n > 290) }",
    "SELECT * { ?s :label ?l FILTER(CONTAINS(?l, \"99\")) }",
    "SELECT * { ?s a :T1 ; :next ?o . ?o :number ?n . OPTIONAL { ?o :extra ?x } }",
    "SELECT * { ?s a :T1 FILTER NOT EXISTS { ?s :extra ?x } }",
    "SELECT * { ?s a :T1 MINUS { ?s :extra ?x } }",
    "SELECT ?n (COUNT(*) AS ?c) { ?s :number ?n } GROUP BY ?n ORDER BY DESC(?c) LIMIT 5",
    "SELECT * { ?s :number ?n } ORDER BY DESC(?n) ?s LIMIT 10",
    "SELECT * { ?s :number ?n . ?o :number ?n FILTER(?s != ?o) }",
    "SELECT * { :t0 :next+ ?o }",
    "SELECT ?a ?b { ?a :next/:next ?b . ?b :extra ?x }",
    "SELECT * { { ?s :extra ?x } UNION { ?s :number 7 } }",
    "CONSTRUCT { ?s :is ?n } WHERE { ?s a :T2 ; :number ?n }",
    "DESCRIBE ?s { ?s :number 14 }",
];

fn cost(fixture: &Fixture, query: &str) -> u64 {
    let text = format!("PREFIX : <http://e/> {query}");
    let prepared = fixture.engine.prepare(&text, &QueryOptions::of_process());
    let prepared = prepared.unwrap_or_else(|error| panic!("{query}: {error}"));
    assert_eq!(prepared.touches(), 0, "{query}");
    let answer = fixture.run(&prepared);
    answer.unwrap_or_else(|error| panic!("{query}: {error}"));
    prepared.touches()
}

#[test]
fn a_query_costs_the_same_each_time_and_everywhere() {
    let data = data();
    let mut costs: Vec<Option<u64>> = vec![None; QUERIES.len()];
    for threads in [1, 4] {
        let options = EngineOptions {
            threads,
            ..EngineOptions::default()
        };
        let fixture = Fixture::with_options(&data, options);
        for round in 0..12 {
            for (query, first) in QUERIES.iter().zip(&mut costs) {
                let cost = cost(&fixture, query);
                let first = *first.get_or_insert(cost);
                assert_eq!(cost, first, "{query}, {threads} threads, round {round}");
            }
        }
    }
}

#[test]
fn cost_follows_the_work_and_not_the_answer() {
    let fixture = Fixture::new(&data());
    let cost = |query| cost(&fixture, query);
    // A point, a few rows and their terms.
    assert!(cost("SELECT * { :t7 ?p ?o }") < 40);
    // Each of 3,000 labels is looked at, and 30 come out.
    let filter = cost("SELECT * { ?s :label ?l FILTER(CONTAINS(?l, \"thing 99\")) }");
    assert!((3_000..10_000).contains(&filter), "{filter}");
    // As many pairs are looked at as there are, whatever is counted of them: 300 numbers with ten
    // things each.
    let pairs = cost("SELECT (COUNT(*) AS ?c) { ?s :number ?n . ?o :number ?n FILTER(?s < ?o) }");
    assert!(pairs > 30_000, "{pairs}");
    // A path costs what it walks.
    let [near, far] = [":t2990", ":t10"].map(|start| {
        let text = format!("PREFIX : <http://e/> SELECT (COUNT(*) AS ?c) {{ {start} :next+ ?o }}");
        let prepared = fixture.engine.prepare(&text, &QueryOptions::of_process());
        let prepared = prepared.unwrap();
        fixture.run(&prepared).unwrap();
        prepared.touches()
    });
    assert!(near < 100 && far > 3_000, "{near} {far}");
}

#[test]
fn analyzed_plans_show_touches() {
    let fixture = Fixture::new(&data());
    let query = "SELECT * { ?s <http://e/number> 7 }";
    let plan = fixture.analyze(query).unwrap();
    let prepared = fixture.engine.prepare(query, &QueryOptions::of_process());
    let prepared = prepared.unwrap();
    fixture.run(&prepared).unwrap();
    let said = format!("cost: {} touches\n", prepared.touches());
    assert!(plan.ends_with(&said), "{plan} {said}");
}

/// Numbers of terms would tell how many there are, also of those that somebody may not see.
#[test]
fn a_top_k_that_has_run_does_not_show_the_terms_by_which_it_dropped_rows() {
    let fixture = Fixture::new(&data());
    let top = "SELECT ?s ?l { ?s <http://e/label> ?l } ORDER BY DESC(?l) ?s LIMIT 3";
    let plan = fixture.analyze(top).unwrap();
    assert!(plan.contains("TopK(fetch=3)"), "{plan}");
    assert!(!plan.contains("filter="), "{plan}");
}

#[test]
fn what_updates_read_costs_the_same_each_time_and_everywhere() {
    const UPDATES: [&str; 3] = [
        "DELETE { ?s :number ?n } INSERT { ?s :was ?n } WHERE { ?s a :T1 ; :number ?n }",
        "INSERT { ?s :same ?o } WHERE { ?s :number ?n . ?o :number ?n FILTER(?s != ?o) }",
        "DELETE WHERE { ?s :extra ?x } ; INSERT { :a :b ?l } WHERE { ?s :label ?l FILTER(CONTAINS(?l, \"99\")) }",
    ];
    let data = data();
    let mut costs = [None; UPDATES.len()];
    for threads in [1, 4] {
        let options = EngineOptions {
            threads,
            ..EngineOptions::default()
        };
        let fixture = Fixture::with_options(&data, options);
        let writer = fixture
            .engine
            .database()
            .open_writer(WriterOptions::default());
        let writer = writer.unwrap();
        let threads = tokio::runtime::Runtime::new().unwrap();
        for round in 0..4 {
            for (text, first) in UPDATES.iter().zip(&mut costs) {
                let spending = Spending::new(None);
                let mut options = UpdateOptions::of_process();
                options.query.spending = Some(Arc::clone(&spending));
                let text = format!("PREFIX : <http://e/> {text}");
                let update = fixture.engine.prepare_update(&text, &options).unwrap();
                // Never committed: the next finds the same.
                let mut transaction = writer.begin().unwrap();
                let applied = fixture.engine.apply(&update, &options, &mut transaction);
                threads.block_on(applied).unwrap();
                let cost = spending.touches();
                assert!(cost > 1_000, "{text} {cost}");
                let first = *first.get_or_insert(cost);
                assert_eq!(cost, first, "{text}, round {round}");
            }
        }
    }
}

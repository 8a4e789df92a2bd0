//! Tests of repeated patterns: which are matched once, and that answers stay the same.

use std::fmt::Write;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::{QueryOptions, Tuning};

/// Products of makers, and reviews of them with ratings of which some are missing and some are no
/// numbers.
fn data() -> String {
    let mut text = String::from("@prefix : <http://example.org/> .\n");
    for review in 0..1_200 {
        let product = review * 7 % 150;
        let _ = writeln!(text, ":r{review} :of :p{product} ; :by :u{} .", review % 40);
        if review % 3 != 0 {
            let _ = writeln!(text, ":r{review} :rating1 {} .", review % 10);
        }
        if review % 4 != 0 {
            let _ = writeln!(text, ":r{review} :rating2 {} , \"none\" .", review * 3 % 10);
        }
    }
    for product in 0..150 {
        let _ = writeln!(
            text,
            ":p{product} :maker :m{} ; a :T{} .",
            product % 30,
            product % 4
        );
    }
    text
}

fn plan(fixture: &Fixture, query: &str) -> String {
    let query = format!("{PREFIXES}{query}");
    match fixture.engine.prepare(&query, &QueryOptions::of_process()) {
        Ok(prepared) => prepared.explain(),
        Err(error) => panic!("{error} in {query}"),
    }
}

/// The number of solutions, which are those of the plan without rewrites, and of one in small
/// vectors.
fn solutions(fixture: &Fixture, query: &str) -> usize {
    let query = format!("{PREFIXES}{query}");
    let ask = |tuning: Tuning| {
        let options = QueryOptions {
            tuning,
            ..QueryOptions::of_process()
        };
        match fixture.ask_with(&query, &options) {
            Ok(answer) => answer.sorted(),
            Err(error) => panic!("{error} in {query}"),
        }
    };
    let answer = ask(Tuning::default());
    let plain = Tuning {
        rewrites: false,
        ..Tuning::default()
    };
    let small = Tuning {
        vector_rows: Some(7),
        ..Tuning::default()
    };
    let spread = Tuning {
        partitions: Some(3),
        ..Tuning::default()
    };
    for tuning in [plain, small, spread] {
        let other = ask(tuning);
        assert_eq!(other, answer, "{tuning:?} of {query}");
    }
    match answer {
        Answer::Solutions(rows) => rows.len(),
        other => panic!("{other:?}"),
    }
}

const RATINGS: &str = "{ ?r :rating1 ?s } UNION { ?r :rating2 ?s }";

#[test]
fn what_a_subquery_aggregates_is_matched_once_with_the_group_around_it() {
    let fixture = Fixture::new(&data());
    let queries = [
        // Above the average, of the same reviews.
        format!(
            "SELECT ?u (AVG(?s) AS ?a) {{
               {{ SELECT (AVG(?s) AS ?m) {{ ?p :maker :m4 . ?r :of ?p . {RATINGS} FILTER(isNumeric(?s)) }} }}
               ?p :maker :m4 . ?r :of ?p ; :by ?u . {RATINGS} FILTER(isNumeric(?s))
             }} GROUP BY ?u HAVING(AVG(?s) > MIN(?m))"
        ),
        format!(
            "SELECT ?u ?s ?c {{
               {{ SELECT (COUNT(?s) AS ?c) {{ ?x :maker :m4 . ?y :of ?x . {} }} }}
               ?p :maker :m4 . ?r :of ?p ; :by ?u . {RATINGS}
             }}",
            RATINGS.replace("?r", "?y")
        ),
        // Joined by what it is grouped by.
        "SELECT ?p ?r ?n { ?p a :T1 . ?r :of ?p ; :by ?u .
           { SELECT ?p (COUNT(?r) AS ?n) { ?p a :T1 . ?r :of ?p ; :by ?u } GROUP BY ?p } FILTER(?n > 7) }"
            .to_owned(),
        // Two patterns that may stand for each other: both ways have to be tried.
        "SELECT ?a ?b ?c ?n { ?a :by ?u . ?b :by ?u . ?b :of :p7 . ?a :of ?c .
           { SELECT (COUNT(*) AS ?n) { ?y :of ?z . ?y :by ?v } } }"
            .to_owned(),
    ];
    let shared = [false, true, true, true];
    for (query, is_shared) in queries.iter().zip(shared) {
        let plan = plan(&fixture, query);
        assert_eq!(
            plan.contains("SharedExec: computed once, as above"),
            is_shared,
            "{plan}"
        );
        assert!(solutions(&fixture, query) > 0, "{query}");
    }
}

#[test]
fn a_subquery_that_matches_something_else_stays_apart() {
    let fixture = Fixture::new(&data());
    for (subquery, around) in [
        // Another constant, another predicate, a variable in place of a constant, one variable for
        // two.
        ("?p :maker :m5 . ?r :of ?p", "?p :maker :m4 . ?r :of ?p"),
        ("?p :maker :m4 . ?r :by ?p", "?p :maker :m4 . ?r :of ?p"),
        ("?p :maker ?m . ?r :of ?p", "?p :maker :m4 . ?r :of ?p"),
        ("?p :maker ?m . ?r :of ?p", "?p :maker ?m . ?r :of ?q"),
        // A limit takes some of them only.
        (
            "{ SELECT ?p ?r { ?p :maker :m4 . ?r :of ?p } ORDER BY ?r LIMIT 2 }",
            "?p :maker :m4 . ?r :of ?p",
        ),
    ] {
        let query = format!(
            "SELECT * {{ {{ SELECT (COUNT(*) AS ?n) {{ {subquery} }} }} {around} FILTER(?r != :r5) }}"
        );
        let plan = plan(&fixture, &query);
        assert!(!plan.contains("as above"), "{plan}");
        assert!(solutions(&fixture, &query) > 0, "{query}");
    }
}

#[test]
fn the_branches_of_a_union_are_looked_up_from_the_rows_before_it() {
    let fixture = Fixture::new(&data());
    let query = format!("SELECT ?p ?r ?s {{ ?p :maker :m4 . ?r :of ?p . {RATINGS} }}");
    let plan = plan(&fixture, &query);
    assert!(
        plan.contains("AppendExec") && !plan.contains("HashJoinExec"),
        "{plan}"
    );
    assert!(solutions(&fixture, &query) > 40);
    // A filter inside of a branch sees no variable of the rows before it.
    let query = "SELECT ?p ?r ?s { ?p :maker :m4 . ?r :of ?p . \
                 { ?r :rating1 ?s FILTER(!BOUND(?p)) } UNION { ?r :rating2 ?s FILTER(BOUND(?p)) } }";
    assert!(solutions(&fixture, query) > 20);
}

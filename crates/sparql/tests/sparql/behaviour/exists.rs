//! Tests of `EXISTS` and its outer row.

use super::{rows, rows_both_ways};
use crate::common::{Answer, Fixture, PREFIXES};

const MINUS_DATA: &str = "@prefix : <http://example.org/> .
    :a :p :b . :a :q :c . :d :p :e . :d :q :e .";

#[test]
fn minus_inside_of_exists_does_not_count_what_the_outer_row_replaced() {
    let fixture = Fixture::new(MINUS_DATA);
    // Replaced, the two sides have no variable in common, and nothing is removed (18.5, 18.6).
    let query = "SELECT ?x { ?x :p ?o FILTER EXISTS { ?x :p ?y MINUS { ?x :q ?z } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>", "x=<d>"]);
    // A variable of the pattern's own counts.
    let query = "SELECT ?x { ?x :p ?o FILTER EXISTS { ?x :p ?y MINUS { ?x :q ?y } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>"]);
    // So does an outer one in rows that leave it unbound.
    let query = "SELECT ?x ?y { VALUES (?x ?y) { (:a UNDEF) (:d UNDEF) (:d :e) }
        FILTER EXISTS { ?x :p ?y MINUS { ?x :q ?y } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>", "x=<d> y=<e>"]);
    let query = "SELECT ?x { VALUES ?x { :a }
        FILTER EXISTS { OPTIONAL { VALUES (?y ?x) { } } MINUS { VALUES (?y ?v) { (UNDEF UNDEF) } } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>"]);
}

#[test]
fn the_outer_row_reaches_optional_parts_of_optional_parts_inside_of_exists() {
    let fixture = Fixture::new(MINUS_DATA);
    // With :a in place of ?x the innermost part binds ?w to :c; for all ?x it would bind it to :e
    // as well.
    let query = "SELECT ?x { VALUES ?x { :a }
        FILTER EXISTS { ?x :p ?y OPTIONAL { ?z :p :e OPTIONAL { ?x :q ?w } } FILTER(?w = :c) } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>"]);
    // That ?x is bound does not say that the OPTIONAL around the inner one matched.
    let query = "SELECT ?x { VALUES ?x { :a }
        FILTER EXISTS { OPTIONAL { :d :r ?x OPTIONAL { ?z :q ?y } } VALUES ?y { 1 } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>"]);
    let query = "SELECT ?x { VALUES ?x { :a }
        FILTER EXISTS { :d :p ?y OPTIONAL { :d :r ?x } FILTER(!BOUND(?x)) } }";
    assert!(rows_both_ways(&fixture, query).is_empty());
}

#[test]
fn the_outer_row_reaches_the_condition_of_an_optional_part_inside_of_exists() {
    let fixture = Fixture::new(MINUS_DATA);
    // Nothing else inside mentions ?o.
    let query = "SELECT ?o { ?s :p ?o
        FILTER EXISTS { :d :p ?y OPTIONAL { :d :q ?z FILTER(?z = ?o) } BIND(BOUND(?z) AS ?b) FILTER(!?b) } }";
    assert_eq!(rows_both_ways(&fixture, query), ["o=<b>"]);
}

#[test]
fn exists_in_the_filter_of_an_optional_part_sees_the_joined_solution() {
    let fixture = Fixture::new(MINUS_DATA);
    let query = "SELECT ?x ?y { ?x :p ?o OPTIONAL { ?x :q ?y FILTER EXISTS { ?x :p ?y } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>", "x=<d> y=<e>"]);
    // ?o is of the left side only.
    let query = "SELECT ?x ?y { ?x :p ?o OPTIONAL { ?x :q ?y FILTER NOT EXISTS { ?z :q ?o } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a> y=<c>", "x=<d>"]);
    // The right side is joined, and not evaluated anew for each row of the left: inside of it, the
    // inner OPTIONAL binds ?v for another ?w first.
    let query = "SELECT ?z ?v { ?z :p ?w OPTIONAL { OPTIONAL { ?w :r ?v } FILTER(NOT EXISTS { VALUES ?y { } }) } }";
    assert_eq!(rows_both_ways(&fixture, query), ["z=<a>", "z=<d>"]);
    let query = "SELECT ?x ?n { { ?x :p ?o } UNION { ?x :p ?o } OPTIONAL { :a :q ?n FILTER EXISTS { ?x :q ?n } } }";
    assert_eq!(
        rows_both_ways(&fixture, query),
        ["n=<c> x=<a>", "n=<c> x=<a>", "x=<d>", "x=<d>"]
    );
}

/// 3,000 subjects of one class with a value each, two thirds of which have another one.
fn many() -> Fixture {
    subjects(3_000)
}

/// So many subjects of one class with a value each, two thirds of which have another one.
fn subjects(count: usize) -> Fixture {
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for subject in 0..count {
        data += &format!(
            ":s{subject} a :C ; :p {} ; :f :g{} .\n",
            subject % 100,
            subject % 5
        );
        if subject % 3 > 0 {
            data += &format!(":s{subject} :r :g{} .\n", subject % 4);
        }
    }
    Fixture::new(&data)
}

/// What a pattern reads before it knows whether that is enough, where few rows are wanted (the
/// first chunk of its pipeline).
const FIRST_CHUNK: usize = 256;

#[test]
fn ask_reads_no_more_than_a_first_solution_takes() {
    let fixture = many();
    let mut more = Vec::new();
    for (query, expected, most) in [
        // Without the order, the group, the optional part, the first chunk has a solution.
        ("SELECT ?s { ?s :p ?v } ORDER BY ?v", true, FIRST_CHUNK),
        (
            "SELECT ?s { ?s :p ?v OPTIONAL { ?s :r ?w } } ORDER BY ?w LIMIT 3",
            true,
            FIRST_CHUNK,
        ),
        (
            "SELECT ?v (SUM(?w) AS ?x) { ?s :f ?v ; :p ?w } GROUP BY ?v ORDER BY ?x",
            true,
            FIRST_CHUNK,
        ),
        (
            "{ SELECT ?s { ?s :p ?v } ORDER BY ?v } UNION { ?s :r ?v }",
            true,
            FIRST_CHUNK,
        ),
        // A chunk of a later step may take in a second look-up of the one before.
        (
            "?s :p ?v . ?t :p ?w . ?u :p ?x BIND(?v + ?w AS ?y)",
            true,
            2 * FIRST_CHUNK,
        ),
        // Of all solutions together there is a group, even where there are none.
        (
            "SELECT (COUNT(*) AS ?n) { ?s :p ?v . ?s :nothing ?w }",
            true,
            1,
        ),
        // No value of :f has an :r of its own: that there is no group is known when all of the
        // smaller predicate was looked at.
        (
            "SELECT ?v (COUNT(*) AS ?n) { ?s :f ?v . ?v :r ?w } GROUP BY ?v",
            false,
            3_000,
        ),
        // What a HAVING reads is computed; the count is known without rows.
        (
            "SELECT (COUNT(*) AS ?n) { ?s :p ?v } HAVING(COUNT(*) < 10)",
            false,
            1,
        ),
        // An OFFSET counts: of the different values there are a hundred, in whatever order.
        (
            "SELECT DISTINCT ?v { ?s :p ?v } ORDER BY ?v OFFSET 99",
            true,
            3_000,
        ),
        (
            "SELECT DISTINCT ?v { ?s :p ?v } ORDER BY ?v OFFSET 100",
            false,
            3_000,
        ),
        ("SELECT ?s { ?s :p ?v } ORDER BY ?v LIMIT 0", false, 0),
        // A filter that nothing fulfils is asked of all rows.
        ("?s :p ?v BIND(?v + 1 AS ?y) FILTER(?y > 200)", false, 3_000),
    ] {
        let query = format!("{PREFIXES}ASK {{ {query} }}");
        let answer = fixture.ask(&query).expect("an answer");
        assert!(
            matches!(answer, Answer::Boolean(found) if found == expected),
            "{query}"
        );
        let plan = fixture.analyze(&query).expect("a plan");
        let is_sorted = plan.contains("Sort") || plan.contains("Order");
        let rows = match plan.starts_with("EmptyExec") {
            true => 0,
            false => fixture.most_rows(&query),
        };
        if rows > most || is_sorted {
            more.push(format!("{rows} rows, expected {most}: {query}\n{plan}"));
        }
    }
    assert!(more.is_empty(), "{}", more.join("\n"));
}

/// A query that counts the subjects under a condition, alike in both plans over a few of them (the
/// reference plan makes all solutions of the condition for each row: with thousands it would take
/// minutes); its rows and its plan over many.
fn counted_under(
    many: &Fixture,
    few: &Fixture,
    condition: &str,
    expected: usize,
) -> (usize, String) {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s :p ?v {condition} }}");
    rows_both_ways(few, &query);
    let found = rows(many, &query).concat();
    assert!(
        found.contains(&format!("\"{expected}\"")),
        "{found}: {query}"
    );
    let query = format!("{PREFIXES}{query}");
    let plan = many
        .analyze(&query)
        .unwrap_or_else(|error| panic!("{error}: {query}"));
    (many.most_rows(&query), plan)
}

#[test]
fn uncorrelated_exists_is_evaluated_once() {
    let (many, few) = (many(), subjects(12));
    for (condition, count) in [
        ("FILTER EXISTS { ?a :f ?g . ?b :r ?g }", 3_000),
        ("FILTER NOT EXISTS { ?a :f ?g . ?b :r ?g }", 0),
        // No value of :f has a :p: known when all of the smaller predicate was looked at, once.
        (
            "FILTER NOT EXISTS { ?a :f ?g . ?b :r ?g . ?g :p ?n }",
            3_000,
        ),
        (
            "FILTER EXISTS { SELECT ?g { ?a :f ?g } ORDER BY ?a }",
            3_000,
        ),
        ("FILTER(EXISTS { ?a :f ?g . ?b :r ?g } || ?v = 1)", 3_000),
        ("FILTER(?v = 1 || EXISTS { ?a :nothing ?g })", 30),
    ] {
        let (rows, plan) = counted_under(&many, &few, condition, count);
        // The subjects themselves are the most that anything has.
        assert!(rows <= 3_000, "{rows} rows: {condition}\n{plan}");
    }
}

#[test]
fn exists_with_multiplying_matches_is_computed_over_values() {
    let (many, few) = (many(), subjects(24));
    for (condition, count) in [
        (
            "FILTER EXISTS { ?s :f ?g . ?t :f ?g . ?t :r ?h . ?u :r ?h }",
            3_000,
        ),
        (
            "FILTER NOT EXISTS { ?s :r ?g . ?t :f ?g . ?t :r ?h . ?u :r ?h }",
            1_000,
        ),
        ("MINUS { ?s :r ?g . ?t :f ?g . ?t :r ?h . ?u :r ?h }", 1_000),
    ] {
        let (rows, plan) = counted_under(&many, &few, condition, count);
        // One by one, each of 3,000 subjects has 600 others with its value. As values, a pair of
        // two of the five or four values stands for all of them, and the most that anything has is
        // what a predicate has.
        assert!(rows <= 3_000, "{rows} rows: {condition}\n{plan}");
        // The values are what is kept in memory, however few the rows around.
        assert!(
            !plan.contains("LeftSemi") && !plan.contains("LeftAnti"),
            "{plan}"
        );
    }
}

#[test]
fn exists_under_a_limit_is_not_computed_over_all_values() {
    // 19 subjects share a value, two thirds have another: 560,000 partial matches of all subjects,
    // 150,000 of the first 8,192 (what goes through a step at a time). Computing the values in
    // steps takes some 50,000 rows, and has to be a quarter or less.
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for subject in 0..30_000 {
        data += &format!(":s{subject} :p 1 ; :f :g{} .\n", subject % 1_600);
        if subject % 3 > 0 {
            data += &format!(":s{subject} :r :h{} .\n", subject % 7);
        }
    }
    let fixture = Fixture::new(&data);
    let path = "?s :f ?g . ?t :f ?g . ?t :r ?h";
    let query = format!("{PREFIXES}SELECT ?s {{ ?s :p ?v FILTER EXISTS {{ {path} }} }}");
    let all = fixture.analyze(&query).expect("a plan");
    assert!(all.contains("HashJoinExec"), "{all}");
    for limited in [
        format!("{query} LIMIT 3"),
        query.replace("SELECT ?s", "ASK"),
    ] {
        let plan = fixture.analyze(&limited).expect("a plan");
        assert!(!plan.contains("HashJoinExec"), "{plan}");
    }
}

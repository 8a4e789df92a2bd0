//! Tests of `LATERAL`.
//!
//! The cases are those that Jena's and Oxigraph's tests ask about (top rows of each, `OPTIONAL` and
//! `FILTER` inside, names that a subquery hides), and what our plans do in different ways.

use orrery_sparql::QueryOptions;

use super::{error, rows, rows_both_ways};
use crate::common::{Fixture, PREFIXES};

/// Rows with integers as their digits.
fn both_ways(fixture: &Fixture, query: &str) -> Vec<String> {
    let plain = |row: String| {
        let row = row.replace("\"^^<http://www.w3.org/2001/XMLSchema#integer>", "");
        // Quotation marks that opened a number.
        let mut text = String::new();
        for (at, part) in row.split("=\"").enumerate() {
            let is_number = part.starts_with(|it: char| it.is_ascii_digit() || it == '-');
            text += match (at, is_number) {
                (0, _) => "",
                (_, true) => "=",
                (_, false) => "=\"",
            };
            text += part;
        }
        text
    };
    let rows = rows_both_ways(fixture, query).into_iter();
    rows.map(plain).collect()
}

const DATA: &str = "@prefix : <http://example.org/> .
    :a :p 1 ; :label \"a1\" .
    :b :p 2 ; :label \"b1\" , \"b2\" .
    :c :p 3 ; :label \"c1\" , \"c2\" , \"c3\" .
    :d :p 4 .
    :x :q 1 . :y :q 1 . :z :q 2 .
    :g1 { :a :r 1 , 2 . :b :r 3 } :g2 { :a :r 5 , 6 , 7 }";

fn fixture() -> Fixture {
    Fixture::new(DATA)
}

#[test]
fn a_limit_counts_for_each_solution() {
    let fixture = fixture();
    let query = "SELECT ?s ?l { ?s :p ?o LATERAL { SELECT ?s ?l { ?s :label ?l } ORDER BY DESC(?l) LIMIT 2 } }";
    assert_eq!(
        both_ways(&fixture, query),
        [
            "l=\"a1\" s=<a>",
            "l=\"b1\" s=<b>",
            "l=\"b2\" s=<b>",
            "l=\"c2\" s=<c>",
            "l=\"c3\" s=<c>"
        ]
    );
    let query = "SELECT ?s ?l { ?s :p ?o LATERAL { SELECT * { ?s :label ?l } ORDER BY ?l LIMIT 1 OFFSET 1 } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["l=\"b2\" s=<b>", "l=\"c2\" s=<c>"]
    );
    // Rows that are the same each get their own.
    let query = "SELECT ?l { VALUES ?s { :a :a :b } LATERAL { SELECT * { ?s :label ?l } ORDER BY ?l LIMIT 1 } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["l=\"a1\"", "l=\"a1\"", "l=\"b1\""]
    );
    // One that leaves the variable unbound chooses among all.
    let query = "SELECT ?s ?l { VALUES ?s { :b UNDEF } LATERAL { SELECT * { ?s :label ?l } ORDER BY DESC(?l) LIMIT 1 } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["l=\"b2\" s=<b>", "l=\"c3\" s=<c>"]
    );
    // Two of them, one after the other.
    let query = "SELECT ?s ?l ?m { ?s :p ?o FILTER(?o > 1)
        LATERAL { SELECT * { ?s :label ?l } ORDER BY ?l LIMIT 1 }
        LATERAL { SELECT * { ?s :label ?m FILTER(?m != ?l) } ORDER BY ?m LIMIT 1 } }";
    // SELECT * gives what its group has in scope, so that ?l of the filter is another one there.
    assert!(both_ways(&fixture, query).is_empty());
    let query = query.replace("SELECT * { ?s :label ?m", "SELECT ?s ?l ?m { ?s :label ?m");
    assert_eq!(
        both_ways(&fixture, &query),
        ["l=\"b1\" m=\"b2\" s=<b>", "l=\"c1\" m=\"c2\" s=<c>"]
    );
}

#[test]
fn a_subquery_sees_what_it_projects() {
    let fixture = fixture();
    let query = "SELECT ?s ?z { ?s :p ?o FILTER(?o < 3) LATERAL { SELECT ?s ?z { ?s :p ?z } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<a> z=1", "s=<b> z=2"]);
    let query = "SELECT ?s ?z { ?s :p ?o FILTER(?o < 3) LATERAL { SELECT ?z { ?s :p ?z FILTER(?z < 3) } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["s=<a> z=1", "s=<a> z=2", "s=<b> z=1", "s=<b> z=2"]
    );
    let query = "SELECT ?s ?z { ?s :p ?o FILTER(?o < 3) LATERAL { SELECT ?z { ?s :p ?z } ORDER BY ?z LIMIT 1 } }";
    assert_eq!(both_ways(&fixture, query), ["s=<a> z=1", "s=<b> z=1"]);
    // A value of the row in an expression.
    let query = "SELECT ?s ?t { ?s :p ?o LATERAL { SELECT ?o ?t { BIND(?o * 10 AS ?t) } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["s=<a> t=10", "s=<b> t=20", "s=<c> t=30", "s=<d> t=40"]
    );
}

#[test]
fn aggregates_are_those_of_each_solution() {
    let fixture = fixture();
    let query = "SELECT ?s ?n { ?s :p ?o LATERAL { SELECT ?s (COUNT(*) AS ?n) { ?s :label ?l } GROUP BY ?s } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["n=1 s=<a>", "n=2 s=<b>", "n=3 s=<c>"]
    );
    // Of everything, for what is not projected is another variable.
    let query = "SELECT ?s ?n { ?s :p ?o FILTER(?o > 2) LATERAL { SELECT (COUNT(*) AS ?n) { ?s :label ?l } } }";
    assert_eq!(both_ways(&fixture, query), ["n=6 s=<c>", "n=6 s=<d>"]);
    // What stands beside such a one in a subquery sees the solution.
    let query = "SELECT ?s ?m { ?s :p ?o LATERAL { SELECT ?o ?m {
        { SELECT (COUNT(*) AS ?n) { ?x :q ?v } } BIND(?n + ?o AS ?m) } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["m=4 s=<a>", "m=5 s=<b>", "m=6 s=<c>", "m=7 s=<d>"]
    );
    let query = "SELECT ?s ?n { ?s :p ?o LATERAL { SELECT ?o ?n {
        { SELECT (COUNT(*) AS ?n) { ?x :q ?v } } FILTER(?n > ?o) } LIMIT 1 } }";
    assert_eq!(both_ways(&fixture, query), ["n=3 s=<a>", "n=3 s=<b>"]);
    // By a variable that the group leaves unbound here and there.
    let query = "SELECT ?s ?n { VALUES ?s { :a :b } LATERAL {
        SELECT ?s (COUNT(*) AS ?n) { ?t :p ?o OPTIONAL { ?s :q ?o } } GROUP BY ?s } }";
    assert_eq!(both_ways(&fixture, query), ["n=4 s=<a>", "n=4 s=<b>"]);
    let query = "SELECT ?o ?n { ?s :p ?o LATERAL { SELECT ?o (SUM(?v + ?o) AS ?n) { ?x :q ?v } GROUP BY ?o } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["n=10 o=2", "n=13 o=3", "n=16 o=4", "n=7 o=1"]
    );
}

#[test]
fn conditions_and_values_see_the_solution() {
    let fixture = fixture();
    let query = "SELECT ?s ?x { ?s :p ?o LATERAL { ?x :q ?v FILTER(?v = ?o) } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["s=<a> x=<x>", "s=<a> x=<y>", "s=<b> x=<z>"]
    );
    let query = "SELECT ?x ?y { ?x :q ?v LATERAL { ?y :q ?w FILTER(?x != ?y) FILTER(?w = ?v) } }";
    assert_eq!(both_ways(&fixture, query), ["x=<x> y=<y>", "x=<y> y=<x>"]);
    let query = "SELECT ?t { ?s :p ?o LATERAL { BIND(?o + 1 AS ?t) FILTER(?t > 3) } }";
    assert_eq!(both_ways(&fixture, query), ["t=4", "t=5"]);
    let query = "SELECT ?s ?v { ?s :p ?o LATERAL { { ?x :q ?v FILTER(?v = ?o) } UNION { BIND(-?o AS ?v) } } }";
    assert_eq!(
        both_ways(&fixture, query),
        [
            "s=<a> v=-1",
            "s=<a> v=1",
            "s=<a> v=1",
            "s=<b> v=-2",
            "s=<b> v=2",
            "s=<c> v=-3",
            "s=<d> v=-4"
        ]
    );
    let query = "SELECT ?s { ?s :p ?o LATERAL { VALUES ?k { 1 } FILTER EXISTS { ?x :q ?o } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<a>", "s=<b>"]);
    let query =
        "SELECT ?s { ?s :p ?o LATERAL { FILTER NOT EXISTS { ?x :q ?v FILTER(?v >= ?o) } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<c>", "s=<d>"]);
}

#[test]
fn optional_parts_see_the_solution() {
    let fixture = fixture();
    let query = "SELECT ?s ?x { ?s :p ?o LATERAL { OPTIONAL { ?x :q ?v FILTER(?v = ?o) } } }";
    assert_eq!(
        both_ways(&fixture, query),
        [
            "s=<a> x=<x>",
            "s=<a> x=<y>",
            "s=<b> x=<z>",
            "s=<c>",
            "s=<d>"
        ]
    );
    let query = "SELECT ?s ?l { ?s :p ?o LATERAL { OPTIONAL { SELECT ?s ?l { ?s :label ?l } ORDER BY ?l LIMIT 1 } } }";
    assert_eq!(
        both_ways(&fixture, query),
        [
            "l=\"a1\" s=<a>",
            "l=\"b1\" s=<b>",
            "l=\"c1\" s=<c>",
            "s=<d>"
        ]
    );
    // What stands before it is what stands before it in its group, which is nothing here.
    let query = "SELECT ?s ?l { ?s :p ?o OPTIONAL { LATERAL { SELECT ?s ?l { ?s :label ?l } ORDER BY ?l LIMIT 2 } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["l=\"a1\" s=<a>", "l=\"b1\" s=<b>", "s=<c>", "s=<d>"]
    );
}

#[test]
fn minus_counts_what_both_of_its_sides_mention() {
    let fixture = fixture();
    let query = "SELECT ?s ?l { ?s :p ?o LATERAL { ?s :label ?l MINUS { ?s :p 2 } } }";
    let four = [
        "l=\"a1\" s=<a>",
        "l=\"c1\" s=<c>",
        "l=\"c2\" s=<c>",
        "l=\"c3\" s=<c>",
    ];
    assert_eq!(both_ways(&fixture, query), four);
    let query = "SELECT ?s ?l { ?s :p ?o LATERAL { ?s :label ?l MINUS { ?s :p ?v FILTER(?v = ?o && ?o = 2) } } }";
    assert_eq!(both_ways(&fixture, query), four);
    // A value of the row that only what is taken away mentions.
    let query = "SELECT ?s ?x { ?s :p ?o FILTER(?o < 3) LATERAL { ?x :q ?v MINUS { ?x :q ?o } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["s=<a> x=<z>", "s=<b> x=<x>", "s=<b> x=<y>"]
    );
    let query = "SELECT ?s { ?s :p ?o FILTER EXISTS { ?x :q 1 MINUS { ?x :q ?o } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<b>", "s=<c>", "s=<d>"]);
    // ?s stands on one side only.
    let query = "SELECT ?s ?x { ?s :p 1 LATERAL { ?x :q 2 MINUS { ?s :p ?v } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<a> x=<z>"]);
}

#[test]
fn in_each_graph_a_limit_counts_for_each_solution_of_it() {
    let fixture = fixture();
    let query = "SELECT ?g ?s ?v { ?s :p ?o LATERAL { GRAPH ?g { SELECT ?s ?v { ?s :r ?v } ORDER BY DESC(?v) LIMIT 1 } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["g=<g1> s=<a> v=2", "g=<g1> s=<b> v=3", "g=<g2> s=<a> v=7"]
    );
    let query = "SELECT ?g ?s ?v { GRAPH ?g { { SELECT DISTINCT ?s { ?s :r ?w } }
        LATERAL { SELECT ?s ?v { ?s :r ?v } ORDER BY ?v LIMIT 1 } } }";
    assert_eq!(
        both_ways(&fixture, query),
        ["g=<g1> s=<a> v=1", "g=<g1> s=<b> v=3", "g=<g2> s=<a> v=5"]
    );
    let query = "SELECT ?g ?n { GRAPH ?g { } LATERAL { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :r ?v } } } }";
    assert_eq!(both_ways(&fixture, query), ["g=<g1> n=3", "g=<g2> n=3"]);
}

#[test]
fn laterals_stand_in_each_other_and_in_exists() {
    let fixture = fixture();
    let query = "SELECT ?s ?l ?x { ?s :p ?o LATERAL { ?s :label ?l
        LATERAL { SELECT ?o ?x { ?x :q ?v FILTER(?v <= ?o) } ORDER BY DESC(?x) LIMIT 1 } } }";
    assert_eq!(
        both_ways(&fixture, query),
        [
            "l=\"a1\" s=<a> x=<y>",
            "l=\"b1\" s=<b> x=<z>",
            "l=\"b2\" s=<b> x=<z>",
            "l=\"c1\" s=<c> x=<z>",
            "l=\"c2\" s=<c> x=<z>",
            "l=\"c3\" s=<c> x=<z>"
        ]
    );
    let query = "SELECT ?s { ?s :p ?o FILTER EXISTS { ?s :label ?l LATERAL { ?x :q ?v FILTER(?v = ?o) } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<a>", "s=<b>"]);
    let query = "SELECT ?s { ?s :p ?o FILTER EXISTS { ?x :q 1
        LATERAL { SELECT ?s ?l { ?s :label ?l } ORDER BY ?l LIMIT 1 OFFSET 2 } } }";
    assert_eq!(both_ways(&fixture, query), ["s=<c>"]);
}

#[test]
fn a_new_value_is_given_to_each_solution() {
    let fixture = fixture();
    for query in [
        "SELECT DISTINCT ?r { ?s :p ?o LATERAL { BIND(STRUUID() AS ?r) } }",
        "SELECT DISTINCT ?r { VALUES ?k { 1 1 1 1 } LATERAL { SELECT ?r { BIND(STRUUID() AS ?r) } } }",
    ] {
        assert_eq!(rows(&fixture, query).len(), 4, "{query}");
    }
}

#[test]
fn a_pattern_inside_is_joined_and_a_limit_runs_once_for_all_solutions() {
    let fixture = fixture();
    let plan = |query: &str| {
        let query = format!("{PREFIXES}{query}");
        let prepared = fixture.engine.prepare(&query, &QueryOptions::of_process());
        prepared.expect("a plan").explain().to_string()
    };
    let joined = plan("SELECT * { ?s :p ?o . ?s :label ?l }");
    let lateral = plan("SELECT * { ?s :p ?o LATERAL { ?s :label ?l } }");
    assert_eq!(lateral, joined);
    let limited =
        plan("SELECT * { ?s :p ?o LATERAL { SELECT * { ?s :label ?l } ORDER BY ?l LIMIT 1 } }");
    assert_eq!(limited.matches("LimitOfEachExec").count(), 1, "{limited}");
}

#[test]
fn a_service_with_a_limit_inside_is_refused() {
    let query = "SELECT * { ?s :p ?o LATERAL { SERVICE <http://e.example/sparql> { SELECT ?s ?l { ?s :label ?l } LIMIT 1 } } }";
    let message = error(&fixture(), query).to_string();
    assert!(
        message.contains("put the LATERAL into the SERVICE"),
        "{message}"
    );
}

#[test]
fn many_solutions_choose_among_many() {
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for subject in 0..500 {
        data += &format!(":s{subject} :p {} .\n", subject % 50);
    }
    let query = "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?sum) { ?s :p ?o LATERAL {
        SELECT ?o ?t ?v { ?t :p ?v FILTER(?v <= ?o) } ORDER BY DESC(?v) ?t LIMIT 3 } }";
    // Ten subjects have each value, so that the three have the value itself.
    assert_eq!(both_ways(&Fixture::new(&data), query), ["n=1500 sum=36750"]);
}

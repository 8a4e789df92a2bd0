//! Tests of lists and containers.

use super::{error, rows_both_ways};
use crate::common::Fixture;

const DATA: &str = "@prefix : <http://example.org/> .
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :a :items ( :x :y :x ) . :b :items () . :c :items ( ( :z ) ) .
    # One that breaks off, and two without end: from :r1 on, and behind :p1.
    :d :items :o1 . :o1 rdf:first :m1 ; rdf:rest :o2 . :o2 rdf:first :m2 .
    :e :items :r1 . :r1 rdf:first :n1 ; rdf:rest :r2 . :r2 rdf:first :n2 ; rdf:rest :r1 .
    :f :items :p1 . :p1 rdf:first :q1 ; rdf:rest :r1 .
    :g :items :no .
    :bag a rdf:Bag ; rdf:_1 :x ; rdf:_2 :y ; rdf:_12 :z ; rdf:_0 :w ; rdf:_x :w ; rdfs:member :v .
    :graph { :s :items ( :y :z ) . :t rdf:_1 :inner }";
const PREFIXES: &str = "PREFIX list: <http://jena.apache.org/ARQ/list#>
    PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ";

/// Rows with integers as their digits.
fn found(fixture: &Fixture, query: &str) -> Vec<String> {
    let rows = rows_both_ways(fixture, &format!("{PREFIXES}{query}"));
    let plain = |row: String| {
        let row = row.replace("\"^^<http://www.w3.org/2001/XMLSchema#integer>", "");
        row.replace("=\"", "=")
    };
    rows.into_iter().map(plain).collect()
}

#[test]
fn members_of_lists() {
    let fixture = Fixture::new(DATA);
    assert_eq!(
        found(
            &fixture,
            "SELECT ?s ?m { ?s :items ?l . ?l list:member ?m FILTER(isIRI(?m)) }"
        ),
        [
            "m=<m1> s=<d>",
            "m=<m2> s=<d>",
            "m=<n1> s=<e>",
            "m=<n1> s=<f>",
            "m=<n2> s=<e>",
            "m=<n2> s=<f>",
            "m=<q1> s=<f>",
            "m=<x> s=<a>",
            "m=<x> s=<a>",
            "m=<y> s=<a>"
        ]
    );
    assert_eq!(
        found(&fixture, "SELECT ?s { ?s :items ?l . ?l list:member :y }"),
        ["s=<a>"]
    );
    // A sequence of steps is a chain of patterns.
    assert_eq!(
        found(
            &fixture,
            "SELECT (COUNT(*) AS ?n) { ?s :items/list:member ?m }"
        ),
        ["n=11"]
    );
    assert_eq!(
        found(&fixture, "SELECT ?m { :r2 list:member ?m }"),
        ["m=<n1>", "m=<n2>"]
    );
    // Each cell is a list.
    assert_eq!(
        found(&fixture, "SELECT (COUNT(*) AS ?n) { ?l list:member :n2 }"),
        ["n=3"]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?g ?m { GRAPH ?g { ?s :items ?l . ?l list:member ?m } }"
        ),
        ["g=<graph> m=<y>", "g=<graph> m=<z>"]
    );
}

#[test]
fn lengths_of_lists() {
    let fixture = Fixture::new(DATA);
    assert_eq!(
        found(
            &fixture,
            "SELECT ?s ?n { ?s :items ?l . ?l list:length ?n }"
        ),
        [
            "n=0 s=<b>",
            "n=1 s=<c>",
            "n=2 s=<d>",
            "n=2 s=<e>",
            "n=3 s=<a>",
            "n=3 s=<f>"
        ]
    );
    assert_eq!(
        found(&fixture, "SELECT ?s { ?s :items ?l . ?l list:length 3 }"),
        ["s=<a>", "s=<f>"]
    );
    assert_eq!(found(&fixture, "SELECT ?n { :p1 list:length ?n }"), ["n=3"]);
    assert_eq!(
        found(&fixture, "SELECT ?n { rdf:nil list:length ?n }"),
        ["n=0"]
    );
    assert!(found(&fixture, "SELECT ?n { :no list:length ?n }").is_empty());
    assert!(found(&fixture, "SELECT ?n { ?n list:length ?n }").is_empty());
    // Ten cells and no cell at all.
    assert_eq!(
        found(&fixture, "SELECT (COUNT(*) AS ?n) { ?l list:length ?any }"),
        ["n=11"]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?n { GRAPH :graph { :s :items ?l . ?l list:length ?n } }"
        ),
        ["n=2"]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?s { ?s :items ?l FILTER NOT EXISTS { ?l list:length ?n FILTER(?n > 0) } }"
        ),
        ["s=<b>", "s=<g>"]
    );
}

#[test]
fn places_in_lists() {
    let fixture = Fixture::new(DATA);
    assert_eq!(
        found(
            &fixture,
            "SELECT ?i ?m { :a :items ?l . ?l list:index (?i ?m) }"
        ),
        ["i=0 m=<x>", "i=1 m=<y>", "i=2 m=<x>"]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?s ?m { ?s :items ?l . ?l list:index (1 ?m) }"
        ),
        [
            "m=<m2> s=<d>",
            "m=<n1> s=<f>",
            "m=<n2> s=<f>",
            "m=<y> s=<a>"
        ]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?i { :a :items ?l . ?l list:index (?i :x) }"
        ),
        ["i=0", "i=2"]
    );
    // Those of a circle have the index at which it begins.
    assert_eq!(
        found(&fixture, "SELECT ?i ?m { :r1 list:index (?i ?m) }"),
        ["i=0 m=<n1>", "i=0 m=<n2>"]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?m ?n { :c :items ?l . ?l list:index (?i ?inner) . ?inner list:member ?m ; list:length ?n }"
        ),
        ["m=<z> n=1"]
    );
    let message = error(
        &fixture,
        "PREFIX list: <http://jena.apache.org/ARQ/list#> SELECT * { ?l list:index ?pair }",
    );
    assert!(
        message.to_string().contains("(?index ?member)"),
        "{message}"
    );
    let message = error(
        &fixture,
        "PREFIX list: <http://jena.apache.org/ARQ/list#> SELECT * { ?l list:last ?x }",
    );
    assert!(message.to_string().contains("list:member"), "{message}");
}

#[test]
fn members_of_containers() {
    let fixture = Fixture::new(DATA);
    let four = ["m=<v>", "m=<x>", "m=<y>", "m=<z>"];
    assert_eq!(found(&fixture, "SELECT ?m { :bag rdfs:member ?m }"), four);
    assert_eq!(found(&fixture, "SELECT ?m { ?c rdfs:member ?m }"), four);
    assert_eq!(
        found(&fixture, "SELECT ?c { ?c rdfs:member :z }"),
        ["c=<bag>"]
    );
    assert_eq!(
        found(
            &fixture,
            "SELECT ?g ?c ?m { GRAPH ?g { ?c rdfs:member ?m } }"
        ),
        ["c=<t> g=<graph> m=<inner>"]
    );
}

#[test]
fn a_length_is_computed_of_the_lists_that_are_asked_for() {
    // One short list, and a long one of which every cell would be a list.
    let mut data =
        "@prefix : <http://example.org/> . :a :items ( :x :y ) . :b :others (".to_owned();
    for number in 0..2_000 {
        data += &format!(" {number}");
    }
    let fixture = Fixture::new(&(data + " ) ."));
    let query = format!(
        "PREFIX : <http://example.org/> {PREFIXES} SELECT ?n {{ :a :items ?l . ?l list:length ?n }}"
    );
    let most = fixture.most_rows(&query);
    assert!(most < 100, "{most} rows");
    let query = format!(
        "PREFIX : <http://example.org/> {PREFIXES} SELECT (MAX(?i) AS ?n) {{ :b :others ?l . ?l list:index (?i ?m) }}"
    );
    let rows = super::rows(
        &fixture,
        &query.replace("PREFIX : <http://example.org/>", ""),
    );
    assert_eq!(
        rows,
        ["n=\"1999\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
}

//! `EXISTS` and what the outer row reaches in it.

use crate::common::Fixture;
use crate::rows_both_ways;

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
    // With :a in place of ?x the innermost part binds ?w to :c; for all ?x it would bind it to :e as well.
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
fn exists_in_the_filter_of_an_optional_part_sees_the_joined_solution() {
    let fixture = Fixture::new(MINUS_DATA);
    let query = "SELECT ?x ?y { ?x :p ?o OPTIONAL { ?x :q ?y FILTER EXISTS { ?x :p ?y } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a>", "x=<d> y=<e>"]);
    // ?o is of the left side only.
    let query = "SELECT ?x ?y { ?x :p ?o OPTIONAL { ?x :q ?y FILTER NOT EXISTS { ?z :q ?o } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["x=<a> y=<c>", "x=<d>"]);
    // The right side is joined, and not evaluated anew for each row of the left: inside of it, the inner OPTIONAL binds
    // ?v for another ?w first.
    let query = "SELECT ?z ?v { ?z :p ?w OPTIONAL { OPTIONAL { ?w :r ?v } FILTER(NOT EXISTS { VALUES ?y { } }) } }";
    assert_eq!(rows_both_ways(&fixture, query), ["z=<a>", "z=<d>"]);
    let query = "SELECT ?x ?n { { ?x :p ?o } UNION { ?x :p ?o } OPTIONAL { :a :q ?n FILTER EXISTS { ?x :q ?n } } }";
    assert_eq!(
        rows_both_ways(&fixture, query),
        ["n=<c> x=<a>", "n=<c> x=<a>", "x=<d>", "x=<d>"]
    );
}

//! Tests of property paths.

use super::{DATA, rows};
use crate::common::Fixture;

#[test]
fn alternatives_of_a_path_keep_duplicates() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT ?x { :alice :knows|:knows ?x }";
    assert_eq!(
        rows(&fixture, query),
        ["x=<bob>", "x=<bob>", "x=<carol>", "x=<carol>"]
    );
}

#[test]
fn a_path_of_length_zero_leads_from_any_constant_to_itself() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT ?x { :unknown :next* ?x }";
    assert_eq!(rows(&fixture, query), ["x=<unknown>"]);
    // Also where a row binds the other end, or leaves it unbound.
    for ends in ["VALUES (?v ?w) { (UNDEF 1) }", "VALUES ?v { :nobody 2 }"] {
        let query = format!("SELECT ?v {{ :nobody :p? ?v . {ends} }}");
        assert_eq!(rows(&fixture, &query), ["v=<nobody>"], "{ends}");
    }
}

#[test]
fn a_path_of_length_zero_starts_from_a_variable_only_at_nodes_of_the_graph() {
    let fixture = Fixture::new("");
    let query = "SELECT * { VALUES ?v { 1 } ?v :p? ?v }";
    assert!(rows(&fixture, query).is_empty());
}

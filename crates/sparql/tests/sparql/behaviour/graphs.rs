//! Tests of named graphs, datasets and `GRAPH`.

use orrery_sparql::QueryOptions;

use super::{DATA, rows, rows_both_ways, rows_with};
use crate::common::Fixture;

#[test]
fn modifiers_inside_graph_work_per_graph() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT ?g ?c { GRAPH ?g { SELECT (COUNT(*) AS ?c) { ?s :knows ?o } } }";
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(
        rows(&fixture, query),
        [
            format!("c=\"2\"{integer} g=<g1>"),
            format!("c=\"3\"{integer} g=<g2>")
        ]
    );
    let query = "SELECT ?g { GRAPH ?g { SELECT ?s { ?s :knows ?o } LIMIT 1 } }";
    assert_eq!(rows(&fixture, query), ["g=<g1>", "g=<g2>"]);
    let query = "SELECT * { GRAPH ?g { VALUES ?s { :alice } } }";
    assert_eq!(
        rows(&fixture, query),
        ["g=<g1> s=<alice>", "g=<g2> s=<alice>"]
    );
}

#[test]
fn the_merge_of_graphs_has_no_duplicates() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT ?o FROM :g1 FROM :g2 { :alice :knows ?o }";
    assert_eq!(rows(&fixture, query), ["o=<erin>"]);
    let options = QueryOptions {
        default_graphs: vec![
            "http://example.org/g1".to_owned(),
            "http://example.org/g2".to_owned(),
        ],
        ..QueryOptions::of_process()
    };
    let query = "SELECT ?o { :alice :knows ?o }";
    assert_eq!(rows_with(&fixture, query, &options), ["o=<erin>"]);
}

#[test]
fn a_dataset_of_the_protocol_replaces_that_of_the_query() {
    let fixture = Fixture::new(DATA);
    let options = QueryOptions {
        named_graphs: vec!["http://example.org/g2".to_owned()],
        ..QueryOptions::of_process()
    };
    let query = "SELECT ?g FROM :g1 { GRAPH ?g { ?g :about ?x } }";
    assert_eq!(rows_with(&fixture, query, &options), ["g=<g2>"]);
    let query = "SELECT ?s FROM :g1 { ?s :knows ?x }";
    assert!(rows_with(&fixture, query, &options).is_empty());
}

#[test]
fn the_union_default_graph_is_all_graphs() {
    let fixture = Fixture::new(DATA);
    let options = QueryOptions {
        union_default_graph: true,
        ..QueryOptions::of_process()
    };
    let query = "SELECT ?o { :alice :knows ?o }";
    assert_eq!(
        rows_with(&fixture, query, &options),
        ["o=<bob>", "o=<carol>", "o=<erin>"]
    );
    assert_eq!(rows(&fixture, query), ["o=<bob>", "o=<carol>"]);
}

#[test]
fn the_variable_of_graph_is_not_bound_inside_of_it() {
    let fixture = Fixture::new(
        "@prefix : <http://example.org/> . :g1 { :s :p :o . :t :p :g1 } :g2 { :x :p 1 }",
    );
    let query = "SELECT ?g ?s { GRAPH ?g { ?s ?p ?o OPTIONAL { ?s ?p ?g } } }";
    assert_eq!(rows(&fixture, query), ["g=<g1> s=<t>"]);
    let query = "SELECT ?s { GRAPH ?g { ?s :p :o MINUS { ?t :p :o } } }";
    assert_eq!(rows(&fixture, query), ["s=<s>"]);
    let query = "SELECT ?s { GRAPH ?g { ?s :p ?o MINUS { ?s :p :o } } }";
    assert_eq!(rows(&fixture, query), ["s=<t>", "s=<x>"]);
}

#[test]
fn a_graph_that_values_names_must_be_there() {
    let fixture = Fixture::new("@prefix : <http://example.org/> . :g1 { :s :p :o }");
    let query = "SELECT ?g { GRAPH ?g { VALUES ?g { :g1 :g2 1 } } }";
    assert_eq!(rows(&fixture, query), ["g=<g1>"]);
    let query = "SELECT ?x { GRAPH ?g { { ?s :p :o } UNION { VALUES ?x { 1 } } } }";
    assert_eq!(rows(&fixture, query).len(), 2);
}

#[test]
fn graph_has_a_solution_for_each_graph_in_which_the_optional_part_has_none() {
    let fixture =
        Fixture::new("@prefix : <http://example.org/> . :g1 { :s :p :o } :g2 { :s :q :o }");
    let query = "SELECT ?g ?x { GRAPH ?g { OPTIONAL { ?x :p ?y } } }";
    assert_eq!(rows(&fixture, query), ["g=<g1> x=<s>", "g=<g2>"]);
    let query = "SELECT ?g { GRAPH ?g { ?s ?p :o MINUS { ?t :q :o OPTIONAL { ?t :r ?s } } } }";
    assert_eq!(rows(&fixture, query), ["g=<g1>", "g=<g2>"]);
}

#[test]
fn a_path_of_length_zero_in_a_graph_does_not_ask_for_the_graph_as_a_node() {
    let fixture = Fixture::new("@prefix : <http://example.org/> . :g { :s :p :o }");
    let query = "SELECT ?x { GRAPH ?g { ?s :p ?o . ?o :q? ?x } }";
    assert_eq!(rows(&fixture, query), ["x=<o>"]);
}

#[test]
fn minus_inside_of_graph_counts_a_variable_that_is_also_the_name_of_the_graph() {
    let fixture = Fixture::new(
        "@prefix : <http://example.org/> .
        :g { :g :p :x . :h :p :x . :h :q :y . }
        :h { :h :p :x . :h :q :y . }",
    );
    let query = "SELECT ?g { GRAPH ?g { ?g :p ?x MINUS { ?g :q ?y } } }";
    assert_eq!(rows_both_ways(&fixture, query), ["g=<g>"]);
}

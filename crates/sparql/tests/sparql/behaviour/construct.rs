//! Tests of `CONSTRUCT` of quads.

use orrery_sparql::QueryOptions;

use crate::common::{Answer, Fixture, PREFIXES};

const DATA: &str = "@prefix : <http://example.org/> .
    :a :p :x . :b :p :y .
    :g1 { :a :q 1 . :b :q 2 } :g2 { :a :q 3 }";

fn quads(fixture: &Fixture, query: &str) -> Vec<String> {
    match fixture
        .ask(&format!("{PREFIXES}{query}"))
        .map(Answer::sorted)
    {
        Ok(Answer::Triples(quads)) => {
            let short = |quad: String| quad.replace("http://example.org/", "");
            let mut quads: Vec<String> = quads.into_iter().map(short).collect();
            quads.sort();
            quads
        }
        other => panic!("{query}: {other:?}"),
    }
}

fn gives_quads(fixture: &Fixture, query: &str) -> bool {
    let query = format!("{PREFIXES}{query}");
    let prepared = fixture.engine.prepare(&query, &QueryOptions::of_process());
    match prepared {
        Ok(prepared) => prepared.gives_quads(),
        Err(error) => panic!("{query}: {error}"),
    }
}

#[test]
fn a_template_has_triples_of_graphs() {
    let fixture = Fixture::new(DATA);
    let query =
        "CONSTRUCT { ?s :was ?o GRAPH ?g { ?s :now ?o } ?s a :S . GRAPH :all { ?s :now ?o , ?g } }
        { GRAPH ?g { ?s :q ?o } FILTER(?o < 3) }";
    assert!(gives_quads(&fixture, query));
    let integer = |n: u32| format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
    let mut expected = Vec::new();
    for (s, n) in [("<a>", 1), ("<b>", 2)] {
        let o = integer(n);
        expected.push(format!("{s} <was> {o}"));
        expected.push(format!("{s} <now> {o} <g1>"));
        expected.push(format!(
            "{s} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <S>"
        ));
        expected.push(format!("{s} <now> {o} <all>"));
        expected.push(format!("{s} <now> <g1> <all>"));
    }
    expected.sort();
    assert_eq!(quads(&fixture, query), expected);
}

#[test]
fn quads_come_once_and_what_has_no_graph_is_left_out() {
    let fixture = Fixture::new(DATA);
    let query = "CONSTRUCT { GRAPH :h { :s :p :o } } { GRAPH ?g { ?s :q ?o } }";
    assert_eq!(quads(&fixture, query), ["<s> <p> <o> <h>"]);
    // ?g is unbound in the one, a literal in the other.
    let query =
        "CONSTRUCT { GRAPH ?g { ?s :p :o } } { { ?s :p :x } UNION { ?s :p :y BIND(5 AS ?g) } }";
    assert!(quads(&fixture, query).is_empty());
    // A blank node of a template is one node in all graphs of a solution.
    let query = "CONSTRUCT { _:b :p ?s GRAPH :h { _:b :p ?s } } { ?s :p :x }";
    let found = quads(&fixture, query);
    let nodes: Vec<&str> = found.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[0], nodes[1]);
    assert!(!gives_quads(
        &fixture,
        "CONSTRUCT { ?s ?p ?o GRAPH ?g { } } { ?s ?p ?o }"
    ));
}

#[test]
fn the_short_form_has_graphs() {
    let fixture = Fixture::new(DATA);
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(
        quads(&fixture, "CONSTRUCT WHERE { GRAPH ?g { ?s :q 3 } }"),
        [format!("<a> <q> \"3\"{integer} <g2>")]
    );
    assert_eq!(
        quads(
            &fixture,
            "CONSTRUCT WHERE { ?s :p :x GRAPH :g1 { ?s :q ?o } }"
        ),
        [
            "<a> <p> <x>".to_owned(),
            format!("<a> <q> \"1\"{integer} <g1>")
        ]
    );
}

#[test]
fn other_constants_in_the_place_of_a_graph_are_other_graphs() {
    let fixture = Fixture::new(DATA);
    for graph in ["one", "two", "three", "four"] {
        let query = format!(
            "CONSTRUCT {{ GRAPH <http://example.org/{graph}> {{ ?s <http://example.org/p> ?o }} }}
             {{ ?s <http://example.org/p> ?o }} LIMIT 1"
        );
        let found = quads(&fixture, &query);
        assert!(found[0].ends_with(&format!("<{graph}>")), "{found:?}");
    }
}

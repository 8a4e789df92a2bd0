//! Tests of `GRAPH ?g`: evaluation per graph, binding of the name, many graphs.

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::{QueryOptions, Tuning};

const DATA: &str = "@prefix : <http://example.org/> .
    :a :p 1 .
    :g { :a :p 1 , 2 , 3 . :b :p 3 . :g :q :a . }
    :h { :a :p 4 . :c :q :h . }
    :i { :i :q :i . }";

/// The rows of a query, which must be the same for all ways to plan it.
fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    let query = format!("{PREFIXES}{query}");
    let usual = Tuning::default();
    let ways = [
        usual,
        Tuning {
            graph_branches_max: 0,
            ..usual
        },
        Tuning {
            rewrites: false,
            ..usual
        },
    ];
    let answers = ways.map(|tuning| {
        let options = QueryOptions {
            tuning,
            ..QueryOptions::of_process()
        };
        match fixture.ask_with(&query, &options).map(Answer::sorted) {
            Ok(Answer::Solutions(rows)) => rows
                .into_iter()
                .map(|row| {
                    row.replace("http://example.org/", "")
                        .replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "")
                })
                .collect::<Vec<_>>(),
            other => panic!("{query}: {other:?}"),
        }
    });
    let [usual, together, plain] = answers;
    assert_eq!(usual, plain, "{query}");
    assert_eq!(together, plain, "{query}, all graphs at once");
    usual
}

/// SPARQL 1.1, 18.6: the name is joined to the solutions of each graph.
#[test]
fn the_name_of_the_graph_is_not_bound_inside_of_it() {
    let fixture = Fixture::new(DATA);
    let all = ["g=<g>", "g=<h>", "g=<i>"];
    for (pattern, expected) in [
        ("?s :q ?o FILTER(?g = :g)", &[][..]),
        ("?s :q ?o FILTER(!bound(?g))", &all),
        ("?s :q ?o BIND(bound(?g) AS ?b) FILTER(?b = false)", &all),
        (
            "?s :q ?o OPTIONAL { ?s :p ?x FILTER(bound(?g)) } FILTER(!bound(?x))",
            &all,
        ),
        // Where the pattern binds it, it is.
        ("?g :q ?o FILTER(?g != :i)", &["g=<g>"]),
        (
            "{ ?g :q ?o } UNION { ?s :q ?o } FILTER(bound(?g))",
            &["g=<g>", "g=<i>"],
        ),
        // What EXISTS looks for in the graph is any subject, or none that `?g` would name.
        (
            "?s :q ?o FILTER NOT EXISTS { ?g :p 4 }",
            &["g=<g>", "g=<i>"],
        ),
        (
            "?s :q ?o FILTER NOT EXISTS { ?g :q :a }",
            &["g=<h>", "g=<i>"],
        ),
        ("?g :q ?o FILTER EXISTS { ?g :q :a }", &["g=<g>"]),
        ("?s :q ?o MINUS { ?g :q ?x }", &all),
        ("?s :q ?o MINUS { ?s :q ?o FILTER(bound(?g)) }", &all),
        ("SELECT ?o { ?s :q ?o FILTER(bound(?g)) }", &[]),
        ("SELECT ?g { ?s :q ?g FILTER(?g = :h) }", &["g=<h>"]),
        ("GRAPH ?g { ?s :q ?o } FILTER(?g = :h)", &["g=<h>"]),
    ] {
        let query = format!("SELECT ?g {{ GRAPH ?g {{ {pattern} }} }}");
        assert_eq!(rows(&fixture, &query), expected, "{query}");
        // Nor does a binding outside reach in.
        let query = format!("SELECT ?g {{ VALUES ?g {{ :g :h :i }} GRAPH ?g {{ {pattern} }} }}");
        assert_eq!(rows(&fixture, &query), expected, "{query}");
    }
}

#[test]
fn modifiers_and_aggregates_count_in_each_graph() {
    let fixture = Fixture::new(DATA);
    for (pattern, expected) in [
        (
            "SELECT (COUNT(*) AS ?n) { ?s :p ?o }",
            &["g=<g> n=\"4\"", "g=<h> n=\"1\"", "g=<i> n=\"0\""][..],
        ),
        (
            "SELECT (COUNT(*) AS ?n) (MAX(?o) AS ?m) (SUM(?o) AS ?t) { ?s :p ?o FILTER(?o > 1) }",
            &[
                "g=<g> m=\"3\" n=\"3\" t=\"8\"",
                "g=<h> m=\"4\" n=\"1\" t=\"4\"",
                "g=<i> n=\"0\" t=\"0\"",
            ],
        ),
        (
            "SELECT ?s (COUNT(DISTINCT ?o) AS ?n) { ?s :p ?o } GROUP BY ?s HAVING (COUNT(*) > 1)",
            &["g=<g> n=\"3\" s=<a>"],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { VALUES ?x { 1 2 } }",
            &["g=<g> n=\"2\"", "g=<h> n=\"2\"", "g=<i> n=\"2\""],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { VALUES ?x {} }",
            &["g=<g> n=\"0\"", "g=<h> n=\"0\"", "g=<i> n=\"0\""],
        ),
        (
            "SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p [] }",
            &["g=<g> n=\"2\"", "g=<h> n=\"1\"", "g=<i> n=\"0\""],
        ),
        (
            "SELECT ?o { ?s :p ?o } ORDER BY DESC(?o) LIMIT 1",
            &["g=<g> o=\"3\"", "g=<h> o=\"4\""],
        ),
        (
            "SELECT DISTINCT ?o { ?s :p ?o } ORDER BY ?o OFFSET 2",
            &["g=<g> o=\"3\""],
        ),
        (
            "SELECT DISTINCT ?o { ?s :p ?o } ORDER BY ?o OFFSET 1 LIMIT 1",
            &["g=<g> o=\"2\""],
        ),
        (
            "SELECT DISTINCT ?y { ?s ?p ?o BIND(1 AS ?y) }",
            &["g=<g> y=\"1\"", "g=<h> y=\"1\"", "g=<i> y=\"1\""],
        ),
        (
            "SELECT ?x { VALUES ?x { 1 2 3 } } ORDER BY DESC(?x) LIMIT 1",
            &["g=<g> x=\"3\"", "g=<h> x=\"3\"", "g=<i> x=\"3\""],
        ),
        ("SELECT ?s { ?s ?p ?o } LIMIT 0", &[]),
        // Inside of EXISTS, and of a subquery in a subquery.
        (
            "?s :q ?x FILTER EXISTS { SELECT ?o { ?s :p ?o } ORDER BY ?o OFFSET 1 LIMIT 1 } BIND(?x AS ?y)",
            &["g=<g> s=<g> x=<a> y=<a>"],
        ),
        (
            "?s :q ?x { SELECT ?o { { SELECT ?o { ?z :p ?o } ORDER BY DESC(?o) LIMIT 2 } } ORDER BY ?o LIMIT 1 }",
            &["g=<g> o=\"3\" s=<g> x=<a>", "g=<h> o=\"4\" s=<c> x=<h>"],
        ),
    ] {
        let query = format!("SELECT * {{ GRAPH ?g {{ {pattern} }} }}");
        assert_eq!(rows(&fixture, &query), expected, "{query}");
    }
    // One blank node in each graph.
    let query =
        "SELECT (COUNT(DISTINCT ?y) AS ?n) { GRAPH ?g { BIND(BNODE() AS ?y) { ?s ?p ?o } } }";
    assert_eq!(rows(&fixture, query), ["n=\"3\""]);
}

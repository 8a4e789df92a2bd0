//! Tests of the diagnosis of empty answers.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use crate::common::{Fixture, PREFIXES};
use orrery_sparql::QueryOptions;
use orrery_storage::{Asker, GraphNames, ReadScope};
use orrery_term::Term;

const DATA: &str = r#"
    @prefix : <http://example.org/> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix schema: <https://schema.org/> .
    :ann a schema:Person ; rdfs:label "Ann" ; schema:name "Ann" ; :knows :bob .
    :bob a schema:Person ; rdfs:label "Bob" .
    GRAPH :hidden { :ann :secret "x" ; <http://schema.org/email> "y" }
"#;

fn hints_with(fixture: &Fixture, query: &str, options: &QueryOptions) -> Vec<String> {
    let text = format!("{PREFIXES}{query}");
    let prepared = fixture.engine.prepare(&text, options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(fixture.engine.why_empty(&prepared, &text, options))
}

/// A database of its own for each: of many questions in a second not all are looked into.
fn hints(query: &str) -> Vec<String> {
    hints_with(&Fixture::new(DATA), query, &QueryOptions::of_process())
}

#[test]
fn the_pattern_that_has_nothing_is_named_with_what_was_probably_meant() {
    for (query, said) in [
        (
            "SELECT * { ?s a ?class . ?s <http://schema.org/name> ?n }",
            "no statement has the predicate <http://schema.org/name>, but some have <https://schema.org/name>",
        ),
        (
            "SELECT * { ?s a <http://schema.org/Person> }",
            "no statement has the class <http://schema.org/Person>, but some have <https://schema.org/Person>",
        ),
        (
            "SELECT * { ?s <http://www.w3.org/2000/01/rdf-schema#lable> ?l }",
            "but some have <http://www.w3.org/2000/01/rdf-schema#label>",
        ),
        (
            "SELECT * { ?s ?p ?o . OPTIONAL { ?s <http://e/none> ?n } ?s :knows :carl }",
            "no statement has the object <http://example.org/carl>",
        ),
        (
            "SELECT * { ?s ?p ?o . :bob :knows ?o }",
            "nothing matches the pattern <http://example.org/bob> <http://example.org/knows> ?o",
        ),
        (
            "CONSTRUCT { ?s :p ?o } { GRAPH ?g { ?s :secrets ?o } }",
            "but some have <http://example.org/secret>",
        ),
    ] {
        let hints = hints(query);
        assert_eq!(hints.len(), 1, "{query}: {hints:?}");
        assert!(hints[0].contains(said), "{query}: {hints:?}");
    }
}

#[test]
fn no_diagnosis_where_each_pattern_has_a_match() {
    for query in [
        "SELECT * { ?s :knows ?o . ?o :knows ?s }",
        "SELECT * { ?s ?p ?o FILTER(?o = 17) }",
        "SELECT * { { ?s :none ?o } UNION { ?s :nothing ?o } }",
        "SELECT * { ?s ?p ?o } LIMIT 0",
    ] {
        assert_eq!(hints(query), [""; 0], "{query}");
    }
}

#[test]
fn hints_are_of_what_whoever_asks_may_see() {
    let fixture = Fixture::new(DATA);
    let only_default = GraphNames {
        has_default: true,
        ..GraphNames::default()
    };
    let of_default = ReadScope::only(Asker::Anonymous, only_default);
    let options = QueryOptions {
        union_default_graph: true,
        ..QueryOptions::of(of_default)
    };
    for query in [
        "SELECT * { ?s :secrets ?o }",
        "SELECT * { ?s <https://schema.org/email> ?o }",
    ] {
        let hints = hints_with(&fixture, query, &options);
        assert_eq!(hints.len(), 1, "{query}: {hints:?}");
        assert!(!hints[0].contains("some have"), "{query}: {hints:?}");
    }
}

#[test]
fn whether_a_hidden_default_graph_has_data_is_not_told() {
    let told = |data: &str| {
        let fixture = Fixture::new(data);
        let mut shown = GraphNames::default();
        shown
            .named
            .insert(Term::iri("http://example.org/shown".to_owned()));
        let options = QueryOptions::of(ReadScope::only(Asker::Anonymous, shown));
        hints_with(&fixture, "SELECT * { ?s ?p ?o }", &options)
    };
    let shown = "@prefix : <http://example.org/> . GRAPH :shown { :a :p 1 }";
    let hidden = format!("{shown} :b :p 2 , 3 . GRAPH :other {{ :c :p 4 }}");
    assert_eq!(told(shown), told(&hidden));
    assert_eq!(told(shown).len(), 1);
}

#[test]
fn data_only_in_named_graphs_are_reported() {
    let fixture = Fixture::new("@prefix : <http://example.org/> . GRAPH :g { :a :p 1, 2 }");
    let hints = hints_with(
        &fixture,
        "SELECT * { ?s ?p ?o }",
        &QueryOptions::of_process(),
    );
    assert!(
        hints[0].contains("all data are in named graphs"),
        "{hints:?}"
    );
}

#[test]
fn a_selected_variable_that_occurs_nowhere_is_reported() {
    let fixture = Fixture::new(DATA);
    let options = QueryOptions::of_process();
    let told = |query: &str| {
        let text = format!("{PREFIXES}{query}");
        let prepared = fixture.engine.prepare(&text, &options).unwrap();
        fixture.engine.never_bound(&prepared, &text, &options)
    };
    let unbound = told("SELECT ?s ?nmae { ?s :knows ?name }");
    assert_eq!(unbound.len(), 1, "{unbound:?}");
    assert!(unbound[0].starts_with("?nmae is selected"), "{unbound:?}");
    for query in [
        "SELECT ?s ?o { ?s :knows ?o }",
        "SELECT * { ?s :knows ?o }",
        "SELECT ?s ?o { ?s :none ?o }",
        "SELECT ?o { ?s ?p 1 OPTIONAL { ?s :none ?o } }",
        "SELECT (COUNT(?x) AS ?n) { ?s ?p ?o }",
    ] {
        assert_eq!(told(query), [""; 0], "{query}");
    }
}

/// Whether values are looked for in a set depends on how many rows lie in the files, those of
/// hidden graphs among them.
#[test]
fn a_plan_that_has_run_names_its_sets_only_to_those_who_see_all() {
    let of_each = |number: u32| {
        let few = if number < 500 { " ; :m :one" } else { "" };
        format!(":s{number} :l :v{} , :w{number}{few} .", number % 50)
    };
    let values: String = (0..3_000).map(of_each).collect();
    let common: String = (0..50).map(|value| format!(":b :k :v{value} .")).collect();
    let data = format!(
        "@prefix : <http://example.org/> . {values} {common} GRAPH :hidden {{ :b :k :v3 }}"
    );
    let fixture = Fixture::new(&data);
    let text = format!("{PREFIXES}SELECT * {{ ?w :m :one . ?w :l ?x . :b :k ?x }}");
    let names = GraphNames {
        has_default: true,
        ..GraphNames::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let analyzed = |options: &QueryOptions| {
        let prepared = fixture.engine.prepare(&text, options).unwrap();
        runtime.block_on(prepared.analyze()).unwrap()
    };
    let all = analyzed(&QueryOptions::of_process());
    assert!(all.contains("as a set of"), "{all}");
    let some = QueryOptions::of(ReadScope::only(Asker::Anonymous, names));
    let some = analyzed(&some);
    assert!(!some.contains("as a set of"), "{some}");
}

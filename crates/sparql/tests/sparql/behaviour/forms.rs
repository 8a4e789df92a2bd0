//! Tests of `DESCRIBE`, `CONSTRUCT` and `ASK`.

use orrery_sparql::{EngineOptions, QueryError, QueryOptions};

use super::DATA;
use crate::common::{Answer, Fixture, PREFIXES};

#[test]
fn describe_follows_blank_nodes() {
    let fixture = Fixture::new(DATA);
    let query = format!("{PREFIXES}DESCRIBE :frank");
    match fixture.ask(&query).map(Answer::sorted) {
        Ok(Answer::Triples(triples)) => {
            assert_eq!(triples.len(), 9, "{triples:#?}");
            assert!(triples.iter().any(|triple| triple.contains("Berlin")));
        }
        other => panic!("{other:?}"),
    }
    let query = format!("{PREFIXES}DESCRIBE ?x WHERE {{ :acme :employs ?x }}");
    match fixture.ask(&query).map(Answer::sorted) {
        Ok(Answer::Triples(triples)) => {
            assert!(triples.iter().any(|triple| triple.contains("Alice")));
            assert!(triples.iter().all(|triple| !triple.contains("Dave")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn describe_reads_a_hub_piece_by_piece_and_remembers_resources_only() {
    const SPOKES: usize = 60_000;
    let small = |trig: &str| {
        let memory_bytes = 1_000_000;
        let options = EngineOptions {
            memory_bytes,
            ..EngineOptions::default()
        };
        Fixture::with_options(trig, options)
    };
    let spokes: String = (0..SPOKES)
        .map(|n| format!(":hub :to :o{n} . :g {{ :hub :to :o{n} }}\n"))
        .collect();
    let fixture = small(&format!("@prefix : <http://example.org/> .\n{spokes}"));
    let batches = fixture.triple_batches(&format!("{PREFIXES}DESCRIBE :hub"));
    let batches = batches.expect("a hub of any size");
    // The same triple in two graphs is one.
    assert_eq!(batches.iter().sum::<usize>(), SPOKES);
    assert!(
        batches.iter().all(|&triples| triples <= 8_192),
        "{batches:?}"
    );
    // Resources to be described in turn are counted.
    let nodes: String = (0..SPOKES)
        .map(|n| format!(":hub :to _:n{n} .\n"))
        .collect();
    let fixture = small(&format!("@prefix : <http://example.org/> .\n{nodes}"));
    let refused = fixture.triple_batches(&format!("{PREFIXES}DESCRIBE :hub"));
    assert!(
        matches!(refused, Err(QueryError::OutOfMemory { .. })),
        "{refused:?}"
    );
}

#[test]
fn describe_keeps_to_the_graphs_of_the_query() {
    let fixture =
        Fixture::new("@prefix : <http://example.org/> . :s :p 1 . :g1 { :s :p 2 } :g2 { :s :p 3 }");
    let triples = |query: &str| match fixture.ask(&format!("{PREFIXES}{query}")) {
        Ok(Answer::Triples(triples)) => triples.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(triples("DESCRIBE :s"), 3);
    assert_eq!(triples("DESCRIBE :s FROM :g1"), 1);
    assert_eq!(triples("DESCRIBE :s FROM :g1 FROM NAMED :g2"), 2);
}

#[test]
fn all_forms_have_groups_and_conditions_on_them() {
    let fixture = Fixture::new("@prefix : <http://example.org/> . :a :p 1, 2 . :b :p 3 .");
    let ask = |query: &str| {
        let answer = fixture.ask(&format!("{PREFIXES}{query}"));
        answer.map(Answer::sorted).expect(query)
    };
    for (least, is_there) in [(2, true), (3, false)] {
        let groups = format!("GROUP BY ?s HAVING (COUNT(?o) >= {least})");
        let found = ask(&format!("ASK {{ ?s :p ?o }} {groups}"));
        assert!(
            matches!(found, Answer::Boolean(it) if it == is_there),
            "{found:?}"
        );
        let made = ask(&format!(
            "CONSTRUCT {{ ?s :many 1 }} {{ ?s :p ?o }} {groups}"
        ));
        let Answer::Triples(made) = made else {
            panic!("{made:?}");
        };
        assert_eq!(made.len(), usize::from(is_there), "{made:?}");
        assert!(made.iter().all(|it| it.contains("/a>")), "{made:?}");
        let described = ask(&format!("DESCRIBE ?s {{ ?s :p ?o }} {groups}"));
        let Answer::Triples(described) = described else {
            panic!("{described:?}");
        };
        assert_eq!(described.len(), 2 * usize::from(is_there), "{described:?}");
    }
    // Without GROUP BY all solutions are one group, be there any or not.
    for (query, is_there) in [
        ("ASK { ?s :p ?o } HAVING (COUNT(*) = 3)", true),
        ("ASK { ?s :q ?o } HAVING (COUNT(*) = 0)", true),
        ("ASK { ?s :p ?o } HAVING (SUM(?o) > 6)", false),
    ] {
        let found = ask(query);
        assert!(
            matches!(found, Answer::Boolean(it) if it == is_there),
            "{query}: {found:?}"
        );
    }
}

#[test]
fn a_variable_that_is_selected_twice_is_one_column() {
    let fixture = Fixture::new("@prefix : <http://example.org/> . :a :p 1 . :b :p 2 .");
    let ask = |query: &str| {
        let answer = fixture.ask(&format!("{PREFIXES}{query}"));
        format!("{:?}", answer.map(Answer::sorted).expect(query))
    };
    let once = ask("SELECT ?s ?o { ?s :p ?o }");
    assert_eq!(ask("SELECT ?s ?o ?s { ?s :p ?o }"), once);
    assert_eq!(
        ask("DESCRIBE ?s ?s { ?s :p 1 }"),
        ask("DESCRIBE ?s { ?s :p 1 }")
    );
}

#[test]
fn blank_nodes_of_a_template_are_new_for_each_solution() {
    let fixture = Fixture::new(DATA);
    let query =
        format!("{PREFIXES}CONSTRUCT {{ _:x :of ?s . _:x :is _:y }} WHERE {{ ?s a :Company }}");
    match fixture.ask(&query).map(Answer::sorted) {
        Ok(Answer::Triples(triples)) => assert_eq!(triples.len(), 4, "{triples:#?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_triples_of_one_graph_need_no_memory_of_those_that_were_given() {
    let mut trig = String::from("@prefix : <http://example.org/> .\n");
    for number in 0..4_000 {
        trig += &format!(
            ":s{number} :p {number} . :g{} {{ :s{number} :p {number} }}\n",
            number % 2
        );
    }
    let options = EngineOptions {
        memory_bytes: 100_000,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&trig, options);
    let count = |query: &str, tuning: &QueryOptions| match fixture.ask_with(query, tuning) {
        Ok(Answer::Triples(triples)) => {
            let distinct: std::collections::BTreeSet<&String> = triples.iter().collect();
            assert_eq!(distinct.len(), triples.len(), "{query}");
            triples.len()
        }
        Err(QueryError::OutOfMemory { .. }) => 0,
        other => panic!("{query}: {other:?}"),
    };
    let plain = QueryOptions::of_process();
    let of_all = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }";
    assert_eq!(count(of_all, &plain), 4_000);
    let of_graph = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH <http://example.org/g1> { ?s ?p ?o } }";
    assert_eq!(count(of_graph, &plain), 2_000);
    // Where a triple may come twice, it is remembered, which does not fit here.
    let union = QueryOptions {
        union_default_graph: true,
        ..QueryOptions::of_process()
    };
    assert_eq!(count(of_all, &union), 0);
    let of_any_graph = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }";
    assert_eq!(count(of_any_graph, &plain), 0);
    let of_fewer = "CONSTRUCT { ?p ?p ?p } WHERE { ?s ?p ?o }";
    assert_eq!(count(of_fewer, &plain), 1);
}

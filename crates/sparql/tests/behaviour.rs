//! What the oracle does not answer as the specification has it, limits, and errors.

mod common;

use std::time::Duration;

use common::{Answer, Fixture, PREFIXES};
use orrery_sparql::{EngineOptions, QueryError, QueryOptions};

const DATA: &str = include_str!("oracle/data.trig");

fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    rows_with(fixture, query, &QueryOptions::default())
}

fn rows_with(fixture: &Fixture, query: &str, options: &QueryOptions) -> Vec<String> {
    let query = format!("{PREFIXES}{query}");
    match fixture.ask_with(&query, options).map(Answer::sorted) {
        Ok(Answer::Solutions(rows)) => rows
            .into_iter()
            .map(|row| row.replace("http://example.org/", ""))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn error(fixture: &Fixture, query: &str) -> QueryError {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Err(error) => error,
        Ok(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn dates_are_compared_by_value() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT ?s { ?s :born ?d FILTER(?d < \"1995-01-01\"^^xsd:date) }";
    assert_eq!(rows(&fixture, query), ["s=<alice>"]);
}

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
        ..QueryOptions::default()
    };
    let query = "SELECT ?o { :alice :knows ?o }";
    assert_eq!(rows_with(&fixture, query, &options), ["o=<erin>"]);
}

#[test]
fn a_dataset_of_the_protocol_replaces_that_of_the_query() {
    let fixture = Fixture::new(DATA);
    let options = QueryOptions {
        named_graphs: vec!["http://example.org/g2".to_owned()],
        ..QueryOptions::default()
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
        ..QueryOptions::default()
    };
    let query = "SELECT ?o { :alice :knows ?o }";
    assert_eq!(
        rows_with(&fixture, query, &options),
        ["o=<bob>", "o=<carol>", "o=<erin>"]
    );
    assert_eq!(rows(&fixture, query), ["o=<bob>", "o=<carol>"]);
}

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
fn a_distinct_count_sees_only_the_variables_of_a_solution() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT (COUNT(DISTINCT *) AS ?c) \
                 { ?s a :Person . { SELECT ?s { ?s :knows ?o } } ?s :knows [] }";
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(rows(&fixture, query), [format!("c=\"4\"{integer}")]);
}

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
fn service_is_not_supported_unless_silent() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT * { SERVICE <http://elsewhere/> { ?s ?p ?o } }";
    assert!(matches!(
        error(&fixture, query),
        QueryError::Unsupported { .. }
    ));
}

#[test]
fn an_unknown_function_is_named() {
    let fixture = Fixture::new(DATA);
    let error = error(&fixture, "SELECT * { ?s :age ?a FILTER(:odd(?a)) }");
    assert!(error.to_string().contains("example.org/odd"), "{error}");
}

#[test]
fn a_query_over_its_time_says_the_limit() {
    let fixture = Fixture::new(DATA);
    let options = QueryOptions {
        timeout: Some(Duration::from_millis(20)),
        ..QueryOptions::default()
    };
    let query = "SELECT (COUNT(*) AS ?c) { ?a ?b ?c1 . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o }";
    match fixture.ask_with(query, &options) {
        Err(QueryError::Timeout { limit }) => assert_eq!(limit, Duration::from_millis(20)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_over_the_memory_budget_says_the_figure() {
    let options = EngineOptions {
        memory_bytes: 100_000,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(DATA, options);
    let query = "SELECT (COUNT(DISTINCT CONCAT(STR(?a), STR(?d), STR(?f))) AS ?c) \
                 { ?a ?b ?c1 . ?d ?e ?f }";
    match fixture.ask(query) {
        Err(QueryError::OutOfMemory { limit_bytes, .. }) => assert_eq!(limit_bytes, 100_000),
        other => panic!("{other:?}"),
    }
    assert!(
        fixture.ask("ASK { ?s ?p ?o }").is_ok(),
        "the engine goes on"
    );
}

#[test]
fn a_long_literal_is_given_only_where_there_is_room_for_it() {
    let long = "long ".repeat(1 << 19);
    let data = format!("<urn:s> <urn:p> \"{long}\" , \"short text\" .");
    let ask = |memory_bytes| {
        let options = EngineOptions {
            memory_bytes,
            ..EngineOptions::default()
        };
        let fixture = Fixture::with_options(&data, options);
        let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
        assert!(fixture.ask(count).is_ok(), "counting does not touch it");
        fixture.ask("SELECT ?o { ?s ?p ?o }")
    };
    match ask(12 << 20) {
        Err(QueryError::OutOfMemory { message, .. }) => {
            assert!(message.contains("long literals of the answer"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(ask(64 << 20).is_ok());
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
    let plain = QueryOptions::default();
    let of_all = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }";
    assert_eq!(count(of_all, &plain), 4_000);
    let of_graph = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH <http://example.org/g1> { ?s ?p ?o } }";
    assert_eq!(count(of_graph, &plain), 2_000);
    // Where a triple may come twice, it is remembered, which does not fit here.
    let union = QueryOptions {
        union_default_graph: true,
        ..QueryOptions::default()
    };
    assert_eq!(count(of_all, &union), 0);
    let of_any_graph = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }";
    assert_eq!(count(of_any_graph, &plain), 0);
    let of_fewer = "CONSTRUCT { ?p ?p ?p } WHERE { ?s ?p ?o }";
    assert_eq!(count(of_fewer, &plain), 1);
}

#[test]
fn hostile_nesting_neither_crashes_nor_hangs() {
    let fixture = Fixture::new(DATA);
    for query in [
        format!(
            "SELECT * {{ {} }}",
            "{ ?s ?p ?o } UNION ".repeat(2_000) + "{ ?s ?p ?o }"
        ),
        format!(
            "SELECT * {{ {}?s ?p ?o{} }}",
            "{".repeat(100),
            "}".repeat(100)
        ),
        format!(
            "SELECT * {{ FILTER({}1{}) }}",
            "(".repeat(100),
            ")".repeat(100)
        ),
        format!("SELECT * {{ FILTER({}true) }}", "!".repeat(5_000)),
        format!("SELECT * {{ FILTER(1{}) }}", " + 1".repeat(5_000)),
        format!(
            "SELECT * {{ FILTER(?x = 1{}) }}",
            " || ?x = 2".repeat(3_000)
        ),
        format!("SELECT * {{ {} }}", "OPTIONAL { ?s ?p ?o } ".repeat(3_000)),
        format!("SELECT * {{ ?s {}?p ?o }}", "^".repeat(5_000)),
        format!("SELECT * {{ ?s <p>{} ?o }}", "/<p>".repeat(5_000)),
        format!("SELECT * {{ {} }}", "{".repeat(100_000)),
    ] {
        match fixture.ask(&query) {
            Ok(_) | Err(QueryError::Syntax { .. } | QueryError::Unsupported { .. }) => {}
            Err(other) => panic!("{other} for {}", &query[..80]),
        }
    }
}

#[test]
fn syntax_errors_name_their_place() {
    let fixture = Fixture::new(DATA);
    match fixture.ask("SELECT ?s\nWHERE { ?s ?p }") {
        Err(QueryError::Syntax { line, column, .. }) => assert_eq!((line, column), (2, 16)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn counts_of_one_pattern_touch_no_rows() {
    let fixture = Fixture::new(DATA);
    for query in [
        "SELECT (COUNT(*) AS ?c) { ?s ?p ?o }",
        "SELECT (COUNT(*) AS ?c) { GRAPH <http://example.org/g1> { ?s ?p ?o } }",
        "SELECT (COUNT(?o) AS ?c) { <http://example.org/alice> <http://example.org/knows> ?o }",
    ] {
        let plan = fixture.analyze(query).expect("a plan");
        assert!(plan.contains("CountExec"), "{plan}");
        assert!(!plan.contains("PatternExec"), "{plan}");
    }
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
fn a_path_of_length_zero_starts_from_a_variable_only_at_nodes_of_the_graph() {
    let fixture = Fixture::new("");
    let query = "SELECT * { VALUES ?v { 1 } ?v :p? ?v }";
    assert!(rows(&fixture, query).is_empty());
}

/// Found by the oracle (`crates/testsuite`), as are the tests below.
#[test]
fn a_distinct_count_in_a_subquery_sees_the_variables_that_it_hides() {
    let fixture = Fixture::new("");
    let query = "SELECT ?c { { SELECT (COUNT(DISTINCT *) AS ?c) { VALUES ?x { 1 2 2 } } } }";
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(rows(&fixture, query), [format!("c=\"2\"{integer}")]);
}

#[test]
fn a_solution_without_variables_can_be_ordered() {
    let fixture = Fixture::new("");
    assert_eq!(rows(&fixture, "SELECT * { } ORDER BY ?x"), [""]);
    assert_eq!(
        rows(&fixture, "SELECT ?y { } ORDER BY (?x + 1) LIMIT 2"),
        [""]
    );
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

/// The answer with and without rewrites, which must be the same.
fn rows_both_ways(fixture: &Fixture, query: &str) -> Vec<String> {
    let plain = QueryOptions {
        tuning: orrery_sparql::Tuning {
            rewrites: false,
            ..orrery_sparql::Tuning::default()
        },
        ..QueryOptions::default()
    };
    let rewritten = rows(fixture, query);
    assert_eq!(rows_with(fixture, query, &plain), rewritten, "{query}");
    rewritten
}

#[test]
fn the_order_of_a_join_is_known_for_constants_with_similar_counts() {
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for (class, members) in [("A", 40), ("B", 60), ("C", 3)] {
        for member in 0..members {
            data += &format!(":{class}{member} a :{class} ; :p :y{} .\n", member % 7);
        }
    }
    for y in 0..7 {
        data += &format!(":y{y} :q :z{} .\n", y % 2);
    }
    let fixture = Fixture::new(&data);
    let unknown = QueryOptions {
        tuning: orrery_sparql::Tuning {
            keeps_orders: false,
            ..orrery_sparql::Tuning::default()
        },
        ..QueryOptions::default()
    };
    for (class, known) in [("A", 0), ("B", 1), ("A", 1), ("C", 0), ("C", 1)] {
        let query = format!("SELECT ?x ?z {{ ?x a :{class} ; :p ?y . ?y :q ?z }}");
        let before = fixture.engine.order_counts();
        let answer = rows(&fixture, &query);
        let after = fixture.engine.order_counts();
        assert_eq!(after.hits - before.hits, known, "{class}");
        assert_eq!(after.misses - before.misses, 1 - known, "{class}");
        assert_eq!(answer, rows_with(&fixture, &query, &unknown));
        assert_eq!(fixture.engine.order_counts(), after);
    }
}

#[test]
fn aggregation_below_a_join_gives_what_aggregation_above_it_does() {
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for product in 0..6 {
        data += &format!(":p{product} a :T .\n");
        for feature in 0..4 {
            if (product + feature) % 3 != 0 {
                data += &format!(":p{product} :feature :f{feature} .\n");
            }
        }
        for offer in 0..product % 4 {
            let price = match (product, offer) {
                (5, 0) => "\"no number\"".to_owned(),
                _ => format!("{}.5", product * offer),
            };
            data += &format!(":o{product}x{offer} :product :p{product} ; :price {price} .\n");
        }
    }
    let fixture = Fixture::new(&data);
    let early = QueryOptions {
        tuning: orrery_sparql::Tuning {
            aggregates_early: true,
            ..orrery_sparql::Tuning::default()
        },
        ..QueryOptions::default()
    };
    let with = "{ ?p a :T ; :feature ?f . ?o :product ?p ; :price ?x";
    let without = "{ { SELECT DISTINCT ?f { ?q :feature ?f } } ?p a :T . ?o :product ?p ; :price ?x
        FILTER NOT EXISTS { ?p :feature ?f }";
    for pattern in [with, without] {
        for end in [
            "}",
            "FILTER(?p != :p5) }",
            "FILTER(?f != :f1) }",
            "FILTER(?p != ?f) }",
        ] {
            for aggregates in [
                "(AVG(?x) AS ?a)",
                "(SUM(?x) AS ?a) (COUNT(?x) AS ?b)",
                "(COUNT(?o) AS ?a) (AVG(?x) AS ?b) (COUNT(*) AS ?c)",
                "(AVG(xsd:float(STR(?x))) AS ?a) (SUM(?x + 1) AS ?b)",
            ] {
                let query = format!("SELECT ?f {aggregates} {pattern} {end} GROUP BY ?f");
                let plain = rows_both_ways(&fixture, &query);
                assert_eq!(rows_with(&fixture, &query, &early), plain, "{query}");
            }
        }
    }
}

#[test]
fn an_aggregate_over_what_does_not_match_needs_no_product() {
    let mut data = "@prefix : <http://example.org/> .\n:p7 a :T .\n".to_owned();
    for product in 0..23 {
        // :f0 is a feature of all that have offers, :f1 of none.
        data += &format!(":p{product} a :T ; :feature :f0 .\n:shelf :feature :f1 .\n");
        for feature in 2..9 {
            if (product * feature) % 5 < 2 {
                data += &format!(":p{product} :feature :f{feature} .\n");
            }
        }
        for offer in 0..=product % 3 {
            let price = match (product, offer) {
                (5, 0) => "\"no number\"".to_owned(),
                (6, 1) => "1.5e0".to_owned(),
                _ => format!("{}.5", product * offer),
            };
            data += &format!(":o{product}x{offer} :product :p{product} ; :price {price} .\n");
        }
    }
    let fixture = Fixture::new(&data);
    let forced = QueryOptions {
        tuning: orrery_sparql::Tuning {
            aggregates_early: true,
            ..orrery_sparql::Tuning::default()
        },
        ..QueryOptions::default()
    };
    let is_complemented = |query: &str| {
        let query = format!("{PREFIXES}{query}");
        let prepared = fixture.engine.prepare(&query, &forced).unwrap();
        prepared.explain().contains("ComplementExec")
    };
    let distinct = "{ SELECT DISTINCT ?f { ?q :feature ?f } }";
    let repeated = "?q :feature ?f .";
    let members = "?p a :T . ?o :product ?p ; :price ?x .";
    let members_of_any_class = "?o :product ?p ; :price ?x .";
    let mismatch = "FILTER NOT EXISTS { ?p :feature ?f }";
    for groups in [distinct, repeated] {
        for filter in ["", "FILTER(?f != :f3)", "FILTER(?x != 3.5)"] {
            for aggregates in [
                "(MIN(?x) AS ?a) (MAX(STR(?x)) AS ?b)",
                "(SUM(?x) AS ?a) (COUNT(*) AS ?b) (AVG(?x) AS ?c)",
            ] {
                for members in [members, members_of_any_class] {
                    let query = format!(
                        "SELECT ?f {aggregates} {{ {groups} {members} {mismatch} {filter} }} GROUP BY ?f"
                    );
                    assert!(is_complemented(&query), "{query}");
                    let plain = rows_both_ways(&fixture, &query);
                    assert!(!plain.iter().any(|row| row.contains("f=<f0>")));
                    assert_eq!(rows_with(&fixture, &query, &forced), plain, "{query}");
                }
            }
        }
    }
    // What the aggregates and filters see must be on one side.
    for (aggregate, filter) in [
        ("COUNT(?f)", ""),
        ("SUM(?x)", "FILTER(?f != ?p)"),
        ("SAMPLE(?x)", ""),
        ("SUM(DISTINCT ?x)", ""),
    ] {
        let query = format!(
            "SELECT ?f ({aggregate} AS ?a) {{ {distinct} {members} {mismatch} {filter} }} GROUP BY ?f"
        );
        assert!(!is_complemented(&query), "{query}");
    }
}

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

#[test]
fn a_subquery_that_stands_there_twice_is_computed_once_and_answers_both() {
    let fixture = Fixture::new(DATA);
    let counts = |s: &str, n: &str| {
        format!("{{ SELECT ?t (COUNT(?{s}) AS ?{n}) {{ ?{s} a ?t ; :age ?a }} GROUP BY ?t }}")
    };
    let (first, second) = (counts("s", "k"), counts("u", "n"));
    let largest = format!("{{ SELECT (MAX(?k) AS ?max) {{ {first} }} }}");
    let query = format!("SELECT ?t ?n ?max {{ {largest} {second} }}");
    let plan = fixture
        .engine
        .prepare(&format!("{PREFIXES}{query}"), &QueryOptions::default());
    let plan = plan.expect("a query").explain();
    assert!(
        plan.contains("SharedExec: computed once, as above"),
        "{plan}"
    );
    let plain = QueryOptions {
        tuning: orrery_sparql::Tuning {
            rewrites: false,
            ..orrery_sparql::Tuning::default()
        },
        ..QueryOptions::default()
    };
    let answer = rows(&fixture, &query);
    assert!(answer.len() > 1, "{answer:?}");
    assert_eq!(answer, rows_with(&fixture, &query, &plain));
}

#[test]
fn subqueries_that_give_another_value_each_time_are_computed_each() {
    let fixture = Fixture::new(DATA);
    let draws = |x: &str| {
        format!("{{ SELECT (MAX(?r{x}) AS ?{x}) {{ ?s{x} :age ?a{x} BIND(RAND() AS ?r{x}) }} }}")
    };
    let query = format!(
        "SELECT ?x ?y {{ {} {} FILTER(?x = ?y) }}",
        draws("x"),
        draws("y")
    );
    assert!(rows(&fixture, &query).is_empty());
}

#[test]
fn a_volatile_expression_is_evaluated_once_for_each_solution_of_its_own_group() {
    let fixture = Fixture::new(DATA);
    let distinct = |pattern: &str| {
        let query = format!("SELECT (COUNT(DISTINCT ?y) AS ?n) {{ {pattern} }}");
        let rows = rows_both_ways(&fixture, &query);
        let number = rows[0].trim_start_matches("n=\"").split('"').next();
        number.and_then(|number| number.parse::<usize>().ok())
    };
    let knows = rows(&fixture, "SELECT ?s ?o { ?s :knows ?o }").len();
    assert!(knows > 2);
    for volatile in ["BNODE()", "RAND()", "UUID()", "STRUUID()"] {
        let bind = format!("BIND({volatile} AS ?y)");
        // One solution, joined to many.
        assert_eq!(distinct(&format!("{bind} {{ ?s :knows ?o }}")), Some(1));
        assert_eq!(distinct(&format!("{{ {bind} }} ?s :knows ?o")), Some(1));
        let optional = format!("?s :knows ?o OPTIONAL {{ {bind} }}");
        assert_eq!(distinct(&optional), Some(1), "{optional}");
        let subquery = format!("?s :knows ?o {{ SELECT ({volatile} AS ?y) {{}} }}");
        assert_eq!(distinct(&subquery), Some(1), "{subquery}");
        // One for each person, joined to all that they know.
        let person = format!("{{ ?s a :Person {bind} }} ?s :knows ?o");
        let persons = rows(&fixture, "SELECT DISTINCT ?s { ?s a :Person ; :knows ?o }").len();
        assert_eq!(distinct(&person), Some(persons), "{person}");
        // One for each solution, also where equal ones do not count.
        assert_eq!(distinct(&format!("?s :knows ?o {bind}")), Some(knows));
    }
    // Also where it does not matter how often a solution comes, and a chain is one path.
    let draws = "SELECT DISTINCT ?y { ?a :knows/:knows* ?b BIND(RAND() AS ?y) }";
    let ways = rows_both_ways(&fixture, "SELECT ?a ?b { ?a :knows/:knows* ?b }").len();
    let query = format!(
        "SELECT ?n {{ {{ SELECT (COUNT(*) AS ?n) {{ {{ {draws} }} }} }} FILTER(?n = {ways}) }}"
    );
    assert_eq!(rows_both_ways(&fixture, &query).len(), 1);
    // The same moment in all of them.
    let query = "SELECT DISTINCT ?y { ?s :knows ?o BIND(NOW() AS ?y) }";
    assert_eq!(rows(&fixture, query).len(), 1);
}

/// The local names of `?s`, in the order of the answer.
fn subjects(fixture: &Fixture, pattern: &str) -> Vec<String> {
    let (pattern, order) = pattern.split_once(" ORDER").unwrap_or((pattern, ""));
    let order = if order.is_empty() {
        ""
    } else {
        &format!("ORDER{order}")
    };
    match fixture.ask(&format!("{PREFIXES}SELECT ?s {{ {pattern} }} {order}")) {
        Ok(Answer::Solutions(rows)) => rows
            .into_iter()
            .map(|row| row.replace("s=<http://example.org/", "").replace('>', ""))
            .collect(),
        other => panic!("{other:?}"),
    }
}

const NUMBERS: &str = "
    @prefix : <http://example.org/> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    :small :n 5 . :byte :n \"5\"^^xsd:byte . :odd :n \"05\"^^xsd:integer .
    :toolarge :n \"300\"^^xsd:byte . :negative :n \"-1\"^^xsd:unsignedInt . :word :n \"inf\"^^xsd:double .
    :nan :n \"NaN\"^^xsd:double . :infinite :n \"INF\"^^xsd:double .
    :i63 :n 9223372036854775808 . :i64 :n 18446744073709551616 . :below :n -9223372036854775809 .
    :fine :n 9223372036854775808.000000000000000001 . :long :n 0.1234567890123456789 .
";

#[test]
fn numbers_of_any_size_are_compared_and_ordered() {
    let fixture = Fixture::new(NUMBERS);
    let sorted = |pattern: &str| {
        let mut found = subjects(&fixture, pattern);
        found.sort();
        found
    };
    assert_eq!(
        sorted("?s :n ?n FILTER(?n > 1000)"),
        ["fine", "i63", "i64", "infinite"]
    );
    assert_eq!(sorted("?s :n ?n FILTER(?n = 5)"), ["byte", "odd", "small"]);
    assert_eq!(sorted("?s :n ?n FILTER(?n = 9223372036854775808)"), ["i63"]);
    assert_eq!(sorted("?s :n ?n FILTER(?n < -1)"), ["below"]);
    // What is no number is neither less nor not less; NaN is not less.
    assert_eq!(
        sorted("?s :n ?n FILTER(!(?n < 1000))"),
        ["fine", "i63", "i64", "infinite", "nan"]
    );
    assert_eq!(
        sorted("?s :n ?n FILTER(!isNumeric(?n))"),
        ["negative", "toolarge", "word"]
    );
    assert_eq!(
        subjects(
            &fixture,
            "?s :n ?n FILTER(isNumeric(?n) && ?n != 5) ORDER BY ?n"
        ),
        ["nan", "below", "long", "i63", "fine", "i64", "infinite"]
    );
}

#[test]
fn strdt_makes_the_term_of_the_data() {
    let fixture = Fixture::new(NUMBERS);
    for (text, datatype, subject) in [
        ("5", "byte", "byte"),
        ("5", "integer", "small"),
        ("05", "integer", "odd"),
        ("300", "byte", "toolarge"),
        ("0.1234567890123456789", "decimal", "long"),
    ] {
        let bind = format!("BIND(STRDT(\"{text}\", xsd:{datatype}) AS ?n) ?s :n ?n");
        assert_eq!(subjects(&fixture, &bind), [subject], "{bind}");
    }
}

#[test]
fn sums_go_beyond_64_bits() {
    let fixture = Fixture::new(NUMBERS);
    let query = "SELECT (SUM(?n) AS ?sum) { VALUES ?s { :i63 :i64 :small } ?s :n ?n }";
    assert_eq!(
        rows(&fixture, query),
        ["sum=\"27670116110564327429\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
    let query = "SELECT (MAX(?n) AS ?max) { VALUES ?s { :i63 :i64 :small :fine } ?s :n ?n }";
    assert_eq!(
        rows(&fixture, query),
        ["max=\"18446744073709551616\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
}

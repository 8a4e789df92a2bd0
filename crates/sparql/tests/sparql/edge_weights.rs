//! Tests of edge weights: an answer is always that of the definition, computed anew.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::store;
use orrery_sparql::{QueryOptions, UpdateOptions, WriteScope};
use orrery_storage::{Asker, Database, GraphNames, ReadScope};
use orrery_term::Term;

use store::Store;

const PREFIXES: &str = "PREFIX e: <http://e/> PREFIX weight: <https://orrery-db.org/weight#> PREFIX path: <https://orrery-db.org/path#> ";

/// Replies between posts of persons, as in SNB: a reply to a post counts 1.0, to a comment 0.5.
const REPLIES: &str = "INSERT DATA {
    e:m1 e:by e:ann . e:m2 e:by e:bob ; e:replyOf e:m1 . e:m3 e:by e:bob ; e:replyOf e:m1 . e:m4 e:by e:ann ; e:replyOf e:m2 .
    e:m5 e:by e:cat ; e:replyOf e:m4 . e:m6 e:by e:cat ; e:replyOf e:m5
}";
const FRIENDS: &str = "CREATE EDGE WEIGHT e:friends START ?a END ?b FROM { ?m e:replyOf ?n . ?m e:by ?a . ?n e:by ?b } AS COUNT(*)";

fn said(text: &str) -> String {
    format!("{PREFIXES}{text}")
}

trait Said {
    fn change_as(&self, text: &str, options: &UpdateOptions) -> Result<(), String>;
    fn say(&self, text: &str) -> Result<(), String> {
        self.change_as(text, &UpdateOptions::of_process())
    }
    fn all(&self, text: &str) -> Vec<String>;
    fn refused(&self, text: &str) -> String;
}

impl Said for Store {
    fn change_as(&self, text: &str, options: &UpdateOptions) -> Result<(), String> {
        self.apply(&said(text), options)
    }

    /// Sorted.
    fn all(&self, text: &str) -> Vec<String> {
        let mut rows = self.rows(&said(text), &QueryOptions::of_process());
        rows.sort_unstable();
        rows
    }

    fn refused(&self, text: &str) -> String {
        let options = QueryOptions::of_process();
        let prepared = self.engine.prepare(&said(text), &options);
        prepared.err().expect("it is refused").to_string()
    }
}

fn store() -> Store {
    let store = Store::of(&[]);
    store.say(REPLIES).unwrap();
    store.say(FRIENDS).unwrap();
    store
}

fn read(name: &str) -> String {
    format!(
        "SELECT ?a ?b ?w {{ SERVICE weight:read {{ [] weight:name e:{name} ; weight:start ?a ; weight:end ?b ; weight:value ?w }} }}"
    )
}

#[test]
fn weights_are_read_as_a_pattern() {
    let store = store();
    let expected = [
        "<http://e/ann> <http://e/bob> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        "<http://e/bob> <http://e/ann> \"2\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        "<http://e/cat> <http://e/ann> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        "<http://e/cat> <http://e/cat> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    ];
    assert_eq!(store.all(&read("friends")), expected);
    let of_bob = "SELECT ?b ?w { SERVICE weight:read { [] weight:name e:friends ; weight:start e:bob ; weight:end ?b ; weight:value ?w } }";
    assert_eq!(store.all(of_bob).len(), 1);
    let with_others = "SELECT ?m ?w { ?m e:by ?a . SERVICE weight:read { [] weight:name e:friends ; weight:start ?a ; weight:end e:ann ; weight:value ?w } }";
    assert_eq!(store.all(with_others).len(), 4);
    let loops = "SELECT ?a ?w { SERVICE weight:read { [] weight:name e:friends ; weight:start ?a ; weight:end ?a ; weight:value ?w } }";
    assert_eq!(store.all(loops).len(), 1);
}

#[test]
fn the_least_of_a_pairs_rows_counts_where_there_is_no_aggregate() {
    let store = Store::of(&[]);
    store
        .say("INSERT DATA { e:r1 e:from e:a ; e:to e:b ; e:km 7 . e:r2 e:from e:a ; e:to e:b ; e:km 5 . e:r3 e:from e:b ; e:to e:c ; e:km \"far\" }")
        .unwrap();
    store
        .say("CREATE EDGE WEIGHT e:roads FROM { [] e:from ?x ; e:to ?y ; e:km ?km } AS ?km * 2")
        .unwrap();
    let rows = store.all(&read("roads"));
    assert_eq!(rows.len(), 1, "what is no number is no weight: {rows:?}");
    assert!(rows[0].contains("\"10\""), "{rows:?}");
}

#[test]
fn both_ways_counts_what_leads_there_and_back_together() {
    let store = store();
    store
        .say("CREATE EDGE WEIGHT e:either START ?a END ?b BOTH WAYS FROM { ?m e:replyOf ?n . ?m e:by ?a . ?n e:by ?b } AS COUNT(*)")
        .unwrap();
    let number = |n: u32| format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
    let expected = [
        format!("<http://e/ann> <http://e/bob> {}", number(3)),
        format!("<http://e/ann> <http://e/cat> {}", number(1)),
        format!("<http://e/bob> <http://e/ann> {}", number(3)),
        format!("<http://e/cat> <http://e/ann> {}", number(1)),
        format!("<http://e/cat> <http://e/cat> {}", number(1)),
    ];
    assert_eq!(store.all(&read("either")), expected);
}

#[test]
fn paths_are_weighed_by_name_with_a_pattern_and_without() {
    let store = Store::of(&[]);
    store
        .say("INSERT DATA { e:a e:to e:b, e:c . e:b e:to e:d . e:c e:to e:d . e:a e:len 1 . e:b e:len 5 . e:c e:len 2 }")
        .unwrap();
    store
        .say("CREATE EDGE WEIGHT e:len FROM { ?x e:to ?y ; e:len ?n } AS SUM(?n)")
        .unwrap();
    let by_name = "PATHS START ?x = e:a END ?y = e:d WEIGHT e:len";
    let prepared = store
        .engine
        .prepare(&said(by_name), &QueryOptions::of_process())
        .unwrap();
    assert_eq!(
        prepared.variables(),
        ["x", "weight", "y", "path", "edge", "length", "cost"]
    );
    let rows = store.all(by_name);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[0].starts_with("<http://e/a> \"1\"") && rows[0].contains("<http://e/c>"));
    assert!(
        rows[1].contains("<http://e/d>")
            && rows[1].ends_with("\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>")
    );
    let with_pattern =
        "PATHS START ?x = e:a END ?y = e:d VIA { ?x e:to ?y FILTER(?y != e:c) } WEIGHT e:len";
    assert!(store.all(with_pattern)[0].contains("<http://e/b>"));
    for edges in ["", "SERVICE <urn:edges> { ?x e:to ?y }"] {
        let service = format!(
            "SELECT ?cost {{ SERVICE path:search {{ [] path:findPath path:shortestPath ; path:sourceNode e:a ; path:destinationNode e:d ; path:startNode ?x ; path:endNode ?y ; path:weight e:len ; path:cost ?cost ; path:byPath true . {edges} }} }}"
        );
        assert_eq!(
            store.all(&service),
            ["\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
        );
    }
}

#[test]
fn a_weight_is_defined_once_and_dropped_once() {
    let store = store();
    let error = store.say(FRIENDS).unwrap_err();
    assert!(
        error.contains("there is an edge weight <http://e/friends> already"),
        "{error}"
    );
    store
        .say(
            &FRIENDS
                .replace("CREATE", "CREATE SILENT")
                .replace("COUNT(*)", "0"),
        )
        .unwrap();
    assert_eq!(store.all(&read("friends")).len(), 4);
    assert!(!store.all(&read("friends"))[0].contains("\"0\""));
    store
        .say(
            &FRIENDS
                .replace("CREATE", "CREATE OR REPLACE")
                .replace("COUNT(*)", "SUM(3)"),
        )
        .unwrap();
    assert!(store.all(&read("friends"))[0].contains("\"3\""));
    let listed =
        store.all("SELECT ?name ?is { GRAPH weight:definitions { ?name weight:definition ?is } }");
    assert_eq!(listed.len(), 1);
    assert!(listed[0].contains("PREFIX e: <http://e/>"), "{listed:?}");
    store.say("DROP EDGE WEIGHT e:friends").unwrap();
    assert!(
        store
            .refused(&read("friends"))
            .contains("there is no edge weight <http://e/friends>")
    );
    let error = store.say("DROP EDGE WEIGHT e:friends").unwrap_err();
    assert!(error.contains("there is no edge weight"), "{error}");
    store.say("DROP SILENT EDGE WEIGHT e:friends").unwrap();
}

#[test]
fn a_definition_is_part_of_its_transaction_and_of_its_state() {
    let store = store();
    let number = store.engine.database().snapshot().commit();
    let request = format!(
        "{} ; INSERT {{ e:it e:weighs ?w }} WHERE {{ SERVICE weight:read {{ [] weight:name e:two ; weight:value ?w }} }} ; INSERT DATA {{ e:m9 e:by e:ann ; e:replyOf e:m9 }}",
        FRIENDS
            .replace("e:friends", "e:two")
            .replace("COUNT(*)", "SUM(7)")
    );
    store.say(&request).unwrap();
    assert_eq!(store.all("SELECT ?w { e:it e:weighs ?w }").len(), 2);
    // What fails leaves nothing.
    let error = store
        .say("CREATE EDGE WEIGHT e:three FROM { ?x e:replyOf ?y } AS 1 ; CREATE EDGE WEIGHT e:two FROM { ?x e:replyOf ?y } AS 1")
        .unwrap_err();
    assert!(error.contains("e/two> already"), "{error}");
    assert!(
        store
            .refused(&read("three"))
            .contains("there is no edge weight")
    );
    // An old state has the definitions and the quads that it had.
    let database = store.engine.database();
    let before = database
        .snapshot_at(orrery_storage::At::Commit(number))
        .unwrap();
    let options = QueryOptions {
        snapshot: Some(before),
        ..QueryOptions::of_process()
    };
    assert_eq!(store.rows(&said(&read("friends")), &options).len(), 4);
    assert!(store.engine.prepare(&said(&read("two")), &options).is_err());
}

#[test]
fn a_definition_survives_a_restart() {
    let store = store();
    store.writer.checkpoint().unwrap();
    store
        .say("CREATE EDGE WEIGHT e:later FROM { ?x e:replyOf ?y } AS 1")
        .unwrap();
    let (directory, before) = (store.directory, store.engine);
    drop((before, store.writer));
    let store = Store::over(Database::open(directory.path()).unwrap(), directory);
    assert_eq!(store.all(&read("friends")).len(), 4);
    assert_eq!(store.all(&read("later")).len(), 5);
}

#[test]
fn edge_weights_are_computed_from_readable_quads_only() {
    let store = store();
    store
        .say("INSERT DATA { GRAPH e:secret { e:s1 e:by e:eve ; e:replyOf e:s2 . e:s2 e:by e:ann } } ;
              CREATE EDGE WEIGHT e:anywhere START ?a END ?b FROM { GRAPH ?g { ?m e:replyOf ?n . ?m e:by ?a . ?n e:by ?b } } AS COUNT(*)")
        .unwrap();
    assert_eq!(store.all(&read("anywhere")).len(), 1);
    let mut seen = GraphNames {
        has_default: true,
        ..GraphNames::default()
    };
    let scope = |seen: &GraphNames| ReadScope::only(Asker::Process, seen.clone());
    let options = QueryOptions::of(scope(&seen));
    let hidden = store.engine.prepare(&said(&read("anywhere")), &options);
    assert!(
        hidden
            .err()
            .unwrap()
            .to_string()
            .contains("there is no edge weight")
    );
    seen.named
        .insert(Term::iri("https://orrery-db.org/weight#definitions"));
    let options = QueryOptions::of(scope(&seen));
    assert!(store.rows(&said(&read("anywhere")), &options).is_empty());
    assert_eq!(store.rows(&said(&read("friends")), &options).len(), 4);
    // Defining is for those who may change the definitions.
    let mut writes = UpdateOptions::of(scope(&seen));
    writes.writes = WriteScope::only(GraphNames {
        has_default: true,
        ..GraphNames::default()
    });
    for text in [
        "CREATE EDGE WEIGHT e:mine FROM { ?x e:replyOf ?y } AS 1",
        "DROP EDGE WEIGHT e:friends",
    ] {
        let error = store.change_as(text, &writes).unwrap_err();
        assert!(error.contains("you may not change the graph"), "{error}");
    }
    assert_eq!(store.all(&read("friends")).len(), 4);
}

#[test]
fn wrong_definitions_of_edge_weights_get_messages() {
    let store = store();
    for (text, words) in [
        (
            "CREATE EDGE WEIGHT e:w FROM { ?x e:p ?z } AS 1",
            "does not bind ?y",
        ),
        (
            "CREATE EDGE WEIGHT e:w START ?x END ?x FROM { ?x e:p ?y } AS 1",
            "stands twice",
        ),
        (
            "CREATE EDGE WEIGHT e:w START ?x FROM { ?x e:p ?y } AS 1",
            "END",
        ),
        (
            "CREATE EDGE WEIGHT e:w BOTH FROM { ?x e:p ?y } AS 1",
            "WAYS",
        ),
        ("CREATE EDGE WEIGHT e:w { ?x e:p ?y } AS 1", "FROM"),
        ("CREATE EDGE WEIGHT e:w FROM { ?x e:p ?y }", "AS"),
        ("CREATE EDGE WEIGHT FROM { ?x e:p ?y } AS 1", "IRI"),
        ("CREATE EDGE e:w FROM { ?x e:p ?y } AS 1", "WEIGHT"),
        (
            "CREATE OR EDGE WEIGHT e:w FROM { ?x e:p ?y } AS 1",
            "REPLACE",
        ),
        (
            "CREATE EDGE WEIGHT e:w FROM { ?x e:p ?y ; e:q ?n } AS SUM(?n) + ?n",
            "SUM(?n)",
        ),
        ("DROP EDGE e:w", "WEIGHT"),
    ] {
        let error = store.say(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
    for (text, words) in [
        ("PATHS START ?x END ?y WEIGHT 1", "VIA"),
        (
            "PATHS START ?x END ?y WEIGHT e:none",
            "there is no edge weight",
        ),
        (
            "SELECT * { SERVICE weight:read { [] weight:start ?a } }",
            "weight:name is missing",
        ),
        (
            "SELECT * { SERVICE weight:read { [] weight:name e:friends ; weight:begin ?a } }",
            "weight:begin is not known",
        ),
        (
            "SELECT * { SERVICE weight:read { [] weight:name e:friends ; weight:value 1 } }",
            "takes a variable",
        ),
        (
            "SELECT * { SERVICE weight:read { [] weight:name ?n } }",
            "takes the name",
        ),
        (
            "SELECT * { GRAPH ?g { SERVICE weight:read { [] weight:name e:friends } } }",
            "GRAPH ?variable",
        ),
    ] {
        let error = store.refused(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// Whether a plan looks weights up in memory.
fn is_in_memory(store: &Store, query: &str) -> bool {
    let prepared = store
        .engine
        .prepare(&said(query), &QueryOptions::of_process())
        .unwrap();
    prepared.explain().contains("WeightsExec")
}

/// The rows as the definition gives them, without rewrites and without what is kept in memory.
fn from_the_beginning(store: &Store, query: &str) -> Vec<String> {
    let mut options = QueryOptions::of_process();
    options.tuning.rewrites = false;
    let mut rows = store.rows(&said(query), &options);
    rows.sort_unstable();
    rows
}

#[test]
fn the_second_question_in_a_state_is_answered_from_memory_and_later_ones_by_what_changed() {
    let store = store();
    let query = read("friends");
    assert!(!is_in_memory(&store, &query));
    assert!(is_in_memory(&store, &query));
    assert_eq!(store.all(&query), from_the_beginning(&store, &query));
    // Brought up to date, not made anew: else the first question would go without.
    for text in [
        "INSERT DATA { e:m7 e:by e:eve ; e:replyOf e:m1 }",
        "DELETE DATA { e:m5 e:by e:cat }",
        "DELETE { ?m e:by e:bob } INSERT { ?m e:by e:eve } WHERE { ?m e:by e:bob }",
        "INSERT DATA { e:a e:unrelated e:b }",
        "INSERT DATA { _:n e:by _:p . e:m8 e:by e:ann ; e:replyOf _:n }",
    ] {
        store.say(text).unwrap();
        assert!(is_in_memory(&store, &query), "{text}");
        assert_eq!(
            store.all(&query),
            from_the_beginning(&store, &query),
            "{text}"
        );
    }
    let paths = "PATHS START ?x = e:eve END ?y WEIGHT e:friends";
    assert!(is_in_memory(&store, paths));
    assert_eq!(store.all(paths), from_the_beginning(&store, paths));
    store.writer.checkpoint().unwrap();
    store.say("DELETE DATA { e:m7 e:by e:eve }").unwrap();
    assert!(is_in_memory(&store, &query), "after a checkpoint");
    assert_eq!(store.all(&query), from_the_beginning(&store, &query));
    // Whoever sees less, and states of the past, do without.
    let scope = ReadScope::only(
        Asker::Process,
        GraphNames {
            has_default: true,
            named: [Term::iri("https://orrery-db.org/weight#definitions")].into(),
            ..GraphNames::default()
        },
    );
    let prepared = store
        .engine
        .prepare(&said(&query), &QueryOptions::of(scope));
    let plan = prepared.ok().unwrap().explain();
    assert!(!plan.contains("WeightsExec"), "{plan}");
}

/// A seeded generator of small numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Definitions, and whether changes are brought into their tables.
const DEFINITIONS: [(&str, bool); 14] = [
    ("FROM { ?x e:p ?y } AS COUNT(*)", true),
    ("FROM { ?x e:p ?m . ?m e:q ?y } AS COUNT(*)", true),
    ("FROM { ?x e:p/^e:q ?y ; e:n ?n } AS SUM(?n)", true),
    (
        "FROM { ?x e:n ?n . ?y e:n ?m FILTER(?n < ?m) } AS ?m - ?n",
        true,
    ),
    (
        "START ?a END ?b BOTH WAYS FROM { ?a e:p ?m . ?m e:p ?b . ?m e:n ?n } AS SUM(?n) / 3.0",
        true,
    ),
    (
        "FROM { { ?x e:p ?y } UNION { ?y e:q ?x . ?x e:n ?n } } AS COALESCE(?n, 7)",
        true,
    ),
    ("FROM { GRAPH ?g { ?x e:p ?y } ?x e:n ?n } AS MAX(?n)", true),
    (
        "FROM { GRAPH e:g1 { ?x e:p ?y } ?y e:n ?n BIND(?n * 2 AS ?k) } AS AVG(?k)",
        true,
    ),
    (
        "FROM { ?x e:p ?y OPTIONAL { ?x e:n ?n } } AS COALESCE(?n, 1)",
        false,
    ),
    (
        "FROM { ?x e:p ?y FILTER NOT EXISTS { ?y e:q ?x } } AS 1",
        false,
    ),
    ("FROM { ?x e:p+ ?y } AS COUNT(*)", false),
    (
        "FROM { ?x e:p ?y } AS IF(EXISTS { ?y e:q ?x }, 100, COUNT(*))",
        false,
    ),
    (
        "FROM { ?x e:p ?m OPTIONAL { ?m e:q ?y } } AS COUNT(*)",
        false,
    ),
    (
        "FROM { ?x e:p ?y MINUS { ?x e:n 3 } { SELECT ?y (COUNT(*) AS ?n) { ?y e:q ?z } GROUP BY ?y } } AS ?n",
        false,
    ),
];

#[test]
fn weights_are_those_of_the_definition_after_any_change() {
    let rounds: u64 = std::env::var("WEIGHT_ROUNDS").map_or(3, |it| it.parse().unwrap());
    for seed in 1..=rounds {
        let mut numbers = Numbers(seed * 0x9e37_79b9_7f4a_7c15);
        let store = Store::of(&[]);
        for (at, (definition, _)) in DEFINITIONS.iter().enumerate() {
            store
                .say(&format!("CREATE EDGE WEIGHT e:w{at} {definition}"))
                .unwrap();
        }
        for step in 0..14 {
            let change = change(&mut numbers);
            store.say(&change).unwrap();
            if numbers.below(8) == 0 {
                store.writer.checkpoint().unwrap();
            }
            for (at, (definition, is_followed)) in DEFINITIONS.iter().enumerate() {
                let query = read(&format!("w{at}"));
                let expected = from_the_beginning(&store, &query);
                let told = format!("seed {seed}, step {step}, {definition}, after {change}");
                if step == 0 || !is_followed {
                    assert_eq!(store.all(&query), expected, "{told}");
                }
                // Where changes are followed, the first question after one finds the table brought
                // up to date.
                if step > 0 && *is_followed {
                    assert!(is_in_memory(&store, &query), "{told}");
                }
                assert_eq!(store.all(&query), expected, "{told}");
                assert_eq!(store.all(&query), expected, "{told}");
                // In the middle of a plan, also of one that is spread over partitions.
                let joined = format!(
                    "SELECT * {{ ?x e:p ?m . {} ?y e:n ?n }}",
                    &query[query.find("SERVICE").unwrap()..query.len() - 2]
                        .replace("?a", "?x")
                        .replace("?b", "?y")
                );
                let mut options = QueryOptions::of_process();
                options.tuning.partitions = Some(3);
                let mut rows = store.rows(&said(&joined), &options);
                rows.sort_unstable();
                assert_eq!(rows, from_the_beginning(&store, &joined), "{told}");
                let optional = format!(
                    "SELECT * {{ ?x e:q ?y OPTIONAL {{ {} }} }}",
                    &query[query.find("SERVICE").unwrap()..query.len() - 2]
                        .replace("?a", "?x")
                        .replace("?b", "?y")
                );
                assert_eq!(
                    store.all(&optional),
                    from_the_beginning(&store, &optional),
                    "{told}"
                );
                if at % 3 == 0 {
                    let paths = format!("PATHS SHORTEST START ?x = e:n1 END ?y WEIGHT e:w{at}");
                    let of_paths = |rows: Vec<String>| -> Vec<String> {
                        let cost = |row: &String| row.rsplit(' ').next().unwrap().to_owned();
                        rows.iter().map(cost).collect()
                    };
                    let expected = of_paths(from_the_beginning(&store, &paths));
                    assert_eq!(of_paths(store.all(&paths)), expected, "{told}");
                }
            }
        }
        sees_what_a_database_without_the_rest_has(&store, seed);
    }
}

/// Who sees only the default graph and the definitions is told what a database without the other
/// graphs tells.
fn sees_what_a_database_without_the_rest_has(store: &Store, seed: u64) {
    let scope = ReadScope::only(
        Asker::Process,
        GraphNames {
            has_default: true,
            named: [Term::iri("https://orrery-db.org/weight#definitions")].into(),
            ..GraphNames::default()
        },
    );
    let options = QueryOptions::of(scope);
    let other = Store::of(&[]);
    let triples = store.all("SELECT ?s ?p ?o { ?s ?p ?o }");
    other
        .say(&format!("INSERT DATA {{ {} }}", triples.join(" . ")))
        .unwrap();
    for (at, (definition, _)) in DEFINITIONS.iter().enumerate() {
        other
            .say(&format!("CREATE EDGE WEIGHT e:w{at} {definition}"))
            .unwrap();
        let query = read(&format!("w{at}"));
        let mut rows = store.rows(&said(&query), &options);
        rows.sort_unstable();
        assert_eq!(rows, other.all(&query), "seed {seed}, {definition}");
    }
}

/// A change of a few quads.
fn change(numbers: &mut Numbers) -> String {
    let mut triple = || {
        let node = |numbers: &mut Numbers| format!("e:n{}", numbers.below(7));
        let subject = node(numbers);
        let (predicate, object) = match numbers.below(3) {
            0 => ("e:p", node(numbers)),
            1 => ("e:q", node(numbers)),
            _ => ("e:n", numbers.below(5).to_string()),
        };
        let triple = format!("{subject} {predicate} {object}");
        match numbers.below(4) {
            0 => format!("GRAPH e:g{} {{ {triple} }} ", numbers.below(2)),
            _ => format!("{triple} . "),
        }
    };
    let data: String = (0..5).map(|_| triple()).collect();
    match numbers.below(8) {
        0..=3 => format!("INSERT DATA {{ {data} }}"),
        4 => format!("DELETE DATA {{ {data} }}"),
        5 => format!(
            "DELETE {{ ?s ?p ?o }} INSERT {{ {data} }} WHERE {{ ?s ?p ?o ; e:n {} }}",
            numbers.below(5)
        ),
        6 => format!(
            "DELETE WHERE {{ e:n{} ?p ?o }} ; INSERT DATA {{ {data} }}",
            numbers.below(7)
        ),
        _ => format!(
            "CLEAR SILENT GRAPH e:g{} ; INSERT DATA {{ {data} }}",
            numbers.below(2)
        ),
    }
}

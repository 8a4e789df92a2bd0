//! Tests of all derived indexes and caches beside changes of whole graphs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use std::sync::Arc;

use orrery_sparql::{QueryOptions, QueryResults, UpdateOptions};
use orrery_storage::text::TextRules;
use orrery_storage::{
    Asker, CommitOptions, GraphNames, ReadScope, SmallQuad, Snapshot, Transaction, WriterOptions,
    build_small,
};
use orrery_term::Term;

use crate::random::Random;
use crate::store::Store;

const PREFIXES: &str = "PREFIX e: <http://e/> PREFIX weight: <https://orrery-db.org/weight#> PREFIX path: <https://orrery-db.org/path#> \
    PREFIX geo: <http://www.opengis.net/ont/geosparql#> PREFIX geof: <http://www.opengis.net/def/function/geosparql/> \
    PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/> ";

const WEIGHTS: [&str; 2] = [
    "CREATE EDGE WEIGHT e:w0 START ?a END ?b FROM { ?a e:p ?m . ?m e:p ?b } AS COUNT(*)",
    "CREATE EDGE WEIGHT e:w1 START ?a END ?b FROM { GRAPH ?g { ?a e:p ?b } } AS COUNT(*)",
];

/// One at least for each derived structure.
const QUESTIONS: [&str; 16] = [
    "SELECT ?a ?b ?w { SERVICE weight:read { [] weight:name e:w0 ; weight:start ?a ; weight:end ?b ; weight:value ?w } }",
    "SELECT ?a ?b ?w { SERVICE weight:read { [] weight:name e:w1 ; weight:start ?a ; weight:end ?b ; weight:value ?w } }",
    "SELECT ?s ?l { SERVICE text:search { [] text:query \"wine\" ; text:entity ?s ; text:literal ?l } }",
    "SELECT ?s ?l { GRAPH e:g1 { SERVICE text:search { [] text:query \"wine OR cellar\" ; text:entity ?s ; text:literal ?l } } }",
    "SELECT ?s ?l { ?s e:label ?l FILTER(CONTAINS(?l, \"cellar of\")) }",
    "SELECT ?s ?l { GRAPH ?g { ?s e:label ?l FILTER(REGEX(?l, \"number [2-4]\")) } }",
    "SELECT ?s { ?s geo:asWKT ?w FILTER(geof:distance(?w, \"POINT(3 3)\"^^geo:wktLiteral, uom:metre) < 300000) }",
    "SELECT ?s ?t { ?s e:p ?m . ?m e:p ?n . ?n e:p ?t }",
    "SELECT ?s ?o { GRAPH ?g { ?s e:p ?o } ?o e:p ?s }",
    "SELECT DISTINCT ?p { ?s ?p ?o }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
    "SELECT ?p (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) { ?s ?p ?o } GROUP BY ?p",
    "SELECT (COUNT(*) AS ?n) { ?s e:p ?o }",
    "SELECT ?s ?n { ?s e:number ?n FILTER(?n > 3) } ORDER BY DESC(?n) ?s LIMIT 3",
    "SELECT ?s { ?s e:p e:s1 FILTER NOT EXISTS { ?s e:number 2 } }",
    "SELECT ?x { e:s0 e:p+ ?x }",
];

/// Made from these quads, with whatever is derived.
fn made_of(quads: &[SmallQuad]) -> Store {
    let directory = tempfile::tempdir().unwrap();
    let database = build_small(directory.path(), quads).unwrap();
    let rules = TextRules {
        grams: true,
        ..TextRules::default()
    };
    database.set_text_rules(Some(rules), Some(1 << 20)).unwrap();
    let options = WriterOptions {
        whole_graph_quads: 1,
        ..WriterOptions::default()
    };
    Store::written_with(database, directory, options)
}

/// What is asked, and its rows in some order or what is told instead.
type Answers = Vec<(&'static str, Result<Vec<String>, String>)>;

fn answer(store: &Store, text: &str, options: &QueryOptions) -> Result<Vec<String>, String> {
    let text = format!("{PREFIXES}{text}");
    let asked = async {
        let prepared = store.engine.prepare(&text, options)?;
        let QueryResults::Solutions(mut stream) = prepared.execute().await? else {
            panic!("a SELECT");
        };
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            for row in 0..batch.rows() {
                let values = (0..batch.columns()).map(|column| {
                    let term = batch.term(row, column);
                    term.map_or("-".to_owned(), ToString::to_string)
                });
                rows.push(values.collect::<Vec<_>>().join(" "));
            }
        }
        rows.sort_unstable();
        Ok(rows)
    };
    let told = store.runtime.block_on(asked);
    told.map_err(|error: orrery_sparql::QueryError| error.to_string())
}

fn answers(store: &Store, options: &QueryOptions) -> Answers {
    let asked = QUESTIONS.iter();
    asked
        .map(|text| (*text, answer(store, text, options)))
        .collect()
}

/// All of a state, or what one asker sees of it.
fn options(snapshot: Option<&Arc<Snapshot>>, scope: Option<&ReadScope>) -> QueryOptions {
    let mut options = match scope {
        Some(scope) => QueryOptions::of(scope.clone()),
        None => QueryOptions::of_process(),
    };
    options.snapshot = snapshot.cloned();
    options
}

/// Who sees the default graph and one other, with the definitions.
fn part() -> ReadScope {
    let named = ["http://e/g1", "https://orrery-db.org/weight#definitions"];
    ReadScope::only(
        Asker::Process,
        GraphNames {
            has_default: true,
            named: named.map(Term::iri).into(),
            ..GraphNames::default()
        },
    )
}

/// The answers of databases made anew of what a state has, and of what of that one asker sees.
fn expected(store: &Store, snapshot: Option<&Arc<Snapshot>>) -> [Answers; 2] {
    [None, Some(&part())].map(|scope| {
        let options = options(snapshot, scope);
        let ask = |text: &str| -> Vec<String> {
            let text = format!("{PREFIXES}{text}");
            store.rows(&text, &options)
        };
        let quads = ask("SELECT ?s ?p ?o { ?s ?p ?o }");
        let triples = quads.join(" .\n");
        let mut inserted = format!("INSERT DATA {{ {triples} ");
        for graph in ask("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }") {
            let quads = ask(&format!(
                "SELECT ?s ?p ?o {{ GRAPH {graph} {{ ?s ?p ?o }} }}"
            ));
            inserted += &format!("GRAPH {graph} {{ {} }} ", quads.join(" .\n"));
        }
        inserted += "}";
        let fresh = made_of(&[]);
        fresh
            .apply(&inserted, &UpdateOptions::of_process())
            .unwrap();
        answers(&fresh, &self::options(None, None))
    })
}

fn assert_same(found: &Answers, expected: &Answers, told: &str) {
    for ((text, found), (_, expected)) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{text}\n{told}");
    }
}

/// A change within a request.
fn step(random: &mut Random) -> String {
    let graph = |random: &mut Random| {
        random
            .pick(&["DEFAULT", "GRAPH e:g1", "GRAPH e:g2"])
            .to_owned()
    };
    let number = random.below(1_000_000);
    match random.below(12) {
        0 => format!("CLEAR SILENT {}", graph(random)),
        1 => "CLEAR ALL".to_owned(),
        2 => "DROP SILENT NAMED".to_owned(),
        3 => format!("MOVE SILENT {} TO {}", graph(random), graph(random)),
        4 => format!("COPY SILENT {} TO {}", graph(random), graph(random)),
        5 => format!("ADD SILENT {} TO {}", graph(random), graph(random)),
        6 => "DELETE WHERE { ?s e:p e:s1 }".to_owned(),
        7 => format!(
            "INSERT {{ GRAPH e:g{} {{ ?a e:p ?c }} }} WHERE {{ ?a e:p ?b . ?b e:p ?c }}",
            1 + random.below(2)
        ),
        _ => {
            let mut triples = String::new();
            for _ in 0..1 + random.below(12) {
                let subject = random.below(6);
                triples += &match random.below(7) {
                    0 => format!(
                        "e:s{subject} e:label \"an old cellar of wine, number {}\" . ",
                        random.below(9)
                    ),
                    1 => format!(
                        "e:s{subject} e:label \"a white wine that nobody had before, number {number}\"@en . "
                    ),
                    2 => format!(
                        "e:s{subject} geo:asWKT \"POINT({} {}.25)\"^^geo:wktLiteral . ",
                        random.below(6),
                        random.below(6)
                    ),
                    3 => format!("e:s{subject} e:number {} . ", random.below(8)),
                    4 => format!(
                        "e:s{subject} e:p e:new{number} . e:new{number} e:p e:s{} . ",
                        random.below(6)
                    ),
                    _ => format!("e:s{subject} e:p e:s{} . ", random.below(6)),
                };
            }
            match random.below(3) {
                0 => format!("INSERT DATA {{ {triples} }}"),
                graph => format!("INSERT DATA {{ GRAPH e:g{graph} {{ {triples} }} }}"),
            }
        }
    }
}

fn applied(store: &Store, text: &str, transaction: &mut Transaction) {
    let options = UpdateOptions::of_process();
    let text = format!("{PREFIXES}{text}");
    let update = store.engine.prepare_update(&text, &options).unwrap();
    let applied = store.engine.apply(&update, &options, transaction);
    store.runtime.block_on(applied).unwrap();
}

fn run(seed: u64, requests: usize) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let store = made_of(&[]);
    let define = |store: &Store| {
        for weight in WEIGHTS {
            // It may be there.
            _ = store.apply(&format!("{PREFIXES}{weight}"), &UpdateOptions::of_process());
        }
    };
    let mut said = String::new();
    for _ in 0..requests {
        define(&store);
        let committed = expected(&store, None);
        let mut transaction = store.writer.begin().unwrap();
        for _ in 0..1 + random.below(3) {
            let text = step(&mut random);
            applied(&store, &text, &mut transaction);
            said += &format!("{text} ;\n");
            let told = format!("seed {seed}, within a transaction:\n{said}");
            let state = transaction.snapshot().unwrap();
            let of_state = expected(&store, Some(&state));
            for scope in [None, Some(&part())] {
                let at = usize::from(scope.is_some());
                // Twice: what is asked again may be answered from what the first time left.
                for _ in 0..2 {
                    let found = answers(&store, &options(Some(&state), scope));
                    assert_same(&found, &of_state[at], &told);
                }
                let found = answers(&store, &options(None, scope));
                assert_same(&found, &committed[at], &format!("others, {told}"));
            }
        }
        match random.below(3) {
            0 => {
                drop(transaction);
                said += "ROLLBACK\n";
            }
            _ => {
                let pending = transaction.commit(CommitOptions::default()).unwrap();
                pending.wait().unwrap();
                said += "COMMIT\n";
            }
        }
        if random.below(5) == 0 {
            store.writer.checkpoint().unwrap();
            said += "CHECKPOINT\n";
        }
        let now = expected(&store, None);
        for scope in [None, Some(&part())] {
            for _ in 0..2 {
                let found = answers(&store, &options(None, scope));
                let told = format!("seed {seed}, after\n{said}");
                assert_same(&found, &now[usize::from(scope.is_some())], &told);
            }
        }
    }
}

#[test]
fn derived_indexes_after_graph_changes_equal_those_of_a_new_database() {
    let rounds: u64 = std::env::var("DERIVED_ROUNDS").map_or(4, |it| it.parse().unwrap());
    for seed in 1..=rounds {
        run(seed, 6);
    }
}

#[test]
fn edge_weights_of_a_transaction_that_cleared_a_graph_are_seen_by_nobody_else() {
    let store = made_of(&[]);
    let say = |text: &str| {
        let options = UpdateOptions::of_process();
        store.apply(&format!("{PREFIXES}{text}"), &options).unwrap();
    };
    say("INSERT DATA { e:a e:p e:b . e:b e:p e:c . GRAPH e:g1 { e:x e:p e:y } }");
    say(WEIGHTS[0]);
    let before = answer(&store, QUESTIONS[0], &options(None, None));
    assert_eq!(before.as_ref().map(Vec::len), Ok(1));
    let mut transaction = store.writer.begin().unwrap();
    applied(&store, "CLEAR DEFAULT", &mut transaction);
    let state = transaction.snapshot().unwrap();
    assert!(state.committed().is_none(), "no commit has that");
    for _ in 0..3 {
        let within = answer(&store, QUESTIONS[0], &options(Some(&state), None));
        assert_eq!(within, Ok(Vec::new()));
        assert_eq!(answer(&store, QUESTIONS[0], &options(None, None)), before);
    }
    drop(transaction);
    assert_eq!(answer(&store, QUESTIONS[0], &options(None, None)), before);
}

/// Questions whose plans are kept, and know what is not there.
const KEPT: [&str; 6] = [
    "SELECT ?x { e:a e:p ?y . ?y e:p ?x . OPTIONAL { ?x e:q ?z } }",
    "SELECT ?x { ?x e:number ?n . FILTER(?n > ?m) { SELECT (MIN(?k) AS ?m) { ?x e:number ?k } } }",
    "SELECT ?x { ?x e:number ?n . ?x e:day ?d FILTER(?d > \"2020-01-01\"^^<http://www.w3.org/2001/XMLSchema#date>) }",
    "SELECT ?x { ?x e:number ?n FILTER(?n > 3) }",
    "SELECT ?x { ?x e:number ?n FILTER(?n > 3) } ORDER BY DESC(?n) LIMIT 2",
    "SELECT ?x { ?x e:label ?l FILTER(CONTAINS(?l, \"cellar\")) }",
];

#[test]
fn a_plan_that_a_transaction_made_is_kept_for_nobody_else() {
    let store = made_of(&[]);
    let say = |text: &str| {
        let options = UpdateOptions::of_process();
        store.apply(&format!("{PREFIXES}{text}"), &options).unwrap();
    };
    say("INSERT DATA { e:a e:p e:b . e:b e:p e:c . GRAPH e:g1 { e:x e:q e:y } e:a e:number 2 , 4 . e:b e:number 5 .
        e:a e:day \"2024-01-01\"^^<http://www.w3.org/2001/XMLSchema#date> ; e:label \"a cellar that is not short\" }");
    for (query, change) in KEPT.iter().flat_map(|query| {
        let changes = [
            "CLEAR DEFAULT",
            "DELETE { ?s ?q ?v } WHERE { ?s e:p ?o ; ?q ?v }",
        ];
        changes.map(|change| (*query, change))
    }) {
        let before = answer(&store, query, &options(None, None)).unwrap();
        assert!(!before.is_empty(), "{query}");
        for _ in 0..2 {
            let mut transaction = store.writer.begin().unwrap();
            applied(&store, change, &mut transaction);
            let state = transaction.snapshot().unwrap();
            let mut of_state = Vec::new();
            for _ in 0..3 {
                of_state.push(answer(&store, query, &options(Some(&state), None)));
            }
            assert!(
                of_state
                    .iter()
                    .all(|it| *it == of_state[0] && *it != Ok(before.clone())),
                "{query} after {change}: {of_state:?}"
            );
            drop(transaction);
            for _ in 0..3 {
                let found = answer(&store, query, &options(None, None));
                assert_eq!(found.as_ref(), Ok(&before), "{query} after {change}");
            }
        }
    }
}

//! Tests of full-text search against a naive search of the quads, in every state and for every
//! asker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use crate::store as store_of_quads;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orrery_runtime::{Adjacencies, Remade};
use orrery_sparql::QueryOptions;
use orrery_storage::text::{TextReader, TextRules};
use orrery_storage::{
    Asker, At, CommitOptions, Database, Error as StorageError, GraphNames, ReadScope, SmallQuad,
    build_small, verify,
};
use orrery_term::{Literal, Term};
use proptest::prelude::*;

use crate::common::{Answer, Fixture};
use store_of_quads::Store;

const WORDS: [&str; 8] = [
    "red", "wine", "wines", "white", "cellar", "old", "a", "house",
];

const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Where a search looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    DefaultGraph,
    /// `GRAPH <http://e/g1>`.
    Named,
    /// All graphs as one.
    Union,
}

fn iri(name: String) -> Term<'static> {
    Term::iri(format!("http://e/{name}"))
}

/// Short strings are in ids, long ones in dictionaries; some have a language. Some quads are types.
fn quad() -> impl Strategy<Value = SmallQuad> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..5);
    (0..6_u8, 0..4_u8, words, 0..3_u8, 0..3_u8).prop_map(|(s, p, words, language, graph)| {
        let graph = (graph > 0).then(|| iri(format!("g{graph}")));
        if p == 3 {
            let class = iri(format!("C{language}"));
            return (iri(format!("s{s}")), Term::iri(RDF_TYPE), class, graph);
        }
        let text = words.join(" ");
        let object = match language {
            0 => Term::language(text, "en"),
            1 => Term::language(text, "de-at"),
            _ => Term::string(text),
        };
        (iri(format!("s{s}")), iri(format!("p{p}")), object, graph)
    })
}

type Quads = BTreeSet<SmallQuad>;

/// A database of quads with an index of the texts that rules select.
fn store(quads: &Quads, rules: TextRules) -> Store {
    let directory = tempfile::tempdir().unwrap();
    let quads: Vec<SmallQuad> = quads.iter().cloned().collect();
    let database = build_small(directory.path(), &quads).unwrap();
    database.set_text_rules(Some(rules), Some(1 << 20)).unwrap();
    Store::over(database, directory)
}

/// Subjects and texts of the rows, sorted.
fn asked(store: &Store, query: &str, options: &QueryOptions) -> Vec<String> {
    let mut rows = store.rows(query, options);
    rows.sort();
    rows
}

/// The stems that matter here: in English and in German.
fn stem(word: &str, is_stemmed: bool) -> &str {
    match (word, is_stemmed) {
        ("wines", true) => "wine",
        (word, _) => word,
    }
}

/// Rows that a naive reader finds: both words, or one of them.
fn expected(
    quads: &Quads,
    rules: &TextRules,
    words: [&str; 2],
    is_or: bool,
    place: Place,
) -> Vec<String> {
    let is_seen = |name: &Option<Term<'static>>| match place {
        Place::DefaultGraph => name.is_none(),
        Place::Named => name == &Some(iri("g1".to_owned())),
        Place::Union => true,
    };
    let among = |known: &[String], term: &Term<'_>| {
        let written = term.to_string();
        known.iter().any(|iri| format!("<{iri}>") == written)
    };
    // As a pattern for the type beside the search would find it.
    let has_class = |subject: &Term<'static>| {
        let mut types = quads.iter().filter(|quad| quad.1 == Term::iri(RDF_TYPE));
        rules.classes.is_empty()
            || types.any(|(of, _, class, name)| {
                of == subject && is_seen(name) && among(&rules.classes, class)
            })
    };
    let mut triples = BTreeSet::new();
    for (subject, predicate, object, name) in quads {
        let Term::Literal(Literal { lexical, .. }) = object else {
            continue;
        };
        let Some((_, tag)) = rules.text_of(object) else {
            continue;
        };
        let is_covered = rules.predicates.is_empty() || among(&rules.predicates, predicate);
        let is_in_graphs = rules.graphs.is_empty()
            || match name {
                None => rules.graphs.iter().any(String::is_empty),
                Some(name) => among(&rules.graphs, name),
            };
        let is_stemmed = tag.is_some();
        let has = |word: &str| {
            let mut all = lexical.split(' ');
            all.any(|other| stem(other, is_stemmed) == stem(word, is_stemmed))
        };
        let is_found = match is_or {
            true => has(words[0]) || has(words[1]),
            false => has(words[0]) && has(words[1]),
        };
        if is_covered && is_in_graphs && is_seen(name) && is_found && has_class(subject) {
            triples.insert((subject.clone(), predicate.clone(), object.clone()));
        }
    }
    let rows = triples
        .iter()
        .map(|(subject, _, object)| format!("{subject} {object}"));
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

fn query(words: [&str; 2], is_or: bool, place: Place, rest: &str) -> String {
    let [one, other] = words;
    let both = if is_or { "OR" } else { "AND" };
    let search = format!(
        "SERVICE text:search {{ [] text:query \"{one} {both} {other}\" ; text:entity ?s ; text:literal ?l {rest} }}"
    );
    match place {
        Place::DefaultGraph | Place::Union => format!("SELECT ?s ?l {{ {search} }}"),
        Place::Named => format!("SELECT ?s ?l {{ GRAPH <http://e/g1> {{ {search} }} }}"),
    }
}

fn rules() -> impl Strategy<Value = TextRules> {
    let predicates = prop::sample::select(vec![vec![], vec![0], vec![0, 2, 9]]);
    let languages = prop::sample::select(vec![vec![], vec!["en"], vec!["", "de"]]);
    let classes = prop::sample::select(vec![vec![], vec![], vec![0], vec![0, 1, 9]]);
    let graphs = prop::sample::select(vec![
        vec![],
        vec![],
        vec![""],
        vec!["g1"],
        vec!["", "g1", "g9"],
    ]);
    (predicates, languages, classes, graphs).prop_map(|(predicates, languages, classes, graphs)| {
        let iris = |letter: char, numbers: Vec<u8>| {
            let iris = numbers
                .iter()
                .map(|number| format!("http://e/{letter}{number}"));
            iris.collect()
        };
        let graph = |name: &str| match name {
            "" => String::new(),
            name => format!("http://e/{name}"),
        };
        TextRules {
            predicates: iris('p', predicates),
            languages: languages.into_iter().map(str::to_owned).collect(),
            classes: iris('C', classes),
            graphs: graphs.into_iter().map(graph).collect(),
            grams: false,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Commits, a compaction of the changes into files, old states, and readers who see one graph.
    #[test]
    fn searches_are_those_of_a_naive_reader(
        base in prop::collection::btree_set(quad(), 0..12),
        changes in prop::collection::vec((prop::collection::btree_set(quad(), 0..5), any::<u64>(), any::<bool>()), 1..4),
        rules in rules(),
        words in [0..WORDS.len(), 0..WORDS.len()],
        is_or in any::<bool>(),
    ) {
        let words = words.map(|at| WORDS[at]);
        let store = store(&base, rules.clone());
        let mut states = BTreeMap::new();
        let mut now = base;
        states.insert(store.engine.database().snapshot().commit(), now.clone());
        for (inserted, seed, checkpoints) in changes {
            let deleted: Quads = now.iter().enumerate().filter(|(at, _)| seed >> (at % 64) & 3 == 0).map(|(_, quad)| quad.clone()).collect();
            let commit = store.change(&inserted, &deleted);
            now = now.difference(&deleted).chain(&inserted).cloned().collect();
            states.insert(commit, now.clone());
            if checkpoints {
                store.writer.checkpoint().unwrap();
            }
            for place in [Place::DefaultGraph, Place::Named, Place::Union] {
                let options = QueryOptions { union_default_graph: place == Place::Union, ..QueryOptions::of_process() };
                let found = asked(&store, &query(words, is_or, place, ""), &options);
                prop_assert_eq!(&found, &expected(&now, &rules, words, is_or, place));
                // With room for all, a limit changes nothing.
                let found = asked(&store, &query(words, is_or, place, "; text:limit 1000"), &options);
                prop_assert_eq!(&found, &expected(&now, &rules, words, is_or, place));
                // Of who sees one graph: the same as over a database with nothing else.
                let mut names = GraphNames::default();
                names.named.insert(iri("g1".to_owned()));
                let scope = ReadScope::only(Asker::Process, names);
                let options = QueryOptions { scope, ..options };
                let seen: Quads = now.iter().filter(|quad| quad.3 == Some(iri("g1".to_owned()))).cloned().collect();
                for rest in ["; text:score ?score", "; text:limit 1000"] {
                    let found = asked(&store, &query(words, is_or, place, rest), &options);
                    prop_assert_eq!(&found, &expected(&seen, &rules, words, is_or, place));
                }
            }
        }
        for (commit, state) in &states {
            let snapshot = store.engine.database().snapshot_at(At::Commit(*commit)).unwrap();
            let options = QueryOptions { snapshot: Some(snapshot), ..QueryOptions::of_process() };
            let found = asked(&store, &query(words, is_or, Place::DefaultGraph, ""), &options);
            prop_assert_eq!(&found, &expected(state, &rules, words, is_or, Place::DefaultGraph), "commit {}", commit);
        }
        let directory = store.directory.path().to_path_buf();
        let Store { engine, writer, directory: kept, .. } = store;
        drop((engine, writer));
        let verified = verify(&directory, |_| {}).unwrap();
        prop_assert!(verified.is_empty(), "{:?}", verified);
        // After a restart the texts in memory are made anew; an index that is made anew has them in
        // its file.
        let database = Database::open(&directory).unwrap();
        let rebuilt = database.set_text_rules(Some(rules.clone()), None).unwrap();
        prop_assert_eq!(rebuilt.commit(), *states.keys().last().unwrap());
        let store = Store::over(database, kept);
        let found = asked(&store, &query(words, is_or, Place::DefaultGraph, ""), &QueryOptions::of_process());
        prop_assert_eq!(&found, &expected(&now, &rules, words, is_or, Place::DefaultGraph));
    }
}

#[test]
fn texts_of_later_states_are_none_of_an_older_one() {
    let store = store(&Quads::new(), TextRules::default());
    let of = |number: u8| -> Quads {
        let text = format!("a wine that is no short string, number {number}");
        let subject = iri(format!("s{number}"));
        [(
            subject,
            iri("p0".to_owned()),
            Term::language(text, "en"),
            None,
        )]
        .into()
    };
    let first = store.change(&of(1), &Quads::new());
    store.change(&of(2), &Quads::new());
    for rest in [
        "",
        "; text:language \"en\"",
        "; text:limit 5",
        "; text:limit 5 ; text:language \"en\" ; text:highlight ?h",
    ] {
        let query = format!(
            "SELECT ?s ?l {{ SERVICE text:search {{ [] text:query \"wine\" ; text:entity ?s ; text:literal ?l {rest} }} FILTER(STRLEN(?l) > 3) }}"
        );
        assert_eq!(asked(&store, &query, &QueryOptions::of_process()).len(), 2);
        let snapshot = store
            .engine
            .database()
            .snapshot_at(At::Commit(first))
            .unwrap();
        let options = QueryOptions {
            snapshot: Some(snapshot),
            ..QueryOptions::of_process()
        };
        assert_eq!(asked(&store, &query, &options).len(), 1, "{rest}");
    }
}

const WINES: &str =
    "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :a rdfs:label \"red wine\"@en ; :price 7 .
    :b rdfs:label \"red red wines of an old cellar\"@en ; :price 9 .
    :c rdfs:label \"white wine\"@en ; :note \"red wine\" .
    :d rdfs:label \"vin rouge\"@fr .
    :g { :e rdfs:label \"red wine\"@en }";

fn wines() -> Fixture {
    let fixture = Fixture::new(WINES);
    let database = fixture.engine.database();
    database
        .set_text_rules(Some(TextRules::default()), None)
        .unwrap();
    fixture
}

fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    match fixture.ask(query).unwrap() {
        Answer::Solutions(rows) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_search_joins_with_the_pattern_around_it() {
    let fixture = wines();
    let query = "PREFIX : <http://e/> SELECT ?e { SERVICE text:search { [] text:query \"red wine\" ; text:property rdfs:label ; \
        text:entity ?e } ?e :price ?p FILTER(?p > 8) }";
    assert_eq!(rows(&fixture, query), ["e=<http://e/b>"]);
    let query = "PREFIX : <http://e/> SELECT ?p { SERVICE text:search { [] text:query \"red\" ; text:entity :c ; text:property ?p } }";
    assert_eq!(rows(&fixture, query), ["p=<http://e/note>"]);
    let query = "SELECT ?g ?e { GRAPH ?g { SERVICE text:search { [] text:query \"red\" ; text:entity ?e } } }";
    assert_eq!(rows(&fixture, query), ["e=<http://e/e> g=<http://e/g>"]);
}

#[test]
fn searches_as_other_stores_write_them_are_understood() {
    let fixture = wines();
    let query = "SELECT ?e { ?e rdfs:label ?l . ?l <bif:contains> \"'white wine' or rouge\" }";
    let mut found = rows(&fixture, query);
    found.sort();
    assert_eq!(found, ["e=<http://e/c>", "e=<http://e/d>"]);
    let query = "PREFIX ql: <http://qlever.cs.uni-freiburg.de/builtin-functions/> \
        SELECT ?e { ?e rdfs:label ?l . ?l ql:contains-word \"red cell*\" }";
    assert_eq!(rows(&fixture, query), ["e=<http://e/b>"]);
    let query = "SELECT ?e { ?e rdfs:label ?l . ?l <bif:contains> ?words }";
    let error = fixture.ask(query).unwrap_err().to_string();
    assert!(error.contains("a variable and a string"), "{error}");
}

/// The type may come before the text or after it, in a commit or in the base; and go.
#[test]
fn a_class_brings_texts_in_and_takes_them_away() {
    let fixture = Fixture::new(WINES);
    let database = fixture.engine.database();
    let rules = TextRules {
        classes: vec!["http://e/Wine".to_owned()],
        graphs: vec![String::new()],
        ..TextRules::default()
    };
    database.set_text_rules(Some(rules), None).unwrap();
    let writer = fixture.writer();
    let change = |turtle: &str, is_insertion| {
        let turtle = format!("@prefix : <http://e/> . {turtle}");
        Fixture::commit(&writer, &turtle, is_insertion);
    };
    let found = || {
        let query = "SELECT ?e { SERVICE text:search { [] text:query \"wine OR rouge\" ; text:entity ?e } }";
        let mut found = rows(&fixture, query);
        let alone = "SELECT ?l { VALUES ?l { \"vin rouge\"@fr } ?l <bif:contains> \"rouge\" }";
        found.extend(rows(&fixture, alone));
        found.sort();
        found
    };
    assert_eq!(found(), [""; 0]);
    change(":a a :Wine . :d a :Cheese . :g { :e a :Wine }", true);
    assert_eq!(found(), ["e=<http://e/a>"]);
    change(":d a :Wine . :new a :Wine ; :note \"a new wine\" .", true);
    let rouge = "l=\"vin rouge\"@fr";
    assert_eq!(
        found(),
        [
            "e=<http://e/a>",
            "e=<http://e/d>",
            "e=<http://e/new>",
            rouge
        ]
    );
    change(":d a :Wine . :a a :Wine .", false);
    assert_eq!(found(), ["e=<http://e/new>"]);
    writer.checkpoint().unwrap();
    change(":a a :Wine .", true);
    assert_eq!(found(), ["e=<http://e/a>", "e=<http://e/new>"]);
}

/// Something else that is kept in the same memory.
#[derive(Debug)]
struct Other;

impl Remade for Other {
    fn used(&self) -> u64 {
        0
    }

    fn give_up(&self) {}
}

#[test]
fn texts_that_came_take_memory_that_others_can_have() {
    const ROOM: u64 = 64 << 20;
    let fixture = wines();
    let writer = fixture.writer();
    let later = "@prefix : <http://e/> . :n :note \"a wine that came later, with a label\" .";
    Fixture::commit(&writer, later, true);
    let view = fixture.engine.database().view_of_process();
    let kept_bytes = || view.snapshot().text_bytes().unwrap().1;
    let documents = |memory: &Adjacencies| {
        let reader = TextReader::within(&view, memory)?;
        Ok::<u64, StorageError>(reader.unwrap().documents()?.1)
    };
    let tight = Adjacencies::new(1_000);
    let refused = documents(&tight).unwrap_err();
    assert!(
        matches!(refused, StorageError::TextsBehind { .. }),
        "{refused}"
    );
    assert!(kept_bytes() < 1_000 && tight.counts().bytes < 1_000);
    let memory = Adjacencies::new(ROOM);
    for _ in 0..2 {
        assert_eq!(documents(&memory).unwrap(), 1);
        assert_eq!(memory.counts().bytes, kept_bytes());
        let reader = TextReader::within(&view, &memory).unwrap().unwrap();
        let other = Arc::new(Other);
        assert!(memory.keep(&other, ROOM, || Some(ROOM)));
        assert_eq!(kept_bytes(), 0);
        // Who has begun keeps what they have; who comes then makes it again, in the place of the
        // other.
        assert_eq!(reader.documents().unwrap().1, 1);
        assert_eq!(documents(&memory).unwrap(), 1);
        assert_eq!(memory.counts().bytes, kept_bytes());
    }
}

#[test]
fn jenas_searches_are_understood() {
    let fixture = wines();
    let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
    let ask = |pattern: &str| {
        let query = format!(
            "PREFIX text: <http://jena.apache.org/text#> PREFIX : <http://e/> SELECT * {{ {pattern} }}"
        );
        let mut found = rows(&fixture, &query);
        found.sort();
        found
    };
    assert_eq!(ask("?s text:query \"white\""), ["s=<http://e/c>"]);
    assert_eq!(
        ask(&format!(
            "?s text:query ({label} \"red\") FILTER EXISTS {{ ?s :price ?p }}"
        )),
        ["s=<http://e/a>", "s=<http://e/b>"]
    );
    assert_eq!(
        ask(&format!(
            "(?s [] ?l [] ?p) text:query ({label} :note \"vin OR white\" 10)"
        )),
        [
            format!("l=\"vin rouge\"@fr p={label} s=<http://e/d>"),
            format!("l=\"white wine\"@en p={label} s=<http://e/c>"),
        ]
    );
    assert_eq!(
        ask("?s text:query (\"red OR rouge\" \"lang:fr\")"),
        ["s=<http://e/d>"]
    );
    assert_eq!(
        ask("?s text:query (\"red\" 1 \"lang:none\")"),
        ["s=<http://e/c>"]
    );
    assert_eq!(
        ask("(?s ?score ?l ?g) text:query \"red\" FILTER(?score > 0)").len(),
        1,
        "in one named graph"
    );
    assert_eq!(ask(":c text:query \"red\"").len(), 1);
    for (pattern, message) in [
        ("?s text:query ?q", "without a string"),
        ("?s text:query (\"a\" ?n)", "without a string"),
        (
            "?s text:query (\"a\" \"highlight:s:<em>\")",
            "a limit or a language",
        ),
        ("(?a ?b ?c ?d ?e ?f) text:query \"a\"", "more than five"),
        ("(?a 7) text:query \"a\"", "text:score is a variable"),
    ] {
        let query = format!("PREFIX text: <http://jena.apache.org/text#> SELECT * {{ {pattern} }}");
        let error = fixture
            .ask(&query)
            .map(|_| pattern)
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{pattern}: {error}");
    }
}

#[test]
fn a_language_and_properties_restrict_a_search() {
    let fixture = wines();
    let ask = |rest: &str| {
        let query = format!(
            "PREFIX : <http://e/> SELECT ?e {{ SERVICE text:search {{ [] text:query \"red OR rouge\" ; text:entity ?e ; {rest} }} }}"
        );
        let mut found = rows(&fixture, &query);
        found.sort();
        found
    };
    for limit in ["", " ; text:limit 1000"] {
        assert_eq!(
            ask(&format!("text:language \"fr\"{limit}")),
            ["e=<http://e/d>"]
        );
        assert_eq!(
            ask(&format!("text:language \"\"{limit}")),
            ["e=<http://e/c>"]
        );
        assert_eq!(
            ask(&format!("text:language \"EN\"{limit}")),
            ["e=<http://e/a>", "e=<http://e/b>"]
        );
        assert_eq!(ask(&format!("text:language \"en-gb\"{limit}")), [""; 0]);
        assert_eq!(
            ask(&format!("text:property ?p, :note{limit}")),
            ["e=<http://e/c>"]
        );
    }
}

#[test]
fn a_limit_lets_the_best_through_and_highlights_say_what_was_found() {
    let fixture = wines();
    let query = "SELECT ?e ?h { SERVICE text:search { [] text:query \"red OR rouge*\" ; text:property rdfs:label ; text:entity ?e ; \
        text:highlight ?h ; text:limit 1 } }";
    let found = rows(&fixture, query);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("<b>"), "{found:?}");
    let query = "SELECT ?e { SERVICE text:search { [] text:query \"wine\" ; text:entity ?e ; text:score ?s } } ORDER BY DESC(?s) ?e LIMIT 1";
    assert_eq!(rows(&fixture, query).len(), 1);
}

#[test]
fn an_update_finds_what_it_has_written_itself() {
    let fixture = wines();
    let writer = fixture.writer();
    let engine = &fixture.engine;
    let options = orrery_sparql::UpdateOptions::of_process();
    let text = "PREFIX : <http://e/> INSERT DATA { :new rdfs:label \"a sparkling wine that nobody knew before\" } ; \
        INSERT { ?e :found true } WHERE { SERVICE text:search { [] text:query \"sparkl*\" ; text:entity ?e } }";
    let update = engine.prepare_update(text, &options).unwrap();
    let mut transaction = writer.begin().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime
        .block_on(engine.apply(&update, &options, &mut transaction))
        .unwrap();
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
    drop(writer);
    let found = rows(
        &fixture,
        "PREFIX : <http://e/> SELECT ?e { ?e :found true }",
    );
    assert_eq!(found, ["e=<http://e/new>"]);
}

#[test]
fn plans_with_what_was_found_are_not_kept() {
    let fixture = wines();
    let query = "SELECT ?e { SERVICE text:search { [] text:query \"white\" ; text:entity ?e } }";
    assert_eq!(rows(&fixture, query).len(), 1);
    let writer = fixture.writer();
    Fixture::commit(
        &writer,
        "<http://e/x> <http://e/p> \"a white house on the hill\" .",
        true,
    );
    assert_eq!(rows(&fixture, query).len(), 2);
}

#[test]
fn mistakes_get_messages_that_help() {
    let fixture = wines();
    for (inner, message) in [
        ("[] text:entity ?e", "no text:query"),
        ("[] text:query ?q", "has to be a string"),
        ("[] text:query \"a\" ; text:querry \"b\"", "no text:querry"),
        (
            "[] text:query \"a OR\"",
            "a word is missing after \"OR\" (character 5)",
        ),
        ("[] text:query \"a\" ; text:limit 0", "a number from 1"),
        (
            "[] text:query \"a\" ; text:entity ?e ; text:literal ?e",
            "in two ways",
        ),
        (
            "[] text:query \"a\" . ?s rdfs:label ?l",
            "different subjects",
        ),
        ("[] text:query \"a\" ; rdfs:label ?l", "outside of it"),
        ("", "it is empty"),
        (
            "[] text:query \"a\" FILTER(true)",
            "something else than triples",
        ),
    ] {
        let query = format!("SELECT * {{ SERVICE text:search {{ {inner} }} }}");
        let error = fixture.ask(&query).map(|_| inner).unwrap_err().to_string();
        assert!(error.contains(message), "{inner}: {error}");
    }
    let fixture = Fixture::new(WINES);
    let query = "SELECT * { SERVICE text:search { [] text:query \"a\" ; text:entity ?e } }";
    let error = fixture.ask(query).unwrap_err().to_string();
    assert!(error.contains("orrery text create"), "{error}");
}

//! Tests that a cached plan holds nothing of its original query.

use std::sync::{Arc, Weak};

use orrery_storage::{
    Asker, CommitOptions, GraphNames, ReadScope, SmallQuad, WriterOptions, build_small,
};
use orrery_term::{Term, TermId};

use super::cache::{PlanCache, PlanKey, REFUSALS_MAX, REFUSED_COMMITS};
use super::query::NAMES_MAX;
use crate::{Engine, EngineOptions, QueryOptions};

fn quads() -> Vec<SmallQuad> {
    let iri = |name: String| Term::iri(format!("http://e/{name}"));
    let mut quads = Vec::new();
    for thing in 0..60_u64 {
        let subject = iri(format!("t{thing}"));
        let mut add = |predicate: &str, object| {
            quads.push((subject.clone(), iri(predicate.into()), object, None))
        };
        let number = |number: u64| {
            Term::typed(
                number.to_string(),
                "http://www.w3.org/2001/XMLSchema#integer",
            )
        };
        add("feature", iri(format!("f{}", thing % 3)));
        add("number", number(thing % 30));
        add("score", number(thing % 20));
        add("label", Term::string(format!("label {thing}")));
        add("next", iri(format!("t{}", (thing + 7) % 60)));
    }
    quads
}

#[test]
fn what_is_kept_holds_no_context_of_its_query() {
    const QUERIES: [&str; 10] = [
        "SELECT ?a ?l { ?a :feature <http://e/f%> ; :label ?l ; :number ?n } ORDER BY ?n ?l LIMIT 5 OFFSET 1",
        "SELECT DISTINCT ?l { ?a :feature <http://e/f%> ; :label ?l ; :number ?n } ORDER BY ?n ?l LIMIT 5 OFFSET 1",
        "SELECT DISTINCT ?n { ?a :feature <http://e/f%> ; :number ?n } ORDER BY STR(?n)",
        "SELECT ?a { ?a :feature <http://e/f%> ; :number ?n BIND(CONCAT(STR(?n), 'x') AS ?t) } ORDER BY ?t LIMIT 5 OFFSET 1",
        "SELECT (STR(?l) AS ?s) { ?a :feature <http://e/f%> ; :label ?l }",
        "SELECT * { { ?a :feature <http://e/f%> } UNION { ?a :next <http://e/t3> } ?a :number ?n } LIMIT 7",
        "SELECT * { <http://e/t%> :next ?a . ?a :number ?n { ?a :next ?b } UNION { ?a :feature ?f } FILTER(?b != ?a || ?n < 100) } ORDER BY ?n OFFSET 2",
        "SELECT * { { SELECT DISTINCT ?a { ?a :feature <http://e/f%> ; :number ?n ; :score ?m } LIMIT 9 } VALUES (?a ?x) { (UNDEF 1) (:t1 2) } }",
        "SELECT DISTINCT ?n ?m { ?a :feature <http://e/f%> ; :number ?n ; :score ?m }",
        "ASK { <http://e/t%> :next ?a . ?a :absent ?n }",
    ];
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &quads()).unwrap());
    let engine = Engine::new(database, EngineOptions::default()).unwrap();
    for query in QUERIES {
        let text =
            |number: u32| format!("PREFIX : <http://e/> {query}").replace('%', &number.to_string());
        let mut contexts = Vec::new();
        for number in [0, 1, 2, 0] {
            let prepared = engine
                .prepare(&text(number), &QueryOptions::of_process())
                .unwrap();
            let context = &prepared.context;
            contexts.push((
                Arc::downgrade(context),
                Arc::downgrade(context.expressions()),
            ));
        }
        let is_dead = |(whole, expressions): &(Weak<_>, Weak<_>)| {
            whole.strong_count() == 0 && expressions.strong_count() == 0
        };
        assert!(contexts.iter().all(is_dead), "{query}");
    }
    assert!(engine.plan_counts().hits > 5, "{:?}", engine.plan_counts());
}

#[test]
fn refusals_say_nothing_of_a_much_later_commit() {
    let (cache, key) = (PlanCache::default(), PlanKey::default());
    for _ in 0..REFUSALS_MAX {
        assert!(!cache.is_refused(&key, 7));
        cache.refuse(key.clone(), 7);
    }
    assert!(cache.is_refused(&key, 7));
    assert!(cache.is_refused(&key, 7 + REFUSED_COMMITS - 1));
    assert!(!cache.is_refused(&key, 7 + REFUSED_COMMITS));
    // Those of then are not counted with those of now.
    cache.refuse(key.clone(), 7 + REFUSED_COMMITS);
    assert!(!cache.is_refused(&key, 7 + REFUSED_COMMITS));
}

fn scope_of(asker: u64, graphs: usize) -> ReadScope {
    let names = (0..graphs).map(|number| Term::iri(format!("http://e/graph/{number}")));
    let graphs = GraphNames {
        has_default: true,
        named: names.collect(),
        ..GraphNames::default()
    };
    ReadScope::only(Asker::User(asker), graphs)
}

/// Asks as somebody who sees the default graph and so many others.
fn ask(engine: &Engine, scope: ReadScope) {
    let text = "SELECT ?a ?l { ?a <http://e/feature> <http://e/f1> ; <http://e/label> ?l }";
    engine.prepare(text, &QueryOptions::of(scope)).unwrap();
}

#[test]
fn the_lists_of_graphs_that_plans_hold_are_counted_and_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &quads()).unwrap());
    let engine = Engine::new(database, EngineOptions::default()).unwrap();
    let bytes_with = |asker, graphs| {
        let before = engine.plan_counts();
        // A shape is known when it has come before.
        (0..3).for_each(|_| ask(&engine, scope_of(asker, graphs)));
        let after = engine.plan_counts();
        (after.kept - before.kept, after.bytes - before.bytes)
    };
    let (few, bytes_of_few) = bytes_with(1, 1);
    let (many, bytes_of_many) = bytes_with(2, 900);
    assert_eq!((few, many), (1, 1));
    assert!(bytes_of_many > bytes_of_few + 900 * "http://e/graph/".len() as u64);
    assert_eq!(bytes_with(3, NAMES_MAX), (0, 0));
}

#[test]
fn a_plan_for_what_its_asker_saw_goes_with_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &quads()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let engine = Engine::new(Arc::clone(&database), EngineOptions::default()).unwrap();
    let commit = |name: &str| {
        let mut transaction = writer.begin().unwrap();
        let term = transaction.intern(&Term::iri(name)).unwrap();
        let row = [term, term, term, TermId::DEFAULT_GRAPH];
        transaction.insert(&mut vec![row]).unwrap();
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        pending.wait().unwrap();
    };
    (0..3).for_each(|_| ask(&engine, scope_of(1, 1)));
    ask(&engine, scope_of(2, 1));
    assert_eq!(engine.plan_counts().kept, 2);
    commit("http://e/x");
    ask(&engine, scope_of(1, 2));
    // The other asker's is good yet.
    assert_eq!(engine.plan_counts().kept, 2);
    let hits = engine.plan_counts().hits;
    ask(&engine, scope_of(2, 1));
    assert_eq!(engine.plan_counts().hits, hits + 1);
}

#[test]
fn whether_a_plan_is_kept_does_not_tell_hidden_terms_from_unknown_ones() {
    let directory = tempfile::tempdir().unwrap();
    let mut quads = quads();
    let hidden = |name: &str| Term::iri(format!("http://e/hidden/{name}"));
    quads.push((hidden("s"), hidden("p"), hidden("o"), Some(hidden("graph"))));
    let database = Arc::new(build_small(directory.path(), &quads).unwrap());
    let engine = Engine::new(database, EngineOptions::default()).unwrap();
    for query in [
        "SELECT * { % (:next|!:next)* ?y }",
        "SELECT * { ?x (:next/:next)* % }",
        "SELECT * { % :next+ ?y . ?y :number ?n }",
        "SELECT * { VALUES ?a { % :t1 } ?a :number ?n }",
        "SELECT * { ?a :feature % ; :number ?n }",
        "SELECT * { GRAPH % { ?a :feature ?b ; :number ?n } }",
        "ASK { ?a :number ?n FILTER(?a = %) }",
    ] {
        let seen = |name: &str| {
            let text = format!("PREFIX : <http://e/> {query}")
                .replace('%', &format!("<http://e/hidden/{name}>"));
            let before = engine.plan_counts();
            let mut touches = Vec::new();
            for _ in 0..6 {
                let prepared = engine.prepare(&text, &QueryOptions::of(scope_of(1, 1)));
                touches.push(prepared.unwrap().context.touches());
            }
            let after = engine.plan_counts();
            (after.kept - before.kept, after.hits - before.hits, touches)
        };
        // The first ones make the shape known.
        seen("n");
        let (there, not_there) = (["s", "p", "o", "graph"].map(seen), seen("none"));
        for it in there {
            assert_eq!(it, not_there, "{query}");
        }
    }
}

//! What is kept holds nothing of the query that it was made for.

use std::sync::{Arc, Weak};

use orrery_storage::{SmallQuad, build_small};
use orrery_term::Term;

use super::cache::{PlanCache, PlanKey, REFUSALS_MAX, REFUSED_COMMITS};
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

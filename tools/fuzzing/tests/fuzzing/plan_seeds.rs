//! Tests that the seeds of the plan target are plans of queries.

#![cfg(feature = "engine")]
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use orrery_fuzzing::{make_plan, nodes_of};

const QUERIES: [(&str, &str); 8] = [
    (
        "join",
        "SELECT * { ?s <http://example.com/p1> ?o . ?o <http://example.com/p2> ?x FILTER(?s != ?x) }",
    ),
    (
        "left",
        "SELECT * { ?s ?p ?o OPTIONAL { ?o <http://example.com/p0> ?x } } ORDER BY DESC(?x) ?s LIMIT 5",
    ),
    (
        "group",
        "SELECT ?p (COUNT(DISTINCT ?o) AS ?n) (SUM(?p + 1) AS ?m) { ?s ?p ?o } GROUP BY ?p HAVING(?n > 1)",
    ),
    (
        "path",
        "SELECT DISTINCT ?s ?o { ?s (<http://example.com/p0>/^<http://example.com/p1>)* ?o }",
    ),
    (
        "graphs",
        "SELECT * { GRAPH ?g { ?s ?p ?o } MINUS { ?s <http://example.com/p2> ?y } }",
    ),
    (
        "union",
        "SELECT * { { ?s ?p 1 } UNION { VALUES (?s ?p) { (1 UNDEF) (UNDEF 25) } } FILTER EXISTS { ?s ?q ?r } }",
    ),
    (
        "computed",
        "SELECT (CONCAT(STR(?s), \"x\") AS ?t) { { SELECT ?s { ?s ?p ?o } LIMIT 3 } BIND(IF(ISIRI(?s), REGEX(STR(?s), \"s1\"), 2) AS ?z) }",
    ),
    ("count", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"),
];

/// `UPDATE_SEEDS=1` writes them anew.
#[test]
fn seeds_of_plans_can_be_made() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/plans");
    for (name, query) in QUERIES {
        let path = folder.join(format!("{name}.json"));
        if std::env::var_os("UPDATE_SEEDS").is_some() {
            std::fs::write(&path, nodes_of(query)).unwrap();
        }
        let made = make_plan(&std::fs::read(&path).unwrap());
        assert!(made.is_ok(), "{name}: {made:?}");
    }
}

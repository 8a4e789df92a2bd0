//! Tests that the cost of path searches reveals no hidden data.

#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use crate::store::Store;
use orrery_sparql::{QueryOptions, QueryResults, Tuning};
use orrery_storage::{Asker, GraphNames, ReadScope, SmallQuad};
use orrery_term::Term;

const NODES: u32 = 12;
const QUERIES: [&str; 22] = [
    "PATHS ANY SHORTEST START ?s END ?o = :n0 VIA { ?s :p|:l ?o . ?o :k ?n } WEIGHT ?n",
    "PATHS ANY SHORTEST START ?s = :n0 END ?o VIA { ?s :p|:l ?o . ?o :k ?n } WEIGHT ?n",
    "PATHS ANY SHORTEST START ?s = :n0 END ?o = :n7 VIA { ?s :p|:l ?o . ?o :k ?n } WEIGHT ?n",
    "PATHS ANY SHORTEST START ?s = :n0 END ?o VIA { ?s :p|:l ?o . ?o :k ?n } WEIGHT ?n MAX LENGTH 4",
    "PATHS SHORTEST START ?s = :n0 END ?o VIA { ?s :p|:l ?o . ?o :k ?n } WEIGHT ?n",
    "PATHS SHORTEST 2 START ?s = :n0 END ?o VIA { ?s :p|:l ?o . ?o :k ?n } WEIGHT ?n",
    "PATHS SHORTEST 3 START ?s = :n0 END ?o = :n7 VIA { ?s :p ?o }",
    "PATHS ANY SHORTEST START ?s = :n0 END ?o = :n7 VIA :p",
    "PATHS ANY SHORTEST START ?s = :n0 END ?o VIA :p|:l",
    "PATHS ANY SHORTEST START ?s END ?o = :n7 VIA { ?s :p ?o . ?o :k ?n }",
    "PATHS ANY SHORTEST START ?s END ?o VIA :p",
    "PATHS SHORTEST START ?s = :n0 END ?o = :n7 VIA :p|:l",
    "PATHS ALL START ?s = :n0 END ?o = :n7 VIA :p MAX LENGTH 5",
    "PATHS ALL CYCLIC START ?s = :n0 END ?o VIA :p MAX LENGTH 4",
    "PATHS ANY SHORTEST CYCLIC START ?s = :n0 END ?o VIA :p",
    "PATHS SHORTEST CYCLIC START ?s = :n0 END ?o VIA :p",
    "SELECT * { SERVICE path:search { <urn:path> path:findPath path:oneShortestCycle ; path:sourceNode :n1 ; path:pathIndex ?i ; path:startNode ?from ; path:endNode ?to . SERVICE <urn:path> { ?from :p ?to } } }",
    "SELECT * { SERVICE path:search { <urn:path> path:findPath path:oneShortestPath ; path:sourceNode :n0 ; path:destinationNode ?o ; path:minPathLength 2 ; path:weight ?n ; path:startNode ?from ; path:endNode ?to . SERVICE <urn:path> { ?from :p|:l ?to . ?to :k ?n } } }",
    "ASK { :n0 :p+ :n7 }",
    "ASK { :n0 (:p|:l)* :n11 }",
    "SELECT ?s { ?s :p+ :n7 }",
    "SELECT ?s ?o { ?s (:p/:l)* ?o }",
];

fn node(number: u32) -> Term<'static> {
    Term::iri(format!("http://e/n{number}"))
}

fn predicate(name: &str) -> Term<'static> {
    Term::iri(format!("http://e/{name}"))
}

/// Edges of two predicates, with weights that are often the same.
fn seen(seed: u64) -> Vec<SmallQuad> {
    let mut state = seed;
    let mut below = |limit: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(limit)) as u32
    };
    let mut quads = Vec::new();
    for _ in 0..30 {
        let name = ["p", "p", "l"][below(3) as usize];
        quads.push((
            node(below(NODES)),
            predicate(name),
            node(below(NODES)),
            None,
        ));
    }
    for number in 0..NODES {
        let weight = Term::typed(
            below(3).to_string(),
            "http://www.w3.org/2001/XMLSchema#integer",
        );
        quads.push((node(number), predicate("k"), weight, None));
    }
    quads
}

/// What nobody sees: quads with some of the nodes, which have their ids before any edge comes.
fn hidden(nodes: impl Iterator<Item = u32>) -> Vec<SmallQuad> {
    let graph = Some(predicate("hidden"));
    nodes
        .map(|number| (node(number), predicate("p"), node(number), graph.clone()))
        .collect()
}

/// What a query costs, and how many rows it has.
fn told(store: &Store, query: &str, reduces_always: bool) -> (u64, usize) {
    let names = GraphNames {
        has_default: true,
        ..GraphNames::default()
    };
    let mut options = QueryOptions::of(ReadScope::only(Asker::Anonymous, names));
    options.tuning = Tuning {
        reduces_always,
        ..Tuning::default()
    };
    let query = format!("PREFIX : <http://e/> PREFIX path: <https://orrery-db.org/path#> {query}");
    let prepared = store.engine.prepare(&query, &options).unwrap();
    let rows = store.runtime.block_on(async {
        let QueryResults::Solutions(mut stream) = prepared.execute().await.unwrap() else {
            return 1;
        };
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch.unwrap().rows();
        }
        rows
    });
    (prepared.touches(), rows)
}

#[test]
fn what_paths_cost_does_not_go_by_the_order_of_ids() {
    for seed in 0..12 {
        let quads = seen(seed);
        let stores = [
            hidden(0..0),
            hidden(0..NODES),
            hidden((0..NODES).filter(|number| number % 2 == 1)),
        ];
        let stores = stores.map(|hidden| {
            let other = (
                predicate("s"),
                predicate("s"),
                predicate("s"),
                Some(predicate("hidden")),
            );
            let store = Store::of(&[hidden, vec![other]].concat());
            store.change(&quads, []);
            store
        });
        for query in QUERIES {
            for reduces_always in [false, true] {
                let [first, others @ ..] = stores
                    .each_ref()
                    .map(|store| told(store, query, reduces_always));
                for other in others {
                    assert_eq!(first, other, "{query}\nseed {seed}, {reduces_always}");
                }
            }
        }
    }
}

//! Tests of path search against naive enumeration over random graphs, with every plan.

#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Answer, Fixture};
use orrery_sparql::{QueryError, QueryOptions, Tuning};
use orrery_storage::{Asker, GraphNames, ReadScope};
use orrery_term::Term;

/// An edge: its nodes and its predicate.
type Edge = (u32, char, u32);
type Path = Vec<Edge>;

/// A generator of numbers below a limit.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}

/// A small graph, with a number for each edge in a graph of statements about it.
struct Model {
    nodes: u32,
    edges: BTreeSet<Edge>,
}

impl Model {
    fn random(random: &mut Random) -> Self {
        let nodes = 2 + random.below(6);
        let count = 1 + random.below(3 * nodes);
        let mut edges = BTreeSet::new();
        for _ in 0..count {
            let predicate = if random.below(3) == 0 { 'q' } else { 'p' };
            edges.insert((random.below(nodes), predicate, random.below(nodes)));
        }
        Self { nodes, edges }
    }

    fn trig(&self) -> String {
        let mut trig = String::from("@prefix : <http://e/> .\n");
        for (start, predicate, end) in &self.edges {
            let weight = weight(&(*start, *predicate, *end));
            trig += &format!(
                ":n{start} :{predicate} :n{end} .\n:n{start} :to [ :node :n{end} ; :kind :{predicate} ; :weight {weight} ] .\n"
            );
        }
        trig
    }

    /// All paths from a node that do not come to a node again, but for one that ends where it
    /// begins.
    fn from(&self, node: u32, length_max: usize) -> Vec<Path> {
        let mut found = Vec::new();
        self.go_on(node, node, &mut Vec::new(), length_max, &mut found);
        found
    }

    fn go_on(&self, first: u32, at: u32, path: &mut Path, max: usize, found: &mut Vec<Path>) {
        if path.len() == max {
            return;
        }
        for edge in self.edges.iter().filter(|edge| edge.0 == at) {
            let is_known = edge.2 == at || path.iter().any(|before| before.0 == edge.2);
            path.push(*edge);
            if edge.2 == first {
                found.push(path.clone());
            } else if !is_known {
                found.push(path.clone());
                self.go_on(first, edge.2, path, max, found);
            }
            path.pop();
        }
    }

    /// All simple paths, or all cycles, between the ends that are given.
    fn paths(&self, ends: Ends, is_cyclic: bool, length_max: usize) -> Vec<Path> {
        let all = (0..self.nodes).flat_map(|node| self.from(node, length_max));
        let is_wanted = |path: &Path| {
            let (first, last) = (path[0].0, path[path.len() - 1].2);
            (first == last) == is_cyclic
                && ends.0.is_none_or(|end| end == first)
                && ends.1.is_none_or(|end| end == last)
        };
        all.filter(is_wanted).collect()
    }
}

type Ends = (Option<u32>, Option<u32>);

fn weight(edge: &Edge) -> u32 {
    (edge.0 * 7 + edge.2 * 3 + u32::from(edge.1 == 'q')) % 5
}

fn cost(path: &Path) -> u32 {
    path.iter().map(weight).sum()
}

/// Of the paths between each two nodes those that cost least.
fn least(paths: Vec<Path>, cost: impl Fn(&Path) -> u32) -> Vec<Path> {
    let mut by_ends: BTreeMap<(u32, u32), Vec<Path>> = BTreeMap::new();
    for path in paths {
        by_ends.entry(ends_of(&path)).or_default().push(path);
    }
    let mut found = Vec::new();
    for paths in by_ends.into_values() {
        let least = paths.iter().map(&cost).min().unwrap();
        found.extend(paths.into_iter().filter(|path| cost(path) == least));
    }
    found
}

fn ends_of(path: &Path) -> (u32, u32) {
    (path[0].0, path[path.len() - 1].2)
}

fn sorted(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort();
    paths
}

fn options(number: u32) -> QueryOptions {
    let mut options = QueryOptions::of_process();
    options.tuning = match number {
        0 => Tuning::default(),
        // Frontier by frontier, which small graphs are not searched otherwise.
        1 => Tuning {
            reduces_always: true,
            ..Tuning::default()
        },
        2 => Tuning {
            rewrites: false,
            ..Tuning::default()
        },
        _ => Tuning {
            partitions: Some(3),
            reduces_always: true,
            vector_rows: Some(2),
            ..Tuning::default()
        },
    };
    options
}

/// The values of a row by their variables.
fn fields(row: &str) -> BTreeMap<String, String> {
    let fields = row.split(' ').filter_map(|field| field.split_once('='));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn local(value: &str) -> &str {
    value.trim_start_matches("<http://e/").trim_end_matches('>')
}

fn number(value: &str) -> u32 {
    let digits = value.trim_start_matches('"').split('"').next().unwrap();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{value} is no number"))
}

fn node(value: &str) -> u32 {
    local(value)[1..].parse().unwrap()
}

/// The paths of an answer in the order of their numbers, each with what it says of its length and
/// cost.
fn paths_of(answer: Answer) -> Vec<Path> {
    let Answer::Solutions(rows) = answer else {
        panic!("solutions");
    };
    let mut paths: BTreeMap<u32, BTreeMap<u32, Edge>> = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    for row in &rows {
        let fields = fields(row);
        let [path, edge, length] = ["path", "edge", "length"].map(|name| number(&fields[name]));
        let predicate = local(&fields["p"]).chars().next().unwrap();
        let triple = (node(&fields["x"]), predicate, node(&fields["y"]));
        let is_new = paths
            .entry(path)
            .or_default()
            .insert(edge, triple)
            .is_none();
        assert!(is_new, "edge {edge} of path {path} twice");
        lengths.insert(path, length);
    }
    for (at, (path, edges)) in paths.iter().enumerate() {
        assert_eq!(at as u32, *path, "numbers follow each other");
        assert_eq!(edges.len() as u32, lengths[path], "the length of a path");
        assert!(edges.keys().copied().eq(0..edges.len() as u32));
        let edges: Vec<&Edge> = edges.values().collect();
        assert!(
            edges.windows(2).all(|pair| pair[0].2 == pair[1].0),
            "edges follow each other"
        );
    }
    paths
        .into_values()
        .map(|edges| edges.into_values().collect())
        .collect()
}

fn ask(fixture: &Fixture, query: &str, plan: u32) -> Vec<Path> {
    let query = format!("PREFIX : <http://e/> PREFIX path: <https://orrery-db.org/path#> {query}");
    let answer = fixture.ask_with(&query, &options(plan));
    paths_of(answer.unwrap_or_else(|error| panic!("{query}: {error}")))
}

/// `START ?x .. END ?y ..`
fn written(ends: Ends) -> String {
    let end = |node: Option<u32>| node.map_or(String::new(), |node| format!("= :n{node}"));
    format!("START ?x {} END ?y {}", end(ends.0), end(ends.1))
}

const EDGES: &str = "VIA { ?x ?p ?y FILTER(?p IN (:p, :q)) }";
const REIFIED: &str = "VIA { ?x :to ?e . ?e :node ?y ; :kind ?p ; :weight ?w } WEIGHT ?w";

#[test]
fn paths_are_those_of_naive_enumeration() {
    for seed in 0..24 {
        let mut random = Random(seed);
        let model = Model::random(&mut random);
        let fixture = Fixture::new(&model.trig());
        let mut end = || (random.below(3) > 0).then(|| random.below(model.nodes));
        for _ in 0..4 {
            let ends = (end(), end());
            let written = written(ends);
            for plan in 0..4 {
                let what = format!("seed {seed}, plan {plan}, {written}: {:?}", model.edges);
                let all = model.paths(ends, false, usize::MAX);
                let found = ask(&fixture, &format!("PATHS ALL {written} {EDGES}"), plan);
                assert_eq!(sorted(found), sorted(all.clone()), "all, {what}");

                let bounded = model.paths(ends, false, 3);
                let query = format!("PATHS ALL {written} {EDGES} MIN LENGTH 2 MAX LENGTH 3");
                let long = bounded
                    .iter()
                    .filter(|path| path.len() > 1)
                    .cloned()
                    .collect();
                assert_eq!(
                    sorted(ask(&fixture, &query, plan)),
                    sorted(long),
                    "{query} {what}"
                );

                let shortest = least(all.clone(), |path| path.len() as u32);
                let found = ask(&fixture, &format!("PATHS {written} {EDGES}"), plan);
                assert_eq!(sorted(found), sorted(shortest.clone()), "shortest, {what}");
                let query = format!("PATHS SHORTEST {written} {EDGES} MAX LENGTH 2");
                let near = shortest
                    .iter()
                    .filter(|path| path.len() <= 2)
                    .cloned()
                    .collect();
                assert_eq!(
                    sorted(ask(&fixture, &query, plan)),
                    sorted(near),
                    "{query} {what}"
                );

                let found = ask(
                    &fixture,
                    &format!("PATHS ANY SHORTEST {written} {EDGES}"),
                    plan,
                );
                assert!(
                    found.iter().all(|path| shortest.contains(path)),
                    "any, {what}"
                );
                let pairs = |paths: &[Path]| paths.iter().map(ends_of).collect::<BTreeSet<_>>();
                assert_eq!(pairs(&found), pairs(&shortest), "any, {what}");
                assert_eq!(
                    pairs(&found).len(),
                    found.len(),
                    "one for each two ends, {what}"
                );

                let cheapest = least(all.clone(), cost);
                let found = ask(&fixture, &format!("PATHS {written} {REIFIED}"), plan);
                assert_eq!(sorted(found), sorted(cheapest), "cheapest, {what}");
                let cheapest = least(bounded, cost);
                let query = format!("PATHS {written} {REIFIED} MAX LENGTH 3");
                assert_eq!(
                    sorted(ask(&fixture, &query, plan)),
                    sorted(cheapest),
                    "{query} {what}"
                );

                first_by_cost(&fixture, &written, plan, &all, &what);
                cycles(&fixture, &model, ends, plan, &what);
            }
        }
    }
}

/// The three cheapest of each two ends: which of those that cost the same is nowhere said.
fn first_by_cost(fixture: &Fixture, written: &str, plan: u32, all: &[Path], what: &str) {
    let costs = |paths: &[Path]| {
        let mut costs: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for path in paths {
            costs.entry(ends_of(path)).or_default().push(cost(path));
        }
        for costs in costs.values_mut() {
            costs.sort_unstable();
            costs.truncate(3);
        }
        costs
    };
    let found = ask(
        fixture,
        &format!("PATHS SHORTEST 3 {written} {REIFIED}"),
        plan,
    );
    assert!(found.iter().all(|path| all.contains(path)), "{what}");
    let distinct: BTreeSet<&Path> = found.iter().collect();
    assert_eq!(distinct.len(), found.len(), "{what}");
    assert_eq!(costs(&found), costs(all), "three cheapest, {what}");
}

fn cycles(fixture: &Fixture, model: &Model, ends: Ends, plan: u32, what: &str) {
    let written = written(ends);
    let all = model.paths(ends, true, usize::MAX);
    let found = ask(
        fixture,
        &format!("PATHS ALL CYCLIC {written} {EDGES}"),
        plan,
    );
    assert_eq!(sorted(found), sorted(all.clone()), "cycles, {what}");
    let shortest = least(all, |path| path.len() as u32);
    let found = ask(
        fixture,
        &format!("PATHS SHORTEST CYCLIC {written} {EDGES}"),
        plan,
    );
    assert_eq!(sorted(found), sorted(shortest), "shortest cycles, {what}");
}

#[test]
fn the_length_of_a_property_path_is_that_of_its_shortest_way() {
    for seed in 100..140 {
        let mut random = Random(seed);
        let model = Model::random(&mut random);
        let fixture = Fixture::new(&model.trig());
        let mut expected = BTreeMap::new();
        for is_cyclic in [false, true] {
            for path in model.paths((None, None), is_cyclic, usize::MAX) {
                let length = expected.entry(ends_of(&path)).or_insert(usize::MAX);
                *length = path.len().min(*length);
            }
        }
        for plan in 0..4 {
            let query = "PREFIX : <http://e/> PREFIX path: <https://orrery-db.org/path#>
                SELECT ?x ?y ?n { SERVICE path:search { ?x (:p|:q)+ ?y . [] path:length ?n } }";
            let Ok(Answer::Solutions(rows)) = fixture.ask_with(query, &options(plan)) else {
                panic!("solutions");
            };
            let found: Vec<_> = rows.iter().map(|row| fields(row)).collect();
            assert_eq!(found.len(), expected.len(), "each two ends once");
            for row in found {
                let ends = (node(&row["x"]), node(&row["y"]));
                assert_eq!(
                    expected.get(&ends),
                    Some(&(number(&row["n"]) as usize)),
                    "{ends:?}"
                );
            }
        }
    }
}

fn chain() -> Fixture {
    Fixture::new(
        "@prefix : <http://e/> . :a :p :b . :b :p :c . :c :p :d . :a :p :c . :b a :P . :a a :P .
         GRAPH :g { :d :p :e . :a :p :e } GRAPH :h { :a :p :d }",
    )
}

fn rows(fixture: &Fixture, query: &str, options: &QueryOptions) -> Result<Vec<String>, QueryError> {
    let query =
        format!("PREFIX : <http://e/> PREFIX path: <http://www.ontotext.com/path#> {query}");
    let Answer::Solutions(rows) = fixture.ask_with(&query, options)? else {
        panic!("solutions");
    };
    let short = |row: String| {
        row.replace("http://e/", "")
            .replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "")
    };
    Ok(rows.into_iter().map(short).collect())
}

#[test]
fn the_service_takes_ends_from_around_it_and_gives_what_is_named() {
    let fixture = chain();
    let query = "SELECT ?s ?o ?i ?e { VALUES (?from ?to) { (:a :d) (:b :c) (:d :a) }
        SERVICE path:search { <urn:path> path:findPath path:shortestPath ; path:sourceNode ?from ; path:destinationNode ?to ;
            path:pathIndex ?i ; path:resultBindingIndex ?e ; path:startNode ?s ; path:endNode ?o .
            SERVICE <urn:path> { ?s :p ?o } } }";
    let expected = [
        "e=\"0\" i=\"0\" o=<c> s=<a>",
        "e=\"1\" i=\"0\" o=<d> s=<c>",
        "e=\"0\" i=\"1\" o=<c> s=<b>",
    ];
    for plan in 0..4 {
        let mut found = rows(&fixture, query, &options(plan)).unwrap();
        found.sort();
        let mut expected: Vec<BTreeMap<_, _>> = expected.iter().map(|row| fields(row)).collect();
        let mut found: Vec<BTreeMap<_, _>> = found.iter().map(|row| fields(row)).collect();
        // The order in which rows come around the service is open, and with it the numbers of
        // paths.
        for row in expected.iter_mut().chain(&mut found) {
            row.remove("i");
        }
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "plan {plan}");
    }
    let wildcard = "SELECT ?p ?t { SERVICE path:search { [] path:findPath path:shortestPath ; path:sourceNode :b ; path:destinationNode :d ;
        path:propertyBinding ?p ; path:resultBinding ?t } }";
    let found = rows(&fixture, wildcard, &options(0)).unwrap();
    assert_eq!(found.len(), 2);
    assert!(
        found[0].contains("p=<p>") && found[0].contains("<b>"),
        "{found:?}"
    );
    let both_ways = "SELECT ?s ?o { SERVICE path:search { [] path:findPath path:shortestPath ; path:sourceNode :d ; path:destinationNode :a ;
        path:startNode ?s ; path:endNode ?o ; path:bidirectional true . SERVICE <urn:path> { ?s :p ?o } } }";
    for plan in 0..4 {
        assert_eq!(
            rows(&fixture, both_ways, &options(plan)).unwrap(),
            ["o=<c> s=<d>", "o=<a> s=<c>"]
        );
    }
    let distance = "SELECT ?d { SERVICE path:search { [] path:findPath path:distance ; path:sourceNode :a ; path:destinationNode :d ;
        path:startNode ?s ; path:endNode ?o ; path:distanceBinding ?d . SERVICE <urn:path> { ?s :p ?o } } }";
    assert_eq!(rows(&fixture, distance, &options(0)).unwrap(), ["d=\"2\""]);
}

#[test]
fn limits_count_paths_and_graphs_are_chosen_as_elsewhere() {
    let fixture = chain();
    let count = |query: &str| {
        let paths = rows(&fixture, query, &options(1)).unwrap();
        let numbers = paths.iter().map(|row| fields(row)["path"].clone());
        numbers.collect::<BTreeSet<_>>().len()
    };
    assert_eq!(count("PATHS ALL START ?x = :a END ?y VIA :p"), 5);
    assert_eq!(count("PATHS ALL START ?x = :a END ?y VIA :p LIMIT 2"), 2);
    assert_eq!(
        count("PATHS ALL START ?x = :a END ?y VIA :p OFFSET 4 LIMIT 9"),
        1
    );
    assert_eq!(count("PATHS ALL START ?x = :a END ?y VIA :p LIMIT 0"), 0);
    assert_eq!(count("PATHS START ?x { ?x a :P } END ?y = :d VIA :p"), 2);
    let cycles = |kind: &str| {
        let edge = "{ { ?x :p ?y } UNION { ?y :p ?x } }";
        count(&format!(
            "PATHS {kind} CYCLIC START ?x = :c END ?y VIA {edge}"
        ))
    };
    // Of two that cost the same the longer one; none where the cheapest is too short, with a bound
    // or without one.
    let long = |weight: &str, bound: &str| {
        count(&format!(
            "PATHS ANY SHORTEST START ?x = :a END ?y = :c VIA {{ ?x :p ?y }} WEIGHT {weight} MIN LENGTH 2 {bound}"
        ))
    };
    for bound in ["", "MAX LENGTH 3"] {
        assert_eq!(long("0", bound), 1, "{bound}");
        assert_eq!(long("1", bound), 0, "{bound}");
    }
    // To each of three neighbours and back; round :a :b :c, either way.
    assert_eq!(cycles("ALL"), 5);
    assert_eq!(cycles("SHORTEST"), 3);
    assert_eq!(cycles("ANY SHORTEST"), 1);
    assert_eq!(cycles("SHORTEST 4"), 4);
    assert_eq!(
        count("PATHS ALL FROM :g FROM :h START ?x = :a END ?y = :e VIA :p"),
        2
    );
    assert_eq!(
        count("PATHS START ?x = :a END ?y = :e VIA { GRAPH ?g { ?x :p ?y } }"),
        1
    );
    let ordered =
        "PATHS ALL START ?x = :a END ?y VIA :p ORDER BY DESC(?length) ?path ?edge LIMIT 5";
    let found = rows(&fixture, ordered, &options(0)).unwrap();
    assert_eq!(fields(&found[0])["length"], "\"3\"");
    assert_eq!(found.len(), 9);
}

#[test]
fn paths_lead_through_no_graph_that_is_hidden() {
    let fixture = chain();
    let query = "PATHS START ?x = :a END ?y = :e VIA { GRAPH ?g { ?x :p ?y } }";
    let through =
        "PATHS ALL START ?x = :a END ?y = :e VIA { { ?x :p ?y } UNION { GRAPH ?g { ?x :p ?y } } }";
    let seen = |visible: &[&str], query: &str| {
        let mut names = GraphNames::default();
        for name in visible {
            match *name {
                "" => names.has_default = true,
                name => {
                    names.named.insert(Term::iri(format!("http://e/{name}")));
                }
            }
        }
        let mut options = QueryOptions::of(ReadScope::only(Asker::Anonymous, names));
        options.tuning.reduces_always = true;
        rows(&fixture, query, &options).unwrap().len()
    };
    assert_eq!(seen(&["", "g", "h"], query), 1);
    assert_eq!(seen(&["", "h"], query), 0);
    assert_eq!(seen(&["g"], query), 1);
    // :a :e; :a :d :e; :a :c :d :e; :a :b :c :d :e
    assert_eq!(seen(&["", "g", "h"], through), 1 + 2 + 3 + 4);
    assert_eq!(seen(&["", "g"], through), 1 + 3 + 4);
    assert_eq!(seen(&["", "h"], through), 0);
}

#[test]
fn one_variable_at_both_ends_finds_what_leads_back() {
    let fixture = Fixture::new("@prefix : <http://e/> . :a :p :b . :b :p :a , :c .");
    for plan in 0..4 {
        let ask = |path: &str| {
            let query =
                format!("SELECT ?x ?n {{ SERVICE path:search {{ {path} . [] path:length ?n }} }}");
            let mut found = rows(&fixture, &query, &options(plan)).unwrap();
            found.sort();
            found
        };
        let back = ["n=\"2\" x=<a>", "n=\"2\" x=<b>"];
        assert_eq!(ask("?x :p+ ?x"), back);
        let nowhere = ["n=\"0\" x=<a>", "n=\"0\" x=<b>", "n=\"0\" x=<c>"];
        assert_eq!(ask("?x :p* ?x"), nowhere);
    }
}

#[test]
fn what_cannot_be_searched_is_refused_with_a_reason() {
    let fixture = chain();
    let service = |inner: &str| format!("SELECT * {{ SERVICE path:search {{ {inner} }} }}");
    for (query, reason) in [
        (
            service("[] path:findPath path:nearest"),
            "path:nearest is not known",
        ),
        (
            service("[] path:findpath path:cycle"),
            "path:findpath is not known",
        ),
        (service("[] path:sourceNode :a"), "path:findPath is missing"),
        (
            service("[] path:findPath path:allPaths ; path:maxPathLength \"x\""),
            "a whole number",
        ),
        (
            service("[] path:findPath path:allPaths ; path:startNode :a"),
            "takes a variable",
        ),
        (
            service("[] path:findPath path:firstPaths"),
            "need path:count",
        ),
        (
            "PATHS SHORTEST CYCLIC START ?x = :a END ?y VIA { ?x :p ?y } WEIGHT 1".to_owned(),
            "cycles are found by their length",
        ),
        (
            service("[] path:findPath path:allPaths . SERVICE <urn:path> { ?s :p ?o }"),
            "path:startNode and path:endNode",
        ),
        (
            service(
                "[] path:findPath path:allPaths ; path:startNode ?s ; path:endNode ?x . SERVICE <urn:path> { ?s :p ?o }",
            ),
            "does not bind ?x",
        ),
        (
            service(
                "[] path:findPath path:allPaths ; path:sourceNode ?s ; path:startNode ?s ; path:endNode ?o",
            ),
            "stands for two things",
        ),
        (
            service(
                "[] path:findPath path:distance ; path:sourceNode :a ; path:destinationNode :b ; path:startNode ?x ; path:endNode ?x ; path:length ?n . SERVICE <urn:e> { ?x :p ?x }",
            ),
            "one variable",
        ),
        (service("?s :p ?o"), "no setting"),
        (
            service("[] path:findPath path:allPaths ; path:limit 1 , 2"),
            "path:limit is given twice",
        ),
        (
            service("[] path:findPath path:allPaths ; path:length ?n ; path:distance ?m"),
            "path:distance is given twice",
        ),
        (
            "PREFIX algo: <https://orrery-db.org/algorithm#> SELECT * { SERVICE algo:run { [] algo:algorithm algo:degree ; algo:iterations 1 ; algo:iterations 2 ; algo:node ?n } }".to_owned(),
            "algo:iterations is given twice",
        ),
        (service("?s :p+ ?o"), "path:length ?n is missing"),
        (service("?s :p? ?o . [] path:length ?n"), "has no length"),
        (
            "PATHS START ?x = :a END ?y VIA { ?x :p ?y } WEIGHT -1".to_owned(),
            "not below zero",
        ),
        (
            "PATHS START ?x = :a END ?y VIA { ?x :p ?y } WEIGHT STR(?y)".to_owned(),
            "not below zero",
        ),
        (
            "PATHS START ?x = :a END ?y VIA { ?x :p ?y } WEIGHT \"1\"".to_owned(),
            "not below zero",
        ),
        (
            "PATHS START ?x = :a END ?y VIA { ?x :p ?y } WEIGHT ?none".to_owned(),
            "COALESCE",
        ),
        (
            "SELECT * { GRAPH ?g { SERVICE path:search { [] path:findPath path:allPaths } } }"
                .to_owned(),
            "inside of GRAPH",
        ),
    ] {
        match rows(&fixture, &query, &options(1)) {
            Ok(rows) => panic!("{query}: {rows:?}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(reason), "{query}: {text}");
            }
        }
    }
}

#[test]
fn a_search_too_large_for_the_memory_is_refused() {
    let mut trig = String::from("@prefix : <http://e/> .\n");
    for node in 0..40_000_u32 {
        for edge in 1..4 {
            trig += &format!(":n{node} :p :n{} .\n", (node * 7 + edge * 131) % 40_000);
        }
    }
    let engine = orrery_sparql::EngineOptions {
        memory_bytes: 16 << 20,
        ..Default::default()
    };
    let fixture = Fixture::with_options(&trig, engine);
    let few = rows(
        &fixture,
        "PATHS ANY SHORTEST START ?x = :n1 END ?y = :n138 VIA :p",
        &options(0),
    );
    assert_eq!(few.unwrap().len(), 1);
    let error = rows(
        &fixture,
        "PATHS SHORTEST 100000 START ?x = :n1 END ?y = :n39999 VIA { ?x :p ?y }",
        &options(0),
    );
    let error = error.expect_err("more than the memory");
    assert!(matches!(error, QueryError::OutOfMemory { .. }), "{error:?}");
}

#[test]
fn algorithms_go_over_the_edges_of_a_pattern() {
    let fixture = chain();
    let ask = |algorithm: &str, columns: &str, plan: u32| {
        let query = format!(
            "PREFIX algo: <https://orrery-db.org/algorithm#> SELECT * {{ {{ SELECT {columns} {{ SERVICE algo:run {{
                [] algo:algorithm algo:{algorithm} ; algo:node ?n ; algo:startNode ?s ; algo:endNode ?o .
                SERVICE <urn:edges> {{ ?s :p ?o }} }} }} }} }} ORDER BY ?n"
        );
        rows(&fixture, &query, &options(plan)).unwrap()
    };
    for plan in 0..4 {
        let degrees = "degree ; algo:value ?d ; algo:inDegree ?i ; algo:outDegree ?u";
        let expected = [
            "d=\"2\" i=\"0\" n=<a> u=\"2\"",
            "d=\"2\" i=\"1\" n=<b> u=\"1\"",
            "d=\"3\" i=\"2\" n=<c> u=\"1\"",
            "d=\"1\" i=\"1\" n=<d> u=\"0\"",
        ];
        assert_eq!(ask(degrees, "?n ?d ?i ?u", plan), expected);
        let expected = [
            "n=<a> t=\"1\"",
            "n=<b> t=\"1\"",
            "n=<c> t=\"1\"",
            "n=<d> t=\"0\"",
        ];
        assert_eq!(ask("triangles ; algo:value ?t", "?n ?t", plan), expected);
        let expected = ["c=<a> n=<a>", "c=<a> n=<b>", "c=<a> n=<c>", "c=<a> n=<d>"];
        assert_eq!(
            ask("connectedComponents ; algo:value ?c", "?n ?c", plan),
            expected
        );
        assert_eq!(ask("communities ; algo:value ?c", "?n ?c", plan).len(), 4);
        let ranks = ask(
            "pageRank ; algo:iterations 50 ; algo:value ?r",
            "?n ?r",
            plan,
        );
        let ranks: Vec<f64> = ranks
            .iter()
            .map(|row| {
                let rank = fields(row)["r"].clone();
                rank.trim_start_matches('"')
                    .split('"')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{ranks:?}");
        assert!(
            ranks[3] > ranks[2] && ranks[2] > ranks[1] && ranks[1] > ranks[0],
            "{ranks:?}"
        );
    }
    for (settings, reason) in [
        ("algo:algorithm algo:rank", "algo:rank is not known"),
        ("algo:node ?n", "algo:algorithm is missing"),
        (
            "algo:algorithm algo:pageRank ; algo:damping 2",
            "from 0 to 1",
        ),
        (
            "algo:algorithm algo:pageRank ; algo:inDegree ?i",
            "only algo:degree",
        ),
        (
            "algo:algorithm algo:pageRank ; algo:node ?i ; algo:value ?i",
            "two things",
        ),
        (
            "algo:algorithm algo:pageRank ; algo:iterations 1000000",
            "10000 at most",
        ),
        (
            "algo:algorithm algo:pageRank . SERVICE <urn:edges> { ?s ?p ?o }",
            "algo:startNode",
        ),
        (
            "algo:algorithm algo:pageRank ; algo:node 1",
            "algorithm over a graph, algo:node takes a variable",
        ),
        ("algo:algorithm algo:pageRank . ?s ?p ?o", "no setting"),
    ] {
        let query = format!(
            "PREFIX algo: <https://orrery-db.org/algorithm#> SELECT * {{ SERVICE algo:run {{ [] {settings} }} }}"
        );
        let error = rows(&fixture, &query, &options(0))
            .expect_err(settings)
            .to_string();
        assert!(error.contains(reason), "{settings}: {error}");
    }
}
